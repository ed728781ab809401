/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* owner.c - selects the thread that drives progress: a polling thread, a thread that is blocked in
 * a wait and is woken for data, or the service thread. At any time there is one of them:
 * owner_state.c keeps it. progress.c does its work.
 *
 * doc/design/soft-progress.md argues why no thread sleeps while a message waits. */
#include "dapl/soft/progress/owner.h"
#include "common/clock.h"
#include "common/compiler.h"
#include "common/container_of.h"
#include "common/lock.h"
#include "dapl/core/base/service.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/shm/peer.h"
#include "dapl/soft/shm/process.h"
#include "dapl/soft/progress/acks.h"
#include "dapl/soft/progress/owner_state.h"
#include "dapl/soft/progress/progress.h"
#include "dapl/soft/progress/rings.h"
#include "dapl/soft/progress/wakeup.h"
#include "dapl/soft/tunables.h"
#include <errno.h>
#include <sys/epoll.h>
#include <sys/resource.h>

/* The service thread takes over from polling threads; data that is there wakes it. */
static void service_resumes(struct dapl_device *dev, const char *why)
{
	dapl_mutex_lock(&dev->progress.owner_lock);
	if (soft_owner_polls(dev))
		soft_owner_set(dev, OWNER_SERVICE_THREAD, why);
	dapl_mutex_unlock(&dev->progress.owner_lock);
}

/* Wakes the service thread for messages that came to the rings before service_resumes(). Progress
 * lock held. */
static void wake_for_rings(struct dapl_device *dev)
{
	assert_held(&dev->progress_lock);
	if (soft_rings_ready(dev))
		shm_notify_self(dev->shm.process);
}

static uint32_t polls_now(struct dapl_device *dev)
{
	return __atomic_load_n(&dev->progress.polls, __ATOMIC_RELAXED);
}

/* Returns true if since the last call other processes got the processor, though a thread of this process
 * could run. Then a small number of polls says nothing. */
static bool was_preempted(struct dapl_device *dev)
{
	struct rusage usage;
	bool more;

	getrusage(RUSAGE_SELF, &usage);
	more = usage.ru_nivcsw != dev->progress.preemptions;
	dev->progress.preemptions = usage.ru_nivcsw;
	return more;
}

/* Returns true if the threads poll only now and then, and look at memory or compute in between, so that data
 * waits. Then the service thread is to drive progress for a while, which this sets: longer each time
 * that this is found again. */
static bool check_slow_pollers(struct dapl_device *dev, uint32_t polls)
{
	struct epoll_event event;

	if (was_preempted(dev))
		return false;
	if (polls < OWNER_LAZY_POLLS)
		soft_wakeup_end(dev);	/* so that epoll reports all sockets */
	if (polls >= OWNER_LAZY_POLLS ||
	    (!soft_rings_ready(dev) && epoll_wait(dev->data_epoll, &event, 1, 0) != 1)) {
		dev->progress.keep_ms = 0;
		return false;
	}
	dev->progress.keep_ms = dev->progress.keep_ms ? 2 * dev->progress.keep_ms : SERVICE_HOLD_MS_MIN;
	if (dev->progress.keep_ms > SERVICE_HOLD_MS_MAX)
		dev->progress.keep_ms = SERVICE_HOLD_MS_MAX;
	dev->progress.keep_until_ns = clock_now_ns() + dev->progress.keep_ms * 1000000ull;
	return true;
}

/* Runs every OWNER_CHECK_US while polling threads drive progress: checks that they still poll. */
static void check_pollers(struct dapl_timer *timer)
{
	struct dapl_device *dev = container_of(timer, struct dapl_device, progress.owner_timer);
	uint32_t polls, since;

	soft_progress_lock(dev);
	soft_acks_flush(dev);
	polls = polls_now(dev);
	since = polls - __atomic_exchange_n(&dev->progress.polls_seen, polls, __ATOMIC_RELAXED);
	if (since && soft_owner_polls(dev) && !check_slow_pollers(dev, since))
		dapl_timer_start(timer, OWNER_CHECK_US, check_pollers);
	else
		service_resumes(dev, since ? "few polls" : "no polls");
	if (!soft_owner_polls(dev))
		wake_for_rings(dev);
	soft_progress_unlock(dev);
}

/* Notes the number of polls. Returns true if a thread has polled since the last call, and polling threads may
 * drive progress. Progress lock held. */
static bool note_polls(struct dapl_device *dev)
{
	uint32_t polls = polls_now(dev);

	assert_held(&dev->progress_lock);
	if (polls == __atomic_load_n(&dev->progress.polls_seen, __ATOMIC_RELAXED) ||
	    (dev->progress.keep_ms && clock_now_ns() < dev->progress.keep_until_ns))
		return false;
	__atomic_store_n(&dev->progress.polls_seen, polls, __ATOMIC_RELAXED);
	return true;
}

/* Hands progress over to polling threads if a thread has polled. The caller need not be the owner: a
 * thread may have blocked since data woke the service thread. Returns true if polling threads are the
 * owner now. Progress lock held. */
static bool hand_over(struct dapl_device *dev)
{
	if (!note_polls(dev))
		return false;
	shm_notify_clear(dev);	/* before the handover: afterwards it may be signaled for a blocked thread */
	dapl_mutex_lock(&dev->progress.owner_lock);
	if (!soft_owner_polls(dev))
		soft_owner_set(dev, OWNER_POLLING_THREADS, "data came, and threads poll");
	dapl_mutex_unlock(&dev->progress.owner_lock);
	return true;
}

/* Data is there and has woken the caller, which is the service thread or a blocked thread. */
static void serve_or_hand_over(struct dapl_device *dev)
{
	bool over;

	soft_progress_lock(dev);
	over = hand_over(dev);
	if (!over)
		soft_progress_serve(dev, false);
	soft_progress_unlock(dev);
	if (over)
		dapl_timer_start(&dev->progress.owner_timer, OWNER_CHECK_US, check_pollers);
}

static void data_ready(struct dapl_watch *watch)
{
	serve_or_hand_over(container_of(watch, struct dapl_device, progress.data_watch));
}

void soft_owner_sleep(struct dapl_device *dev)
{
	if (unlikely(dev->dead))
		return;
	__atomic_store_n(&dev->progress.polls_seen, polls_now(dev), __ATOMIC_RELAXED);
	if (!soft_owner_polls(dev))
		return;
	service_resumes(dev, "a CQ was armed");
	if (soft_progress_try(dev)) {
		soft_acks_flush(dev);
		wake_for_rings(dev);
		soft_progress_unlock(dev);
	} else if (__atomic_load_n(&dev->rings.count, __ATOMIC_RELAXED)) {
		/* The holder of the lock may have looked at a ring before the message came.
		 * Acknowledgements need nothing: the timer still runs. */
		shm_notify_self(dev->shm.process);
	}
}

int soft_owner_block(struct dapl_device *dev, bool for_data)
{
	bool mine;

	if (unlikely(dev->dead))
		return -1;
	soft_owner_sleep(dev);
	if (!for_data)
		return -1;
	dapl_mutex_lock(&dev->progress.owner_lock);
	mine = soft_owner_is(dev, OWNER_SERVICE_THREAD);
	if (mine)
		soft_owner_set(dev, OWNER_BLOCKED_THREAD, "a wait begins");
	dapl_mutex_unlock(&dev->progress.owner_lock);
	return mine ? dev->data_epoll : -1;
}

/* The service thread may have handed over to polling threads since this thread blocked, and another thread may have
 * blocked since: then both are woken for data, until one of them stops. */
static bool blocked_thread_owns(const struct dapl_device *dev)
{
	return soft_owner_is(dev, OWNER_BLOCKED_THREAD);
}

bool soft_owner_work(struct dapl_device *dev)
{
	if (blocked_thread_owns(dev))
		serve_or_hand_over(dev);
	return blocked_thread_owns(dev);
}

void soft_owner_awake(struct dapl_device *dev)
{
	dapl_mutex_lock(&dev->progress.owner_lock);
	if (blocked_thread_owns(dev))
		soft_owner_set(dev, OWNER_SERVICE_THREAD, "the wait ends");
	dapl_mutex_unlock(&dev->progress.owner_lock);
}

int soft_owner_open(struct dapl_device *dev)
{
	struct epoll_event event = { .events = EPOLLIN };

	dev->progress.service_epoll = epoll_create1(EPOLL_CLOEXEC);
	if (dev->progress.service_epoll < 0 ||
	    epoll_ctl(dev->progress.service_epoll, EPOLL_CTL_ADD, dev->data_epoll, &event))
		return errno;
	return dapl_watch_start(&dev->progress.data_watch, dev->progress.service_epoll, data_ready);
}

void soft_owner_close(struct dapl_device *dev)
{
	dapl_watch_stop(&dev->progress.data_watch);
	dapl_timer_drain(&dev->progress.owner_timer);
}
