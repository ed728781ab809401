/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* api.c - the calls that go to a provider: check the handle, then jump through the table of the
 * object's provider. All other checks are the provider's. Opening and closing an IA is in ia.c.
 *
 * One comparison recognises values that cannot be an object's handle: NULL and the small
 * integers of IA handles (their error codes: calls.md 0.2). An IA must be open: the handle of
 * a closed IA and a provider's own pointer are refused (registry.md 3). The functions that the
 * reference library does not have check for an empty slot: a provider made for that library
 * may have left one. */
#include "dat/error.h"
#include "dat/ia.h"
#include "dat/loader.h"

#define BAD_HANDLE(kind) DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE##kind)
#define NOT_IMPLEMENTED DAT_ERROR(DAT_NOT_IMPLEMENTED, 0)

#define no_object(handle) is_ia_handle(handle)

/* --- calls on an IA: the consumer's integer becomes the provider's pointer ----------- */

EXPORT DAT_RETURN dat_ia_query(DAT_IA_HANDLE ia, DAT_EVD_HANDLE *async_evd,
			       DAT_IA_ATTR_MASK ia_mask, DAT_IA_ATTR *ia_attr,
			       DAT_PROVIDER_ATTR_MASK provider_mask,
			       DAT_PROVIDER_ATTR *provider_attr)
{
	DAT_IA_HANDLE own = ia_from(ia);

	if (!own)
		return BAD_HANDLE(_IA);
	return provider_of(own)->ia_query_func(own, async_evd, ia_mask, ia_attr,
					       provider_mask, provider_attr);
}

EXPORT DAT_RETURN dat_cno_create(DAT_IA_HANDLE ia, DAT_OS_WAIT_PROXY_AGENT agent,
				 DAT_CNO_HANDLE *cno)
{
	DAT_IA_HANDLE own = ia_from(ia);

	if (!own)
		return BAD_HANDLE(_IA);
	return provider_of(own)->cno_create_func(own, agent, cno);
}

EXPORT DAT_RETURN dat_cno_fd_create(DAT_IA_HANDLE ia, DAT_FD *fd, DAT_CNO_HANDLE *cno)
{
	DAT_IA_HANDLE own = ia_from(ia);

	if (!own)
		return BAD_HANDLE(_IA);
	if (!provider_of(own)->cno_fd_create_func)
		return NOT_IMPLEMENTED;
	return provider_of(own)->cno_fd_create_func(own, fd, cno);
}

EXPORT DAT_RETURN dat_evd_create(DAT_IA_HANDLE ia, DAT_COUNT min_qlen, DAT_CNO_HANDLE cno,
				 DAT_EVD_FLAGS flags, DAT_EVD_HANDLE *evd)
{
	DAT_IA_HANDLE own = ia_from(ia);

	if (!own)
		return BAD_HANDLE(_IA);
	return provider_of(own)->evd_create_func(own, min_qlen, cno, flags, evd);
}

EXPORT DAT_RETURN dat_ep_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz,
				DAT_EVD_HANDLE recv_evd, DAT_EVD_HANDLE request_evd,
				DAT_EVD_HANDLE connect_evd, const DAT_EP_ATTR *attr,
				DAT_EP_HANDLE *ep)
{
	DAT_IA_HANDLE own = ia_from(ia);

	if (!own)
		return BAD_HANDLE(_IA);
	return provider_of(own)->ep_create_func(own, pz, recv_evd, request_evd,
						connect_evd, attr, ep);
}

EXPORT DAT_RETURN dat_ep_create_with_srq(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz,
					 DAT_EVD_HANDLE recv_evd,
					 DAT_EVD_HANDLE request_evd,
					 DAT_EVD_HANDLE connect_evd, DAT_SRQ_HANDLE srq,
					 const DAT_EP_ATTR *attr, DAT_EP_HANDLE *ep)
{
	DAT_IA_HANDLE own = ia_from(ia);

	if (!own)
		return BAD_HANDLE(_IA);
	return provider_of(own)->ep_create_with_srq_func(own, pz, recv_evd, request_evd,
							 connect_evd, srq, attr, ep);
}

EXPORT DAT_RETURN dat_lmr_create(DAT_IA_HANDLE ia, DAT_MEM_TYPE type,
				 DAT_REGION_DESCRIPTION region, DAT_VLEN length,
				 DAT_PZ_HANDLE pz, DAT_MEM_PRIV_FLAGS privileges,
				 DAT_VA_TYPE va_type, DAT_LMR_HANDLE *lmr,
				 DAT_LMR_CONTEXT *lmr_context,
				 DAT_RMR_CONTEXT *rmr_context,
				 DAT_VLEN *registered_length,
				 DAT_VADDR *registered_address)
{
	DAT_IA_HANDLE own = ia_from(ia);

	if (!own)
		return BAD_HANDLE(_IA);
	return provider_of(own)->lmr_create_func(own, type, region, length, pz,
						 privileges, va_type, lmr, lmr_context,
						 rmr_context, registered_length,
						 registered_address);
}

EXPORT DAT_RETURN dat_lmr_sync_rdma_read(DAT_IA_HANDLE ia,
					 const DAT_LMR_TRIPLET *segments, DAT_VLEN count)
{
	DAT_IA_HANDLE own = ia_from(ia);

	if (!own)
		return BAD_HANDLE(_IA);
	return provider_of(own)->lmr_sync_rdma_read_func(own, segments, count);
}

EXPORT DAT_RETURN dat_lmr_sync_rdma_write(DAT_IA_HANDLE ia,
					  const DAT_LMR_TRIPLET *segments, DAT_VLEN count)
{
	DAT_IA_HANDLE own = ia_from(ia);

	if (!own)
		return BAD_HANDLE(_IA);
	return provider_of(own)->lmr_sync_rdma_write_func(own, segments, count);
}

EXPORT DAT_RETURN dat_psp_create(DAT_IA_HANDLE ia, DAT_CONN_QUAL conn_qual,
				 DAT_EVD_HANDLE evd, DAT_PSP_FLAGS flags,
				 DAT_PSP_HANDLE *psp)
{
	DAT_IA_HANDLE own = ia_from(ia);

	if (!own)
		return BAD_HANDLE(_IA);
	return provider_of(own)->psp_create_func(own, conn_qual, evd, flags, psp);
}

EXPORT DAT_RETURN dat_psp_create_any(DAT_IA_HANDLE ia, DAT_CONN_QUAL *conn_qual,
				     DAT_EVD_HANDLE evd, DAT_PSP_FLAGS flags,
				     DAT_PSP_HANDLE *psp)
{
	DAT_IA_HANDLE own = ia_from(ia);

	if (!own)
		return BAD_HANDLE(_IA);
	return provider_of(own)->psp_create_any_func(own, conn_qual, evd, flags, psp);
}

EXPORT DAT_RETURN dat_rsp_create(DAT_IA_HANDLE ia, DAT_CONN_QUAL conn_qual,
				 DAT_EP_HANDLE ep, DAT_EVD_HANDLE evd,
				 DAT_RSP_HANDLE *rsp)
{
	DAT_IA_HANDLE own = ia_from(ia);

	if (!own)
		return BAD_HANDLE(_IA);
	return provider_of(own)->rsp_create_func(own, conn_qual, ep, evd, rsp);
}

EXPORT DAT_RETURN dat_csp_create(DAT_IA_HANDLE ia, DAT_COMM *comm,
				 DAT_IA_ADDRESS_PTR address, DAT_EVD_HANDLE evd,
				 DAT_CSP_HANDLE *csp)
{
	DAT_IA_HANDLE own = ia_from(ia);

	if (!own)
		return BAD_HANDLE(_IA);
	if (!provider_of(own)->csp_create_func)
		return NOT_IMPLEMENTED;
	return provider_of(own)->csp_create_func(own, comm, address, evd, csp);
}

EXPORT DAT_RETURN dat_pz_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE *pz)
{
	DAT_IA_HANDLE own = ia_from(ia);

	if (!own)
		return BAD_HANDLE(_IA);
	return provider_of(own)->pz_create_func(own, pz);
}

EXPORT DAT_RETURN dat_srq_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_SRQ_ATTR *attr,
				 DAT_SRQ_HANDLE *srq)
{
	DAT_IA_HANDLE own = ia_from(ia);

	if (!own)
		return BAD_HANDLE(_IA);
	return provider_of(own)->srq_create_func(own, pz, attr, srq);
}

/* --- data transfer and events: the hot path ---------------------------------------- */

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

/* --- endpoints --------------------------------------------------------------------- */

EXPORT DAT_RETURN dat_ep_query(DAT_EP_HANDLE ep, DAT_EP_PARAM_MASK mask,
			       DAT_EP_PARAM *param)
{
	if (no_object(ep))
		return BAD_HANDLE(_EP);
	return provider_of(ep)->ep_query_func(ep, mask, param);
}

EXPORT DAT_RETURN dat_ep_modify(DAT_EP_HANDLE ep, DAT_EP_PARAM_MASK mask,
				const DAT_EP_PARAM *param)
{
	if (no_object(ep))
		return BAD_HANDLE(_EP);
	return provider_of(ep)->ep_modify_func(ep, mask, param);
}

EXPORT DAT_RETURN dat_ep_connect(DAT_EP_HANDLE ep, DAT_IA_ADDRESS_PTR address,
				 DAT_CONN_QUAL conn_qual, DAT_TIMEOUT timeout,
				 DAT_COUNT private_data_size,
				 const DAT_PVOID private_data, DAT_QOS qos,
				 DAT_CONNECT_FLAGS flags)
{
	if (no_object(ep))
		return BAD_HANDLE(_EP);
	return provider_of(ep)->ep_connect_func(ep, address, conn_qual, timeout,
						private_data_size, private_data, qos,
						flags);
}

EXPORT DAT_RETURN dat_ep_common_connect(DAT_EP_HANDLE ep, DAT_IA_ADDRESS_PTR address,
					DAT_TIMEOUT timeout, DAT_COUNT private_data_size,
					const DAT_PVOID private_data)
{
	if (no_object(ep))
		return BAD_HANDLE(_EP);
	if (!provider_of(ep)->ep_common_connect_func)
		return NOT_IMPLEMENTED;
	return provider_of(ep)->ep_common_connect_func(ep, address, timeout,
						       private_data_size, private_data);
}

EXPORT DAT_RETURN dat_ep_dup_connect(DAT_EP_HANDLE ep, DAT_EP_HANDLE dup_ep,
				     DAT_TIMEOUT timeout, DAT_COUNT private_data_size,
				     const DAT_PVOID private_data, DAT_QOS qos)
{
	if (no_object(ep))
		return BAD_HANDLE(_EP);
	return provider_of(ep)->ep_dup_connect_func(ep, dup_ep, timeout,
						    private_data_size, private_data, qos);
}

EXPORT DAT_RETURN dat_ep_disconnect(DAT_EP_HANDLE ep, DAT_CLOSE_FLAGS flags)
{
	if (no_object(ep))
		return BAD_HANDLE(_EP);
	return provider_of(ep)->ep_disconnect_func(ep, flags);
}

EXPORT DAT_RETURN dat_ep_get_status(DAT_EP_HANDLE ep, DAT_EP_STATE *state,
				    DAT_BOOLEAN *recv_idle, DAT_BOOLEAN *request_idle)
{
	if (no_object(ep))
		return BAD_HANDLE(_EP);
	return provider_of(ep)->ep_get_status_func(ep, state, recv_idle, request_idle);
}

EXPORT DAT_RETURN dat_ep_recv_query(DAT_EP_HANDLE ep, DAT_COUNT *buffers, DAT_COUNT *span)
{
	if (no_object(ep))
		return BAD_HANDLE(_EP);
	return provider_of(ep)->ep_recv_query_func(ep, buffers, span);
}

EXPORT DAT_RETURN dat_ep_set_watermark(DAT_EP_HANDLE ep, DAT_COUNT soft, DAT_COUNT hard)
{
	if (no_object(ep))
		return BAD_HANDLE(_EP);
	return provider_of(ep)->ep_set_watermark_func(ep, soft, hard);
}

EXPORT DAT_RETURN dat_ep_reset(DAT_EP_HANDLE ep)
{
	if (no_object(ep))
		return BAD_HANDLE(_EP);
	return provider_of(ep)->ep_reset_func(ep);
}

EXPORT DAT_RETURN dat_ep_free(DAT_EP_HANDLE ep)
{
	if (no_object(ep))
		return BAD_HANDLE(_EP);
	return provider_of(ep)->ep_free_func(ep);
}

/* --- event dispatchers ------------------------------------------------------------- */

EXPORT DAT_RETURN dat_evd_query(DAT_EVD_HANDLE evd, DAT_EVD_PARAM_MASK mask,
				DAT_EVD_PARAM *param)
{
	if (no_object(evd))
		return BAD_HANDLE(_EVD_REQUEST);
	return provider_of(evd)->evd_query_func(evd, mask, param);
}

EXPORT DAT_RETURN dat_evd_modify_cno(DAT_EVD_HANDLE evd, DAT_CNO_HANDLE cno)
{
	if (no_object(evd))
		return BAD_HANDLE(_EVD_REQUEST);
	return provider_of(evd)->evd_modify_cno_func(evd, cno);
}

EXPORT DAT_RETURN dat_evd_enable(DAT_EVD_HANDLE evd)
{
	if (no_object(evd))
		return BAD_HANDLE(_EVD_REQUEST);
	return provider_of(evd)->evd_enable_func(evd);
}

EXPORT DAT_RETURN dat_evd_disable(DAT_EVD_HANDLE evd)
{
	if (no_object(evd))
		return BAD_HANDLE(_EVD_REQUEST);
	return provider_of(evd)->evd_disable_func(evd);
}

EXPORT DAT_RETURN dat_evd_set_unwaitable(DAT_EVD_HANDLE evd)
{
	if (no_object(evd))
		return BAD_HANDLE(_EVD_REQUEST);
	return provider_of(evd)->evd_set_unwaitable_func(evd);
}

EXPORT DAT_RETURN dat_evd_clear_unwaitable(DAT_EVD_HANDLE evd)
{
	if (no_object(evd))
		return BAD_HANDLE(_EVD_REQUEST);
	return provider_of(evd)->evd_clear_unwaitable_func(evd);
}

EXPORT DAT_RETURN dat_evd_resize(DAT_EVD_HANDLE evd, DAT_COUNT min_qlen)
{
	if (no_object(evd))
		return BAD_HANDLE(_EVD_REQUEST);
	return provider_of(evd)->evd_resize_func(evd, min_qlen);
}

EXPORT DAT_RETURN dat_evd_post_se(DAT_EVD_HANDLE evd, const DAT_EVENT *event)
{
	if (no_object(evd))
		return BAD_HANDLE(_EVD_REQUEST);
	return provider_of(evd)->evd_post_se_func(evd, event);
}

EXPORT DAT_RETURN dat_evd_free(DAT_EVD_HANDLE evd)
{
	if (no_object(evd))
		return BAD_HANDLE(_EVD_REQUEST);
	return provider_of(evd)->evd_free_func(evd);
}

/* --- consumer notification objects ------------------------------------------------- */

EXPORT DAT_RETURN dat_cno_query(DAT_CNO_HANDLE cno, DAT_CNO_PARAM_MASK mask,
				DAT_CNO_PARAM *param)
{
	if (no_object(cno))
		return BAD_HANDLE(_CNO);
	return provider_of(cno)->cno_query_func(cno, mask, param);
}

EXPORT DAT_RETURN dat_cno_modify_agent(DAT_CNO_HANDLE cno, DAT_OS_WAIT_PROXY_AGENT agent)
{
	if (no_object(cno))
		return BAD_HANDLE(_CNO);
	return provider_of(cno)->cno_modify_agent_func(cno, agent);
}

EXPORT DAT_RETURN dat_cno_wait(DAT_CNO_HANDLE cno, DAT_TIMEOUT timeout,
			       DAT_EVD_HANDLE *evd)
{
	DAT_RETURN ret;

	if (no_object(cno))
		return BAD_HANDLE(_CNO);
	loader_enter();
	ret = provider_of(cno)->cno_wait_func(cno, timeout, evd);
	loader_leave();
	return ret;
}

EXPORT DAT_RETURN dat_cno_trigger(DAT_CNO_HANDLE cno, DAT_EVD_HANDLE *evd)
{
	if (no_object(cno))
		return BAD_HANDLE(_CNO);
	if (!provider_of(cno)->cno_trigger_func)
		return NOT_IMPLEMENTED;
	return provider_of(cno)->cno_trigger_func(cno, evd);
}

EXPORT DAT_RETURN dat_cno_free(DAT_CNO_HANDLE cno)
{
	if (no_object(cno))
		return BAD_HANDLE(_CNO);
	return provider_of(cno)->cno_free_func(cno);
}

/* --- memory ------------------------------------------------------------------------ */

EXPORT DAT_RETURN dat_lmr_query(DAT_LMR_HANDLE lmr, DAT_LMR_PARAM_MASK mask,
				DAT_LMR_PARAM *param)
{
	if (no_object(lmr))
		return BAD_HANDLE(_LMR);
	return provider_of(lmr)->lmr_query_func(lmr, mask, param);
}

EXPORT DAT_RETURN dat_lmr_free(DAT_LMR_HANDLE lmr)
{
	if (no_object(lmr))
		return BAD_HANDLE(_LMR);
	return provider_of(lmr)->lmr_free_func(lmr);
}

EXPORT DAT_RETURN dat_rmr_create(DAT_PZ_HANDLE pz, DAT_RMR_HANDLE *rmr)
{
	if (no_object(pz))
		return BAD_HANDLE(_PZ);
	return provider_of(pz)->rmr_create_func(pz, rmr);
}

EXPORT DAT_RETURN dat_rmr_create_for_ep(DAT_PZ_HANDLE pz, DAT_RMR_HANDLE *rmr)
{
	if (no_object(pz))
		return BAD_HANDLE(_PZ);
	if (!provider_of(pz)->rmr_create_for_ep_func)
		return NOT_IMPLEMENTED;
	return provider_of(pz)->rmr_create_for_ep_func(pz, rmr);
}

EXPORT DAT_RETURN dat_rmr_query(DAT_RMR_HANDLE rmr, DAT_RMR_PARAM_MASK mask,
				DAT_RMR_PARAM *param)
{
	if (no_object(rmr))
		return BAD_HANDLE(_RMR);
	return provider_of(rmr)->rmr_query_func(rmr, mask, param);
}

EXPORT DAT_RETURN dat_rmr_free(DAT_RMR_HANDLE rmr)
{
	if (no_object(rmr))
		return BAD_HANDLE(_RMR);
	return provider_of(rmr)->rmr_free_func(rmr);
}

EXPORT DAT_RETURN dat_pz_query(DAT_PZ_HANDLE pz, DAT_PZ_PARAM_MASK mask,
			       DAT_PZ_PARAM *param)
{
	if (no_object(pz))
		return BAD_HANDLE(_PZ);
	return provider_of(pz)->pz_query_func(pz, mask, param);
}

EXPORT DAT_RETURN dat_pz_free(DAT_PZ_HANDLE pz)
{
	if (no_object(pz))
		return BAD_HANDLE(_PZ);
	return provider_of(pz)->pz_free_func(pz);
}

EXPORT DAT_RETURN dat_srq_query(DAT_SRQ_HANDLE srq, DAT_SRQ_PARAM_MASK mask,
				DAT_SRQ_PARAM *param)
{
	if (no_object(srq))
		return BAD_HANDLE(_SRQ);
	return provider_of(srq)->srq_query_func(srq, mask, param);
}

EXPORT DAT_RETURN dat_srq_resize(DAT_SRQ_HANDLE srq, DAT_COUNT max_recv)
{
	if (no_object(srq))
		return BAD_HANDLE(_SRQ);
	return provider_of(srq)->srq_resize_func(srq, max_recv);
}

EXPORT DAT_RETURN dat_srq_set_lw(DAT_SRQ_HANDLE srq, DAT_COUNT low_watermark)
{
	if (no_object(srq))
		return BAD_HANDLE(_SRQ);
	return provider_of(srq)->srq_set_lw_func(srq, low_watermark);
}

EXPORT DAT_RETURN dat_srq_free(DAT_SRQ_HANDLE srq)
{
	if (no_object(srq))
		return BAD_HANDLE(_SRQ);
	return provider_of(srq)->srq_free_func(srq);
}

/* --- service points and connection requests ---------------------------------------- */

EXPORT DAT_RETURN dat_psp_query(DAT_PSP_HANDLE psp, DAT_PSP_PARAM_MASK mask,
				DAT_PSP_PARAM *param)
{
	if (no_object(psp))
		return BAD_HANDLE(_PSP);
	return provider_of(psp)->psp_query_func(psp, mask, param);
}

EXPORT DAT_RETURN dat_psp_free(DAT_PSP_HANDLE psp)
{
	if (no_object(psp))
		return BAD_HANDLE(_PSP);
	return provider_of(psp)->psp_free_func(psp);
}

EXPORT DAT_RETURN dat_rsp_query(DAT_RSP_HANDLE rsp, DAT_RSP_PARAM_MASK mask,
				DAT_RSP_PARAM *param)
{
	if (no_object(rsp))
		return BAD_HANDLE(_RSP);
	return provider_of(rsp)->rsp_query_func(rsp, mask, param);
}

EXPORT DAT_RETURN dat_rsp_free(DAT_RSP_HANDLE rsp)
{
	if (no_object(rsp))
		return BAD_HANDLE(_RSP);
	return provider_of(rsp)->rsp_free_func(rsp);
}

EXPORT DAT_RETURN dat_csp_query(DAT_CSP_HANDLE csp, DAT_CSP_PARAM_MASK mask,
				DAT_CSP_PARAM *param)
{
	if (no_object(csp))
		return BAD_HANDLE(_CSP);
	if (!provider_of(csp)->csp_query_func)
		return NOT_IMPLEMENTED;
	return provider_of(csp)->csp_query_func(csp, mask, param);
}

EXPORT DAT_RETURN dat_csp_free(DAT_CSP_HANDLE csp)
{
	if (no_object(csp))
		return BAD_HANDLE(_CSP);
	if (!provider_of(csp)->csp_free_func)
		return NOT_IMPLEMENTED;
	return provider_of(csp)->csp_free_func(csp);
}

EXPORT DAT_RETURN dat_cr_query(DAT_CR_HANDLE cr, DAT_CR_PARAM_MASK mask,
			       DAT_CR_PARAM *param)
{
	if (no_object(cr))
		return BAD_HANDLE(_CR);
	return provider_of(cr)->cr_query_func(cr, mask, param);
}

EXPORT DAT_RETURN dat_cr_accept(DAT_CR_HANDLE cr, DAT_EP_HANDLE ep,
				DAT_COUNT private_data_size, const DAT_PVOID private_data)
{
	if (no_object(cr))
		return BAD_HANDLE(_CR);
	return provider_of(cr)->cr_accept_func(cr, ep, private_data_size, private_data);
}

EXPORT DAT_RETURN dat_cr_reject(DAT_CR_HANDLE cr, DAT_COUNT private_data_size,
				const DAT_PVOID private_data)
{
	if (no_object(cr))
		return BAD_HANDLE(_CR);
	return provider_of(cr)->cr_reject_func(cr, private_data_size, private_data);
}

EXPORT DAT_RETURN dat_cr_handoff(DAT_CR_HANDLE cr, DAT_CONN_QUAL conn_qual)
{
	if (no_object(cr))
		return BAD_HANDLE(_CR);
	return provider_of(cr)->cr_handoff_func(cr, conn_qual);
}

/* --- any kind of handle ------------------------------------------------------- */

/* Returns the provider's object, or NULL for an integer that is no open IA. HND-9. */
static inline DAT_HANDLE object_from(DAT_HANDLE handle)
{
	return no_object(handle) ? ia_from(handle) : handle;
}

EXPORT DAT_RETURN dat_get_handle_type(DAT_HANDLE handle, DAT_HANDLE_TYPE *type)
{
	DAT_HANDLE object = object_from(handle);

	if (!object)
		return BAD_HANDLE(1);
	return provider_of(object)->get_handle_type_func(object, type);
}

EXPORT DAT_RETURN dat_set_consumer_context(DAT_HANDLE handle, DAT_CONTEXT context)
{
	DAT_HANDLE object = object_from(handle);

	if (!object)
		return BAD_HANDLE(1);
	return provider_of(object)->set_consumer_context_func(object, context);
}

EXPORT DAT_RETURN dat_get_consumer_context(DAT_HANDLE handle, DAT_CONTEXT *context)
{
	DAT_HANDLE object = object_from(handle);

	if (!object)
		return BAD_HANDLE(1);
	return provider_of(object)->get_consumer_context_func(object, context);
}

static DAT_RETURN extension_op(DAT_HANDLE handle, DAT_EXTENDED_OP op, va_list args)
{
	DAT_HANDLE object;

	if (op == DAT_CLOSE_EXTENSION_BASE)
		return ia_query_close(handle, args);
	if (!handle)
		return op == DAT_OPEN_EXTENSION_BASE ? ia_query_open(args) : BAD_HANDLE(1);
	if (!ia_extensions_seen())
		return NOT_IMPLEMENTED;
	object = object_from(handle);
	if (!object)
		return BAD_HANDLE(1);
	if (!provider_of(object)->handle_extendedop_func)
		return NOT_IMPLEMENTED;
	return provider_of(object)->handle_extendedop_func(object, op, args);
}

/* calls.md 2, registry.md 9. EXT-1, 2. */
EXPORT DAT_RETURN dat_extension_op(DAT_HANDLE handle, DAT_EXTENDED_OP op, ...)
{
	DAT_RETURN ret;
	va_list args;

	va_start(args, op);
	ret = extension_op(handle, op, args);
	va_end(args);
	return ret;
}

/* Converts both ways, for providers (registry.md 3): an integer to the provider's IA, the
 * provider's IA to its integer. REG-40, 41. */
EXPORT DAT_RETURN dats_get_ia_handle(DAT_IA_HANDLE handle, DAT_IA_HANDLE *result)
{
	DAT_IA_HANDLE other = is_ia_handle(handle) ? ia_from(handle) : ia_handle_of(handle);

	if (!other)
		return BAD_HANDLE(_IA);
	if (!result)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	*result = other;
	return DAT_SUCCESS;
}
