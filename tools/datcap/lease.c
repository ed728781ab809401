/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lease.c - see lease.h. The thread blocks all signals, so that they interrupt a write of the main
 * thread. */
#include "lease.h"
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "common/clock.h"
#include "tools/cli.h"

enum {
	LEASE_LATE_NS = 1500000000,	/* the main thread renews each 1 s; TAP_LEASE_MS is twice this */
	LEASE_AGAIN_NS = 1000000000,	/* between requests of the thread while the main thread sends none */
};

static struct {
	pthread_t thread;
	bool started;
	json_t *request;		/* used by the thread alone */
	pthread_mutex_t lock;		/* guards what follows */
	pthread_cond_t changed;
	struct control_socket *sockets;
	size_t count;
	uint64_t due;			/* ns, monotonic: when the thread renews them */
	bool ending;
} l = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Called with l.lock held. Returns false if the thread is to end. */
static bool wait_until_due(void)
{
	uint64_t now;

	while (!l.ending && (now = clock_now_ns()) < l.due) {
		const struct timespec at = { .tv_sec = (time_t)(l.due / 1000000000),
			.tv_nsec = (long)(l.due % 1000000000) };

		pthread_cond_timedwait(&l.changed, &l.lock, &at);
	}
	return !l.ending;
}

/* Called with l.lock held, which it releases during the requests. It works on a copy of the array, since the
 * main thread may replace the array meanwhile. */
static void renew(void)
{
	struct control_socket *sockets = malloc(l.count * sizeof *sockets);
	const size_t count = sockets ? l.count : 0;
	char why[256];

	if (count)
		memcpy(sockets, l.sockets, count * sizeof *sockets);
	pthread_mutex_unlock(&l.lock);
	for (size_t i = 0; i < count; i++)
		json_decref(control_ask(&sockets[i], CONTROL_TAP, json_incref(l.request), why, sizeof why));
	free(sockets);
	pthread_mutex_lock(&l.lock);
}

static void *run(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&l.lock);
	while (wait_until_due()) {
		renew();
		l.due = clock_now_ns() + LEASE_AGAIN_NS;
	}
	pthread_mutex_unlock(&l.lock);
	return NULL;
}

void lease_start(json_t *request)
{
	pthread_condattr_t attr;
	sigset_t all, before;

	l.request = request;
	l.due = clock_now_ns() + LEASE_LATE_NS;
	l.ending = false;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);	/* the clock of clock_now_ns() */
	pthread_cond_init(&l.changed, &attr);
	pthread_condattr_destroy(&attr);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	l.started = !pthread_create(&l.thread, NULL, run, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!l.started)
		fail("there is no memory for a thread");
}

void lease_keep(struct control_socket *sockets, size_t count)
{
	pthread_mutex_lock(&l.lock);
	free(l.sockets);
	l.sockets = sockets;
	l.count = count;
	pthread_mutex_unlock(&l.lock);
}

void lease_renewed(void)
{
	pthread_mutex_lock(&l.lock);
	l.due = clock_now_ns() + LEASE_LATE_NS;
	pthread_mutex_unlock(&l.lock);
}

void lease_stop(void)
{
	if (!l.started)
		return;
	pthread_mutex_lock(&l.lock);
	l.ending = true;
	pthread_cond_signal(&l.changed);
	pthread_mutex_unlock(&l.lock);
	pthread_join(l.thread, NULL);
	l.started = false;
	json_decref(l.request);
	free(l.sockets);
	l.sockets = NULL;
	l.count = 0;
}
