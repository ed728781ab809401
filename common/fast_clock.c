/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fast_clock.c - see fast_clock.h. A thread's rate of the counter is that between its last two readings of both clocks, if it
 * agrees with the one before: else a clock was set, or the thread lost the processor between the two. */
#include "common/fast_clock.h"
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#if defined __x86_64__

enum {
	SPAN_NS = 1000000,		/* that a pair is used: a step of CLOCK_REALTIME is seen then */
	PAIR_TICKS = 4000,		/* about 1 us: a pair that took longer was interrupted, and is not used */
	AHEAD_NS = 1000,		/* so far the time may run ahead of the system's, so as not to go back */
	DIFFERENCE = 2000,		/* rates that differ by more than a part in so many do not agree */
};

__thread struct fast_clock fast_clock __attribute__((tls_model("initial-exec")));
static bool usable;			/* atomic */

void fast_clock_init(void)
{
	int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);
	char name[8] = "";

	if (fd < 0)
		return;
	__atomic_store_n(&usable, read(fd, name, sizeof name - 1) == 4 && !memcmp(name, "tsc\n", 4), __ATOMIC_RELAXED);
	close(fd);
}

static bool agree(uint64_t a, uint64_t b)
{
	return (a > b ? a - b : b - a) <= a / DIFFERENCE;
}

/* After a pair that cannot be used the next call is here again. */
uint64_t fast_clock_renew(void)
{
	struct fast_clock *c = &fast_clock, old = *c;
	uint64_t before = __builtin_ia32_rdtsc(), now = clock_read_ns(CLOCK_REALTIME), after = __builtin_ia32_rdtsc();
	uint64_t passed = before - old.counter, expected = old.ns + (passed * old.scale >> 32);

	if (!__atomic_load_n(&usable, __ATOMIC_RELAXED) || after - before > PAIR_TICKS)
		return now;
	if (old.read_ns && now > old.read_ns && now - old.read_ns < SPAN_NS && !old.span)
		return now;		/* too short for a rate */
	*c = (struct fast_clock){ .counter = before + (after - before) / 2, .ns = now, .read_ns = now };
	passed = c->counter - old.counter;
	if (!passed || !old.read_ns || now <= old.read_ns || now - old.read_ns > 1000u * SPAN_NS)
		return now;
	c->scale = (uint64_t)(((unsigned __int128)(now - old.read_ns) << 32) / passed);
	if (!c->scale || !agree(c->scale, old.scale))
		return now;
	c->span = ((uint64_t)SPAN_NS << 32) / c->scale;
	if (old.span && expected > now && expected - now < AHEAD_NS)
		c->ns = expected;
	return c->ns;
}

#else

void fast_clock_init(void)
{
}

uint64_t fast_clock_renew(void)
{
	return clock_read_ns(CLOCK_REALTIME);
}

#endif
