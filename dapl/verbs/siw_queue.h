/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* siw_queue.h - a send queue in front of the one of the kernel's Soft-iWARP (seen in Linux 6.1): which
 * requests are posted to the device and when, and the order of completions. It makes no object, and
 * takes no lock.
 *
 * A siw queue pair transmits one request at a time. A request that waits (with a fence, for RDMA reads to
 * be answered; or a read, when as many are out as the peer allows) occupies the transmitter, and the
 * answers to the peer's reads wait behind it. When both ends wait, neither gets its answers: a deadlock.
 * Moreover requests complete when they are sent, but reads when they are answered, so without a fence
 * completions overtake those of reads.
 *
 * So the kernel never gets a request that would have to wait, and no fence: such requests, and
 * those behind them, are held here and posted when reads complete. Completions that overtook a
 * read are held, too, and handed out in the order of the posts. Each poll of the CQ does both.
 *
 * When siw flushes, it may complete a read twice; the second completion is dropped here.
 *
 * A payload of up to SHORT bytes in one segment that crosses a page boundary is sent with wrong bytes: as
 * many as lie on the second page are taken from the first, and the other way round. A send or an
 * RDMA write of that kind is inlined, which siw copies correctly. An RDMA read of such bytes at the
 * peer, which may be a siw, is split where the page ends, and what is posted behind it is held until
 * its second part is answered.
 *
 * Inline data is copied when it is held. Core posts none behind a fence, so a fenced payload is read when its
 * request is posted to siw.
 *
 * A CQ's lock guards the CQ and all queue pairs that send to it. All functions are called with it held. */
#ifndef SIW_QUEUE_H
#define SIW_QUEUE_H
#include "common/lock.h"
#include "dapl/core/base/service.h"
#include "object_table.h"
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

enum request_state { REQUEST_HELD, REQUEST_POSTED, REQUEST_COMPLETE };

/* A request; its address is the wr_id that the kernel sees. */
struct request {
	struct siw_qp *qp;
	uint32_t index;			/* place in the queue, counted from the first post */
	enum request_state state;
	bool is_read, signaled;		/* signaled: its user wants the completion */
	uint64_t wr_id;			/* its user's */
	struct ibv_send_wr wr;		/* held or split: the whole request, with sge and data */
	uint32_t rest;			/* bytes of a split read that are not posted yet */
	struct ibv_sge *sge;
	uint8_t *data;			/* of an inline request */
	struct ibv_wc wc;		/* complete */
};

struct siw_cq {
	struct object_entry entry;		/* first */
	struct ibv_cq *cq;
	struct dapl_mutex lock;
	struct ibv_wc *ready;		/* a ring: completions in the order to hand out */
	uint32_t head, count, size;	/* size is a power of two */
	uint32_t held;			/* requests of all its queue pairs that have not ended */
	uint32_t sends;			/* depths of its queue pairs: one completion may release all */
	bool watching;			/* the timer is started */
	struct dapl_timer timer;
};

/* Requests [tail, next_held) are posted or complete, [next_held, head) are held. */
struct siw_qp {
	struct object_entry entry;		/* first */
	struct ibv_qp *qp;
	struct siw_cq *cq;
	uint32_t head, next_held, tail;
	uint32_t done_to;		/* requests before this one are transmitted */
	uint32_t depth, mask;
	uint32_t reads_out, max_reads;
	uint32_t max_sge, max_inline;
	bool signal_all;		/* sq_sig_all: every request has a completion */
	struct request *split;		/* a split read that is out: all others wait */
	bool failed;			/* a failure was handed out: what follows is flushed */
	bool ended;			/* the connection has ended: no request is held any more */
	bool closed;			/* no completion is handed out any more */
	struct request *ring;
	struct ibv_sge *sges;
	uint8_t *data;
};

/* The functions of libsiw, the same for all contexts; written once, before the first object is made. */
extern struct siw_device {
	int (*post_send)(struct ibv_qp *, struct ibv_send_wr *, struct ibv_send_wr **);
	int (*poll_cq)(struct ibv_cq *, int, struct ibv_wc *);
} siw_device;

/* Posts a request, or holds it. Returns 0 or an errno; or -1 if the device returned -1, although the
 * request is in its queue. */
int siw_queue_post(struct siw_qp *q, struct ibv_send_wr *wr);
/* Takes the device's completions until `wanted` are ready, and posts the requests that need not wait any
 * more. Returns false if there is no memory. */
bool siw_queue_pull(struct siw_cq *cq, uint32_t wanted);
/* The connection has failed: held requests are not posted any more. Core flushes what did not complete
 * (no_late_flush). */
void siw_queue_end(struct siw_qp *q);

#endif
