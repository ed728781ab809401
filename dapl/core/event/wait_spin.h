/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* wait_spin.h - decides whether a wait for completions keeps looking at the CQ for a moment before it
 * blocks, and looks. dat_evd_wait and dat_cno_wait use it.
 *
 * * To block and be woken takes tens of microseconds. A wait that looks for about as long costs a
 * processor at most twice what blocking at once would, and a completion that comes meanwhile is taken at
 * once. Where completions come later, or their sender needs this processor, looking only costs: each
 * wait that looked and found nothing doubles the number of waits that follow without looking, each that
 * found something halves it. */
#ifndef DAPL_WAIT_SPIN_H
#define DAPL_WAIT_SPIN_H
#include <stdbool.h>
#include <stdint.h>
#include "common/clock.h"
#include "common/lock.h"

enum {
	WAIT_SPIN_NS = 50000,		/* ns; a wake-up takes 20 to 50 us in a virtual machine, 5 without */
	WAIT_SPIN_LOOKS = 8,		/* between two reads of the clock */
	WAIT_SPIN_SKIPS_MAX = 1023,	/* waits; if none finds anything, one in 1024 looks */
};

/* One for each EVD, and for each CNO; all zero at first. Only the thread that waits reads and writes it. */
struct dapl_wait_spin {
	uint16_t left;		/* waits that do not look, from now on */
	uint16_t skips;		/* waits that did not look after the last that found nothing */
};

/* Called once for each wait that has found nothing yet. True: it looks, and tells the result. */
static inline bool dapl_wait_spin_begin(struct dapl_wait_spin *spin)
{
	if (!spin->left)
		return true;
	spin->left--;
	return false;
}

static inline void dapl_wait_spin_end(struct dapl_wait_spin *spin, bool found)
{
	if (found)
		spin->skips /= 2;
	else if (spin->skips < WAIT_SPIN_SKIPS_MAX)
		spin->skips = 2 * spin->skips + 1;
	spin->left = found ? 0 : spin->skips;
}

/* Looks for WAIT_SPIN_NS, or until the deadline in ns. True: a look has ended the wait. */
static inline bool dapl_wait_spin(uint64_t deadline, bool (*look)(void *wait), void *wait)
{
	uint64_t until = clock_now_ns() + WAIT_SPIN_NS;

	if (until > deadline)
		until = deadline;
	do {
		for (int i = 0; i < WAIT_SPIN_LOOKS; i++) {
			dapl_pause();
			if (look(wait))
				return true;
		}
	} while (clock_now_ns() < until);
	return false;
}

#endif
