/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* handover.c - who serves: those who poll, one who sleeps in a wait and is woken for data, or the
 * service thread; and that one of them always does. What serving is, is engine.c's business.
 *
 * Why nothing sleeps for ever: doc/design/soft-progress.md. */
#include "dapl/soft/soft.h"
#include <errno.h>
#include <sys/epoll.h>
#include <sys/resource.h>

enum {
	HANDOVER_US = 1000,		/* no poll for that long: the service thread serves */
	LAZY_POLLS = 50,		/* a poller who polls less in that time, and leaves data */
	GRIP_MS = 64,			/* at most so long the service thread then stays */
};

/* handover held. The service thread is woken for data if nobody else is to look. */
static void watch_data(struct dapl_device *dev)
{
	bool on = !dev->polled && !dev->led;
	struct epoll_event event = { .events = on ? EPOLLIN : 0 };

	if (on == dev->watched)
		return;
	dev->watched = on;
	epoll_ctl(dev->service_epoll, EPOLL_CTL_MOD, dev->data_epoll, &event);
}

/* handover held. Peers ring the bell, or don't. */
static void set_polled(struct dapl_device *dev, bool polled)
{
	struct soft_station *station = __atomic_load_n(&dev->station, __ATOMIC_ACQUIRE);

	__atomic_store_n(&dev->polled, polled, __ATOMIC_RELAXED);
	soft_quiet_over(dev);
	watch_data(dev);
	if (station && (__atomic_load_n(station->sleeps, __ATOMIC_RELAXED) & 1) == polled)
		__atomic_add_fetch(station->sleeps, 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* The service thread serves again; what is there wakes it. */
static void service_resumes(struct dapl_device *dev)
{
	dapl_spin_lock(&dev->handover);
	if (dev->polled)
		set_polled(dev, false);
	dapl_spin_unlock(&dev->handover);
}

/* Engine lock held, after service_resumes: what came to the rings before. */
static void wake_for_pairs(struct dapl_device *dev)
{
	if (soft_engine_pairs_ready(dev))
		soft_bell_again(dev->station);
}

static uint32_t polls_now(struct dapl_device *dev)
{
	return __atomic_load_n(&dev->polls, __ATOMIC_RELAXED);
}

/* Did others get the processor since last asked, though a thread of this process could
 * run? Then few polls say nothing. */
static bool was_preempted(struct dapl_device *dev)
{
	struct rusage usage;
	bool more;

	getrusage(RUSAGE_SELF, &usage);
	more = usage.ru_nivcsw != dev->preemptions;
	dev->preemptions = usage.ru_nivcsw;
	return more;
}

/* Who polls now and then, and looks at memory or computes between, does not do for the
 * peer: data waits. The service thread then keeps serving for a while, the longer the
 * more often it had to. */
static bool pollers_are_lazy(struct dapl_device *dev, uint32_t polls)
{
	struct epoll_event event;

	if (was_preempted(dev))
		return false;
	if (polls < LAZY_POLLS)
		soft_quiet_end(dev);	/* so that the set tells all */
	if (polls >= LAZY_POLLS ||
	    (!soft_engine_pairs_ready(dev) && epoll_wait(dev->data_epoll, &event, 1, 0) != 1)) {
		dev->grip_ms = 0;
		return false;
	}
	dev->grip_ms = dev->grip_ms ? 2 * dev->grip_ms : 4;
	if (dev->grip_ms > GRIP_MS)
		dev->grip_ms = GRIP_MS;
	dev->hold_until_ns = soft_now_ns() + dev->grip_ms * 1000000ull;
	return true;
}

/* Every HANDOVER_US while pollers serve: are they still there? */
static void handover_check(struct dapl_timer *timer)
{
	struct dapl_device *dev = container_of(timer, struct dapl_device, handover_timer);
	uint32_t polls, since;

	soft_engine_lock(dev);
	soft_engine_flush(dev);
	polls = polls_now(dev);
	since = polls - __atomic_exchange_n(&dev->polls_seen, polls, __ATOMIC_RELAXED);
	if (since && __atomic_load_n(&dev->polled, __ATOMIC_RELAXED) &&
	    !pollers_are_lazy(dev, since))
		dapl_timer_start(timer, HANDOVER_US, handover_check);
	else
		service_resumes(dev);
	if (!__atomic_load_n(&dev->polled, __ATOMIC_RELAXED))
		wake_for_pairs(dev);
	soft_engine_unlock(dev);
}

/* Engine lock held. True: somebody polled since this was last asked, and may go on. */
static bool pollers_are_there(struct dapl_device *dev)
{
	uint32_t polls = polls_now(dev);

	if (polls == __atomic_load_n(&dev->polls_seen, __ATOMIC_RELAXED) ||
	    (dev->grip_ms && soft_now_ns() < dev->hold_until_ns))
		return false;
	__atomic_store_n(&dev->polls_seen, polls, __ATOMIC_RELAXED);
	return true;
}

/* Data is there, and the service thread or a sleeper was the one to be woken. */
static void serve_or_hand_over(struct dapl_device *dev)
{
	bool over;

	soft_engine_lock(dev);
	over = pollers_are_there(dev);
	if (over) {
		soft_bell_clear(dev);	/* before: later it may be rung for a sleeper */
		dapl_spin_lock(&dev->handover);
		set_polled(dev, true);
		dapl_spin_unlock(&dev->handover);
	} else {
		soft_engine_serve(dev, false);
	}
	soft_engine_unlock(dev);
	if (over)
		dapl_timer_start(&dev->handover_timer, HANDOVER_US, handover_check);
}

static void data_ready(struct dapl_watch *watch)
{
	serve_or_hand_over(container_of(watch, struct dapl_device, data_watch));
}

void soft_handover_sleep(struct dapl_device *dev)
{
	if (unlikely(dev->dead))
		return;
	__atomic_store_n(&dev->polls_seen, polls_now(dev), __ATOMIC_RELAXED);
	if (!__atomic_load_n(&dev->polled, __ATOMIC_RELAXED))
		return;
	service_resumes(dev);
	if (soft_engine_try(dev)) {
		soft_engine_flush(dev);
		wake_for_pairs(dev);
		soft_engine_unlock(dev);
	} else if (__atomic_load_n(&dev->pair_count, __ATOMIC_RELAXED)) {
		/* Who serves may have looked at a ring before; acks: the timer still runs. */
		soft_bell_again(dev->station);
	}
}

int soft_handover_lead(struct dapl_device *dev, bool for_data)
{
	bool mine;

	if (unlikely(dev->dead))
		return -1;
	soft_handover_sleep(dev);
	if (!for_data)
		return -1;
	dapl_spin_lock(&dev->handover);
	mine = !dev->led && !dev->polled;
	if (mine)
		dev->led = true;
	watch_data(dev);
	dapl_spin_unlock(&dev->handover);
	return mine ? dev->data_epoll : -1;
}

/* Where pollers serve, it may be the service thread that handed over to them meanwhile. */
bool soft_handover_work(struct dapl_device *dev)
{
	if (!__atomic_load_n(&dev->polled, __ATOMIC_RELAXED))
		serve_or_hand_over(dev);
	if (!__atomic_load_n(&dev->polled, __ATOMIC_RELAXED))
		return true;
	soft_handover_awake(dev);
	return false;
}

void soft_handover_awake(struct dapl_device *dev)
{
	dapl_spin_lock(&dev->handover);
	dev->led = false;
	watch_data(dev);
	dapl_spin_unlock(&dev->handover);
}

int soft_handover_open(struct dapl_device *dev)
{
	struct epoll_event event = { .events = EPOLLIN };

	dev->service_epoll = epoll_create1(EPOLL_CLOEXEC);
	if (dev->service_epoll < 0 ||
	    epoll_ctl(dev->service_epoll, EPOLL_CTL_ADD, dev->data_epoll, &event))
		return errno;
	dev->watched = true;
	return dapl_watch_start(&dev->data_watch, dev->service_epoll, data_ready);
}

void soft_handover_close(struct dapl_device *dev)
{
	dapl_watch_stop(&dev->data_watch);
	dapl_timer_drain(&dev->handover_timer);
}
