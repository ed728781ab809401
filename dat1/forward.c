/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* forward.c - the calls of which binaries of DAT 1.2 see nothing but the return code converted here. What
 * else differs in their arguments is converted by the inline functions of the DAT 1.2 header. */
#include "dat1/dat1.h"

#define FORWARD(call, parameters, arguments) \
	EXPORT_1_2(call, PARAMETERS parameters) \
	{ \
		return return_to_1_2(dat_##call arguments); \
	}
#define PARAMETERS(...) __VA_ARGS__

/* --- interface adapters and all objects ----------------------------------------- */

FORWARD(ia_close, (DAT_IA_HANDLE ia, DAT_CLOSE_FLAGS flags), (ia, flags))
FORWARD(set_consumer_context, (DAT_HANDLE handle, DAT_CONTEXT context), (handle, context))
FORWARD(get_consumer_context, (DAT_HANDLE handle, DAT_CONTEXT *context), (handle, context))
FORWARD(get_handle_type, (DAT_HANDLE handle, DAT_HANDLE_TYPE *type), (handle, type))

/* --- notification objects and event dispatchers ----------------------------------- */

FORWARD(cno_create, (DAT_IA_HANDLE ia, DAT_OS_WAIT_PROXY_AGENT agent, DAT_CNO_HANDLE *cno),
	(ia, agent, cno))
FORWARD(cno_modify_agent, (DAT_CNO_HANDLE cno, DAT_OS_WAIT_PROXY_AGENT agent), (cno, agent))
FORWARD(cno_query, (DAT_CNO_HANDLE cno, DAT_CNO_PARAM_MASK mask, DAT_CNO_PARAM *param),
	(cno, mask, param))
FORWARD(cno_wait, (DAT_CNO_HANDLE cno, DAT_TIMEOUT timeout, DAT_EVD_HANDLE *evd),
	(cno, timeout, evd))
FORWARD(cno_free, (DAT_CNO_HANDLE cno), (cno))
FORWARD(evd_create, (DAT_IA_HANDLE ia, DAT_COUNT min_qlen, DAT_CNO_HANDLE cno, DAT_EVD_FLAGS flags,
	DAT_EVD_HANDLE *evd), (ia, min_qlen, cno, flags, evd))
FORWARD(evd_query, (DAT_EVD_HANDLE evd, DAT_EVD_PARAM_MASK mask, DAT_EVD_PARAM *param),
	(evd, mask, param))
FORWARD(evd_modify_cno, (DAT_EVD_HANDLE evd, DAT_CNO_HANDLE cno), (evd, cno))
FORWARD(evd_enable, (DAT_EVD_HANDLE evd), (evd))
FORWARD(evd_disable, (DAT_EVD_HANDLE evd), (evd))
FORWARD(evd_set_unwaitable, (DAT_EVD_HANDLE evd), (evd))
FORWARD(evd_clear_unwaitable, (DAT_EVD_HANDLE evd), (evd))
FORWARD(evd_resize, (DAT_EVD_HANDLE evd, DAT_COUNT min_qlen), (evd, min_qlen))
FORWARD(evd_free, (DAT_EVD_HANDLE evd), (evd))

/* --- connections ------------------------------------------------------------------ */

FORWARD(cr_query, (DAT_CR_HANDLE cr, DAT_CR_PARAM_MASK mask, DAT_CR_PARAM *param), (cr, mask, param))
FORWARD(cr_accept, (DAT_CR_HANDLE cr, DAT_EP_HANDLE ep, DAT_COUNT size, const DAT_PVOID data),
	(cr, ep, size, data))
FORWARD(cr_reject, (DAT_CR_HANDLE cr), (cr))
FORWARD(cr_handoff, (DAT_CR_HANDLE cr, DAT_CONN_QUAL qual), (cr, qual))
FORWARD(psp_create, (DAT_IA_HANDLE ia, DAT_CONN_QUAL qual, DAT_EVD_HANDLE evd, DAT_PSP_FLAGS flags,
	DAT_PSP_HANDLE *psp), (ia, qual, evd, flags, psp))
FORWARD(psp_create_any, (DAT_IA_HANDLE ia, DAT_CONN_QUAL *qual, DAT_EVD_HANDLE evd,
	DAT_PSP_FLAGS flags, DAT_PSP_HANDLE *psp), (ia, qual, evd, flags, psp))
FORWARD(psp_query, (DAT_PSP_HANDLE psp, DAT_PSP_PARAM_MASK mask, DAT_PSP_PARAM *param),
	(psp, mask, param))
FORWARD(psp_free, (DAT_PSP_HANDLE psp), (psp))
FORWARD(rsp_create, (DAT_IA_HANDLE ia, DAT_CONN_QUAL qual, DAT_EP_HANDLE ep, DAT_EVD_HANDLE evd,
	DAT_RSP_HANDLE *rsp), (ia, qual, ep, evd, rsp))
FORWARD(rsp_query, (DAT_RSP_HANDLE rsp, DAT_RSP_PARAM_MASK mask, DAT_RSP_PARAM *param),
	(rsp, mask, param))
FORWARD(rsp_free, (DAT_RSP_HANDLE rsp), (rsp))
FORWARD(ep_connect, (DAT_EP_HANDLE ep, DAT_IA_ADDRESS_PTR address, DAT_CONN_QUAL qual,
	DAT_TIMEOUT timeout, DAT_COUNT size, const DAT_PVOID data, DAT_QOS qos,
	DAT_CONNECT_FLAGS flags), (ep, address, qual, timeout, size, data, qos, flags))
FORWARD(ep_dup_connect, (DAT_EP_HANDLE ep, DAT_EP_HANDLE dup, DAT_TIMEOUT timeout, DAT_COUNT size,
	const DAT_PVOID data, DAT_QOS qos), (ep, dup, timeout, size, data, qos))
FORWARD(ep_disconnect, (DAT_EP_HANDLE ep, DAT_CLOSE_FLAGS flags), (ep, flags))

/* --- endpoints and data transfer ---------------------------------------------------- */

FORWARD(ep_create, (DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv, DAT_EVD_HANDLE request,
	DAT_EVD_HANDLE connect, const DAT_EP_ATTR *attr, DAT_EP_HANDLE *ep),
	(ia, pz, recv, request, connect, attr, ep))
FORWARD(ep_create_with_srq, (DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv,
	DAT_EVD_HANDLE request, DAT_EVD_HANDLE connect, DAT_SRQ_HANDLE srq,
	const DAT_EP_ATTR *attr, DAT_EP_HANDLE *ep), (ia, pz, recv, request, connect, srq, attr, ep))
FORWARD(ep_recv_query, (DAT_EP_HANDLE ep, DAT_COUNT *allocated, DAT_COUNT *span),
	(ep, allocated, span))
FORWARD(ep_set_watermark, (DAT_EP_HANDLE ep, DAT_COUNT soft, DAT_COUNT hard), (ep, soft, hard))
FORWARD(ep_reset, (DAT_EP_HANDLE ep), (ep))
FORWARD(ep_free, (DAT_EP_HANDLE ep), (ep))
FORWARD(ep_post_send, (DAT_EP_HANDLE ep, DAT_COUNT count, DAT_LMR_TRIPLET *iov,
	DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags), (ep, count, iov, cookie, flags))
FORWARD(ep_post_recv, (DAT_EP_HANDLE ep, DAT_COUNT count, DAT_LMR_TRIPLET *iov,
	DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags), (ep, count, iov, cookie, flags))
FORWARD(ep_post_rdma_read, (DAT_EP_HANDLE ep, DAT_COUNT count, DAT_LMR_TRIPLET *iov,
	DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote, DAT_COMPLETION_FLAGS flags),
	(ep, count, iov, cookie, remote, flags))
FORWARD(ep_post_rdma_write, (DAT_EP_HANDLE ep, DAT_COUNT count, DAT_LMR_TRIPLET *iov,
	DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote, DAT_COMPLETION_FLAGS flags),
	(ep, count, iov, cookie, remote, flags))
FORWARD(srq_create, (DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_SRQ_ATTR *attr, DAT_SRQ_HANDLE *srq),
	(ia, pz, attr, srq))
FORWARD(srq_post_recv, (DAT_SRQ_HANDLE srq, DAT_COUNT count, DAT_LMR_TRIPLET *iov,
	DAT_DTO_COOKIE cookie), (srq, count, iov, cookie))
FORWARD(srq_resize, (DAT_SRQ_HANDLE srq, DAT_COUNT max_recv_dto), (srq, max_recv_dto))
FORWARD(srq_set_lw, (DAT_SRQ_HANDLE srq, DAT_COUNT low_watermark), (srq, low_watermark))
FORWARD(srq_free, (DAT_SRQ_HANDLE srq), (srq))

/* --- memory -------------------------------------------------------------------------- */

FORWARD(pz_create, (DAT_IA_HANDLE ia, DAT_PZ_HANDLE *pz), (ia, pz))
FORWARD(pz_query, (DAT_PZ_HANDLE pz, DAT_PZ_PARAM_MASK mask, DAT_PZ_PARAM *param), (pz, mask, param))
FORWARD(pz_free, (DAT_PZ_HANDLE pz), (pz))
FORWARD(lmr_create, (DAT_IA_HANDLE ia, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region,
	DAT_VLEN length, DAT_PZ_HANDLE pz, DAT_MEM_PRIV_FLAGS privileges, DAT_LMR_HANDLE *lmr,
	DAT_LMR_CONTEXT *lmr_context, DAT_RMR_CONTEXT *rmr_context, DAT_VLEN *registered_length,
	DAT_VADDR *registered_address), (ia, type, region, length, pz, privileges, lmr, lmr_context,
	rmr_context, registered_length, registered_address))
FORWARD(lmr_free, (DAT_LMR_HANDLE lmr), (lmr))
FORWARD(lmr_sync_rdma_read, (DAT_IA_HANDLE ia, const DAT_LMR_TRIPLET *segments, DAT_VLEN count),
	(ia, segments, count))
FORWARD(lmr_sync_rdma_write, (DAT_IA_HANDLE ia, const DAT_LMR_TRIPLET *segments, DAT_VLEN count),
	(ia, segments, count))
FORWARD(rmr_create, (DAT_PZ_HANDLE pz, DAT_RMR_HANDLE *rmr), (pz, rmr))
FORWARD(rmr_bind, (DAT_RMR_HANDLE rmr, const DAT_LMR_TRIPLET *segment,
	DAT_MEM_PRIV_FLAGS privileges, DAT_EP_HANDLE ep, DAT_RMR_COOKIE cookie,
	DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT *context),
	(rmr, segment, privileges, ep, cookie, flags, context))
FORWARD(rmr_free, (DAT_RMR_HANDLE rmr), (rmr))
