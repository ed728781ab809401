/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rings.c - the set of rings that a device looks at, and how seldom a poll looks at those that are
 * likely to be empty. receive/shm_rx.c takes the messages out of a ring. */
#include "dapl/soft/progress/rings.h"
#include "common/compiler.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/progress/acks.h"
#include "dapl/soft/progress/owner_state.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/rdmap/stream.h"
#include "dapl/soft/rdmap/transmit.h"
#include "dapl/soft/receive/shm_rx.h"
#include "dapl/soft/shm/pending.h"
#include "dapl/soft/shm/process.h"
#include "dapl/soft/shm/shm_conn.h"
#include "dapl/soft/tunables.h"

/* --- the set of rings --------------------------------------------------------------------------- */

/* The first ring that a poll looks at only if its peer has marked it as pending, or in its turn. */
static struct shm_conn *first_behind_busy(const struct dapl_device *dev)
{
	struct shm_conn *shm = TAILQ_FIRST(&dev->rings.list);

	for (int i = 0; i < RINGS_BUSY && shm; i++)
		shm = TAILQ_NEXT(shm, link);
	return shm;
}

/* There are many rings now, `last` being the newest: polls need the pending bitmap. */
static void use_pending_bitmap(struct dapl_device *dev, struct shm_conn *last)
{
	struct shm_conn *shm;

	if (dev->rings.count > RINGS_FEW + 1) {
		pending_join(last);
		pending_ask(last);
		return;
	}
	TAILQ_FOREACH(shm, &dev->rings.list, link)
		pending_join(shm);
	for (shm = first_behind_busy(dev); shm; shm = TAILQ_NEXT(shm, link))
		pending_ask(shm);
}

/* The connection is closed. If few rings are left, each poll looks at all of them. */
static void leave_pending_bitmap(struct dapl_device *dev, struct shm_conn *gone)
{
	struct shm_conn *shm;

	pending_leave(gone);
	if (dev->rings.count == RINGS_FEW)
		TAILQ_FOREACH(shm, &dev->rings.list, link)
			pending_leave(shm);
}

void soft_rings_add(struct shm_conn *shm)
{
	struct dapl_device *dev = shm->conn->dev;

	TAILQ_INSERT_TAIL(&dev->rings.list, shm, link);
	__atomic_add_fetch(&dev->rings.count, 1, __ATOMIC_RELAXED);
	if (dev->rings.count > RINGS_FEW)
		use_pending_bitmap(dev, shm);
	if (shm_conn_ready(shm))
		shm_notify_self(dev->shm.process);
}

void soft_rings_del(struct shm_conn *shm)
{
	struct dapl_device *dev = shm->conn->dev;

	if (dev->rings.next == shm)
		dev->rings.next = TAILQ_NEXT(shm, link);
	TAILQ_REMOVE(&dev->rings.list, shm, link);
	__atomic_sub_fetch(&dev->rings.count, 1, __ATOMIC_RELAXED);
	leave_pending_bitmap(dev, shm);
}

/* --- looking at one ring ------------------------------------------------------------------------ */

static void serve_ring(struct shm_conn *shm, bool polling)
{
	struct dapl_conn *conn = shm->conn;
	struct soft_qp *qp = soft_stream_lock(conn);
	bool more;

	more = shm_rx_receive(conn, polling && soft_owner_polls(conn->dev));
	shm->ack_owed |= shm->ack_waits;
	soft_acks_schedule(conn, polling);
	if (more)
		soft_conn_send(conn);
	if (!polling && shm_conn_ready(shm))	/* the budget was used up, and the eventfd was
						 * signaled before */
		shm_notify_self(conn->dev->shm.process);
	soft_stream_unlock(qp);
}

/* Returns true if there was a message or an acknowledgement. */
static bool poll_ring(struct shm_conn *shm, bool polling)
{
	if (shm_conn_ready(shm)) {
		serve_ring(shm, polling);
		return true;
	}
	if (unlikely(shm->ack_owed))
		soft_acks_flush_ring(shm);
	return false;
}

/* --- looking at some, or at all ------------------------------------------------------------------ */

static bool poll_all_rings(struct dapl_device *dev, bool polling)
{
	struct shm_conn *shm;
	bool busy = false;

	TAILQ_FOREACH(shm, &dev->rings.list, link)
		busy |= poll_ring(shm, polling);
	return busy;
}

/* A ring that had a message moves to the front of the list. The peer of the ring that leaves the
 * front marks it as pending from now on. */
static void move_to_front(struct dapl_device *dev, struct shm_conn *shm)
{
	struct shm_conn *other;

	TAILQ_REMOVE(&dev->rings.list, shm, link);
	TAILQ_INSERT_HEAD(&dev->rings.list, shm, link);
	shm->hits = 0;
	other = dev->rings.unmarked ? first_behind_busy(dev) : NULL;
	if (other && !other->pending_asked)
		pending_ask(other);
}

static bool poll_ring_behind(struct dapl_device *dev, struct shm_conn *shm)
{
	if (!poll_ring(shm, true))
		return false;
	if (shm->conn->progress.in_data)
		move_to_front(dev, shm);
	return true;
}

static bool poll_busy_rings(struct dapl_device *dev)
{
	struct shm_conn *shm = TAILQ_FIRST(&dev->rings.list), *next;
	bool busy = false;

	for (int i = 0; i < RINGS_BUSY && shm; i++, shm = next) {
		next = TAILQ_NEXT(shm, link);
		if (!poll_ring(shm, true))
			continue;
		busy = true;
		if (shm->pending_asked && ++shm->hits == RINGS_WAIVE_HITS)
			pending_waive(shm);
	}
	return busy;
}

static bool poll_pending_rings(struct dapl_device *dev)
{
	unsigned word = 0;
	uint64_t pending = pending_take(dev, &word);
	bool busy = false;

	for (; pending; pending &= pending - 1) {
		struct shm_conn *shm = pending_conn(dev, word * 64 + __builtin_ctzll(pending));

		busy |= shm && poll_ring_behind(dev, shm);
	}
	return busy;
}

static bool poll_rings_in_turn(struct dapl_device *dev, int most)
{
	bool busy = false;

	for (int i = 0; i < most; i++) {
		struct shm_conn *shm = dev->rings.next ? dev->rings.next : TAILQ_FIRST(&dev->rings.list);

		if (!shm)
			break;
		dev->rings.next = TAILQ_NEXT(shm, link);
		busy |= poll_ring_behind(dev, shm);
	}
	return busy;
}

/* If there are many rings, a poll looks at those at the front of the list, which had messages last,
 * at those that are marked as pending, and at some of the others in turn. Out of line: with few rings
 * a poll does not save the registers that this needs. */
static NOINLINE bool poll_some_rings(struct dapl_device *dev)
{
	bool all_marked = dev->rings.numbered == dev->rings.count;
	int in_turn = likely(all_marked) ? dev->progress.polls % RINGS_PENDING_POLLS == 0 : RINGS_IN_TURN;
	bool busy = poll_busy_rings(dev);

	busy |= poll_pending_rings(dev);
	return busy | poll_rings_in_turn(dev, in_turn);
}

bool soft_rings_poll(struct dapl_device *dev, bool polling)
{
	assert_held(&dev->progress_lock);
	return polling && unlikely(dev->rings.count > RINGS_FEW) ? poll_some_rings(dev) : poll_all_rings(dev, polling);
}

bool soft_rings_ready(struct dapl_device *dev)
{
	struct shm_conn *shm;

	assert_held(&dev->progress_lock);
	TAILQ_FOREACH(shm, &dev->rings.list, link)
		if (shm_conn_ready(shm))
			return true;
	return false;
}
