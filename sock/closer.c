/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* closer.c - the thread that closes descriptors, and its queue. See closer.h. */
#include "sock/closer.h"
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include "sock/conn.h"

enum {
	ROOM = 1024,      /* descriptors; a power of two */
	BEHIND = 64,      /* descriptors; a close() that does not wait takes microseconds, so one of them waits */
	STACK = 64 << 10, /* bytes: the thread calls close() only */
};

static int queue[ROOM];
static unsigned put, taken; /* counts; the service thread changes `put`, the closing thread `taken` */
static sem_t filled;
static bool started;

static void *run(void *arg)
{
	for (;;) {
		while (sem_wait(&filled))
			continue;
		own_fd_close(queue[taken % ROOM]);
		__atomic_store_n(&taken, taken + 1, __ATOMIC_RELEASE);
	}
	return arg;
}

/* Called by the service thread, whose mask of signals the new thread inherits. */
static bool start(void)
{
	pthread_attr_t attr;
	pthread_t thread;

	if (started)
		return true;
	sem_init(&filled, 0, 0);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK < PTHREAD_STACK_MIN ? PTHREAD_STACK_MIN : STACK);
	started = !pthread_create(&thread, &attr, run, NULL);
	pthread_attr_destroy(&attr);
	return started;
}

static unsigned waiting(void)
{
	return put - __atomic_load_n(&taken, __ATOMIC_ACQUIRE);
}

void closer_take(int fd)
{
	struct slot *slot = fd < 0 ? NULL : conn_slot(fd);

	if (fd < 0)
		return;
	if (slot)
		slot->own = true; /* the program cannot close the number before the thread does */
	/* It stays open when there is no thread or no room for it. */
	if (!start() || waiting() == ROOM)
		return;
	queue[put++ % ROOM] = fd;
	sem_post(&filled);
}

bool closer_is_behind(void)
{
	return waiting() >= BEHIND;
}

void closer_after_fork(void)
{
	started = false;
	put = taken = 0;
}
