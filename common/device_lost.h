/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* device_lost.h - which asynchronous events of an IA tell that it is of no use any more. For files that have included
 * <dat/udat.h>. */
#ifndef COMMON_DEVICE_LOST_H
#define COMMON_DEVICE_LOST_H
#include <stdbool.h>

static inline bool device_is_lost(DAT_EVENT_NUMBER event)
{
	return event == DAT_ASYNC_ERROR_IA_CATASTROPHIC ||
	       event == DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR; /* no completions are reported */
}

#endif
