/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* evd_channel.c - the completion channel of an EVD: arming the CQ, taking its events, watching it on the
 * service thread, losing it (evd_channel.h). */
#include <errno.h>
#include <string.h>
#include "common/once.h"
#include "dapl/core/event/async.h"
#include "dapl/core/event/cno.h"
#include "dapl/core/event/evd.h"
#include "dapl/core/event/evd_channel.h"
#include "dapl/core/event/evd_notify.h"
#include "dapl/core/event/event.h"
#include "dapl/core/event/polled.h"

void dapl_evd_arm(struct dapl_evd *evd)
{
	assert_held(&evd->lock);
	if (!evd->cq || evd->armed)
		return;
	evd->armed = true;
	ibv_req_notify_cq(evd->cq, evd->solicited && !evd->obj.ia->attr.no_solicited);
}

void dapl_evd_discard(struct dapl_evd *evd)
{
	struct dapl_after after = { .ep = NULL };
	enum dapl_take took;
	DAT_EVENT event;

	do {
		dapl_spin_lock(&evd->lock);
		took = dapl_event_take(evd, &event, &after);
		dapl_spin_unlock(&evd->lock);
		if (after.ep)
			dapl_event_after_run(&after);
	} while (took == TAKE_EVENT || took == TAKE_AGAIN);
}

int dapl_evd_take_cq_events(struct dapl_evd *evd, bool *got)
{
	struct ibv_cq *cq;
	int err;

	assert_held(&evd->lock);
	*got = false;
	while (!(err = dapl_device_ops.get_cq_event(evd->channel, &cq)))
		*got = true;
	if (*got)
		evd->armed = false;
	return err == EAGAIN || err == EINTR ? 0 : err;
}

/* The channel of a device that was removed cannot be read, although poll(2) reports it readable, and gets
 * no more events. A waiter is woken, and a later one does not block: dat_evd_wait returns an error if the
 * queue is empty. Polling still works. */
void dapl_evd_lose_channel(struct dapl_evd *evd, int err)
{
	if (!__atomic_exchange_n(&evd->channel_lost, true, __ATOMIC_ACQ_REL)) {
		trace(TRC_LVL_ERROR, TRC_DAPL_ERROR, "evd", evd, "channel lost", "it can't be read: %s",
		      strerror(err));
		dapl_async_post(evd->obj.ia, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR, evd->discard ? NULL : evd,
				DAT_EVD_OTHER_ERROR);
	}
	dapl_evd_notify(evd);
}

/* Called with evd->lock held. Returns whether to notify of completions that were just polled. Another thread may have
 * polled the notification event before. EVD-54, 56. */
static bool mark_told(struct dapl_evd *evd)
{
	bool worth = !evd->skip_unsignaled || (evd->fresh_notice && evd->notices);

	assert_held(&evd->lock);
	evd->fresh_notice = false;
	evd->polled_new = false;
	evd->polls_told = evd->counters[DCNT_EVD_DEQUEUE_POLL_FOUND];
	return worth;
}

/* Called with evd->lock held, after polling. */
static bool has_untold(const struct dapl_evd *evd)
{
	assert_held(&evd->lock);
	return evd->wc_head != evd->wc_tail &&
	       (evd->polled_new || evd->polls_told != evd->counters[DCNT_EVD_DEQUEUE_POLL_FOUND]);
}

bool dapl_evd_has_news(struct dapl_evd *evd, bool arm)
{
	bool news = false;

	dapl_spin_lock(&evd->lock);
	if (evd->cq && !evd->solicited && !evd->discard) {
		if (arm)
			dapl_evd_arm(evd);
		dapl_evd_fill(evd);
		news = has_untold(evd);
		news = mark_told(evd) && news;
	}
	dapl_spin_unlock(&evd->lock);
	return news;
}

/* A waiter of a CNO arms the CQ before it sleeps, so it is armed again only for another one, which may sleep now. */
bool dapl_evd_cq_event(struct dapl_evd *evd, const struct dapl_cno *polling)
{
	bool got, worth_telling = false, untold;
	int err;

	dapl_spin_lock(&evd->lock);
	err = dapl_evd_take_cq_events(evd, &got);
	if (got) {
		if (!evd->discard)
			dapl_evd_fill(evd);
		if (!polling || evd->solicited || READ_ONCE(polling->waiters) > 1)
			dapl_evd_arm(evd);
		if (!evd->discard)
			dapl_evd_fill(evd);
		untold = !polling || evd->solicited || has_untold(evd);
		worth_telling = mark_told(evd) && untold;
		evd->counters[DCNT_EVD_DTO_CALLBACK]++;
	}
	dapl_spin_unlock(&evd->lock);
	if (got && evd->discard)
		dapl_evd_discard(evd);
	else if (worth_telling)
		dapl_evd_notify(evd);
	if (err)
		dapl_evd_lose_channel(evd, err);
	return !err;
}

static void channel_ready(struct dapl_watch *watch)
{
	if (!dapl_evd_cq_event(container_of(watch, struct dapl_evd, watch), NULL))
		dapl_watch_stop(watch);
}

/* The service thread takes the CQ's events for proxies, spilling, discard EVDs and watermarks.
 * evd->change is held, or the EVD is not published yet. */
int dapl_evd_watch(struct dapl_evd *evd)
{
	int err = 0;

	if (!evd->channel || dapl_flag(&evd->watched))
		return 0;
	if ((err = dapl_watch_start(&evd->watch, evd->channel->fd, channel_ready)))
		return err;
	dapl_flag_set(&evd->watched, true);
	dapl_spin_lock(&evd->lock);
	dapl_evd_arm(evd);
	dapl_spin_unlock(&evd->lock);
	return 0;
}

void dapl_evd_unwatch(struct dapl_evd *evd)
{
	if (dapl_flag(&evd->watched))
		dapl_watch_stop(&evd->watch);
	dapl_flag_set(&evd->watched, false);
}
