/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* post_slow.h - the slow paths of requests (post_slow.c; calls.h has that of receives), the posts of
 * extensions, and functions for records that the files of posts share. */
#ifndef DAPL_POST_SLOW_H
#define DAPL_POST_SLOW_H
#include "dapl/core/dapl.h"

#define DAPL_POST_FLAGS \
	(DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_SOLICITED_WAIT_FLAG | DAT_COMPLETION_UNSIGNALLED_FLAG | \
	 DAT_COMPLETION_BARRIER_FENCE_FLAG)

/* In place of a counter: the request is not counted. */
enum { DAPL_NOT_COUNTED = DCNT_EP_ALL_COUNTERS };

/* What a request is, in its record and in the counters. */
struct dapl_post_kind {
	int op;			/* DAT_DTO_..., DAT_IB_DTO_... */
	unsigned flags;		/* REQ_... */
	unsigned counter;	/* DCNT_EP_POST_..., whose _DATA follows it; or DAPL_NOT_COUNTED */
};
static const struct dapl_post_kind DAPL_POST_SEND = { DAT_DTO_SEND, 0, DCNT_EP_POST_SEND };
static const struct dapl_post_kind DAPL_POST_WRITE = { DAT_DTO_RDMA_WRITE, 0, DCNT_EP_POST_WRITE };
static const struct dapl_post_kind DAPL_POST_READ = { DAT_DTO_RDMA_READ, 0, DCNT_EP_POST_READ };

/* These take any list of segments and any flags. The arguments are those of the DAT call. */
DAT_RETURN dapl_send_any(struct dapl_ep *ep, DAT_COUNT n, const DAT_LMR_TRIPLET *iov,
			 DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags);
DAT_RETURN dapl_write_any(struct dapl_ep *ep, DAT_COUNT n, const DAT_LMR_TRIPLET *iov,
			  DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
			  DAT_COMPLETION_FLAGS flags);
DAT_RETURN dapl_read_any(struct dapl_ep *ep, DAT_COUNT n, const DAT_LMR_TRIPLET *iov,
			 DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
			 DAT_COMPLETION_FLAGS flags);
/* Posts a send or an RDMA write of any list of segments. `room` is the size of the target in bytes. */
DAT_RETURN dapl_post_gather(struct dapl_ep *ep, DAT_COUNT n, const DAT_LMR_TRIPLET *iov,
			    DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags,
			    struct ibv_send_wr *wr, int max_iov, uint64_t room, const struct dapl_post_kind *kind);

/* Posts a request whose wr lacks only wr_id and the flags that the consumer's completion
 * flags stand for. */
DAT_RETURN dapl_ep_post_request(struct dapl_ep *ep, struct ibv_send_wr *wr, uint32_t length,
				DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags,
				const struct dapl_post_kind *kind);
/* The extended operations with immediate data, with their errors. */
DAT_RETURN dapl_ep_post_send_immed(struct dapl_ep *ep, DAT_COUNT n, const DAT_LMR_TRIPLET *iov,
				   DAT_DTO_COOKIE cookie, DAT_UINT32 immediate,
				   DAT_COMPLETION_FLAGS flags);
DAT_RETURN dapl_ep_post_write_immed(struct dapl_ep *ep, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
				    DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
				    DAT_UINT32 immediate, DAT_COMPLETION_FLAGS flags);

/* Returns the record of the next request, and in *to its send flags, or NULL if the queue is full. Called
 * with ep->sq.lock held. */
struct dapl_dto *dapl_post_take_record(struct dapl_ep *ep, uint32_t length, DAT_DTO_COOKIE cookie,
				       DAT_COMPLETION_FLAGS flags, const struct dapl_post_kind *kind,
				       unsigned *to);
/* Called with q->lock held when the post of the next record succeeded. */
void dapl_post_commit(struct dapl_ep *ep, struct dapl_queue *q, unsigned counter, uint32_t length);
/* Returns the error of a post that the state does not allow. */
DAT_RETURN dapl_post_bad_state(struct dapl_ep *ep);
/* Traces a post that the device refused. Returns its error. */
DAT_RETURN dapl_post_refused(struct dapl_ep *ep, int err);

/* Enters the endpoint of a post that needs more than the queue's lock guards. Returns NULL if the endpoint
 * was freed. */
static inline struct dapl_ep *dapl_post_enter(struct dapl_ep *ep)
{
	return dapl_ep_enter((DAT_HANDLE)ep);
}

/* Returns true if the device has queued the request although it returned this error. Then a completion
 * follows. */
static inline bool dapl_post_stands(const struct dapl_ep *ep, int err)
{
	return err == -1 && ep->obj.ia->attr.no_late_flush;
}

/* Returns the send flags of a SUPPRESS post. One in every half queue is signaled, so that its completion
 * gives the records back. */
static inline unsigned dapl_post_suppressed(struct dapl_queue *q, struct dapl_dto *dto)
{
	dto->flags |= REQ_SUPPRESS;
	if (++q->unsignaled * 2 > q->limit) {
		q->unsignaled = 0;
		return IBV_SEND_SIGNALED;
	}
	dto->flags |= REQ_UNSIGNALED;
	return 0;
}

/* Returns IBV_SEND_INLINE if the payload may go inline. Never sets it for length 0. Called with sq.lock
 * held. */
static inline unsigned inline_flag(const struct dapl_ep *ep, uint32_t length)
{
	return -(unsigned)(length - 1 < ep->max_inline) & IBV_SEND_INLINE;
}

/* These two complete a post to a queue pair in ERR as flushed, because the device would never complete it
 * (no_late_flush). Called with no lock held. */
DAT_RETURN dapl_post_late(struct dapl_ep *ep, uint32_t length, DAT_DTO_COOKIE cookie,
			  DAT_COMPLETION_FLAGS flags, const struct dapl_post_kind *kind, DAT_RMR_HANDLE rmr);
DAT_RETURN dapl_post_late_receive(struct dapl_ep *ep, uint32_t length, DAT_DTO_COOKIE cookie,
				  unsigned dto_flags);

/* A request that binds a memory window, or unbinds it (length 0 for type 1, `invalidate` for type 2). */
struct dapl_bind {
	struct ibv_mw *mw;
	struct ibv_mw_bind_info info;
	bool invalidate;
};
/* Posts it. `silent`: it makes no event. On return bind->mw->rkey is the new rkey. */
DAT_RETURN dapl_ep_post_bind(struct dapl_ep *ep, const struct dapl_bind *bind,
			     DAT_RMR_HANDLE rmr, DAT_RMR_COOKIE cookie,
			     DAT_COMPLETION_FLAGS flags, bool silent);

/* Posts a marker, a signaled request that completes after all others. `flushing`: the QP is in ERR. Returns
 * 0 or an errno. Called with ep->lock held. */
int dapl_ep_post_marker(struct dapl_ep *ep, bool flushing);

#endif
