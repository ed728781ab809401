/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* shm_conn.h - a connection whose data goes through rings in shared memory instead of TCP. */
#ifndef SOFT_SHM_CONN_H
#define SOFT_SHM_CONN_H
#include "dapl/soft/soft.h"

/* Takes over the reference to the segment, also when it fails. NULL: no memory. */
struct shm_conn *shm_conn_new(struct dapl_conn *conn, struct shm_segment *segment);
void shm_conn_free(struct shm_conn *shm);

/* Puts one segment into the ring: `body`, or if that is empty the payload. The caller holds the
 * locks that soft_tcp_send() needs. */
void shm_conn_put(struct dapl_conn *conn, const struct wire_segment *segment,
		   const void *body, uint32_t body_length, const struct iovec *payload,
		   int pieces, uint32_t length);
/* True: payloads may be sent by rendezvous, which means that the peer copies them. */
bool rndv_may_send(struct shm_conn *shm);
/* Puts a message whose payload the peer copies from here. The payload is that of request `wqe` from
 * byte `offset` on. rndv_may_send() was true, and the ring has room for a message without payload. */
void rndv_send(struct dapl_conn *conn, const struct wire_segment *segment, uint32_t wqe,
		    uint64_t offset, const struct iovec *payload);
/* The payloads sent by rendezvous may change from now on: the peer discards what it copies after
 * the return. qp->lock held. */
void rndv_cancel(struct dapl_conn *conn);
void shm_conn_send_ack(struct dapl_conn *conn);

/* Fast path: executes or sends one request of one segment if no request is before it and the ring
 * has room. False: the request needs the slow path, and nothing was done. conn->shm is set. */
bool shm_conn_post(struct soft_qp *qp, struct dapl_conn *conn, const struct ibv_send_wr *wr);
/* Executes the request just posted by CMA, if it is a write or a read, no request is before it, and
 * the peer is idle or descheduled. False: it is to be sent, and nothing was done. */
bool shm_conn_post_cma(struct soft_qp *qp, struct dapl_conn *conn);
/* Requests that were sent through a ring have become complete. qp->lock held. */
void shm_conn_done(const struct soft_qp *qp, struct dapl_conn *conn);

/* True: the ring holds a message that can be executed, or an acknowledgement. Progress lock held. */
static inline bool shm_conn_ready(const struct shm_conn *shm)
{
	return (ring_ready(&shm->rx) && !(shm->rx_error | shm->rx_stalled)) ||
	       __atomic_load_n(&shm->tx.ack->count, __ATOMIC_RELAXED) != shm->seen;
}
/* Executes the messages in the ring, up to a budget, and evaluates acknowledgements. `later`: an
 * acknowledgement that came in a message may stay in shm->ack_waits, so that received messages
 * complete first; the caller then sets shm->ack_owed. The caller holds the locks that
 * soft_tcp_receive() needs. False: nothing of it allows this side to send more. */
bool shm_conn_receive(struct dapl_conn *conn, bool later);

#endif
