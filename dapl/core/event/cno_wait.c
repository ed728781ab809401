/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cno_wait.c - dat_cno_wait: polls the CQs of the CNO's EVDs, for a moment if that is worth it (wait_spin.h), then arms
 * them, and sleeps until a channel is readable. Does the device's work meanwhile. */
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include "common/clock.h"
#include "common/once.h"
#include "dapl/core/event/cno.h"
#include "dapl/core/event/cno_trigger.h"
#include "dapl/core/event/calls.h"
#include "dapl/core/event/evd.h"
#include "dapl/core/event/evd_channel.h"
#include "dapl/core/event/evd_notify.h"
#include "dapl/core/event/wait_spin.h"

enum { SPIN_CQS = 16 };		/* a wait polls no more CQs again and again: one look at them takes a microsecond */

/* Takes the events of channels that were readable. An EVD of `events` may have been detached and freed:
 * only EVDs that are attached under the mutex are used, with a reference. */
static void take_channels(struct dapl_cno *cno, struct epoll_event *events, int n)
{
	for (int i = 0; i < n; i++) {
		struct dapl_evd *evd = events[i].data.ptr;
		bool ours;

		if (!evd)
			continue;
		dapl_mutex_lock(&cno->mutex);
		/* READ_ONCE: the EVD may be attached to another CNO at the same time, under that CNO's
		 * mutex. */
		ours = READ_ONCE(evd->cno) == cno && !dapl_flag(&evd->dying);
		if (ours)
			dapl_object_get(&evd->obj);
		dapl_mutex_unlock(&cno->mutex);
		if (ours) {
			if (!dapl_evd_cq_event(evd, cno))
				epoll_ctl(cno->epfd, EPOLL_CTL_DEL, evd->channel->fd, NULL);
			dapl_object_put(&evd->obj);
		}
	}
}

/* Milliseconds that epoll_wait may sleep: rounded up, so that a wait is never short. */
static int left_ms(uint64_t deadline)
{
	uint64_t now, ms;

	if (deadline == UINT64_MAX)
		return -1;
	now = clock_now_ns();
	if (now >= deadline)
		return 0;
	ms = (deadline - now + 999999) / 1000000;
	return ms > 3600000 ? 3600000 : (int)ms;
}

static uint64_t deadline_of(DAT_TIMEOUT timeout)
{
	return timeout == DAT_TIMEOUT_INFINITE ? UINT64_MAX : clock_now_ns() + timeout * 1000ull;
}

/* An EVD that lost its channel has triggered the CNO, perhaps without an event. */
static DAT_RETURN triggered(const struct dapl_evd *evd)
{
	return evd && dapl_evd_channel_lost(evd) ? DAT_ERROR(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE) :
		DAT_SUCCESS;
}

struct sleep {
	struct dapl_cno *cno;
	struct dapl_blocked blocked;
	struct epoll_event events[8];
	int n;				/* number of events, or a negative errno */
};

/* Stores errno in s->n, because the caller takes a lock, which may change errno. */
static bool look_at_channels(struct sleep *s, int ms)
{
	s->n = epoll_wait(s->cno->epfd, s->events, sizeof s->events / sizeof *s->events, ms);
	if (s->n < 0)
		s->n = -errno;
	return s->n != 0;
}

/* Called with cno->mutex held, which it may release meanwhile. Polls the CQs; the first one with completions triggers
 * the CNO. Returns false if there is none: with `arm`, all are armed then. With a proxy, the service thread takes the
 * completions. */
static bool poll_cqs(struct dapl_cno *cno, bool arm)
{
	struct dapl_evd *evd = cno->proxy == DAT_PROXY_TYPE_NONE ? cno->attached : NULL;

	assert_held(&cno->mutex);
	while (evd && !dapl_evd_has_news(evd, arm))
		evd = evd->next_attached;
	if (!evd)
		return false;
	dapl_object_get(&evd->obj);
	dapl_mutex_unlock(&cno->mutex);
	dapl_evd_notify(evd);
	dapl_object_put(&evd->obj);
	dapl_mutex_lock(&cno->mutex);
	return true;
}

/* Returns true if the wait may be over: there is a trigger, or the CNO closes. */
static bool look_at_cqs(void *sleep)
{
	struct dapl_cno *cno = ((struct sleep *)sleep)->cno;
	bool found;

	dapl_mutex_lock(&cno->mutex);
	found = cno->first || cno->raised || poll_cqs(cno, false);
	dapl_mutex_unlock(&cno->mutex);
	return found;
}

/* Called with no lock held. Returns true if the wait may be over. */
static bool spin(struct sleep *s, uint64_t deadline, bool long_enough)
{
	for (int i = 0; i < EVD_SPINS; i++) {
		dapl_pause();
		if (look_at_cqs(s))
			return true;
	}
	return long_enough && dapl_wait_spin(deadline, look_at_cqs, s);
}

/* cno->mutex held at entry and exit. A thread that waits alone polls for a moment (wait_spin.h). Returns true if the
 * wait may be over. */
static bool spin_if_worth(struct sleep *s, uint64_t deadline)
{
	struct dapl_cno *cno = s->cno;
	bool long_enough, found;

	assert_held(&cno->mutex);
	if (cno->waiters > 1 || !cno->cqs || cno->cqs > SPIN_CQS || cno->proxy != DAT_PROXY_TYPE_NONE)
		return false;
	long_enough = dapl_wait_spin_begin(&cno->spin);
	dapl_mutex_unlock(&cno->mutex);
	found = spin(s, deadline, long_enough);
	dapl_mutex_lock(&cno->mutex);
	if (long_enough)
		dapl_wait_spin_end(&cno->spin, found);
	return found;
}

static void block(struct sleep *s, uint64_t deadline)
{
	struct dapl_blocked *blocked = &s->blocked;

	while (blocked->device >= 0 || blocked->loop >= 0) {
		struct pollfd fds[] = {
			{ .fd = s->cno->epfd, .events = POLLIN },
			{ .fd = blocked->device, .events = POLLIN },
			{ .fd = blocked->loop, .events = POLLIN },
		};

		s->n = poll(fds, 3, left_ms(deadline));
		if (s->n < 0)
			s->n = -errno;
		if (s->n > 0 && fds[1].revents)
			dapl_work_for_device(s->cno->obj.ia, &blocked->device);
		if (s->n > 0 && fds[2].revents)
			dapl_work_for_loop(&blocked->loop);
		if (s->n > 0)
			look_at_channels(s, 0);
		if (s->n || !left_ms(deadline))
			return;
	}
	look_at_channels(s, left_ms(deadline));
}

/* Called with no lock held. With deadline 0 it looks once. */
static void sleep_until(struct sleep *s, uint64_t deadline)
{
	if (!deadline) {
		look_at_channels(s, 0);
		return;
	}
	s->blocked = dapl_begin_block(s->cno->obj.ia, true);
	block(s, deadline);
	dapl_end_block(s->cno->obj.ia, &s->blocked);
}

/* cno->mutex held at entry and exit. Once this thread counts as a sleeper, a trigger wakes it. Those that it makes
 * itself need no wake-up. */
static void sleep_unlocked(struct sleep *s, uint64_t deadline)
{
	struct dapl_cno *cno = s->cno;

	s->n = 0;
	cno->sleepers++;
	if (!poll_cqs(cno, deadline) && !cno->first) {
		dapl_mutex_unlock(&cno->mutex);
		sleep_until(s, deadline);
		dapl_mutex_lock(&cno->mutex);
	}
	cno->sleepers--;
	if (s->n > 0) {
		dapl_mutex_unlock(&cno->mutex);
		take_channels(cno, s->events, s->n);
		dapl_mutex_lock(&cno->mutex);
	}
}

/* cno->mutex held at entry and exit; counted as a waiter. CNO-3, 4, 5, 6, 7, 11. */
static DAT_RETURN wait_trigger(struct dapl_cno *cno, uint64_t deadline, struct dapl_evd **evd)
{
	struct sleep sleep = { .cno = cno };
	unsigned orphaned = cno->orphaned;
	bool first = true, last = false;

	assert_held(&cno->mutex);
	for (;; first = false) {
		*evd = dapl_cno_take(cno);
		if (*evd || cno->closing)
			return triggered(*evd);
		if (cno->orphaned != orphaned) {
			if (cno->waiters == 1)	/* no EVD is triggered, and the other waiters have left */
				dapl_cno_lower(cno);
			return DAT_SUCCESS;
		}
		if (last)
			return DAT_ERROR(DAT_QUEUE_EMPTY, DAT_NO_SUBTYPE);
		last = left_ms(deadline) == 0;
		if (first && (poll_cqs(cno, false) || (!last && spin_if_worth(&sleep, deadline)))) {
			last = false;
			continue;
		}
		sleep_unlocked(&sleep, last ? 0 : deadline);
		if (sleep.n == -EINTR)
			return DAT_ERROR(DAT_INTERRUPTED_CALL, DAT_NO_SUBTYPE);
	}
}

/* dat_cno_wait (doc/spec/calls.md 3). timeout in microseconds. Returns INTERNAL_ERROR with an EVD whose
 * channel is lost. */
DAT_RETURN dapl_cno_wait(DAT_CNO_HANDLE handle, DAT_TIMEOUT timeout, DAT_EVD_HANDLE *evd_handle)
{
	DAPL_ENTERED struct dapl_cno *cno = dapl_cno_enter(handle);
	struct dapl_evd *evd = NULL;
	DAT_RETURN ret;

	if (!cno)
		return BAD_HANDLE(CNO);
	if (!evd_handle)
		return BAD_PARAM(3);
	dapl_mutex_lock(&cno->mutex);
	WRITE_ONCE(cno->waiters, cno->waiters + 1);
	ret = wait_trigger(cno, deadline_of(timeout), &evd);
	WRITE_ONCE(cno->waiters, cno->waiters - 1);
	dapl_cond_broadcast(&cno->left);
	dapl_mutex_unlock(&cno->mutex);
	*evd_handle = (DAT_EVD_HANDLE)evd;
	return ret;
}
