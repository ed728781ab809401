/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* post_late.h - posts to a queue pair in ERR that the device would never complete (no_late_flush): core
 * completes them as flushed (post_late.c). No lock is held by the caller. */
#ifndef DAPL_POST_LATE_H
#define DAPL_POST_LATE_H
#include "dapl/core/dapl.h"

DAT_RETURN dapl_post_late(struct dapl_ep *ep, uint32_t length, DAT_DTO_COOKIE cookie,
			  DAT_COMPLETION_FLAGS flags, int op, unsigned dto_flags,
			  unsigned counter, DAT_RMR_HANDLE rmr);
DAT_RETURN dapl_post_late_receive(struct dapl_ep *ep, uint32_t length, DAT_DTO_COOKIE cookie,
				  unsigned dto_flags);

#endif
