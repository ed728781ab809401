/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* threads_pthreads_tsd.h - thread-specific data of Open MPI 5.0 over POSIX threads. Open MPI
 * includes this file but does not install it; see threads_pthreads_mutex.h. */
#ifndef UDAPL_THREADS_PTHREADS_TSD_H
#define UDAPL_THREADS_PTHREADS_TSD_H

#include <pthread.h>

typedef pthread_key_t opal_tsd_key_t;

static inline int opal_tsd_key_delete(opal_tsd_key_t key)
{
	return pthread_key_delete(key);
}

static inline int opal_tsd_set(opal_tsd_key_t key, void *value)
{
	return pthread_setspecific(key, value);
}

static inline int opal_tsd_get(opal_tsd_key_t key, void **value)
{
	*value = pthread_getspecific(key);
	return 0;
}

#endif
