/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_rings.c - which rings a poll looks at, and when peers have to mark their rings in
 * the pending bitmap. The rings' contents are replaced here. */
#include <sys/eventfd.h>
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/progress/acks.h"
#include "dapl/soft/progress/rings.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/rdmap/transmit.h"
#include "dapl/soft/receive/shm_rx.h"
#include "dapl/soft/shm/pending.h"
#include "dapl/soft/shm/process.h"
#include "dapl/soft/shm/shm_ring.h"
#include "dapl/soft/shm/shm_conn.h"
#include "dapl/soft/shm/shm_segment.h"
#include "dapl/soft/tunables.h"
#include "test/unit/unit.h"

enum { MANY = RINGS_FEW + 8 };

static struct dapl_device dev;
static struct dapl_conn conns[MANY];
static struct shm_conn rings[MANY];
static struct ring_ack acks[MANY];	/* a ring has something if it is unlike `seen` */
static struct ring_slot empty[RING_SLOTS];
static struct shm_pending bitmap;
static struct shm_process process = { .pending = &bitmap };
static struct shm_segment segment;	/* of all: its grants are of no interest */

static struct {
	unsigned received[MANY];	/* calls of shm_rx_receive() */
	unsigned flushes;
	bool more, stays;		/* what shm_rx_receive() answers; the ring has still something */
} did;

REPLACE(shm_rx_receive, soft_acks_schedule, soft_acks_flush_ring, soft_conn_send)

bool __wrap_shm_rx_receive(struct dapl_conn *conn, bool later)
{
	did.received[conn - conns]++;
	conn->shm->seen += !did.stays;
	return did.more;
}

void __wrap_soft_acks_schedule(struct dapl_conn *conn, bool polling) { }

void __wrap_soft_acks_flush_ring(struct shm_conn *shm)
{
	shm->ack_owed = false;
	did.flushes++;
}

void __wrap_soft_conn_send(struct dapl_conn *conn) { }

/* Wake-ups of the service thread since the last call. */
static unsigned notes(void)
{
	uint64_t count = 0;

	return read(process.wake_fd, &count, sizeof count) < 0 ? 0 : (unsigned)count;
}

UNIT_FIXTURE(set_up)
{
	memset(&did, 0, sizeof did);
	memset(&dev, 0, sizeof dev);
	dapl_mutex_init(&dev.progress_lock, RANK_SOFT_PROGRESS);
	memset(rings, 0, sizeof rings);
	memset(acks, 0, sizeof acks);
	TAILQ_INIT(&dev.rings.list);
	dev.shm.process = &process;
	memset(&bitmap, 0, sizeof bitmap);
	notes();
	for (int i = 0; i < MANY; i++) {
		conns[i] = (struct dapl_conn){ .dev = &dev, .shm = &rings[i], .progress.in_data = true };
		rings[i].conn = &conns[i];
		rings[i].segment = &segment;
		rings[i].rx.slot = empty;
		rings[i].tx.ack = &acks[i];
	}
}

UNIT_FIXTURE(tear_down) { free(dev.rings.pending_conns); }

static int set_up_group(void **state)
{
	process.wake_fd = eventfd(0, EFD_NONBLOCK);
	segment.memory = calloc(1, sizeof *segment.memory);
	return process.wake_fd < 0 || !segment.memory;
}

static int tear_down_group(void **state)
{
	free(segment.memory);
	return close(process.wake_fd);
}

/* No ring is marked afterwards. */
static void add(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		soft_rings_add(&rings[i]);
	memset(&bitmap, 0, sizeof bitmap);
}

static unsigned asked(void)		/* rings that their peers mark */
{
	return dev.rings.numbered - dev.rings.unmarked;
}

static void put(unsigned ring) { acks[ring].count++; }

static bool poll_rings(bool polling)
{
	bool busy;

	dapl_mutex_lock(&dev.progress_lock);
	busy = soft_rings_poll(&dev, polling);
	dapl_mutex_unlock(&dev.progress_lock);
	return busy;
}

/* Polls, with all rings numbered or not. Returns how often it looked into this ring with success. */
static unsigned poll_for(unsigned ring, unsigned polls, bool numbered)
{
	unsigned before = did.received[ring];

	if (!numbered)
		dev.rings.numbered = 0;
	for (unsigned i = 0; i < polls; i++) {
		dev.progress.polls++;
		poll_rings(true);
	}
	return did.received[ring] - before;
}

/* --- the set ----------------------------------------------------------------------------------------------------- */

UNIT_CASE(few_rings_need_no_bitmap)
{
	add(RINGS_FEW);
	assert_int_equal(dev.rings.numbered, 0);
	assert_int_equal(dev.rings.count, RINGS_FEW);
}

UNIT_CASE(many_rings_join_the_bitmap)
{
	add(RINGS_FEW + 1);
	assert_int_equal(dev.rings.numbered, RINGS_FEW + 1);
	assert_int_equal(asked(), RINGS_FEW + 1 - RINGS_BUSY);
	for (int i = 0; i < RINGS_FEW + 1; i++)		/* those in front are looked at in any case */
		assert_true(rings[i].pending_asked == (i >= RINGS_BUSY));
	soft_rings_add(&rings[RINGS_FEW + 1]);
	assert_int_equal(dev.rings.numbered, RINGS_FEW + 2);
	assert_int_equal(asked(), RINGS_FEW + 2 - RINGS_BUSY);
	assert_true(rings[RINGS_FEW + 1].pending_asked);
}

UNIT_CASE(few_rings_leave_the_bitmap)
{
	add(RINGS_FEW + 2);
	soft_rings_del(&rings[0]);
	assert_int_equal(rings[0].pending_nr, 0);
	assert_int_not_equal(rings[1].pending_nr, 0);
	soft_rings_del(&rings[5]);
	for (int i = 0; i < RINGS_FEW + 2; i++)
		assert_int_equal(rings[i].pending_nr, 0);
	assert_int_equal(dev.rings.count, RINGS_FEW);
}

UNIT_CASE(added_ring_with_a_message_wakes_the_service_thread)
{
	put(1);
	soft_rings_add(&rings[0]);
	assert_int_equal(notes(), 0);
	soft_rings_add(&rings[1]);
	assert_int_equal(notes(), 1);
}

UNIT_CASE(ring_in_turn_may_be_removed)
{
	add(3);
	dev.rings.next = &rings[1];
	soft_rings_del(&rings[1]);
	assert_ptr_equal(dev.rings.next, &rings[2]);
	soft_rings_del(&rings[2]);
	assert_null(dev.rings.next);
}

/* --- one ring ---------------------------------------------------------------------------------------------------- */

UNIT_CASE(acknowledgement_that_waits_is_owed)
{
	add(1);
	put(0);
	rings[0].ack_waits = true;
	poll_rings(true);
	assert_true(rings[0].ack_owed);
	assert_int_equal(did.flushes, 0);
	assert_false(poll_rings(true));	/* the ring is empty now */
	assert_int_equal(did.flushes, 1);
	assert_false(poll_rings(true));
	assert_int_equal(did.flushes, 1);
}

/* A polling thread comes back, the service thread only if it is woken. */
UNIT_CASE(service_thread_comes_back_for_the_rest)
{
	add(1);
	put(0);
	did.stays = true;
	poll_rings(true);
	assert_int_equal(notes(), 0);
	poll_rings(false);
	assert_int_equal(notes(), 1);
	did.stays = false;
	poll_rings(false);
	assert_int_equal(notes(), 0);
}

/* --- many rings ------------------------------------------------------------------------------------------------- */

UNIT_CASE(closed_connection_does_not_move)
{
	add(MANY);
	conns[MANY - 1].progress.in_data = false;	/* its stream ended by the message */
	put(MANY - 1);
	pending_mark(&bitmap, rings[MANY - 1].pending_nr);
	assert_int_equal(poll_for(MANY - 1, 1, true), 1);
	assert_ptr_equal(TAILQ_FIRST(&dev.rings.list), &rings[0]);
}

UNIT_CASE(ring_that_stays_in_front_need_not_be_marked)
{
	add(MANY);
	pending_ask(&rings[2]);
	memset(&bitmap, 0, sizeof bitmap);
	for (unsigned i = 1; i <= RINGS_WAIVE_HITS + 2; i++) {
		put(2);
		assert_int_equal(poll_for(2, 1, true), 1);
		assert_true(rings[2].pending_asked == (i < RINGS_WAIVE_HITS));
	}
}

UNIT_CASE(other_rings_have_their_turn)
{
	add(MANY);
	put(MANY - 1);
	/* all are numbered: one ring in RINGS_PENDING_POLLS polls */
	assert_int_equal(poll_for(MANY - 1, RINGS_PENDING_POLLS * (MANY - 1) + RINGS_PENDING_POLLS - 1, true), 0);
	assert_int_equal(poll_for(MANY - 1, 1, true), 1);
	tear_down(state);
	set_up(state);
	add(MANY);
	put(MANY - 1);
	/* there are not enough numbers: some rings in each poll */
	assert_int_equal(poll_for(MANY - 1, (MANY - 1) / RINGS_IN_TURN, false), 0);
	assert_int_equal(poll_for(MANY - 1, 1, false), 1);
}

UNIT_MAIN(set_up_group, tear_down_group)
