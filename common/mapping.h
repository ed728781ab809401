/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mapping.h - what the kernel reports of this process's memory, mapping by mapping. */
#ifndef COMMON_MAPPING_H
#define COMMON_MAPPING_H
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct mapping {
	uintptr_t from, to;		/* the bytes [from, to) */
	bool shared, readable, writable;
	dev_t device;			/* of the mapped file; inode 0: no file */
	ino_t inode;
	uint64_t offset;		/* of `from` in it */
};

/* Opens the list of mappings, which fclose() closes. NULL: it cannot be read (errno). */
FILE *mapping_open(void);
/* Reads the next mapping, in the order of addresses. Returns false at the end. */
bool mapping_next(FILE *list, struct mapping *m);

#endif
