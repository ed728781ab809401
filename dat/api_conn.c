/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* api_conn.c - endpoints, service points and connection requests: query, change, connect, answer,
 * free. Posting to an endpoint is in api_dto.c. */
#include "dat/api.h"

/* --- endpoints -------------------------------------------------------------------- */

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

/* --- service points and connection requests --------------------------------------- */

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
