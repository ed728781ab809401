/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* change.c - announces changes to the threads that look at frames. */
#include <stdbool.h>
#include <time.h>
#include "common/clock.h"
#include "common/lock.h"
#include "dapl/softeth/change.h"

static struct dapl_mutex change_lock = DAPL_MUTEX_INIT(RANK_SOFT_ETH_CHANGE);
static bool changing;	/* atomic */

uint64_t change_begin(void)
{
	dapl_mutex_lock(&change_lock);
	__atomic_store_n(&changing, true, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return clock_read_ns(CLOCK_REALTIME);
}

void change_end(void)
{
	__atomic_store_n(&changing, false, __ATOMIC_RELEASE);
	dapl_mutex_unlock(&change_lock);
}

void change_wait(void)
{
	if (!__atomic_load_n(&changing, __ATOMIC_ACQUIRE))
		return;
	dapl_mutex_lock(&change_lock);
	dapl_mutex_unlock(&change_lock);
}
