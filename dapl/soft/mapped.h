/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mapped.h - memory regions that peers on this host map: what is written to one, read from it or
 * changed by an atomic is the initiator's own store, load or instruction. doc/design/soft-direct.md says which regions they are, and
 * why nobody writes there too late. */
#ifndef SOFT_MAPPED_H
#define SOFT_MAPPED_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dapl_conn;
struct dapl_mapping;
struct ibv_send_wr;
struct soft_pair;

/* The target. The file that this memory is a shared mapping of, if peers can map it, too: a memfd
 * that can't shrink and of which this process has a descriptor. Returns a new descriptor,
 * to be closed, and where in the file the memory begins; -1: it's not like that. */
int soft_mapped_file(const void *memory, size_t length, uint64_t *offset);

/* The initiator; qp->lock held, and nothing is before the write that the target has not executed.
 * False: the region is not mapped, or this is not permitted, and nothing was stored there. */
bool soft_mapped_write(struct dapl_conn *conn, uint32_t stag, uint64_t remote, const char *from,
		       uint32_t length);
/* ... and what was stored at `to`, our own, is not to be given out. */
bool soft_mapped_read(struct dapl_conn *conn, uint32_t stag, uint64_t remote, char *to,
		      uint32_t length);
/* Fetch-add or compare-swap; the 8 bytes that were there. */
bool soft_mapped_atomic(struct dapl_conn *conn, const struct ibv_send_wr *wr, char *to);
void soft_mapped_free(struct soft_pair *pair);
/* Maps what may be written by RDMA, for the consumer to do with as he likes. EOPNOTSUPP: it can't be;
 * EACCES: he may not. */
int soft_mapped_for_consumer(const struct dapl_conn *conn, uint32_t stag, uint64_t remote,
			     uint64_t length, struct dapl_mapping *mapping);

#endif
