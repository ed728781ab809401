/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* provider.h - the calls behind the provider table, by the file that has them. Each is described
 * where it is written; their rules are doc/spec/calls.md's. */
#ifndef DAPL_PROVIDER_H
#define DAPL_PROVIDER_H
#include "dapl/core/dapl.h"

/* ia.c */
DAT_RETURN dapl_ia_query(DAT_IA_HANDLE handle, DAT_EVD_HANDLE *async_evd, DAT_IA_ATTR_MASK ia_mask,
			 DAT_IA_ATTR *ia_attr, DAT_PROVIDER_ATTR_MASK provider_mask,
			 DAT_PROVIDER_ATTR *provider_attr);
DAT_RETURN dapl_ia_close(DAT_IA_HANDLE handle, DAT_CLOSE_FLAGS flags);

/* cno.c */
DAT_RETURN dapl_cno_create(DAT_IA_HANDLE ia_handle, DAT_OS_WAIT_PROXY_AGENT agent,
			   DAT_CNO_HANDLE *handle);
DAT_RETURN dapl_cno_fd_create(DAT_IA_HANDLE ia_handle, DAT_FD *fd, DAT_CNO_HANDLE *handle);
DAT_RETURN dapl_cno_fetch(DAT_CNO_HANDLE handle, DAT_EVD_HANDLE *evd_handle);
DAT_RETURN dapl_cno_query(DAT_CNO_HANDLE handle, DAT_CNO_PARAM_MASK mask, DAT_CNO_PARAM *param);
DAT_RETURN dapl_cno_modify_agent(DAT_CNO_HANDLE handle, DAT_OS_WAIT_PROXY_AGENT agent);
DAT_RETURN dapl_cno_free(DAT_CNO_HANDLE handle);
DAT_RETURN dapl_cno_wait(DAT_CNO_HANDLE handle, DAT_TIMEOUT timeout, DAT_EVD_HANDLE *evd_handle);

/* cr.c */
DAT_RETURN dapl_cr_query(DAT_CR_HANDLE handle, DAT_CR_PARAM_MASK mask, DAT_CR_PARAM *param);
DAT_RETURN dapl_cr_accept(DAT_CR_HANDLE handle, DAT_EP_HANDLE ep_handle, DAT_COUNT len,
			  const DAT_PVOID data);
DAT_RETURN dapl_cr_reject(DAT_CR_HANDLE handle, DAT_COUNT len, const DAT_PVOID data);
DAT_RETURN dapl_cr_handoff(DAT_CR_HANDLE handle, DAT_CONN_QUAL qual);

/* evd.c */
DAT_RETURN dapl_evd_create(DAT_IA_HANDLE ia_handle, DAT_COUNT qlen, DAT_CNO_HANDLE cno_handle,
			   DAT_EVD_FLAGS flags, DAT_EVD_HANDLE *handle);
DAT_RETURN dapl_evd_free(DAT_EVD_HANDLE handle);
DAT_RETURN dapl_evd_query(DAT_EVD_HANDLE handle, DAT_EVD_PARAM_MASK mask, DAT_EVD_PARAM *param);
DAT_RETURN dapl_evd_modify_cno(DAT_EVD_HANDLE handle, DAT_CNO_HANDLE cno_handle);
DAT_RETURN dapl_evd_enable(DAT_EVD_HANDLE handle);
DAT_RETURN dapl_evd_disable(DAT_EVD_HANDLE handle);
DAT_RETURN dapl_evd_set_unwaitable(DAT_EVD_HANDLE handle);
DAT_RETURN dapl_evd_clear_unwaitable(DAT_EVD_HANDLE handle);
DAT_RETURN dapl_evd_post_se(DAT_EVD_HANDLE handle, const DAT_EVENT *event);
DAT_RETURN dapl_evd_resize(DAT_EVD_HANDLE handle, DAT_COUNT qlen);
DAT_RETURN dapl_evd_wait(DAT_EVD_HANDLE handle, DAT_TIMEOUT timeout, DAT_COUNT threshold,
			 DAT_EVENT *event, DAT_COUNT *nmore);

/* ep.c */
DAT_RETURN dapl_ep_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv,
			  DAT_EVD_HANDLE request, DAT_EVD_HANDLE connect, const DAT_EP_ATTR *attr,
			  DAT_EP_HANDLE *handle);
DAT_RETURN dapl_ep_create_with_srq(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv,
				   DAT_EVD_HANDLE request, DAT_EVD_HANDLE connect,
				   DAT_SRQ_HANDLE srq_handle, const DAT_EP_ATTR *attr,
				   DAT_EP_HANDLE *handle);
DAT_RETURN dapl_ep_query(DAT_EP_HANDLE handle, DAT_EP_PARAM_MASK mask, DAT_EP_PARAM *param);
DAT_RETURN dapl_ep_modify(DAT_EP_HANDLE handle, DAT_EP_PARAM_MASK mask,
			  const DAT_EP_PARAM *param);
DAT_RETURN dapl_ep_get_status(DAT_EP_HANDLE handle, DAT_EP_STATE *state, DAT_BOOLEAN *recv_idle,
			      DAT_BOOLEAN *request_idle);
DAT_RETURN dapl_ep_recv_query(DAT_EP_HANDLE handle, DAT_COUNT *allocated, DAT_COUNT *span);
DAT_RETURN dapl_ep_reset(DAT_EP_HANDLE handle);
DAT_RETURN dapl_ep_free(DAT_EP_HANDLE handle);

/* conn.c */
DAT_RETURN dapl_ep_connect(DAT_EP_HANDLE handle, DAT_IA_ADDRESS_PTR address, DAT_CONN_QUAL qual,
			   DAT_TIMEOUT timeout, DAT_COUNT len, const DAT_PVOID data, DAT_QOS qos,
			   DAT_CONNECT_FLAGS flags);
DAT_RETURN dapl_ep_common_connect(DAT_EP_HANDLE handle, DAT_IA_ADDRESS_PTR address,
				  DAT_TIMEOUT timeout, DAT_COUNT len, const DAT_PVOID data);
DAT_RETURN dapl_ep_dup_connect(DAT_EP_HANDLE handle, DAT_EP_HANDLE dup_handle, DAT_TIMEOUT timeout,
			       DAT_COUNT len, const DAT_PVOID data, DAT_QOS qos);
DAT_RETURN dapl_ep_disconnect(DAT_EP_HANDLE handle, DAT_CLOSE_FLAGS flags);

/* post.c */
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

/* lmr.c */
DAT_RETURN dapl_lmr_create(DAT_IA_HANDLE ia_handle, DAT_MEM_TYPE type,
			   DAT_REGION_DESCRIPTION region, DAT_VLEN length, DAT_PZ_HANDLE pz_handle,
			   DAT_MEM_PRIV_FLAGS priv, DAT_VA_TYPE va_type, DAT_LMR_HANDLE *handle,
			   DAT_LMR_CONTEXT *lmr_context, DAT_RMR_CONTEXT *rmr_context,
			   DAT_VLEN *registered_size, DAT_VADDR *registered_address);
DAT_RETURN dapl_lmr_query(DAT_LMR_HANDLE handle, DAT_LMR_PARAM_MASK mask, DAT_LMR_PARAM *param);
DAT_RETURN dapl_lmr_free(DAT_LMR_HANDLE handle);
DAT_RETURN dapl_lmr_sync_rdma_read(DAT_IA_HANDLE ia, const DAT_LMR_TRIPLET *triplets, DAT_VLEN n);
DAT_RETURN dapl_lmr_sync_rdma_write(DAT_IA_HANDLE ia, const DAT_LMR_TRIPLET *triplets, DAT_VLEN n);

/* rmr.c */
DAT_RETURN dapl_rmr_create(DAT_PZ_HANDLE pz, DAT_RMR_HANDLE *handle);
DAT_RETURN dapl_rmr_create_for_ep(DAT_PZ_HANDLE pz, DAT_RMR_HANDLE *handle);
DAT_RETURN dapl_rmr_query(DAT_RMR_HANDLE handle, DAT_RMR_PARAM_MASK mask, DAT_RMR_PARAM *param);
DAT_RETURN dapl_rmr_bind(DAT_RMR_HANDLE handle, DAT_LMR_HANDLE lmr_handle,
			 const DAT_LMR_TRIPLET *range, DAT_MEM_PRIV_FLAGS priv, DAT_VA_TYPE va_type,
			 DAT_EP_HANDLE ep_handle, DAT_RMR_COOKIE cookie,
			 DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT *context);
DAT_RETURN dapl_rmr_free(DAT_RMR_HANDLE handle);

/* sp.c */
DAT_RETURN dapl_psp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL qual, DAT_EVD_HANDLE evd,
			   DAT_PSP_FLAGS flags, DAT_PSP_HANDLE *handle);
DAT_RETURN dapl_psp_create_any(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL *qual, DAT_EVD_HANDLE evd,
			       DAT_PSP_FLAGS flags, DAT_PSP_HANDLE *handle);
DAT_RETURN dapl_psp_query(DAT_PSP_HANDLE handle, DAT_PSP_PARAM_MASK mask, DAT_PSP_PARAM *param);
DAT_RETURN dapl_psp_free(DAT_PSP_HANDLE handle);
DAT_RETURN dapl_rsp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL qual, DAT_EP_HANDLE ep_handle,
			   DAT_EVD_HANDLE evd_handle, DAT_RSP_HANDLE *handle);
DAT_RETURN dapl_rsp_query(DAT_RSP_HANDLE handle, DAT_RSP_PARAM_MASK mask, DAT_RSP_PARAM *param);
DAT_RETURN dapl_rsp_free(DAT_RSP_HANDLE handle);
DAT_RETURN dapl_csp_create(DAT_IA_HANDLE ia_handle, DAT_COMM *comm, DAT_IA_ADDRESS_PTR address,
			   DAT_EVD_HANDLE evd_handle, DAT_CSP_HANDLE *handle);
DAT_RETURN dapl_csp_query(DAT_CSP_HANDLE handle, DAT_CSP_PARAM_MASK mask, DAT_CSP_PARAM *param);
DAT_RETURN dapl_csp_free(DAT_CSP_HANDLE handle);

/* pz.c */
DAT_RETURN dapl_pz_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE *handle);
DAT_RETURN dapl_pz_query(DAT_PZ_HANDLE handle, DAT_PZ_PARAM_MASK mask, DAT_PZ_PARAM *param);
DAT_RETURN dapl_pz_free(DAT_PZ_HANDLE handle);

/* srq.c */
DAT_RETURN dapl_srq_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle, DAT_SRQ_ATTR *attr,
			   DAT_SRQ_HANDLE *handle);
DAT_RETURN dapl_srq_free(DAT_SRQ_HANDLE handle);
DAT_RETURN dapl_srq_post_recv(DAT_SRQ_HANDLE handle, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
			      DAT_DTO_COOKIE cookie);
DAT_RETURN dapl_srq_query(DAT_SRQ_HANDLE handle, DAT_SRQ_PARAM_MASK mask, DAT_SRQ_PARAM *param);
DAT_RETURN dapl_srq_resize(DAT_SRQ_HANDLE handle, DAT_COUNT max);
DAT_RETURN dapl_srq_set_lw(DAT_SRQ_HANDLE handle, DAT_COUNT low);
DAT_RETURN dapl_ep_set_watermark(DAT_EP_HANDLE handle, DAT_COUNT soft, DAT_COUNT hard);

#endif
