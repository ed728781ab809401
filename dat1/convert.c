/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* convert.c - the calls with masks, enumerations or structures that only binaries of DAT 1.2 see
 * otherwise: queries, dat_ep_modify(), dat_ep_get_status() and events. */
#include "dat1/dat1.h"	/* before the headers that include <dat-1.2/dat/udat.h> */
#include "dat1/attributes.h"
#include <string.h>

/* --- queries -------------------------------------------------------------------- */

EXPORT_1_2(ia_query, DAT_IA_HANDLE ia, DAT_EVD_HANDLE *async_evd, DAT_UINT64 mask_1_2,
	   struct ia_attr_1_2 *attr_1_2, DAT_UINT64 provider_mask_1_2,
	   struct provider_attr_1_2 *provider_attr_1_2)
{
	DAT_IA_ATTR_MASK mask = ia_mask(mask_1_2);
	DAT_PROVIDER_ATTR_MASK of_provider = provider_mask(provider_mask_1_2);
	DAT_PROVIDER_ATTR provider_attr;
	DAT_IA_ATTR attr;
	DAT_RETURN ret;

	memset(&attr, 0, sizeof attr);
	memset(&provider_attr, 0, sizeof provider_attr);
	ret = dat_ia_query(ia, async_evd, mask, attr_1_2 ? &attr : NULL, of_provider,
			   provider_attr_1_2 ? &provider_attr : NULL);
	if (ret != DAT_SUCCESS)
		return return_to_1_2(ret);
	if (attr_1_2)
		ia_attr_to_1_2(attr_1_2, &attr, mask);
	if (provider_attr_1_2)
		provider_attr_to_1_2(provider_attr_1_2, &provider_attr, of_provider);
	return DAT_SUCCESS;
}

EXPORT_1_2(lmr_query, DAT_LMR_HANDLE lmr, DAT_UINT32 mask_1_2, struct lmr_param_1_2 *param_1_2)
{
	DAT_LMR_PARAM_MASK mask = lmr_mask(mask_1_2);
	DAT_LMR_PARAM param;
	DAT_RETURN ret;

	memset(&param, 0, sizeof param);
	ret = dat_lmr_query(lmr, mask, param_1_2 ? &param : NULL);
	if (ret == DAT_SUCCESS)
		lmr_param_to_1_2(param_1_2, &param, mask);
	return return_to_1_2(ret);
}

EXPORT_1_2(rmr_query, DAT_RMR_HANDLE rmr, DAT_UINT32 mask, DAT_RMR_PARAM *param)
{
	return return_to_1_2(dat_rmr_query(rmr, rmr_mask(mask), param));
}

EXPORT_1_2(srq_query, DAT_SRQ_HANDLE srq, DAT_SRQ_PARAM_MASK mask, DAT_SRQ_PARAM *param)
{
	DAT_RETURN ret = dat_srq_query(srq, mask, param);

	if (ret == DAT_SUCCESS && (mask & DAT_SRQ_FIELD_SRQ_STATE))
		param->srq_state = srq_state_to_1_2(param->srq_state);
	return return_to_1_2(ret);
}

/* --- endpoints ------------------------------------------------------------------- */

EXPORT_1_2(ep_query, DAT_EP_HANDLE ep, DAT_UINT64 mask, DAT_EP_PARAM *param)
{
	DAT_RETURN ret = dat_ep_query(ep, ep_mask(mask), param);

	if (ret == DAT_SUCCESS && (mask & DAT_EP_FIELD_EP_STATE))
		param->ep_state = ep_state_to_1_2(param->ep_state);
	return return_to_1_2(ret);
}

EXPORT_1_2(ep_modify, DAT_EP_HANDLE ep, DAT_UINT64 mask, const DAT_EP_PARAM *param)
{
	return return_to_1_2(dat_ep_modify(ep, ep_mask(mask), param));
}

EXPORT_1_2(ep_get_status, DAT_EP_HANDLE ep, DAT_EP_STATE *state, DAT_BOOLEAN *recv_idle,
	   DAT_BOOLEAN *request_idle)
{
	DAT_RETURN ret = dat_ep_get_status(ep, state, recv_idle, request_idle);

	if (ret == DAT_SUCCESS && state)
		*state = ep_state_to_1_2(*state);
	return return_to_1_2(ret);
}

/* --- events ------------------------------------------------------------------------- */

EXPORT_1_2(evd_wait, DAT_EVD_HANDLE evd, DAT_TIMEOUT timeout, DAT_COUNT threshold,
	   struct event_1_2 *event_1_2, DAT_COUNT *more)
{
	DAT_EVENT event;
	DAT_RETURN ret = dat_evd_wait(evd, timeout, threshold, event_1_2 ? &event : NULL, more);

	if (ret == DAT_SUCCESS)
		event_to_1_2(event_1_2, &event);
	return return_to_1_2(ret);
}

EXPORT_1_2(evd_dequeue, DAT_EVD_HANDLE evd, struct event_1_2 *event_1_2)
{
	DAT_EVENT event;
	DAT_RETURN ret = dat_evd_dequeue(evd, event_1_2 ? &event : NULL);

	if (ret == DAT_SUCCESS)
		event_to_1_2(event_1_2, &event);
	return return_to_1_2(ret);
}

EXPORT_1_2(evd_post_se, DAT_EVD_HANDLE evd, const struct event_1_2 *event_1_2)
{
	DAT_EVENT event;

	memset(&event, 0, sizeof event);
	if (event_1_2)
		memcpy(&event, event_1_2, sizeof *event_1_2);
	return return_to_1_2(dat_evd_post_se(evd, event_1_2 ? &event : NULL));
}
