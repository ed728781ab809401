/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* owner_state.c - changes the progress owner of a device, and with it what wakes which thread:
 *
 *	owner			the service thread's epoll set	busy socket	peers on this host
 *	service thread		reports data			wakes		notify
 *	blocked thread		reports none			wakes		notify
 *	polling threads		reports none			may not wake	do not notify
 *
 * All of it changes under dev->progress.owner_lock. owner.c decides when; doc/design/soft-progress.md argues why no
 * thread sleeps while a message waits. */
#include "dapl/soft/progress/owner_state.h"
#include "common/lock.h"
#include "common/log.h"
#include "common/trace.h"
#include "dapl/soft/progress/wakeup.h"
#include "dapl/soft/shm/process.h"
#include <stdlib.h>
#include <sys/epoll.h>

#define IS(owner)	(1u << OWNER_##owner)

static const struct {
	const char *name;
	unsigned from;		/* the owners before it: bits */
} table[] = {
	[OWNER_SERVICE_THREAD] = { "service thread", IS(BLOCKED_THREAD) | IS(POLLING_THREADS) },
	/* not from POLLING_THREADS: a thread that blocks gives progress to the service thread first, and
	 * so looks once more at what came while no peer notified */
	[OWNER_BLOCKED_THREAD] = { "blocked thread", IS(SERVICE_THREAD) },
	[OWNER_POLLING_THREADS] = { "polling threads", IS(SERVICE_THREAD) | IS(BLOCKED_THREAD) },
};

const char *soft_owner_name(enum progress_owner owner)
{
	return table[owner].name;
}

bool soft_owner_may_follow(enum progress_owner from, enum progress_owner to)
{
	return table[to].from & 1u << from;
}

static void report(const struct dapl_device *dev, enum progress_owner owner, const char *why)
{
	log_line(LOG_BIT_ERROR, "soft: internal error: progress of device %p, by the %s, cannot go to the %s (%s)",
		 (const void *)dev, soft_owner_name(dev->progress.owner), soft_owner_name(owner), why);
#ifdef DAPL_LOCK_CHECK
	abort();
#endif
}

/* From now on data wakes the service thread, or does not. */
static void watch_data(struct dapl_device *dev, bool on)
{
	struct epoll_event event = { .events = on ? EPOLLIN : 0 };

	epoll_ctl(dev->progress.service_epoll, EPOLL_CTL_MOD, dev->data_epoll, &event);
}

/* Peers read the count, and signal the eventfd if it is odd. A new process starts with an odd one, whichever
 * thread is the owner. */
static void publish(struct dapl_device *dev, bool even)
{
	struct shm_process *process = __atomic_load_n(&dev->shm.process, __ATOMIC_ACQUIRE);

	if (process && (__atomic_load_n(process->sleep_count, __ATOMIC_RELAXED) & 1) == even)
		__atomic_add_fetch(process->sleep_count, 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void soft_owner_set(struct dapl_device *dev, enum progress_owner owner, const char *why)
{
	enum progress_owner was = dev->progress.owner;

	assert_held(&dev->progress.owner_lock);
	if (!soft_owner_may_follow(was, owner)) {
		report(dev, owner, why);
		return;
	}
	trace(TRC_LVL_DETAIL, TRC_DAPL_EVENT, "device", dev, soft_owner_name(owner),
	      "drives progress, was %s (%s)", soft_owner_name(was), why);
	__atomic_store_n(&dev->progress.owner, owner, __ATOMIC_RELAXED);
	soft_wakeup_end_locked(dev);		/* before data can wake another thread */
	if (was == OWNER_SERVICE_THREAD || owner == OWNER_SERVICE_THREAD)
		watch_data(dev, owner == OWNER_SERVICE_THREAD);
	publish(dev, owner == OWNER_POLLING_THREADS);
}
