/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* siw_table.h - finds what belongs to a verbs object, by its address. Verbs objects belong to libsiw and
 * have no room for a pointer of the provider. */
#ifndef SIW_TABLE_H
#define SIW_TABLE_H

/* The first member of a structure that belongs to a verbs object. */
struct siw_entry {
	const void *object;
	struct siw_entry *next;
};

/* Returns NULL for an object of another device. */
struct siw_entry *siw_table_find(const void *object);
void siw_table_add(struct siw_entry *e, const void *object);
/* Removes the entry of `object` and returns it, or NULL. */
struct siw_entry *siw_table_remove(const void *object);

#endif
