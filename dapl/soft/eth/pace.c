/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pace.c - a rate as a series of turns: each frame moves the next turn by the time that its bytes take.
 * If a timer or a thread is late, the queue makes up for it, so the rate of a full queue is exact. A
 * queue that was empty makes up for nothing. */
#include "dapl/soft/eth/pace.h"
#include "dapl/soft/tunables.h"

#define BITS_NS 8000000000ull	/* bits of a byte, ns of a second */

void pace_set(struct pace *pace, uint64_t bits_per_s, uint32_t burst)
{
	*pace = (struct pace){ .rate = bits_per_s, .next_ns = pace->next_ns };
	if (bits_per_s)
		pace->burst_ns = burst * BITS_NS / bits_per_s;
	else
		pace->next_ns = 0;
}

uint64_t pace_due(const struct pace *pace)
{
	return pace->rate && pace->next_ns > pace->burst_ns ? pace->next_ns - pace->burst_ns : 0;
}

void pace_charge(struct pace *pace, uint64_t now_ns, uint64_t bytes, uint64_t lag_ns)
{
	uint64_t oldest = now_ns - (lag_ns < ETH_MAX_LAG_NS ? lag_ns : ETH_MAX_LAG_NS), all;

	if (!pace->rate)
		return;
	if (pace->next_ns < oldest)
		pace->next_ns = oldest;
	all = bytes * BITS_NS + pace->rest;
	pace->next_ns += all / pace->rate;
	pace->rest = all % pace->rate;
}
