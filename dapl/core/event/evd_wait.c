/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* evd_wait.c - dat_evd_wait: looks at the queue, polls it for a moment (wait_spin.h), arms the CQ, and
 * sleeps until a notification. */
#include <errno.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>
#include "common/clock.h"
#include "dapl/core/event/evd.h"
#include "dapl/core/event/evd_channel.h"
#include "dapl/core/event/evd_notify.h"
#include "dapl/core/event/calls.h"
#include "dapl/core/event/event.h"
#include "dapl/core/event/polled.h"
#include "dapl/core/event/wait_spin.h"

static void clear_fd(int fd)
{
	uint64_t n;

	while (read(fd, &n, sizeof n) < 0 && errno == EINTR)
		;
}

struct wait {
	struct dapl_evd *evd;
	DAT_EVENT *event;	/* the consumer's */
	int threshold;
	uint64_t deadline;	/* ns; UINT64_MAX: never */
	bool notified;		/* a CQ event came since the wait began */
	bool first;		/* this is the first look, at events that were queued before the call */
	unsigned found;		/* queued events at the last look */
};

/* True if the queue ends the wait. Called with evd->lock held, after completions were polled.
 * EVD-24, 26, 36, 37, 38, 39, 53. */
static bool satisfied(const struct wait *w)
{
	struct dapl_evd *evd = w->evd;

	assert_held(&w->evd->lock);
	if (w->found < (unsigned)w->threshold)
		return false;
	if (w->threshold > 1 || w->first || evq_count(&evd->evq))
		return true;
	if (evd->solicited)
		return w->notified;
	return !evd->skip_unsignaled || evd->notices;
}

/* True if only completions that make no event are polled. They must be taken to give their records back. */
static bool only_markers(const struct wait *w)
{
	return !w->found && w->threshold == 1 && w->evd->wc_head != w->evd->wc_tail;
}

enum arm { ARM_NOT, ARM_IF_SOLICITED, ARM };

/* Looks at the queue once. Returns true if the wait is over; then *w->event is the event. */
static bool find_events(struct wait *w, enum arm arm)
{
	struct dapl_evd *evd = w->evd;
	struct dapl_after after = { .ep = NULL };
	enum dapl_take took;

	if (__atomic_load_n(&evd->notified, __ATOMIC_RELAXED)) {
		__atomic_store_n(&evd->notified, false, __ATOMIC_RELAXED);
		w->notified = true;
	}
	do {
		took = TAKE_EMPTY;
		dapl_spin_lock(&evd->lock);
		if (arm == ARM || (arm == ARM_IF_SOLICITED && evd->solicited))
			dapl_evd_arm(evd);
		dapl_evd_fill(evd);
		w->found = dapl_evd_count(evd);
		if (satisfied(w) || only_markers(w))
			took = dapl_event_take(evd, w->event, &after);
		if (took == TAKE_EVENT && !w->found)
			w->found = 1;
		dapl_spin_unlock(&evd->lock);
		if (after.ep)
			dapl_event_after_run(&after);
	} while (took == TAKE_AGAIN);
	w->first = false;
	return took == TAKE_EVENT;
}

/* EVD-29, 34 */
static DAT_RETURN wait_refusal(const struct dapl_evd *evd)
{
	if (__atomic_load_n(&evd->dying, __ATOMIC_ACQUIRE))
		return DAT_ERROR(DAT_ABORT, DAT_NO_SUBTYPE);
	if (__atomic_load_n(&evd->unwaitable, __ATOMIC_ACQUIRE))
		return BAD_STATE(EVD_UNWAITABLE);
	return DAT_SUCCESS;
}

/* Sets *timeout to the time that is left, NULL for no limit. Returns false if none is left. EVD-22, 27. */
static bool time_left(const struct wait *w, struct timespec *left, struct timespec **timeout)
{
	uint64_t now;

	*timeout = NULL;
	if (w->deadline == UINT64_MAX)
		return true;
	now = clock_now_ns();
	if (now >= w->deadline)
		return false;
	left->tv_sec = (w->deadline - now) / 1000000000;
	left->tv_nsec = (w->deadline - now) % 1000000000;
	*timeout = left;
	return true;
}

/* Returns true if the channel had an event or cannot be read. */
static bool was_notified(struct wait *w)
{
	struct dapl_evd *evd = w->evd;
	bool got;
	int err;

	dapl_spin_lock(&evd->lock);
	err = dapl_evd_take_cq_events(evd, &got);
	dapl_spin_unlock(&evd->lock);
	w->notified |= got;
	__atomic_add_fetch(&evd->counters[DCNT_EVD_WAIT_NOTIFY], got, __ATOMIC_RELAXED);
	if (err)
		dapl_evd_lose_channel(evd, err);
	return got || err;
}

/* Callbacks that queue an event for this wait need not wake the thread. Returns true if the thread must sleep again. */
static bool run_loop(struct dapl_evd *evd, int *loop)
{
	__atomic_store_n(&evd->wait_blocked, false, __ATOMIC_RELAXED);
	dapl_work_for_loop(loop);
	__atomic_store_n(&evd->wait_blocked, true, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return !__atomic_load_n(&evd->notified, __ATOMIC_RELAXED);
}

enum { WAKE, CHANNEL, DEVICE, LOOP, FDS };

/* Handles what poll() returned: a wake-up, an event of the channel, or work for the device or the
 * service loop, which is done. Returns true if the thread must sleep again. */
static bool handle_wakeup(struct wait *w, const struct pollfd *fds, struct dapl_blocked *blocked)
{
	struct dapl_evd *evd = w->evd;
	bool again = false;

	if (fds[WAKE].revents) {
		clear_fd(evd->wake_fd);
		w->notified = true;
		return false;
	}
	if (fds[CHANNEL].revents) {
		was_notified(w);
		return false;
	}
	if (fds[DEVICE].revents) {
		dapl_work_for_device(evd->obj.ia, &blocked->device);
		again = !evd->channel || !was_notified(w);
	}
	if (fds[LOOP].revents)
		again = run_loop(evd, &blocked->loop) && (again || !fds[DEVICE].revents);
	return again;
}

/* Sleeps once. Returns 0, EINTR, or ETIMEDOUT. */
static int block_once(struct wait *w)
{
	struct dapl_evd *evd = w->evd;
	struct pollfd fds[FDS] = {
		[WAKE] = { .fd = evd->wake_fd, .events = POLLIN },
		[CHANNEL] = { .fd = evd->channel ? evd->channel->fd : -1, .events = POLLIN },
		[DEVICE] = { .events = POLLIN },
		[LOOP] = { .events = POLLIN },
	};
	struct dapl_blocked blocked;
	struct timespec left, *timeout;
	int err = 0;

	if (!time_left(w, &left, &timeout))
		return ETIMEDOUT;
	__atomic_add_fetch(&evd->counters[DCNT_EVD_WAIT_BLOCKED], 1, __ATOMIC_RELAXED);
	blocked = dapl_begin_block(evd->obj.ia, evd->channel);
	do {
		fds[DEVICE].fd = blocked.device;
		fds[LOOP].fd = blocked.loop;
		if (ppoll(fds, FDS, timeout, NULL) < 0) {
			err = errno == EINTR ? EINTR : 0;
			break;
		}
	} while (handle_wakeup(w, fds, &blocked) && time_left(w, &left, &timeout));
	dapl_end_block(evd->obj.ia, &blocked);
	return err;
}

static bool look_without_arming(void *wait)
{
	return find_events(wait, ARM_NOT);
}

/* Returns true if the wait is over. */
static bool look_repeatedly(struct wait *w)
{
	for (int i = 0; i < EVD_SPINS; i++) {
		dapl_pause();
		if (find_events(w, ARM_NOT))
			return true;
	}
	return false;
}

static bool spin_if_worth(struct wait *w)
{
	struct dapl_evd *evd = w->evd;
	bool found;

	if (!evd->cq || !dapl_wait_spin_begin(&evd->spin))
		return false;
	found = dapl_wait_spin(w->deadline, look_without_arming, w);
	dapl_wait_spin_end(&evd->spin, found);
	return found;
}

static DAT_RETURN wait_loop(struct wait *w)
{
	struct dapl_evd *evd = w->evd;
	DAT_RETURN ret;
	bool last = false;

	/* Do not arm before the first poll: an unneeded notification is a spurious wake-up for the next
	 * waiter. Exception: an EVD of solicited events is armed first, because a solicited event between
	 * the poll and the arming would be missed. */
	if (find_events(w, ARM_IF_SOLICITED))
		return DAT_SUCCESS;
	if (w->deadline == 0)	/* EVD-23 */
		return (ret = wait_refusal(evd)) ? ret : DAT_ERROR(DAT_TIMEOUT_EXPIRED, DAT_NO_SUBTYPE);
	if (look_repeatedly(w) || spin_if_worth(w))
		return DAT_SUCCESS;
	for (;;) {
		if ((ret = wait_refusal(evd)))	/* before the look: an event must not hide the refusal */
			return ret;
		__atomic_store_n(&evd->wait_blocked, true, __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (find_events(w, ARM))
			return DAT_SUCCESS;
		if (last)
			return DAT_ERROR(DAT_TIMEOUT_EXPIRED, DAT_NO_SUBTYPE);
		if (dapl_evd_channel_lost(evd))
			return DAT_ERROR(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
		switch (block_once(w)) {
		case EINTR:
			return DAT_ERROR(DAT_INTERRUPTED_CALL, DAT_NO_SUBTYPE);	/* EVD-33 */
		case ETIMEDOUT:
			last = true;
			break;
		default:
			if (find_events(w, ARM_IF_SOLICITED))
				return DAT_SUCCESS;
		}
	}
}

/* EVD-28, 35 */
static DAT_RETURN begin_wait(struct dapl_evd *evd, int threshold)
{
	DAT_RETURN ret;

	dapl_mutex_lock(&evd->mutex);
	ret = wait_refusal(evd);
	if (!ret && dapl_flag(&evd->waiting))
		ret = BAD_STATE(EVD_WAITER);
	if (!ret && threshold > 1 && evd->solicited)
		ret = BAD_STATE(EVD_CONFIG_SOLICITED);
	if (!ret && threshold > 1 && evd->skip_unsignaled)
		ret = BAD_STATE(EVD_CONFIG_NOTIFY);
	if (!ret) {
		dapl_spin_lock(&evd->lock);
		dapl_flag_set(&evd->waiting, true);
		__atomic_store_n(&evd->notified, false, __ATOMIC_RELAXED);
		evd->counters[DCNT_EVD_WAIT]++;
		dapl_spin_unlock(&evd->lock);
	}
	dapl_mutex_unlock(&evd->mutex);
	return ret;
}

static void end_wait(struct dapl_evd *evd)
{
	dapl_mutex_lock(&evd->mutex);
	dapl_spin_lock(&evd->lock);
	dapl_flag_set(&evd->waiting, false);
	__atomic_store_n(&evd->wait_blocked, false, __ATOMIC_RELAXED);
	if (evd->cno || dapl_flag(&evd->watched))
		dapl_evd_arm(evd);	/* the waiter may have taken the channel's event from the CNO or the
					 * service thread */
	dapl_spin_unlock(&evd->lock);
	dapl_mutex_unlock(&evd->mutex);
}

/* dat_evd_wait (doc/spec/calls.md 4). timeout in microseconds. INTERNAL_ERROR: the channel is lost, so no
 * completion would end the wait (dapl_evd_lose_channel). EVD-19, 20, 21, 25. */
DAT_RETURN dapl_evd_wait(DAT_EVD_HANDLE handle, DAT_TIMEOUT timeout, DAT_COUNT threshold,
			 DAT_EVENT *event, DAT_COUNT *nmore)
{
	DAPL_ENTERED struct dapl_evd *evd = dapl_evd_enter(handle);
	struct wait w = { .evd = evd, .event = event, .threshold = threshold, .first = true };
	DAT_RETURN ret;

	if (!evd)
		return BAD_HANDLE(EVD_REQUEST);
	if (threshold < 1 || threshold > __atomic_load_n(&evd->qlen, __ATOMIC_RELAXED))
		return BAD_PARAM(3);
	if (!event)
		return BAD_PARAM(4);
	if (!nmore)
		return BAD_PARAM(5);
	if ((ret = begin_wait(evd, threshold)))
		return ret;
	w.deadline = timeout == DAT_TIMEOUT_INFINITE ? UINT64_MAX :
		timeout ? clock_now_ns() + timeout * 1000ull : 0;
	ret = wait_loop(&w);
	*nmore = ret == DAT_SUCCESS ? w.found - 1 : w.found;
	end_wait(evd);
	return ret;
}
