/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mapped.h - memory regions that peers on this host map: a write to one is stored by the
 * initiator itself, and is done. doc/design/soft-direct.md says which regions they are, and
 * why nobody writes there too late. */
#ifndef SOFT_MAPPED_H
#define SOFT_MAPPED_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dapl_conn;
struct soft_pair;

/* The target. The file that this memory is a shared mapping of, if peers can map it, too: a memfd
 * that can't shrink and of which this process has a descriptor. Returns a new descriptor,
 * to be closed, and where in the file the memory begins; -1: it's not like that. */
int soft_mapped_file(const void *memory, size_t length, uint64_t *offset);

/* The initiator; qp->lock held, and nothing is before the write that the target has not executed.
 * False: the region is not mapped, or the write is not permitted, and nothing was stored. */
bool soft_mapped_write(struct dapl_conn *conn, uint32_t stag, uint64_t remote, const char *from,
		       uint32_t length);
void soft_mapped_free(struct soft_pair *pair);

#endif
