/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* status.h - the one border where errno values and verbs completion statuses become DAT
 * codes. */
#ifndef DAPL_STATUS_H
#define DAPL_STATUS_H
#include <dat/udat.h>
#include <infiniband/verbs.h>

/* What a call returns: the error class is not in the enumerators. ERR-3. */
#define DAT_ERROR(type, subtype) \
	((DAT_RETURN)((uint32_t)DAT_CLASS_ERROR | (uint32_t)(type) | (uint32_t)(subtype)))

/* 0 is DAT_SUCCESS; no_resource is the subtype for INSUFFICIENT_RESOURCES. Negative
 * errnos (as some drivers return) are taken as positive ones. */
DAT_RETURN dapl_status(int err, DAT_RETURN_SUBTYPE no_resource);
/* Completion status (doc/spec/states.md 5). */
DAT_DTO_COMPLETION_STATUS dapl_dto_status(enum ibv_wc_status status);
/* INVALID_STATE with the subtype that names `state`. */
DAT_RETURN dapl_bad_ep_state(DAT_EP_STATE state);
/* "connected" and so on, for traces. */
const char *dapl_ep_state_name(DAT_EP_STATE state);

#endif
