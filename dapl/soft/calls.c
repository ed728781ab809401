/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* calls.c - see calls.h. */
#include "dapl/soft/calls.h"
#include "dapl/soft/soft.h"
#include <stdlib.h>

_Static_assert(sizeof(struct soft_calls) == 4096, "calls are one page");

static uint64_t bit(unsigned n)
{
	return 1ull << n % 64;
}

/* --- who is called ------------------------------------------------------------------------------ */

/* CALLS_MAX: none is left. */
static unsigned free_number(struct soft_pair *const *callers)
{
	unsigned n = 0;

	while (n < CALLS_MAX && callers[n])
		n++;
	return n;
}

void soft_calls_join(struct soft_pair *pair)
{
	struct dapl_device *dev = pair->conn->dev;
	unsigned n;

	if (!dev->callers)
		dev->callers = calloc(CALLS_MAX, sizeof *dev->callers);
	n = dev->callers ? free_number(dev->callers) : CALLS_MAX;
	if (n == CALLS_MAX)
		return;
	dev->callers[n] = pair;
	pair->call = n + 1;
	dev->numbered++;
	dev->uncalled++;
}

void soft_calls_leave(struct soft_pair *pair)
{
	struct dapl_device *dev = pair->conn->dev;
	unsigned n = pair->call - 1;

	if (!pair->call)
		return;
	if (pair->called)
		soft_calls_waive(pair);
	pair->call = 0;
	dev->numbered--;
	dev->uncalled--;
	dev->callers[n] = NULL;
}

void soft_calls_ask(struct soft_pair *pair)
{
	struct dapl_device *dev = pair->conn->dev;

	if (!pair->call)
		return;
	pair->called = true;
	dev->uncalled--;
	STORE(soft_own_door(pair)->call, pair->call);
	soft_call(dev->station->calls, pair->call);
}

void soft_calls_waive(struct soft_pair *pair)
{
	pair->called = false;
	pair->conn->dev->uncalled++;
	STORE(soft_own_door(pair)->call, 0);
}

uint64_t soft_calls_take(struct dapl_device *dev, unsigned *word)
{
	struct soft_calls *calls = dev->station->calls;
	uint64_t any = ONCE(calls->any), later;
	unsigned first = dev->next_call;

	if (likely(!any))
		return 0;
	later = any & ~0ull << first;
	*word = __builtin_ctzll(later ? later : any);
	dev->next_call = (*word + 1) % CALLS_WORDS;
	__atomic_fetch_and(&calls->any, ~bit(*word), __ATOMIC_SEQ_CST);
	return __atomic_exchange_n(&calls->word[*word], 0, __ATOMIC_SEQ_CST);
}

struct soft_pair *soft_calls_pair(const struct dapl_device *dev, unsigned number)
{
	return dev->callers ? dev->callers[number] : NULL;
}

/* --- who calls ------------------------------------------------------------------------------------ */

void soft_call(struct soft_calls *calls, uint32_t call)
{
	unsigned n = call - 1;

	if (unlikely(n >= CALLS_MAX) || ONCE(calls->word[n / 64]) & bit(n))
		return;
	__atomic_fetch_or(&calls->word[n / 64], bit(n), __ATOMIC_SEQ_CST);
	__atomic_fetch_or(&calls->any, bit(n / 64), __ATOMIC_SEQ_CST);
}
