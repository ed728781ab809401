/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* api_dto.c - data transfer and its events: the hot path. A call costs one comparison and one jump.
 * The exception is a wait, which can sleep in the provider. */
#include "dat/api.h"
#include "dat/loader.h"

EXPORT DAT_RETURN dat_ep_post_send(DAT_EP_HANDLE ep, DAT_COUNT count,
				   DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
				   DAT_COMPLETION_FLAGS flags)
{
	if (no_object(ep))
		return BAD_HANDLE(_EP);
	return provider_of(ep)->ep_post_send_func(ep, count, iov, cookie, flags);
}

EXPORT DAT_RETURN dat_ep_post_send_with_invalidate(DAT_EP_HANDLE ep, DAT_COUNT count,
						   DAT_LMR_TRIPLET *iov,
						   DAT_DTO_COOKIE cookie,
						   DAT_COMPLETION_FLAGS flags,
						   DAT_BOOLEAN invalidate,
						   DAT_RMR_CONTEXT rmr_context)
{
	if (no_object(ep))
		return BAD_HANDLE(_EP);
	if (!provider_of(ep)->ep_post_send_with_invalidate_func)
		return NOT_IMPLEMENTED;
	return provider_of(ep)->ep_post_send_with_invalidate_func(ep, count, iov, cookie,
								  flags, invalidate,
								  rmr_context);
}

EXPORT DAT_RETURN dat_ep_post_recv(DAT_EP_HANDLE ep, DAT_COUNT count,
				   DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
				   DAT_COMPLETION_FLAGS flags)
{
	if (no_object(ep))
		return BAD_HANDLE(_EP);
	return provider_of(ep)->ep_post_recv_func(ep, count, iov, cookie, flags);
}

EXPORT DAT_RETURN dat_ep_post_rdma_read(DAT_EP_HANDLE ep, DAT_COUNT count,
					DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
					const DAT_RMR_TRIPLET *remote,
					DAT_COMPLETION_FLAGS flags)
{
	if (no_object(ep))
		return BAD_HANDLE(_EP);
	return provider_of(ep)->ep_post_rdma_read_func(ep, count, iov, cookie, remote,
						       flags);
}

EXPORT DAT_RETURN dat_ep_post_rdma_read_to_rmr(DAT_EP_HANDLE ep,
					       const DAT_RMR_TRIPLET *local,
					       DAT_DTO_COOKIE cookie,
					       const DAT_RMR_TRIPLET *remote,
					       DAT_COMPLETION_FLAGS flags)
{
	if (no_object(ep))
		return BAD_HANDLE(_EP);
	if (!provider_of(ep)->ep_post_rdma_read_to_rmr_func)
		return NOT_IMPLEMENTED;
	return provider_of(ep)->ep_post_rdma_read_to_rmr_func(ep, local, cookie, remote,
							      flags);
}

EXPORT DAT_RETURN dat_ep_post_rdma_write(DAT_EP_HANDLE ep, DAT_COUNT count,
					 DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
					 const DAT_RMR_TRIPLET *remote,
					 DAT_COMPLETION_FLAGS flags)
{
	if (no_object(ep))
		return BAD_HANDLE(_EP);
	return provider_of(ep)->ep_post_rdma_write_func(ep, count, iov, cookie, remote,
							flags);
}

EXPORT DAT_RETURN dat_srq_post_recv(DAT_SRQ_HANDLE srq, DAT_COUNT count,
				    DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie)
{
	if (no_object(srq))
		return BAD_HANDLE(_SRQ);
	return provider_of(srq)->srq_post_recv_func(srq, count, iov, cookie);
}

EXPORT DAT_RETURN dat_rmr_bind(DAT_RMR_HANDLE rmr, DAT_LMR_HANDLE lmr,
			       const DAT_LMR_TRIPLET *segment,
			       DAT_MEM_PRIV_FLAGS privileges, DAT_VA_TYPE va_type,
			       DAT_EP_HANDLE ep, DAT_RMR_COOKIE cookie,
			       DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT *context)
{
	if (no_object(rmr))
		return BAD_HANDLE(_RMR);
	return provider_of(rmr)->rmr_bind_func(rmr, lmr, segment, privileges, va_type, ep,
					       cookie, flags, context);
}

EXPORT DAT_RETURN dat_evd_dequeue(DAT_EVD_HANDLE evd, DAT_EVENT *event)
{
	if (no_object(evd))
		return BAD_HANDLE(_EVD_REQUEST);
	return provider_of(evd)->evd_dequeue_func(evd, event);
}

EXPORT DAT_RETURN dat_evd_wait(DAT_EVD_HANDLE evd, DAT_TIMEOUT timeout,
			       DAT_COUNT threshold, DAT_EVENT *event, DAT_COUNT *more)
{
	DAT_RETURN ret;

	if (no_object(evd))
		return BAD_HANDLE(_EVD_REQUEST);
	loader_enter();
	ret = provider_of(evd)->evd_wait_func(evd, timeout, threshold, event, more);
	loader_leave();
	return ret;
}
