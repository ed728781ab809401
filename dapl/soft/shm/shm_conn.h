/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* shm_conn.h - a connection whose data goes through rings in shared memory instead of TCP. */
#ifndef SOFT_SHM_CONN_H
#define SOFT_SHM_CONN_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include "dapl/soft/shm/proto_table.h"
#include "dapl/soft/shm/shm_ring.h"
#include "dapl/soft/wire/message.h"

struct dapl_conn;
struct ibv_send_wr;
struct rmem_view;
struct shm_process;
struct shm_segment;
struct soft_qp;
struct wire_segment;

/* The rings of a connection whose data does not go over TCP. */
struct shm_conn {
	struct dapl_conn *conn;
	struct ring_rx rx;		/* changes with both locks held; each suffices to read it */
	bool rx_error;			/* a malformed message is at the head; locks as for rx */
	bool rx_stalled;		/* the message at the head waits for its payload; locks as for rx */
	uint32_t seen;			/* count of the last ring_ack read; progress lock */
	bool ack_owed;			/* an acknowledgement is to be sent or read; progress lock */
	struct ring_tx tx;		/* guarded as conn->stream, and so are the fields below */
	bool ack_waits;			/* the acknowledgement in the last message is not read yet */
	uint32_t ack_delivered, ack_consumed;
	struct shm_segment *segment;
	struct shm_process *peer, *own;	/* of the segment */
	uint8_t *fallback_out;		/* of the segment */
	const uint8_t *fallback_in;
	const struct ring_grant *grant;	/* what the peer grants */
	uint32_t pending_nr;		/* number in the pending bitmap, and 1; 0: none. Progress lock */
	bool pending_asked;		/* the peer was asked to mark this ring. Progress lock */
	uint32_t hits;			/* messages found since the ring came to the front */
	struct proto_state proto;	/* of protocol selection */
	uint32_t direct;		/* accesses made by CMA */
	uint32_t mapped;		/* accesses made to mapped regions */
	struct rmem_view *views;	/* mapped regions of the peer; NULL: none */
	/* Payloads sent by rendezvous, which the peer copies, by slot. */
	struct rndv_slot {
		uint32_t slot, wqe, length;
		uint64_t offset;	/* in the request */
	} *rndv_slots;			/* NULL: none yet */
	bool peer_cannot_copy;		/* no more payloads are sent by rendezvous */
	uint32_t fallbacks_given;
	/* Payloads of the peer sent by rendezvous, which this side copies. */
	uint32_t fetched;		/* payloads copied */
	uint32_t fallbacks_requested;
	struct soft_message waiting;	/* the message at the head while rx_stalled is set */
	bool payload_withdrawn;		/* only the end of the stream may follow */
	struct iovec *window;		/* mapped window of the peer (revoke.c) */
	uint64_t window_at;		/* offset of the window; 0: it has no iovec */
	char *bounce;			/* CMA_SHORT_MAX bytes, which the iovec names; NULL: none
					 * yet */
	TAILQ_ENTRY(shm_conn) link;	/* dev->rings.list */
};

/* Takes over the reference to the segment, also when it fails. NULL: no memory. */
struct shm_conn *shm_conn_new(struct dapl_conn *conn, struct shm_segment *segment);
void shm_conn_free(struct shm_conn *shm);

/* Puts one segment into the ring: `body`, or if that is empty the payload. The caller holds the
 * locks that soft_conn_send() needs. */
void shm_conn_put(struct dapl_conn *conn, const struct wire_segment *segment, const void *body, uint32_t body_length,
		  const struct iovec *payload, int pieces, uint32_t length);
/* Returns true if payloads may be sent by rendezvous, which means that the peer copies them. */
bool rndv_may_send(struct shm_conn *shm);
/* Puts a message whose payload the peer copies from here. The payload is that of request `wqe` from
 * byte `offset` on. rndv_may_send() was true, and the ring has room for a message without payload. */
void rndv_send(struct dapl_conn *conn, const struct wire_segment *segment, uint32_t wqe, uint64_t offset,
	       const struct iovec *payload);
/* The payloads sent by rendezvous may change from now on: the peer discards what it copies after
 * the return. qp->lock held. */
void rndv_cancel(struct dapl_conn *conn);
void shm_conn_send_ack(struct dapl_conn *conn);

/* Fast path: executes or sends one request of one segment if no request is before it and the ring
 * has room. Returns false if the request needs the slow path, and nothing was done. conn->shm is set. */
bool shm_conn_post(struct soft_qp *qp, struct dapl_conn *conn, const struct ibv_send_wr *wr);
/* The same for a short Send during a capture, which is recorded. Returns false if the request, or its record, needs the
 * slow path, and nothing was done. */
bool shm_conn_post_recorded(struct soft_qp *qp, struct dapl_conn *conn, const struct ibv_send_wr *wr);
/* Executes the request just posted by CMA, if it is a write or a read, no request is before it, and
 * the peer is idle. If true, the caller calls soft_requester_complete(). If false, it is to be sent, and
 * nothing was done. */
bool shm_conn_post_cma(struct soft_qp *qp, struct dapl_conn *conn);

/* Returns true if the ring holds a message that can be executed, or an acknowledgement. Progress lock held. */
static inline bool shm_conn_ready(const struct shm_conn *shm)
{
	return (ring_ready(&shm->rx) && !(shm->rx_error | shm->rx_stalled)) ||
	       __atomic_load_n(&shm->tx.ack->count, __ATOMIC_RELAXED) != shm->seen;
}

#endif
