/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* request.h - HOT: records of posted requests. A record has the data of a completion event that verbs do
 * not return: cookie, operation, length. wr_id is the address of the record.
 *
 * A queue pair direction has a ring of them. Completions of one direction come in posting order, so
 * records are taken at head and given back at tail: head moves under queue->lock (posters); tail moves
 * under the lock of the EVD that the queue completes to (one at a time), and is stored with release: a
 * poster that sees room sees a record that is no longer used (DTO-33). An SRQ completes in any order: its
 * records form a free list instead (srq.c). */
#ifndef DAPL_REQUEST_H
#define DAPL_REQUEST_H
#include <dat/udat.h>
#include <stdbool.h>
#include <stdint.h>
#include "common/post_lock.h"

struct dapl_ep;
struct dapl_srq;

enum dapl_request_flags {
	REQ_SUPPRESS = 1,	/* no event when it succeeds */
	REQ_NO_NOTIFY = 2,	/* an event, but not a notification event */
	REQ_MARKER = 4,		/* a request of the provider's own, which retires the requests before it */
	REQ_BIND = 8,		/* its event is DAT_RMR_BIND_COMPLETION_EVENT */
	REQ_EXTENSION = 16,	/* its event is DAT_IB_DTO_EVENT */
	REQ_SRQ = 32,		/* belongs to an SRQ, not to an endpoint's queue */
	REQ_UNSIGNALED = 64,	/* no completion when it succeeds */
	/* The fast path does not take successful completions of these. */
	REQ_NOT_PLAIN = REQ_SUPPRESS | REQ_MARKER | REQ_BIND | REQ_EXTENSION | REQ_SRQ,
};

struct dapl_dto {
	DAT_DTO_COOKIE cookie;
	union {
		struct dapl_ep *ep;
		struct dapl_srq *srq;		/* REQ_SRQ */
	};
	union {
		DAT_RMR_HANDLE rmr;		/* REQ_BIND */
		struct dapl_dto *next;	/* free list of an SRQ */
	};
	uint32_t length;	/* posted bytes, which a send or write transfers */
	uint32_t end;		/* position in the queue: value of head after the post */
	uint8_t op;		/* DAT_DTOS or DAT_IB_DTOS */
	uint8_t flags;
};

struct dapl_queue {
	struct dapl_post_lock lock;	/* guards the fields below except tail and failed, and the posting itself */
	uint32_t head;
	uint32_t room;		/* limit, or 0: posts take the slow path (dapl_ep_set_room) */
	uint32_t limit;		/* the consumer's, of max_request_dtos or max_recv_dtos */
	uint32_t markers;	/* markers of the provider since the reset; each has raised limit by 1 */
	uint32_t mask;		/* ring size - 1; the ring has room for markers, too */
	uint32_t unsignaled;	/* unsignaled requests since the last signaled one */
	bool in_error;		/* the QP went to ERR, or is about to (terminate.c) */
	bool fenced;		/* a request with a fence may wait in the device, so no payload is copied when
				 * it is posted: room is 0, and nothing is sent inline. DTO-36, 37 */
	uint32_t fence;		/* fenced: the position behind the last request with a fence */
	uint32_t flushed_to;	/* in_error: posts before this position have completions
				 * (dapl_evd_flush_posts) */
	struct dapl_dto *ring;
	uint32_t tail __attribute__((aligned(64)));	/* on the cache line of the completing
							 * side */
	bool failed;		/* a failed request was dequeued; guarded by the EVD's lock, read also without */
};

/* Returns the number of records that were not given back. Called with q->lock held. */
static inline uint32_t dapl_queue_used(const struct dapl_queue *q)
{
	assert_held(&q->lock);
	return q->head - __atomic_load_n(&q->tail, __ATOMIC_ACQUIRE);
}

/* The same as dapl_queue_used for callers that do not hold q->lock. */
static inline uint32_t dapl_queue_count(struct dapl_queue *q)
{
	uint32_t used;

	dapl_post_lock(&q->lock);
	used = dapl_queue_used(q);
	dapl_post_unlock(&q->lock);
	return used;
}

/* Returns the next record of a queue that has room. dapl_queue_commit makes it valid. Called by a poster
 * with q->lock held. */
static inline struct dapl_dto *dapl_queue_next(struct dapl_queue *q)
{
	return &q->ring[q->head & q->mask];
}

static inline void dapl_queue_commit(struct dapl_queue *q)
{
	q->head++;
}

/* Gives back the records of this request and of all before it. Called by the completing side with the EVD's
 * lock held. */
static inline void dapl_queue_retire(struct dapl_queue *q, const struct dapl_dto *req)
{
	__atomic_store_n(&q->tail, req->end, __ATOMIC_RELEASE);
}

/* Empties the ring. The QP has no requests, and its EVD has no completions of them. */
static inline void dapl_queue_empty(struct dapl_queue *q)
{
	dapl_post_lock(&q->lock);
	q->head = 0;
	__atomic_store_n(&q->tail, 0, __ATOMIC_RELEASE);
	q->unsignaled = q->flushed_to = 0;
	q->limit -= q->markers;
	q->markers = 0;
	q->in_error = q->failed = q->fenced = false;
	dapl_post_unlock(&q->lock);
}

#endif
