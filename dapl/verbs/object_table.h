/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* object_table.h - finds what belongs to a verbs object, by its address. Verbs objects belong to a driver and
 * have no room for a pointer of the provider. */
#ifndef OBJECT_TABLE_H
#define OBJECT_TABLE_H

/* The first member of a structure that belongs to a verbs object. */
struct object_entry {
	const void *object;
	struct object_entry *next;
};

/* Returns NULL for an object of another device. */
struct object_entry *object_table_find(const void *object);
void object_table_add(struct object_entry *e, const void *object);
/* Removes the entry of `object` and returns it, or NULL. */
struct object_entry *object_table_remove(const void *object);

#endif
