/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* writer.c - see writer.h. A queue of batches from the reading thread to the writing thread. When it is
 * full, frames wait unread in the endpoint's ring, whose size limits their number. */
#include "writer.h"
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include "common/clock.h"
#include "datcap.h"
#include "output.h"
#include "stop.h"
#include "tools/cli.h"

enum {
	BATCHES = 64,			/* 1 MiB, half of a second-level cache */
	WAKE_BATCHES = BATCHES / 2,	/* that wake the writing thread while more frames come: each wake-up costs two
					 * switches of threads */
	ROOM_NS = 10000000,		/* ns that the reading thread waits for room */
	NUDGE_NS = 50000000,		/* ns between signals that interrupt a blocked write */
};

static struct {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t put, written;
	struct writer_batch *batches;
	uint64_t head, tail;		/* batches put, batches written */
	bool ending, done;
	bool closed;			/* written by the writing thread, read by both */
	uint64_t lost, next_flush;	/* of the writing thread: frames; ns, monotonic */
} w;

/* Called with w.lock held. */
static void wait_for(pthread_cond_t *cond, uint64_t ns)
{
	const uint64_t until = clock_now_ns() + ns;
	const struct timespec at = { .tv_sec = (time_t)(until / 1000000000), .tv_nsec = (long)(until % 1000000000) };

	pthread_cond_timedwait(cond, &w.lock, &at);
}

/* Takes the result of an output function: false if the output takes no more frames. */
static void note(bool open)
{
	if (!open)
		__atomic_store_n(&w.closed, true, __ATOMIC_RELAXED);
}

static void write_batch(const struct writer_batch *b)
{
	w.lost += (uint64_t)(b->kept - output_frames(b->frames, b->kept, b->device));
	note(output_is_open());
	dat_eth_release(b->ep, b->taken);
}

/* Writes the buffer of output.c even if it is not full, since few frames would not fill it before the
 * end. */
static void flush_if_due(void)
{
	uint64_t now = clock_now_ns();

	if (now < w.next_flush)
		return;
	note(output_flush());
	w.next_flush = now + OUTPUT_FLUSH_NS;
}

static void *run(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&w.lock);
	for (;;) {
		bool has_batch;

		if (w.head == w.tail && !w.ending)
			wait_for(&w.put, OUTPUT_FLUSH_NS);
		has_batch = w.head != w.tail;
		if (!has_batch && w.ending)
			break;
		pthread_mutex_unlock(&w.lock);
		if (has_batch)
			write_batch(&w.batches[w.tail % BATCHES]);
		flush_if_due();
		pthread_mutex_lock(&w.lock);
		w.tail += has_batch;
		pthread_cond_signal(&w.written);
	}
	w.done = true;
	pthread_cond_signal(&w.written);
	pthread_mutex_unlock(&w.lock);
	return NULL;
}

void writer_start(void)
{
	pthread_condattr_t attr;

	w.batches = malloc(BATCHES * sizeof *w.batches);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);	/* the clock of clock_now_ns() */
	pthread_mutex_init(&w.lock, NULL);
	pthread_cond_init(&w.put, &attr);
	pthread_cond_init(&w.written, &attr);
	pthread_condattr_destroy(&attr);
	if (!w.batches || pthread_create(&w.thread, NULL, run, NULL))
		fail("no memory");
}

struct writer_batch *writer_batch(void)
{
	struct writer_batch *b;

	pthread_mutex_lock(&w.lock);
	if (w.head - w.tail == BATCHES)
		wait_for(&w.written, ROOM_NS);
	b = w.head - w.tail == BATCHES ? NULL : &w.batches[w.head % BATCHES];
	pthread_mutex_unlock(&w.lock);
	return b;
}

void writer_put(void)
{
	bool wakes;

	pthread_mutex_lock(&w.lock);
	w.head++;
	wakes = w.head - w.tail >= WAKE_BATCHES;
	pthread_mutex_unlock(&w.lock);
	if (wakes)		/* without the lock, which the thread takes at once */
		pthread_cond_signal(&w.put);
}

uint64_t writer_progress(bool *behind)
{
	uint64_t tail;

	pthread_mutex_lock(&w.lock);
	*behind = w.head != w.tail;
	tail = w.tail;
	pthread_mutex_unlock(&w.lock);
	return tail;
}

void writer_wake(void)
{
	bool behind;

	writer_progress(&behind);
	if (behind)
		pthread_cond_signal(&w.put);
}

bool writer_has_ended(void)
{
	return __atomic_load_n(&w.closed, __ATOMIC_RELAXED);
}

/* If a signal has requested the end, interrupts a blocked write with another signal. That is repeated, since
 * it has no effect just before the write. After the request, output.c checks before each write that it does
 * not block. */
uint64_t writer_finish(void)
{
	pthread_mutex_lock(&w.lock);
	w.ending = true;
	pthread_cond_signal(&w.put);
	while (!w.done) {
		wait_for(&w.written, NUDGE_NS);
		if (!w.done && stop_requested)
			pthread_kill(w.thread, SIGTERM);
	}
	pthread_mutex_unlock(&w.lock);
	pthread_join(w.thread, NULL);
	free(w.batches);
	return w.lost;
}
