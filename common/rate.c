/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rate.c - counts events in windows of one second (rate.h). */
#include "common/rate.h"

static unsigned above_burst(unsigned count)
{
	return count > RATE_BURST ? count - RATE_BURST : 0;
}

bool rate_admit(struct rate *rate, uint64_t now, unsigned *suppressed)
{
	uint64_t window = __atomic_load_n(&rate->window, __ATOMIC_RELAXED);

	*suppressed = 0;
	if (!window || now - window >= RATE_WINDOW_MS) {
		if (__atomic_compare_exchange_n(&rate->window, &window, now, false,
						__ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
			*suppressed = above_burst(__atomic_exchange_n(&rate->count, 1,
								      __ATOMIC_RELAXED));
			return true;
		}
	}
	return __atomic_add_fetch(&rate->count, 1, __ATOMIC_RELAXED) <= RATE_BURST;
}

/* The count stays at the burst, so that the current second admits nothing more. */
unsigned rate_suppressed(struct rate *rate)
{
	unsigned count = __atomic_load_n(&rate->count, __ATOMIC_RELAXED);

	while (count > RATE_BURST &&
	       !__atomic_compare_exchange_n(&rate->count, &count, RATE_BURST, true,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	return above_burst(count);
}
