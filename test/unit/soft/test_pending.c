/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_pending.c - a device with many rings. Producers on seldom used rings set their bit in
 * the pending bitmap, so that the next poll looks there; producers on busy rings, or if there are
 * few rings, do not. A hostile bitmap does no harm.
 *
 * A test holds the progress lock of the receiving device, so that no other thread drives
 * progress and one poll is one soft_progress_serve(). */
#include "test/unit/soft/ends.h"
#include "dapl/soft/shm/pending.h"
#include "dapl/soft/progress/progress.h"
#include "test/unit/unit.h"

enum { MANY = 100, FEW = 16, BUSY = 8, REGULAR = 4, SELDOM = 8 };

static struct end all[MANY][2];		/* share all but the queue pair and the connection */

/* Selects the pair that the functions of ends.h work with. */
static void use(int i)
{
	ends[0] = all[i][0];
	ends[1] = all[i][1];
}

static void connect_one(int i, uint16_t port)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .sq_sig_all = 1,
					 .cap = { 64, 64, 2, 2, 64 } };

	use(0);
	for (int side = 0; side < 2; side++) {
		struct end *e = &ends[side];

		attr.send_cq = attr.recv_cq = e->cq;
		OK(ops->create_qp(e->dev, e->pd, &attr, &e->qp));
	}
	start_connect(&ends[0], port);
	accept_it(&ends[1]);
	wait_up(&ends[0], ESTABLISHED);
	memcpy(all[i], ends, sizeof ends);
}

static void open_many(int n)
{
	struct dapl_listener *listener;
	uint16_t port = 0;

	open_two(0);
	memcpy(all[0], ends, sizeof ends);
	OK(ops->listen(ends[1].dev, NULL, &port, false, 8, &ends[1], &listener));
	for (int i = 1; i < n; i++)
		connect_one(i, port);
	ops->unlisten(listener);
}

static void close_one(int i)
{
	use(i);
	for (int side = 0; side < 2; side++) {
		release_end(&ends[side]);
		if (i)
			OK(ops->destroy_qp(ends[side].qp));
	}
	memcpy(all[i], ends, sizeof ends);
}

static void close_many(int n)
{
	for (int i = n - 1; i > 0; i--)
		close_one(i);
	use(0);
	close_two();
}

static struct dapl_device *target(void) { return all[0][1].dev; }

/* Called with the progress lock held, like the functions below. Polls until no bit is pending.
 * With few rings no poll reads the bitmap. */
static void drain(void)
{
	if (!target()->rings.numbered)
		memset(target()->shm.process->pending, 0, sizeof *target()->shm.process->pending);
	while (__atomic_load_n(&target()->shm.process->pending->any, __ATOMIC_RELAXED))
		soft_progress_serve(target(), true);
}

/* Sends one message. */
static void send_one(int i)
{
	use(i);
	post_receive(&ends[1]);
	post(&ends[0], IBV_WR_SEND, 8, 0, 0);
}

/* Sends one message, and receives it by one poll. */
static void send_and_poll(int i)
{
	drain();
	send_one(i);
	soft_progress_serve(target(), true);
	done(&ends[1]);
}

/* Returns whether a message sets a bit. Receives the message too. */
static bool pending(int i)
{
	bool pending_asked;

	drain();
	send_one(i);
	pending_asked = __atomic_load_n(&target()->shm.process->pending->any, __ATOMIC_RELAXED) != 0;
	while (!soft_progress_serve(target(), true))
		;
	done(&ends[1]);
	return pending_asked;
}

/* Takes the sender's completions. */
static void reap(int n)
{
	use(0);
	while (n--)
		done(&ends[0]);
}

UNIT_TEST(busy_ring_is_polled_without_a_mark)
{
	int sent = 0;

	open_many(MANY);
	soft_progress_lock(target());
	for (int i = 0; i < MANY; i++, sent++)
		send_and_poll(i);
	assert_true(pending(5));
	for (int i = 0; i < 2 * REGULAR; i++, sent++)
		send_and_poll(5);
	assert_false(pending(5));
	for (int i = 20; i < 20 + BUSY; i++, sent++)
		send_and_poll(i);
	assert_true(pending(5));
	soft_progress_unlock(target());
	reap(sent + 3);
	close_many(MANY);
}

/* A hostile peer can set any bit. */
UNIT_TEST(marks_of_unused_rings_have_no_effect)
{
	static const struct shm_pending none;
	struct shm_pending *pending_page;

	open_many(FEW + 1);
	soft_progress_lock(target());
	pending_page = target()->shm.process->pending;
	for (int turn = 0; turn < 3; turn++) {
		memset(pending_page, 0xff, sizeof *pending_page);
		for (int i = 0; i < PENDING_WORDS; i++)
			soft_progress_serve(target(), true);
		assert_int_equal(pending_page->any, 0);
	}
	memset(pending_page, 0, sizeof *pending_page);
	for (uint32_t pending_nr = PENDING_MAX + 1; pending_nr; pending_nr <<= 1)
		pending_mark(pending_page, pending_nr);
	pending_mark(pending_page, UINT32_MAX);
	assert_memory_equal(pending_page, &none, sizeof none);
	for (int i = 0; i <= FEW; i++)
		send_and_poll(i);
	soft_progress_unlock(target());
	reap(FEW + 1);
	close_many(FEW + 1);
}

/* A peer that marks its ring without end does not starve the others. */
UNIT_TEST(constant_marks_do_not_starve_other_rings)
{
	struct shm_pending *pending_page;

	open_many(MANY);
	soft_progress_lock(target());
	pending_page = target()->shm.process->pending;
	for (int i = 70; i < MANY; i++) {
		send_one(i);
		for (int turn = 0; turn < 2; turn++) {
			__atomic_store_n(&pending_page->word[0], UINT64_MAX, __ATOMIC_RELAXED);
			__atomic_fetch_or(&pending_page->any, 1, __ATOMIC_RELAXED);
			soft_progress_serve(target(), true);
		}
		done(&ends[1]);
	}
	soft_progress_unlock(target());
	reap(MANY - 70);
	close_many(MANY);
}

/* Sends a message without setting a pending bit. Returns the receiving connection with the
 * progress lock held. */
static struct shm_conn *send_unmarked(void (*suppress_mark)(struct shm_conn *shm))
{
	struct shm_conn *shm;

	open_many(MANY);
	soft_progress_lock(target());
	drain();
	shm = all[MANY / 2][1].conn->shm;
	suppress_mark(shm);
	send_one(MANY / 2);
	assert_int_equal(target()->shm.process->pending->any, 0);
	return shm;
}

static void receive_and_close(void)
{
	done(&ends[1]);
	soft_progress_unlock(target());
	reap(1);
	close_many(MANY);
}

/* The message is found after `most` polls at the most. */
static void found_in_turn(void (*suppress_mark)(struct shm_conn *shm), int most)
{
	int polls = 0;

	send_unmarked(suppress_mark);
	do {
		__atomic_add_fetch(&target()->progress.polls, 1, __ATOMIC_RELAXED);
		assert_true(polls++ <= most);
	} while (!soft_progress_serve(target(), true));
	receive_and_close();
}

/* The bit was cleared, as a hostile peer can do. */
UNIT_TEST(lost_mark_is_found_in_turn)
{
	found_in_turn(pending_waive, SELDOM * (MANY + 1));
}

/* Rings beyond PENDING_MAX have no bit, so each poll looks at several of them. */
UNIT_TEST(ring_without_a_bit_is_found_in_turn)
{
	found_in_turn(pending_leave, MANY / BUSY + 1);
}

/* The producer learns that it must mark its ring after it has stored the message: the message
 * is found anyway. */
UNIT_TEST(message_before_the_request_to_mark_is_found)
{
	pending_ask(send_unmarked(pending_waive));
	soft_progress_serve(target(), true);
	receive_and_close();
}

UNIT_MAIN(NULL, NULL)
