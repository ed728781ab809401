/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fast_clock.h - CLOCK_REALTIME for time stamps on the data path, from the processor's time stamp counter: some ten
 * instructions instead of a call. Each thread reads the system's clock once a millisecond, so it follows steps within that
 * time. Not for deadlines, and not to order what different threads do. */
#ifndef COMMON_FAST_CLOCK_H
#define COMMON_FAST_CLOCK_H
#include <stdint.h>
#include "common/clock.h"
#include "common/trace.h"	/* likely */

struct fast_clock {
	uint64_t counter, ns;		/* both at one instant */
	uint64_t span;			/* ticks from then on for which they may be used; 0: none */
	uint64_t scale;			/* ns a tick, times 2^32 */
	uint64_t read_ns;		/* the system's clock at `counter`; `ns` may be a little ahead of it */
};

/* Once, before the first use. The counter is used if the kernel's own clock is made of it. */
void fast_clock_init(void);
uint64_t fast_clock_renew(void);

#if defined __x86_64__
extern __thread struct fast_clock fast_clock __attribute__((tls_model("initial-exec")));

static inline uint64_t fast_clock_realtime_ns(void)
{
	const struct fast_clock *c = &fast_clock;
	uint64_t passed = __builtin_ia32_rdtsc() - c->counter;

	if (likely(passed < c->span))
		return c->ns + (passed * c->scale >> 32);
	return fast_clock_renew();
}
#else
static inline uint64_t fast_clock_realtime_ns(void)
{
	return clock_read_ns(CLOCK_REALTIME);
}
#endif

#endif
