/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* timers.c - a binary heap of timers. See timers.h. */
#include "sock/timers.h"
#include <stdlib.h>

static void put(struct timers *t, unsigned place, struct timer *timer)
{
	t->heap[place] = timer;
	timer->place = place;
}

/* Stores a timer at `place`, which is free, or above it. */
static void rise(struct timers *t, unsigned place, struct timer *timer)
{
	while (place > 1 && timer->at < t->heap[place / 2]->at) {
		put(t, place, t->heap[place / 2]);
		place /= 2;
	}
	put(t, place, timer);
}

/* Stores a timer at `place`, which is free, or below it. */
static void sink(struct timers *t, unsigned place, struct timer *timer)
{
	for (unsigned child; (child = 2 * place) <= t->count; place = child) {
		if (child < t->count && t->heap[child + 1]->at < t->heap[child]->at)
			child++;
		if (timer->at <= t->heap[child]->at)
			break;
		put(t, place, t->heap[child]);
	}
	put(t, place, timer);
}

bool timers_set(struct timers *t, struct timer *timer, uint64_t at)
{
	timers_cancel(t, timer);
	if (t->count + 1 >= t->room) {
		unsigned room = t->room ? 2 * t->room : 64;
		struct timer **heap = realloc(t->heap, room * sizeof *heap);

		if (!heap)
			return false;
		t->heap = heap, t->room = room;
	}
	timer->at = at;
	rise(t, ++t->count, timer);
	return true;
}

void timers_cancel(struct timers *t, struct timer *timer)
{
	unsigned place = timer->place;
	struct timer *last;

	if (!place)
		return;
	timer->place = 0;
	last = t->heap[t->count--];
	if (last == timer)
		return;
	if (place > 1 && last->at < t->heap[place / 2]->at)
		rise(t, place, last);
	else
		sink(t, place, last);
}

struct timer *timers_first(const struct timers *t)
{
	return t->count ? t->heap[1] : NULL;
}
