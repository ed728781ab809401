/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* flush.h - makes completions of posts that the device does not flush (flush.c). */
#ifndef DAPL_FLUSH_H
#define DAPL_FLUSH_H
#include "dapl/core/dapl.h"

/* Makes flushed completions of posts that the device will not complete any more, behind those that the
 * device made, and notifies. `first`: the device has just made its last completion. Called without
 * evd->lock. */
void dapl_evd_flush_posts(struct dapl_evd *evd, struct dapl_ep *ep, struct dapl_queue *q, bool first);

#endif
