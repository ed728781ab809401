/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_rings.c - which rings a poll looks at, what it does with a message, and when peers have to mark their rings in
 * the pending bitmap. The rings' contents and the bitmap are replaced here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "dapl/soft/obj/device.h"
#include "dapl/soft/progress/acks.h"
#include "dapl/soft/progress/rings.h"
#include "dapl/soft/rdmap/conn.h"
#include "dapl/soft/rdmap/transmit.h"
#include "dapl/soft/receive/ring_rx.h"
#include "dapl/soft/shm/pending.h"
#include "dapl/soft/shm/process.h"
#include "dapl/soft/shm/ring.h"
#include "dapl/soft/shm/shm_conn.h"
#include "dapl/soft/tunables.h"

enum { MANY = RINGS_FEW + 8 };

static struct dapl_device dev;
static struct dapl_conn conns[MANY];
static struct shm_conn rings[MANY];
static struct ring_ack acks[MANY];	/* a ring has something if it is unlike `seen` */
static struct ring_slot empty[RING_SLOTS];

static struct {
	unsigned received[MANY];	/* calls of shm_conn_receive() */
	bool joined[MANY], asked[MANY];
	unsigned joins, asks, waives, notes, schedules, sends, flushes;
	bool later, by_poller;
	bool more, stays;		/* what shm_conn_receive() answers; the ring has still something */
	uint64_t pending;		/* bits of the bitmap's only word */
} did;

void __wrap_pending_join(struct shm_conn *shm);
void __wrap_pending_leave(struct shm_conn *shm);
void __wrap_pending_ask(struct shm_conn *shm);
void __wrap_pending_waive(struct shm_conn *shm);
uint64_t __wrap_pending_take(struct dapl_device *d, unsigned *word);
struct shm_conn *__wrap_pending_conn(const struct dapl_device *d, unsigned number);
bool __wrap_shm_conn_receive(struct dapl_conn *conn, bool later);
void __wrap_soft_ack_schedule(struct dapl_conn *conn, bool polling);
void __wrap_soft_acks_flush_ring(struct shm_conn *shm);
void __wrap_soft_conn_send(struct dapl_conn *conn);
void __wrap_shm_notify_self(struct shm_process *process);

void __wrap_pending_join(struct shm_conn *shm)
{
	did.joins += !did.joined[shm - rings];
	did.joined[shm - rings] = true;
}

void __wrap_pending_leave(struct shm_conn *shm)
{
	did.joined[shm - rings] = did.asked[shm - rings] = shm->pending_asked = false;
}

void __wrap_pending_ask(struct shm_conn *shm)
{
	did.asks++;
	did.asked[shm - rings] = shm->pending_asked = true;
}

void __wrap_pending_waive(struct shm_conn *shm)
{
	did.waives++;
	did.asked[shm - rings] = shm->pending_asked = false;
}

uint64_t __wrap_pending_take(struct dapl_device *d, unsigned *word)
{
	uint64_t bits = did.pending;

	assert_ptr_equal(d, &dev);
	*word = 1;
	did.pending = 0;
	return bits;
}

/* Bit i of the word is ring i; of the last one the connection is closed. */
struct shm_conn *__wrap_pending_conn(const struct dapl_device *d, unsigned number)
{
	assert_ptr_equal(d, &dev);
	assert_in_range(number, 64, 127);
	return number - 64 < MANY ? &rings[number - 64] : NULL;
}

bool __wrap_shm_conn_receive(struct dapl_conn *conn, bool later)
{
	did.received[conn - conns]++;
	did.later = later;
	conn->shm->seen += !did.stays;
	return did.more;
}

void __wrap_soft_ack_schedule(struct dapl_conn *conn, bool polling)
{
	(void)conn;
	did.schedules++;
	did.by_poller = polling;
}

void __wrap_soft_acks_flush_ring(struct shm_conn *shm)
{
	shm->ack_owed = false;
	did.flushes++;
}

void __wrap_soft_conn_send(struct dapl_conn *conn) { did.sends += conn != NULL; }
void __wrap_shm_notify_self(struct shm_process *process) { did.notes += process == dev.process; }

static int set_up(void **state)
{
	(void)state;
	memset(&did, 0, sizeof did);
	memset(&dev, 0, sizeof dev);
	dapl_mutex_init(&dev.progress_lock, RANK_SOFT_PROGRESS);
	memset(rings, 0, sizeof rings);
	memset(acks, 0, sizeof acks);
	TAILQ_INIT(&dev.shm_conns);
	for (int i = 0; i < MANY; i++) {
		conns[i] = (struct dapl_conn){ .dev = &dev, .shm = &rings[i], .in_data = true };
		rings[i].conn = &conns[i];
		rings[i].rx.slot = empty;
		rings[i].tx.ack = &acks[i];
	}
	return 0;
}

static void add(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		soft_rings_add(&rings[i]);
}

static void put(unsigned ring)
{
	acks[ring].count++;
}

static bool rings_ready(void)
{
	bool ready;

	dapl_mutex_lock(&dev.progress_lock);
	ready = soft_rings_ready(&dev);
	dapl_mutex_unlock(&dev.progress_lock);
	return ready;
}

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

	dev.numbered = numbered ? dev.shm_count : 0;
	for (unsigned i = 0; i < polls; i++) {
		dev.polls++;
		poll_rings(true);
	}
	return did.received[ring] - before;
}

/* --- the set ----------------------------------------------------------------------------------------------------- */

static void few_rings_need_no_bitmap(void **state)
{
	(void)state;
	add(RINGS_FEW);
	assert_int_equal(did.joins + did.asks, 0);
	assert_int_equal(dev.shm_count, RINGS_FEW);
}

static void many_rings_join_the_bitmap(void **state)
{
	(void)state;
	add(RINGS_FEW + 1);
	assert_int_equal(did.joins, RINGS_FEW + 1);
	assert_int_equal(did.asks, RINGS_FEW + 1 - RINGS_BUSY);
	for (int i = 0; i < RINGS_FEW + 1; i++)		/* those in front are looked at in any case */
		assert_true(did.asked[i] == (i >= RINGS_BUSY));
	soft_rings_add(&rings[RINGS_FEW + 1]);
	assert_int_equal(did.joins, RINGS_FEW + 2);
	assert_int_equal(did.asks, RINGS_FEW + 2 - RINGS_BUSY);
	assert_true(did.asked[RINGS_FEW + 1]);
}

static void few_rings_leave_the_bitmap(void **state)
{
	(void)state;
	add(RINGS_FEW + 2);
	soft_rings_del(&rings[0]);
	assert_false(did.joined[0]);
	assert_true(did.joined[1]);
	soft_rings_del(&rings[5]);
	for (int i = 0; i < RINGS_FEW + 2; i++)
		assert_false(did.joined[i]);
	assert_int_equal(dev.shm_count, RINGS_FEW);
}

static void added_ring_with_a_message_wakes_the_service_thread(void **state)
{
	(void)state;
	put(1);
	soft_rings_add(&rings[0]);
	assert_int_equal(did.notes, 0);
	soft_rings_add(&rings[1]);
	assert_int_equal(did.notes, 1);
}

static void ring_in_turn_may_be_removed(void **state)
{
	(void)state;
	add(3);
	dev.next_shm = &rings[1];
	soft_rings_del(&rings[1]);
	assert_ptr_equal(dev.next_shm, &rings[2]);
	soft_rings_del(&rings[2]);
	assert_null(dev.next_shm);
}

static void rings_are_ready_if_one_is(void **state)
{
	(void)state;
	assert_false(rings_ready());
	add(3);
	assert_false(rings_ready());
	put(2);
	assert_true(rings_ready());
}

/* --- one ring ---------------------------------------------------------------------------------------------------- */

static void message_is_executed_and_answered(void **state)
{
	(void)state;
	add(2);
	assert_false(poll_rings(true));
	assert_int_equal(did.schedules, 0);
	for (int more = 0; more < 2; more++) {
		put(1);
		did.more = more;
		assert_true(poll_rings(true));
		assert_int_equal(did.received[1], more + 1);
		assert_int_equal(did.schedules, more + 1);
		assert_int_equal(did.sends, more);
	}
	assert_true(did.by_poller);
	assert_int_equal(did.received[0], 0);
}

static void acknowledgement_waits_for_polling_threads_only(void **state)
{
	(void)state;
	add(1);
	for (int i = 0; i < 4; i++) {
		put(0);
		dev.owner = i & 1 ? OWNER_POLLING_THREADS : OWNER_SERVICE_THREAD;
		poll_rings(i & 2);
		assert_true(did.later == (i == 3));
		assert_true(did.by_poller == !!(i & 2));
	}
}

static void acknowledgement_that_waits_is_owed(void **state)
{
	(void)state;
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
static void service_thread_comes_back_for_the_rest(void **state)
{
	(void)state;
	add(1);
	put(0);
	did.stays = true;
	poll_rings(true);
	assert_int_equal(did.notes, 0);
	poll_rings(false);
	assert_int_equal(did.notes, 1);
	did.stays = false;
	poll_rings(false);
	assert_int_equal(did.notes, 1);
}

/* --- many rings ------------------------------------------------------------------------------------------------- */

static void rings_in_front_are_looked_at_by_each_poll(void **state)
{
	(void)state;
	add(MANY);
	for (unsigned i = 0; i < RINGS_BUSY; i++) {
		put(i);
		assert_int_equal(poll_for(i, 1, true), 1);
	}
	put(RINGS_BUSY);
	dev.polls = 0;			/* the next polls are in no ring's turn */
	assert_int_equal(poll_for(RINGS_BUSY, RINGS_PENDING_POLLS - 1, true), 0);
}

static void pending_ring_is_looked_at_and_moves_to_the_front(void **state)
{
	(void)state;
	add(MANY);
	put(MANY - 1);
	did.pending = 1ull << (MANY - 1) | 1ull << 60;
	assert_int_equal(poll_for(MANY - 1, 1, true), 1);
	assert_ptr_equal(TAILQ_FIRST(&dev.shm_conns), &rings[MANY - 1]);
	assert_int_equal(dev.shm_count, MANY);
	put(MANY - 1);
	assert_int_equal(poll_for(MANY - 1, 1, true), 1);	/* it is in front now */
}

static void ring_that_leaves_the_front_is_marked(void **state)
{
	(void)state;
	add(MANY);
	dev.unasked = RINGS_BUSY;
	assert_false(did.asked[RINGS_BUSY - 1]);
	put(MANY - 1);
	did.pending = 1ull << (MANY - 1);
	poll_for(0, 1, true);
	assert_true(did.asked[RINGS_BUSY - 1]);
	assert_false(did.asked[RINGS_BUSY - 2]);
}

static void closed_connection_does_not_move(void **state)
{
	(void)state;
	add(MANY);
	conns[MANY - 1].in_data = false;	/* its stream ended by the message */
	put(MANY - 1);
	did.pending = 1ull << (MANY - 1);
	assert_int_equal(poll_for(MANY - 1, 1, true), 1);
	assert_ptr_equal(TAILQ_FIRST(&dev.shm_conns), &rings[0]);
}

static void ring_that_stays_in_front_need_not_be_marked(void **state)
{
	(void)state;
	add(MANY);
	rings[2].pending_asked = true;
	for (unsigned i = 1; i <= RINGS_WAIVE_HITS + 2; i++) {
		put(2);
		assert_int_equal(poll_for(2, 1, true), 1);
		assert_int_equal(did.waives, i >= RINGS_WAIVE_HITS);
	}
}

static void other_rings_have_their_turn(void **state)
{
	(void)state;
	add(MANY);
	put(MANY - 1);
	/* all are numbered: one ring in RINGS_PENDING_POLLS polls */
	assert_int_equal(poll_for(MANY - 1, RINGS_PENDING_POLLS * (MANY - 1) + RINGS_PENDING_POLLS - 1, true), 0);
	assert_int_equal(poll_for(MANY - 1, 1, true), 1);
	set_up(state);
	add(MANY);
	put(MANY - 1);
	/* there are not enough numbers: some rings in each poll */
	assert_int_equal(poll_for(MANY - 1, (MANY - 1) / RINGS_IN_TURN, false), 0);
	assert_int_equal(poll_for(MANY - 1, 1, false), 1);
}

static void service_thread_looks_at_all_rings(void **state)
{
	(void)state;
	add(MANY);
	for (unsigned i = 0; i < MANY; i++)
		put(i);
	assert_true(poll_rings(false));
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(did.received[i], 1);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup(name, set_up)
	const struct CMUnitTest tests[] = {
		CASE(few_rings_need_no_bitmap),
		CASE(many_rings_join_the_bitmap),
		CASE(few_rings_leave_the_bitmap),
		CASE(added_ring_with_a_message_wakes_the_service_thread),
		CASE(ring_in_turn_may_be_removed),
		CASE(rings_are_ready_if_one_is),
		CASE(message_is_executed_and_answered),
		CASE(acknowledgement_waits_for_polling_threads_only),
		CASE(acknowledgement_that_waits_is_owed),
		CASE(service_thread_comes_back_for_the_rest),
		CASE(rings_in_front_are_looked_at_by_each_poll),
		CASE(pending_ring_is_looked_at_and_moves_to_the_front),
		CASE(ring_that_leaves_the_front_is_marked),
		CASE(closed_connection_does_not_move),
		CASE(ring_that_stays_in_front_need_not_be_marked),
		CASE(other_rings_have_their_turn),
		CASE(service_thread_looks_at_all_rings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
