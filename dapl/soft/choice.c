/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* choice.c - see choice.h. Both ways are tried in turn at first, and the slower one again every
 * now and then; the ring a few times in a row, as it carries several at once, and the kernel does not.
 * What is kept is near the shortest times seen lately: a thread that was preempted
 * meanwhile, or polled late, says nothing of the way. */
#include "dapl/soft/choice.h"
#include "dapl/soft/relaxed.h"

enum {
	FIRST = 16,			/* turns in which they alternate */
	AGAIN = 1024,			/* turns from one try of the slower way to the next ... */
	SELDOM = 4096,			/* ... and if it is so much slower: */
	MUCH = 4,
	MEASURED = 32,			/* one in so many, a divisor of the two */
};

static unsigned size_of(uint64_t length)
{
	unsigned size = 63 - __builtin_clzll(length / CHOICE_MIN | 1);

	return size < CHOICE_SIZES ? size : CHOICE_SIZES - 1;
}

/* Is this turn for the slower way? */
static bool is_try(uint32_t turn, uint32_t ring, uint32_t kernel)
{
	uint32_t best = ring < kernel ? ring : kernel, worst = ring < kernel ? kernel : ring;

	return turn % (worst / MUCH > best ? SELDOM : AGAIN) < (kernel < ring ? CHOICE_SERIES : 1);
}

enum soft_way soft_choice_make(struct soft_choice *choice, uint64_t length, bool *try)
{
	unsigned size = size_of(length);
	uint32_t turn = ONCE(choice->size[size].turn);
	uint32_t ring = ONCE(choice->size[size].ns[0]), kernel = ONCE(choice->size[size].ns[1]);

	STORE(choice->size[size].turn, turn + 1);
	*try = true;
	if (turn < FIRST || !ring || !kernel)
		return turn & CHOICE_SERIES ? SOFT_WAY_RING : SOFT_WAY_KERNEL;
	*try = is_try(turn, ring, kernel);
	return (kernel < ring) ^ *try ? SOFT_WAY_KERNEL : SOFT_WAY_RING;
}

bool soft_choice_is_kernel(struct soft_choice *choice, uint64_t length)
{
	unsigned size = size_of(length);
	uint32_t turn = ONCE(choice->size[size].turn);
	uint32_t ring = ONCE(choice->size[size].ns[0]), kernel = ONCE(choice->size[size].ns[1]);

	if (turn < FIRST || !kernel || kernel >= ring || turn % MEASURED == 0 ||
	    is_try(turn, ring, kernel))
		return false;
	STORE(choice->size[size].turn, turn + 1);
	return true;
}

void soft_choice_learn(struct soft_choice *choice, enum soft_way way, uint64_t length, uint64_t ns)
{
	uint32_t *kept = &choice->size[size_of(length)].ns[way == SOFT_WAY_KERNEL];
	uint64_t known = ONCE(*kept), seen = (ns * 65536 + length - 1) / length | 1;

	if (seen > UINT32_MAX / 2)
		seen = UINT32_MAX / 2;
	if (known && seen > known)
		seen = known + ((seen - known < known ? seen - known : known) + 7) / 8;
	STORE(*kept, seen);
}
