/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* api_event.c - event dispatchers and consumer notification objects: query, change, free. Taking events
 * from an EVD is in api_dto.c. */
#include "dat/api.h"
#include "dat/loader.h"

/* --- event dispatchers ------------------------------------------------------------ */

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

/* --- consumer notification objects ------------------------------------------------ */

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
