/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* post.h - posting for the extensions and for RMRs (post.c). */
#ifndef DAPL_POST_H
#define DAPL_POST_H
#include "dapl/core/dapl.h"

/* Posts a request whose wr lacks only wr_id and the flags that the consumer's completion
 * flags stand for. `counter` is the DCNT_EP_POST_... whose _DATA follows it. */
DAT_RETURN dapl_ep_post_request(struct dapl_ep *ep, struct ibv_send_wr *wr, uint32_t length,
				DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags, int op,
				unsigned dto_flags, unsigned counter);
DAT_RETURN dapl_ep_post_send_immed(struct dapl_ep *ep, DAT_COUNT n, const DAT_LMR_TRIPLET *iov,
				   DAT_DTO_COOKIE cookie, DAT_UINT32 immediate,
				   DAT_COMPLETION_FLAGS flags);
DAT_RETURN dapl_ep_post_write_immed(struct dapl_ep *ep, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
				    DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
				    DAT_UINT32 immediate, DAT_COMPLETION_FLAGS flags);

/* Binding a memory window, or (length 0 for type 1, `invalidate` for type 2) unbinding. */
struct dapl_bind {
	struct ibv_mw *mw;
	struct ibv_mw_bind_info info;
	bool invalidate;
};
/* `silent`: no event of its own. The new rkey is in bind->mw->rkey on return. */
DAT_RETURN dapl_ep_post_bind(struct dapl_ep *ep, const struct dapl_bind *bind,
			     DAT_RMR_HANDLE rmr, DAT_RMR_COOKIE cookie,
			     DAT_COMPLETION_FLAGS flags, bool silent);

DAT_RETURN dapl_ep_post_send(DAT_EP_HANDLE handle, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
			     DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags);
DAT_RETURN dapl_ep_post_send_with_invalidate(DAT_EP_HANDLE handle, DAT_COUNT n,
					     DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
					     DAT_COMPLETION_FLAGS flags, DAT_BOOLEAN invalidate,
					     DAT_RMR_CONTEXT context);
DAT_RETURN dapl_ep_post_rdma_write(DAT_EP_HANDLE handle, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
				   DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
				   DAT_COMPLETION_FLAGS flags);
DAT_RETURN dapl_ep_post_rdma_read(DAT_EP_HANDLE handle, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
				  DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
				  DAT_COMPLETION_FLAGS flags);
DAT_RETURN dapl_ep_post_rdma_read_to_rmr(DAT_EP_HANDLE handle, const DAT_RMR_TRIPLET *local,
					 DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
					 DAT_COMPLETION_FLAGS flags);
DAT_RETURN dapl_ep_post_recv(DAT_EP_HANDLE handle, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
			     DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags);
/* Posts a signaled request of the provider's own behind all others. ep->lock held. */
int dapl_ep_post_marker(struct dapl_ep *ep, bool flushing);

#endif
