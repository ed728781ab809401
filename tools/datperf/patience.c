/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* patience.c - see patience.h. */
#include "patience.h"
#include <sched.h>

unsigned long patience(void)
{
	static unsigned long polls;
	unsigned long known = __atomic_load_n(&polls, __ATOMIC_RELAXED);
	cpu_set_t ours;

	if (!known) {
		known = !sched_getaffinity(0, sizeof ours, &ours) && CPU_COUNT(&ours) == 1 ? 16
											   : 4096;
		__atomic_store_n(&polls, known, __ATOMIC_RELAXED);
	}
	return known;
}
