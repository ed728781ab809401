/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* full.c - see full.h. */
#include "sock/full.h"
#include "common/clock.h"
#include "sock/conn.h"
#include "sock/move.h"
#include "sock/service.h"

enum {
	BATCH = 256, /* connections that are found with sock_lock held once */
	LOOK_MS = 1000,
};

static bool wanted;   /* atomic: a connection may be marked */
static uint64_t next; /* monotonic ns */

void full_note(struct conn *c)
{
	if (c->remote || __atomic_load_n(&c->full_marked, __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&c->full_marked, true, __ATOMIC_SEQ_CST);
	if (!__atomic_exchange_n(&wanted, true, __ATOMIC_SEQ_CST))
		service_wake();
}

/* Stores marked connections with ids above *id, and takes their marks. Returns how many; *id is the last one's. */
static int find_marked(struct conn *marked[BATCH], uint64_t *id)
{
	int count = 0;

	dapl_mutex_lock(&sock_lock);
	for (struct conn *c = conn_list; c && count < BATCH; c = c->next)
		if (c->id > *id && __atomic_exchange_n(&c->full_marked, false, __ATOMIC_SEQ_CST))
			marked[count++] = c, *id = c->id;
	dapl_mutex_unlock(&sock_lock);
	return count;
}

/* A ring that has little room at two looks, and of which no byte was taken between them, is left to TCP. */
static void look(struct conn *c)
{
	uint64_t claim;

	if (!conn_lock_out(c))
		return;
	if (c->mode != CONN_ATTACHED || c->remote || !c->tx.active || ring_is_writable(&c->tx)) {
		c->full_at = 0;
	} else {
		claim = __atomic_load_n(&c->tx.ring->claim, __ATOMIC_RELAXED);
		if (c->full_at == claim + 1 && conn_has_user_timeout(c))
			move_leave_ring(c);
		else
			full_note(c);
		c->full_at = claim + 1; /* 0: it had room */
	}
	conn_unlock_out(c);
}

static void look_at_all(void)
{
	struct conn *marked[BATCH];
	uint64_t id = 0;
	int count;

	do {
		count = find_marked(marked, &id);
		for (int i = 0; i < count; i++)
			look(marked[i]);
	} while (count == BATCH);
}

int full_run(void)
{
	uint64_t now;

	if (!__atomic_load_n(&wanted, __ATOMIC_SEQ_CST))
		return -1;
	now = clock_now_ns();
	if (!next)
		next = now + LOOK_MS * 1000000ull;
	if (now < next)
		return (int)((next - now + 999999) / 1000000);
	next = now + LOOK_MS * 1000000ull;
	__atomic_store_n(&wanted, false, __ATOMIC_SEQ_CST);
	look_at_all();
	if (__atomic_load_n(&wanted, __ATOMIC_SEQ_CST))
		return LOOK_MS;
	next = 0;
	return -1;
}

void full_after_fork(void)
{
	wanted = false, next = 0;
	for (struct conn *c = conn_list; c; c = c->next)
		c->full_marked = false;
}
