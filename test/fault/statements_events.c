/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* statements_events.c - detects events that report an error: wraps the calls of a test that take events, and
 * can look at the events that are left on its EVDs. */
#include "test/conform/conform.h"
#include "test/conform/run.h"
#include <pthread.h>
#include <unistd.h>
#include "statements.h"

#define MAX_EVDS 4096
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* guards evds */
static struct {
	DAT_EVD_HANDLE evd;
	DAT_IA_HANDLE ia;
} evds[MAX_EVDS];
static int n_evds;
_Atomic int helpers;

static void add_evd(DAT_IA_HANDLE ia, DAT_EVD_HANDLE evd)
{
	pthread_mutex_lock(&lock);
	if (n_evds < MAX_EVDS) {
		evds[n_evds].ia = ia;
		evds[n_evds++].evd = evd;
	}
	pthread_mutex_unlock(&lock);
}

/* Called before the call that may free EVDs, so that no thread looks at one that is being freed. */
static void drop_evds(DAT_IA_HANDLE ia, DAT_EVD_HANDLE evd)
{
	pthread_mutex_lock(&lock);
	for (int i = 0; i < n_evds;)
		if (evds[i].evd == evd || (ia && evds[i].ia == ia))
			evds[i] = evds[--n_evds];
		else
			i++;
	pthread_mutex_unlock(&lock);
}

static bool tells_of_an_error(const DAT_EVENT *event)
{
	switch ((int)event->event_number) {
	case DAT_DTO_COMPLETION_EVENT:
	case (int)DAT_IB_DTO_EVENT:
		return event->event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS;
	case DAT_RMR_BIND_COMPLETION_EVENT:
		return event->event_data.rmr_completion_event_data.status != DAT_RMR_BIND_SUCCESS;
	case DAT_CONNECTION_EVENT_ESTABLISHED:
	case DAT_CONNECTION_REQUEST_EVENT:
	case (int)DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED:
	case (int)DAT_IB_UD_CONNECTION_REQUEST_EVENT:
	case DAT_SOFTWARE_EVENT:
		return false;
	default:
		return true;
	}
}

static bool is_request(const DAT_EVENT *event)
{
	return event->event_number == DAT_CONNECTION_REQUEST_EVENT ||
	       event->event_number == (DAT_EVENT_NUMBER)DAT_IB_UD_CONNECTION_REQUEST_EVENT;
}

static void note_event(DAT_RETURN ret, const DAT_EVENT *event)
{
	if (ret == DAT_SUCCESS && run->page.happened && tells_of_an_error(event))
		run->told = true;
}

/* The linker's names for the replacements of the tests' calls, and for the calls themselves. */
#define WRAP(type, name, parameters) \
	extern __typeof__(name) __real_##name, __wrap_##name; \
	type __wrap_##name parameters

WRAP(DAT_RETURN, dat_evd_create, (DAT_IA_HANDLE ia, DAT_COUNT qlen, DAT_CNO_HANDLE cno,
     DAT_EVD_FLAGS flags, DAT_EVD_HANDLE *evd))
{
	DAT_RETURN ret = __real_dat_evd_create(ia, qlen, cno, flags, evd);

	if (ret == DAT_SUCCESS)
		add_evd(ia, *evd);
	return ret;
}
WRAP(DAT_RETURN, dat_evd_free, (DAT_EVD_HANDLE evd))
{
	DAT_RETURN ret;

	drop_evds(DAT_HANDLE_NULL, evd);
	ret = __real_dat_evd_free(evd);
	return ret;
}
WRAP(DAT_RETURN, dat_evd_dequeue, (DAT_EVD_HANDLE evd, DAT_EVENT *event))
{
	DAT_RETURN ret = __real_dat_evd_dequeue(evd, event);

	note_event(ret, event);
	return ret;
}
WRAP(DAT_RETURN, dat_evd_wait, (DAT_EVD_HANDLE evd, DAT_TIMEOUT timeout, DAT_COUNT threshold,
     DAT_EVENT *event, DAT_COUNT *more))
{
	DAT_RETURN ret = __real_dat_evd_wait(evd, timeout, threshold, event, more);

	note_event(ret, event);
	return ret;
}
WRAP(DAT_RETURN, dat_ia_openv, (const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE *async,
     DAT_IA_HANDLE *ia, DAT_UINT32 major, DAT_UINT32 minor, DAT_BOOLEAN safe))
{
	bool given = async && *async != DAT_HANDLE_NULL;
	DAT_RETURN ret = __real_dat_ia_openv(name, qlen, async, ia, major, minor, safe);

	if (ret == DAT_SUCCESS && !given)
		add_evd(*ia, *async);
	return ret;
}
WRAP(DAT_RETURN, dat_ia_close, (DAT_IA_HANDLE ia, DAT_CLOSE_FLAGS flags))
{
	drop_evds(ia, (DAT_EVD_HANDLE)-1);
	return __real_dat_ia_close(ia, flags);
}
WRAP(int, pthread_create, (pthread_t *thread, const pthread_attr_t *attr, void *(*body)(void *),
     void *arg))
{
	int err = __real_pthread_create(thread, attr, body, arg);

	helpers += !err;
	return err;
}
WRAP(int, pthread_join, (pthread_t thread, void **value))
{
	int err = __real_pthread_join(thread, value);

	helpers -= !err;
	return err;
}

WRAP(pid_t, fork, (void))
{
	run->crowd = true;
	return __real_fork();
}

bool something_tells(void)
{
	DAT_EVENT event;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < n_evds && !run->told; i++)
		while (!run->told && __real_dat_evd_dequeue(evds[i].evd, &event) == DAT_SUCCESS)
			run->told = tells_of_an_error(&event) || is_request(&event);
	pthread_mutex_unlock(&lock);
	return run->told;
}

/* Returns true only after a while, so that operations without a fault can complete. */
bool wait_is_hopeless(void)
{
	static _Thread_local double begin, last;
	double t = now();

	if (report->verdict != UNDECIDED)
		return true;
	if (t - last > 0.1)
		begin = t;
	last = t;
	return run->page.happened && t - begin > patience() / 10 && something_tells();
}
