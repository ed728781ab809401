/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* api_mem.c - memory regions, memory windows, protection zones and shared receive queues: query,
 * change, free. Posting to an SRQ and binding a window are in api_dto.c. */
#include "dat/api.h"

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
