/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tick_clock.c - see tick_clock.h. */
#include "tick_clock.h"
#include <time.h>
#include "common/clock.h"
#include "common/ticks.h"

enum {
	CLOCK_OFF_NS = 1000,		/* CLOCK_REALTIME was set, or ran on at another rate */
	CLOCK_PAIRS = 5,		/* attempts to read both clocks at one time */
	CLOCK_FIRST_NS = 2000000,	/* between the first two pairs: the rate is right to 1e-4 then */
};

static struct {
	uint64_t first, first_ns;	/* ticks and CLOCK_MONOTONIC at the start */
	uint64_t ticks, time;		/* ticks and CLOCK_REALTIME at the last call of tick_clock_compare() */
	double ns;			/* of a tick */
} ticks;

uint64_t tick_clock_time(uint64_t at)
{
	return ticks.time + (uint64_t)(int64_t)((double)(int64_t)(at - ticks.ticks) * ticks.ns);
}

/* Returns the ticks and both clocks at one time: the pair that was read fastest. */
static uint64_t read_clocks(uint64_t *ns, uint64_t *time)
{
	uint64_t best = UINT64_MAX, at = 0;

	for (int i = 0; i < CLOCK_PAIRS; i++) {
		uint64_t before = ticks_after_loads(), n = clock_now_ns(), t = clock_read_ns(CLOCK_REALTIME),
			took = ticks_now() - before;

		if (took >= best)
			continue;
		best = took;
		at = before + took / 2;
		*ns = n;
		*time = t;
	}
	return at;
}

/* A small difference, as between two readings, moves no times, so that messages stay in order. */
void tick_clock_compare(void)
{
	uint64_t ns = 0, time = 0, at = read_clocks(&ns, &time), expected = tick_clock_time(at);
	int64_t off = (int64_t)(time - expected);

	ticks.time = off > CLOCK_OFF_NS || off < -CLOCK_OFF_NS ? time : expected;
	ticks.ticks = at;
	ticks.ns = (double)(ns - ticks.first_ns) / (double)(at - ticks.first);
}

void tick_clock_start(void)
{
	struct timespec pause = { .tv_nsec = CLOCK_FIRST_NS };

	if (ticks.first || !HAVE_TICKS)
		return;
	ticks.first = read_clocks(&ticks.first_ns, &ticks.time);
	nanosleep(&pause, NULL);
	tick_clock_compare();
}
