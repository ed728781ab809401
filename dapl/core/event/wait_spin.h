/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* wait_spin.h - decides whether a wait for completions polls the CQ for a moment before it blocks, and
 * polls it. dat_evd_wait and dat_cno_wait use it.
 *
 * To block and be woken takes tens of microseconds. A wait that polls for about as long costs at most
 * twice as much processor time as blocking at once, and takes a completion that comes meanwhile without a
 * delay. If completions come later, or their sender needs this processor, polling only costs. So each wait
 * that polled and found nothing doubles the number of waits that follow without polling, and each that
 * found something halves it. */
#ifndef DAPL_WAIT_SPIN_H
#define DAPL_WAIT_SPIN_H
#include <stdbool.h>
#include <stdint.h>
#include "common/clock.h"
#include "common/lock.h"

enum {
	WAIT_SPIN_NS = 50000,		/* ns; a wake-up takes 20 to 50 us in a virtual machine, 5 without */
	WAIT_SPIN_LOOKS = 8,		/* looks between two reads of the clock */
	WAIT_SPIN_SKIPS_MAX = 1023,	/* waits; if no look finds anything, one wait in 1024 polls */
};

/* The state of one EVD or CNO; all zero at first. Only the waiting thread reads and writes it. */
struct dapl_wait_spin {
	uint16_t left;		/* number of next waits that do not poll */
	uint16_t skips;		/* number of waits without polling after the last wait that polled and found
				 * nothing */
};

/* Called once for each wait that has found nothing yet. After true the caller polls, and passes the result
 * to dapl_wait_spin_end. */
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

/* Calls `look` again and again for WAIT_SPIN_NS, or until the deadline in ns. Returns true as soon as
 * `look` does: the wait is over. */
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
