/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* post_late.h - completes posts to a queue pair in ERR as flushed, because the device would never complete
 * them (no_late_flush; post_late.c). Called with no lock held. */
#ifndef DAPL_POST_LATE_H
#define DAPL_POST_LATE_H
#include "dapl/core/dapl.h"

DAT_RETURN dapl_post_late(struct dapl_ep *ep, uint32_t length, DAT_DTO_COOKIE cookie,
			  DAT_COMPLETION_FLAGS flags, int op, unsigned dto_flags,
			  unsigned counter, DAT_RMR_HANDLE rmr);
DAT_RETURN dapl_post_late_receive(struct dapl_ep *ep, uint32_t length, DAT_DTO_COOKIE cookie,
				  unsigned dto_flags);

#endif
