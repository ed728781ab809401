/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* random.c - see random.h. Numbers come from the kernel, 64 at a time. */
#include "dapl/soft/obj/random.h"
#include "common/clock.h"
#include "common/lock.h"
#include <string.h>
#include <sys/random.h>

static struct {
	struct dapl_mutex lock;		/* guards the variables below */
	uint32_t pool[64];
	unsigned left;
} randoms = { .lock = DAPL_MUTEX_INIT(RANK_SOFT_RANDOM) };

uint32_t soft_random(void)
{
	uint32_t value;

	dapl_mutex_lock(&randoms.lock);
	if (!randoms.left &&
	    getrandom(randoms.pool, sizeof randoms.pool, 0) == sizeof randoms.pool)
		randoms.left = 64;
	value = randoms.left ? randoms.pool[--randoms.left]
			     : (uint32_t)clock_now_ns() * 0x9e3779b1u;
	dapl_mutex_unlock(&randoms.lock);
	return value;
}

uint64_t soft_random_64(void)
{
	return (uint64_t)soft_random() << 32 | soft_random();
}

void soft_random_fork_child(void)
{
	dapl_mutex_init(&randoms.lock, RANK_SOFT_RANDOM);
	randoms.left = 0;
}
