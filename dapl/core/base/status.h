/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* status.h - translates errno values and completion statuses of verbs to DAT codes. */
#ifndef DAPL_STATUS_H
#define DAPL_STATUS_H
#include <dat/udat.h>
#include <infiniband/verbs.h>

/* Makes the value that a call returns. The enumerators lack the error class. ERR-3. */
#define DAT_ERROR(type, subtype) \
	((DAT_RETURN)((uint32_t)DAT_CLASS_ERROR | (uint32_t)(type) | (uint32_t)(subtype)))

/* Translates an errno; 0 is DAT_SUCCESS. `no_resource` is the subtype for INSUFFICIENT_RESOURCES. Some
 * drivers return negative errnos, which count as positive. */
DAT_RETURN dapl_status(int err, DAT_RETURN_SUBTYPE no_resource);
/* Translates a completion status (doc/spec/states.md 5). */
DAT_DTO_COMPLETION_STATUS dapl_status_dto(enum ibv_wc_status status);
/* Returns INVALID_STATE with the subtype that names `state`. */
DAT_RETURN dapl_status_bad_ep_state(DAT_EP_STATE state);
/* Returns the name of a state for traces: "connected". */
const char *dapl_status_ep_state_name(DAT_EP_STATE state);

#endif
