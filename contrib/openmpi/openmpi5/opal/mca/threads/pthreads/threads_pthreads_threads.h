/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* threads_pthreads_threads.h - threads of Open MPI 5.0 over POSIX threads. Open MPI includes this
 * file but does not install it; see threads_pthreads_mutex.h. */
#ifndef UDAPL_THREADS_PTHREADS_THREADS_H
#define UDAPL_THREADS_PTHREADS_THREADS_H

#include <pthread.h>
#include <sched.h>

static inline void opal_thread_yield(void)
{
	sched_yield();
}

#endif
