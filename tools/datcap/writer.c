/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* writer.c - see writer.h. */
#include "writer.h"
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "stop.h"
#include "tools/cli.h"

enum { NUDGE_MS = 50 };		/* ms between signals that interrupt a blocked write */

static struct {
	pthread_t thread;
	int returned;			/* an eventfd: readable when `body` has returned */
	void (*body)(void *argument);
	void *argument;
} w;

static void *run(void *unused)
{
	const uint64_t one = 1;

	(void)unused;
	w.body(w.argument);
	if (write(w.returned, &one, sizeof one) < 0)
		return NULL;		/* cannot be: the counter was 0 */
	return NULL;
}

void writer_start(void (*body)(void *argument), void *argument)
{
	w.body = body;
	w.argument = argument;
	w.returned = eventfd(0, EFD_CLOEXEC);
	if (w.returned < 0 || pthread_create(&w.thread, NULL, run, NULL))
		fail("no memory");
}

bool writer_wait(int ms)
{
	return poll(&(struct pollfd){ .fd = w.returned, .events = POLLIN }, 1, ms) > 0;
}

/* The signal is repeated, since it has no effect just before the write. */
void writer_finish(void)
{
	while (!writer_wait(NUDGE_MS))
		if (stop_requested)
			pthread_kill(w.thread, SIGTERM);
	pthread_join(w.thread, NULL);
	close(w.returned);
}
