/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* timers.h - a queue of times at which the library's thread has something to do. The queue refers to timers that its
 * user keeps in objects of its own, which do not move. No locks: one thread uses a queue. */
#ifndef SOCK_TIMERS_H
#define SOCK_TIMERS_H
#include <stdbool.h>
#include <stdint.h>

struct timer {
	uint64_t at;    /* monotonic ns */
	unsigned place; /* in the queue, from 1 on; 0: it is in none */
};

/* All zero: an empty queue. */
struct timers {
	struct timer **heap; /* from index 1 on; none is before the one at half of its index */
	unsigned count, room;
};

/* Adds a timer, or changes its time. Returns false without memory: the timer is then in no queue. */
bool timers_set(struct timers *t, struct timer *timer, uint64_t at);
/* Takes a timer out. Nothing happens if it is in no queue. */
void timers_cancel(struct timers *t, struct timer *timer);
/* Returns the timer that is due first, NULL if there is none. It stays in the queue. */
struct timer *timers_first(const struct timers *t);

#endif
