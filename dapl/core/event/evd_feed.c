/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* evd_feed.c - the endpoint streams that feed an EVD, counted by their completion flags, and how
 * the EVD notifies because of them. */
#include "dapl/core/event/evd.h"
#include "dapl/core/event/evd_feed.h"
#include "dapl/core/event/polled.h"

/* Returns why a stream with these flags cannot feed the EVD, or NULL. DEFAULT, EVD_THRESHOLD and
 * UNSIGNALLED concern the completions of their stream only. SOLICITED_WAIT arms the CQ for solicited
 * completions, so all streams of an EVD have it, or none. */
static const char *cannot_feed(const struct dapl_evd *evd, DAT_COMPLETION_FLAGS flags)
{
	if (flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG) {
		if (evd->feeds.all > evd->feeds.solicited)
			return "SOLICITED_WAIT receives share no EVD with other completions";
		if (evd->flags & ~(EVD_CQ_STREAMS | (int)DAT_IB_EVD_EXTENSION_FLAG))
			return "SOLICITED_WAIT receives share no EVD with other kinds of events";
	} else if (evd->feeds.solicited) {
		return "the EVD takes SOLICITED_WAIT receives, and no other completions";
	}
	return NULL;
}

static void count_feed(struct dapl_evd *evd, DAT_COMPLETION_FLAGS flags, int n)
{
	evd->feeds.all += n;
	if (flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG)
		evd->feeds.solicited += n;
	if (flags & DAT_COMPLETION_UNSIGNALLED_FLAG)
		evd->feeds.unsignaled += n;
	if (flags & DAT_COMPLETION_EVD_THRESHOLD_FLAG)
		evd->feeds.threshold += n;
}

/* Called with evd->mutex held. If one stream is UNSIGNALLED, all completions must be inspected. */
static void set_feed_mode(struct dapl_evd *evd)
{
	assert_held(&evd->mutex);
	if (evd->feeds.unsignaled)
		dapl_evd_inspect(evd);
	dapl_spin_lock(&evd->lock);
	evd->solicited = evd->feeds.solicited > 0;
	evd->skip_unsignaled = evd->feeds.unsignaled > 0;
	dapl_spin_unlock(&evd->lock);
}

/* EP-9, EVD-55 */
DAT_RETURN dapl_evd_feed(struct dapl_evd *evd, DAT_COMPLETION_FLAGS flags, const char **why)
{
	DAT_RETURN ret = DAT_SUCCESS;

	dapl_mutex_lock(&evd->mutex);
	if ((*why = cannot_feed(evd, flags))) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_NO_SUBTYPE);
	} else if (!dapl_use(&evd->obj)) {
		*why = "the EVD is being freed";
		ret = BAD_HANDLE(EVD_REQUEST);
	} else {
		count_feed(evd, flags, 1);
		set_feed_mode(evd);
	}
	dapl_mutex_unlock(&evd->mutex);
	return ret;
}

void dapl_evd_unfeed(struct dapl_evd *evd, DAT_COMPLETION_FLAGS flags)
{
	dapl_mutex_lock(&evd->mutex);
	count_feed(evd, flags, -1);
	set_feed_mode(evd);
	dapl_mutex_unlock(&evd->mutex);
	dapl_unuse(&evd->obj);
}

void dapl_evd_inspect(struct dapl_evd *evd)
{
	dapl_spin_lock(&evd->lock);
	if (!dapl_flag(&evd->inspect)) {
		dapl_flag_set(&evd->inspect, true);
		dapl_evd_inspect_all(evd);
	}
	dapl_spin_unlock(&evd->lock);
}
