/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cma.h - copies from and to the memory of a peer process, by the kernel: requests that this side executes
 * alone, and the payloads of a rendezvous. doc/design/soft-shared-memory.md argues why it is safe. */
#ifndef SOFT_CMA_H
#define SOFT_CMA_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "common/once.h"

struct dapl_conn;
struct iovec;
struct shm_conn;
struct soft_qp;
struct soft_swqe;

/* Executes the request at the cursor, the only one outstanding, in the memory of the peer. Returns false if CMA is not
 * permitted, or failed, and the request is to be sent. If true, the caller calls soft_requester_complete().
 * qp->lock held. */
bool cma_execute(struct soft_qp *qp, struct dapl_conn *conn, struct soft_swqe *wqe);
/* Executes a large read. All requests before it have been executed. Returns false if CMA failed, and the read
 * takes the ring. qp->lock held. */
bool cma_read(const struct soft_qp *qp, struct dapl_conn *conn, struct soft_swqe *wqe);
/* Reads into `to`, local memory. No request is before it. Returns false if CMA failed, and the bytes at `to` may have
 * changed. qp->lock held. */
bool cma_read_now(struct dapl_conn *conn, uint32_t stag, uint64_t remote, char *to, uint32_t length);
/* Allows, or no longer allows, the peer to copy payloads that were sent by rendezvous. After
 * rndv_disable() the peer discards what it copies. qp->lock held. */
void rndv_enable(struct shm_conn *shm);
void rndv_disable(struct shm_conn *shm);
/* Copies the payload of a rendezvous from the memory of the peer. Returns false if this process may not, or
 * the payload was withdrawn. */
bool rndv_fetch(struct dapl_conn *conn, uint64_t address, const struct iovec *to, int pieces, uint32_t length);
/* Returns true if the peer has withdrawn its payloads for good. */
bool rndv_is_cancelled(const struct dapl_conn *conn);

#endif
