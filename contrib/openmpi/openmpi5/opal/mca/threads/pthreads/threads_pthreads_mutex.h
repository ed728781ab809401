/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* threads_pthreads_mutex.h - mutexes and condition variables of Open MPI 5.0 over POSIX threads.
 *
 * Open MPI's installed headers include three headers of this directory, but Open MPI does not install
 * them. This directory is searched last, so files that Open MPI installs have precedence. Structures of
 * Open MPI contain a mutex: contrib/openmpi/test/sizes.c compares their sizes with the library. */
#ifndef UDAPL_THREADS_PTHREADS_MUTEX_H
#define UDAPL_THREADS_PTHREADS_MUTEX_H

#include <pthread.h>
#include <stdbool.h>

typedef pthread_mutex_t opal_thread_internal_mutex_t;
typedef pthread_cond_t opal_thread_internal_cond_t;

#define OPAL_THREAD_INTERNAL_MUTEX_INITIALIZER PTHREAD_MUTEX_INITIALIZER
#define OPAL_THREAD_INTERNAL_RECURSIVE_MUTEX_INITIALIZER PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP
#define OPAL_THREAD_INTERNAL_COND_INITIALIZER PTHREAD_COND_INITIALIZER

static inline int opal_thread_internal_mutex_init(opal_thread_internal_mutex_t *m, bool recursive)
{
	pthread_mutexattr_t attr;
	int rc = pthread_mutexattr_init(&attr);

	if (rc)
		return rc;
	rc = pthread_mutexattr_settype(&attr, recursive ? PTHREAD_MUTEX_RECURSIVE
							: PTHREAD_MUTEX_DEFAULT);
	if (!rc)
		rc = pthread_mutex_init(m, &attr);
	pthread_mutexattr_destroy(&attr);
	return rc;
}

static inline void opal_thread_internal_mutex_lock(opal_thread_internal_mutex_t *m)
{
	pthread_mutex_lock(m);
}

/* Returns 1 if another thread holds the mutex. */
static inline int opal_thread_internal_mutex_trylock(opal_thread_internal_mutex_t *m)
{
	return pthread_mutex_trylock(m) ? 1 : 0;
}

static inline void opal_thread_internal_mutex_unlock(opal_thread_internal_mutex_t *m)
{
	pthread_mutex_unlock(m);
}

static inline void opal_thread_internal_mutex_destroy(opal_thread_internal_mutex_t *m)
{
	pthread_mutex_destroy(m);
}

static inline int opal_thread_internal_cond_init(opal_thread_internal_cond_t *c)
{
	return pthread_cond_init(c, NULL);
}

static inline void opal_thread_internal_cond_wait(opal_thread_internal_cond_t *c,
						  opal_thread_internal_mutex_t *m)
{
	pthread_cond_wait(c, m);
}

static inline void opal_thread_internal_cond_broadcast(opal_thread_internal_cond_t *c)
{
	pthread_cond_broadcast(c);
}

static inline void opal_thread_internal_cond_signal(opal_thread_internal_cond_t *c)
{
	pthread_cond_signal(c);
}

static inline void opal_thread_internal_cond_destroy(opal_thread_internal_cond_t *c)
{
	pthread_cond_destroy(c);
}

#endif
