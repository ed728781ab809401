/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* post_slow.h - what the posting files share: the slow paths that the fast ones go on with
 * (post_slow.c; post_recv.h has that of receives), the posts of extensions, and the records of posts. */
#ifndef DAPL_POST_SLOW_H
#define DAPL_POST_SLOW_H
#include "dapl/core/dapl.h"

#define DAPL_POST_FLAGS (DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_SOLICITED_WAIT_FLAG | \
		    DAT_COMPLETION_UNSIGNALLED_FLAG | DAT_COMPLETION_BARRIER_FENCE_FLAG)

/* No counter. */
enum { DAPL_NOT_COUNTED = DCNT_EP_ALL_COUNTERS };

/* Any list of segments, any flags. The arguments are those of the DAT call. */
DAT_RETURN dapl_send_any(struct dapl_ep *ep, DAT_COUNT n, const DAT_LMR_TRIPLET *iov,
			 DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags);
DAT_RETURN dapl_write_any(struct dapl_ep *ep, DAT_COUNT n, const DAT_LMR_TRIPLET *iov,
			  DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
			  DAT_COMPLETION_FLAGS flags);
DAT_RETURN dapl_read_any(struct dapl_ep *ep, DAT_COUNT n, const DAT_LMR_TRIPLET *iov,
			 DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
			 DAT_COMPLETION_FLAGS flags);
/* What send and RDMA write share: any list of segments, `room` bytes at the target. */
DAT_RETURN dapl_post_gather(struct dapl_ep *ep, DAT_COUNT n, const DAT_LMR_TRIPLET *iov,
			    DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags,
			    struct ibv_send_wr *wr, int max_iov, uint64_t room, int op,
			    unsigned dto_flags, unsigned counter);

/* Posts a request whose wr lacks only wr_id and the flags that the consumer's completion
 * flags stand for. `counter` is the DCNT_EP_POST_... whose _DATA follows it. */
DAT_RETURN dapl_ep_post_request(struct dapl_ep *ep, struct ibv_send_wr *wr, uint32_t length,
				DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags, int op,
				unsigned dto_flags, unsigned counter);
/* With immediate data: the extended operations, with their errors. */
DAT_RETURN dapl_ep_post_send_immed(struct dapl_ep *ep, DAT_COUNT n, const DAT_LMR_TRIPLET *iov,
				   DAT_DTO_COOKIE cookie, DAT_UINT32 immediate,
				   DAT_COMPLETION_FLAGS flags);
DAT_RETURN dapl_ep_post_write_immed(struct dapl_ep *ep, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
				    DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
				    DAT_UINT32 immediate, DAT_COMPLETION_FLAGS flags);

/* ep->sq.lock held. The record of the next request, and in *to its send flags. Returns NULL if the
 * queue is full. */
struct dapl_dto *dapl_post_take_record(struct dapl_ep *ep, uint32_t length, DAT_DTO_COOKIE cookie,
				       DAT_COMPLETION_FLAGS flags, int op, unsigned dto_flags,
				       unsigned *to);
/* q->lock held. The post of the next record succeeded. */
void dapl_post_commit(struct dapl_ep *ep, struct dapl_queue *q, unsigned counter, uint32_t length);
/* The state does not allow the post: what the call returns. */
DAT_RETURN dapl_post_bad_state(struct dapl_ep *ep);
/* The device refused the post. */
DAT_RETURN dapl_post_refused(struct dapl_ep *ep, int err);

/* Enters the endpoint of a post, which needs more than the queue's lock guards. Returns NULL if
 * the endpoint was freed. */
static inline struct dapl_ep *dapl_post_enter(struct dapl_ep *ep)
{
	return dapl_ep_enter((DAT_HANDLE)ep);
}

/* True if the device reported an error but has queued the request all the same: a completion
 * follows. */
static inline bool dapl_post_stands(const struct dapl_ep *ep, int err)
{
	return err == -1 && ep->obj.ia->attr.no_late_flush;
}

/* SUPPRESS posts make no completion, except one in every half queue, so that records are given
 * back. */
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

/* sq.lock held. Not when length is 0. */
static inline unsigned inline_flag(const struct dapl_ep *ep, uint32_t length)
{
	return -(unsigned)(length - 1 < ep->max_inline) & IBV_SEND_INLINE;
}

#endif
