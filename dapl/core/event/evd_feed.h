/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* evd_feed.h - the streams that feed an EVD (evd_feed.c). */
#ifndef DAPL_EVD_FEED_H
#define DAPL_EVD_FEED_H
#include "dapl/core/dapl.h"

void dapl_evd_unfeed(struct dapl_evd *evd, DAT_COMPLETION_FLAGS flags);
/* An endpoint stream with these completion flags begins or stops feeding the EVD. After an error *why is
 * the reason in words. */
DAT_RETURN dapl_evd_feed(struct dapl_evd *evd, DAT_COMPLETION_FLAGS flags, const char **why);
/* From now on each completion is inspected when it is polled. Takes evd->lock. */
void dapl_evd_inspect(struct dapl_evd *evd);

#endif
