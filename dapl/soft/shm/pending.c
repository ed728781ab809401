/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pending.c - the pending-ring bitmap (pending.h). */
#include "dapl/soft/shm/pending.h"
#include "common/compiler.h"
#include "common/once.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/shm/peer.h"
#include "dapl/soft/shm/shm_conn.h"
#include <stdlib.h>

_Static_assert(sizeof(struct shm_pending) == 4096, "the bitmap is one page");

static uint64_t bit(unsigned n)
{
	return 1ull << n % 64;
}

/* --- the consumer ----------------------------------------------------------------------------- */

/* PENDING_MAX: no number is left. */
static unsigned free_number(struct shm_conn *const *pending_conns)
{
	unsigned n = 0;

	while (n < PENDING_MAX && pending_conns[n])
		n++;
	return n;
}

void pending_join(struct shm_conn *shm)
{
	struct dapl_device *dev = shm->conn->dev;
	unsigned n;

	if (!dev->rings.pending_conns)
		dev->rings.pending_conns = calloc(PENDING_MAX, sizeof *dev->rings.pending_conns);
	n = dev->rings.pending_conns ? free_number(dev->rings.pending_conns) : PENDING_MAX;
	if (n == PENDING_MAX)
		return;
	dev->rings.pending_conns[n] = shm;
	shm->pending_nr = n + 1;
	dev->rings.numbered++;
	dev->rings.unmarked++;
}

void pending_leave(struct shm_conn *shm)
{
	struct dapl_device *dev = shm->conn->dev;
	unsigned n = shm->pending_nr - 1;

	if (!shm->pending_nr)
		return;
	if (shm->pending_asked)
		pending_waive(shm);
	shm->pending_nr = 0;
	dev->rings.numbered--;
	dev->rings.unmarked--;
	dev->rings.pending_conns[n] = NULL;
}

void pending_ask(struct shm_conn *shm)
{
	struct dapl_device *dev = shm->conn->dev;

	if (!shm->pending_nr)
		return;
	shm->pending_asked = true;
	dev->rings.unmarked--;
	WRITE_ONCE(shm_own_grant(shm)->pending_nr, shm->pending_nr);
	pending_mark(dev->shm.process->pending, shm->pending_nr);
}

void pending_waive(struct shm_conn *shm)
{
	shm->pending_asked = false;
	shm->conn->dev->rings.unmarked++;
	WRITE_ONCE(shm_own_grant(shm)->pending_nr, 0);
}

uint64_t pending_take(struct dapl_device *dev, unsigned *word)
{
	struct shm_pending *pending = dev->shm.process->pending;
	uint64_t any = READ_ONCE(pending->any), later;
	unsigned first = dev->rings.pending_next;

	if (likely(!any))
		return 0;
	later = any & ~0ull << first;
	*word = __builtin_ctzll(later ? later : any);
	dev->rings.pending_next = (*word + 1) % PENDING_WORDS;
	__atomic_fetch_and(&pending->any, ~bit(*word), __ATOMIC_SEQ_CST);
	return __atomic_exchange_n(&pending->word[*word], 0, __ATOMIC_SEQ_CST);
}

struct shm_conn *pending_conn(const struct dapl_device *dev, unsigned number)
{
	return dev->rings.pending_conns ? dev->rings.pending_conns[number] : NULL;
}

/* --- the producer ----------------------------------------------------------------------------- */

void pending_mark(struct shm_pending *pending, uint32_t pending_nr)
{
	unsigned n = pending_nr - 1;

	if (unlikely(n >= PENDING_MAX) || READ_ONCE(pending->word[n / 64]) & bit(n))
		return;
	__atomic_fetch_or(&pending->word[n / 64], bit(n), __ATOMIC_SEQ_CST);
	__atomic_fetch_or(&pending->any, bit(n / 64), __ATOMIC_SEQ_CST);
}
