/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rmem_map.h - maps memory regions of peers on this host: a write, a read or an atomic to one is
 * the initiator's own store, load or instruction. doc/design/soft-shared-memory.md says which
 * regions can be mapped, and why no store comes too late. */
#ifndef SOFT_RMEM_MAP_H
#define SOFT_RMEM_MAP_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dapl_conn;
struct dapl_mapping;
struct ibv_send_wr;
struct shm_conn;

/* The target. Finds the file that this memory is a shared mapping of, if peers can map it, too: a
 * memfd that cannot shrink and of which this process has a descriptor. Returns a new descriptor,
 * which the caller closes, and the offset of the memory in the file; -1: there is no such file. */
int rmem_map_file(const void *memory, size_t length, uint64_t *offset);

/* The initiator. Executes a write, if the target has executed all requests before it. Returns false if the
 * region is not mapped, or this is not permitted, and nothing was stored there. qp->lock held. */
bool rmem_map_write(struct dapl_conn *conn, uint32_t stag, uint64_t remote, const char *from, uint32_t length);
/* Executes a read in the same way. Returns false if that is not possible; then the bytes stored at `to`, local
 * memory, must not be given to the application. */
bool rmem_map_read(struct dapl_conn *conn, uint32_t stag, uint64_t remote, char *to, uint32_t length);
/* Executes a fetch-add or compare-swap in the same way; stores the 8 bytes that were there before
 * at `to`. */
bool rmem_map_atomic(struct dapl_conn *conn, const struct ibv_send_wr *wr, char *to);
void rmem_map_free(struct shm_conn *shm);
/* Maps memory that may be written by RDMA, for the application to use as it likes. 0; EOPNOTSUPP:
 * it cannot be mapped; EACCES: writing is not permitted. */
int rmem_map_for_consumer(const struct dapl_conn *conn, uint32_t stag, uint64_t remote, uint64_t length,
			  struct dapl_mapping *mapping);

#endif
