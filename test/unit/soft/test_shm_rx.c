/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_shm_rx.c - a peer that stores invalid data in its ring ends its own connection, and no other. */
#include "test/unit/soft/ends.h"
#include "dapl/soft/progress/progress.h"
#include "dapl/soft/receive/shm_rx.h"
#include "dapl/soft/shm/cma.h"
#include "test/unit/unit.h"

static void bad_opcode(struct ring_slot *slot) { slot->op = 200; }

static void too_long(struct ring_slot *slot)
{
	slot->op = WIRE_SEND;
	slot->length = UINT32_MAX;
	slot->at = 0;
}

static void elsewhere(struct ring_slot *slot)
{
	slot->op = WIRE_WRITE;
	slot->length = 4096;
	slot->at = UINT32_MAX - 100;
}

static void lent_too_little(struct ring_slot *slot)
{
	slot->op = WIRE_SEND;
	slot->flags = RING_IS_LAST | RING_IS_RNDV;
	slot->length = RING_CHUNK;
}

static void lent_too_much(struct ring_slot *slot)
{
	lent_too_little(slot);
	slot->length = RING_RNDV_MAX + 1;
}

/* The sender has no such rendezvous when the receiver requests the data. */
static void rendezvous_of_nothing(struct ring_slot *slot)
{
	lent_too_little(slot);
	slot->length = RING_CHUNK + 1;
	slot->address = 4096;
	rndv_enable(ends[0].conn->shm);
}

static void request_too_short(struct ring_slot *slot)
{
	slot->op = WIRE_READ_REQUEST;
	slot->flags = RING_IS_LAST;
	slot->length = 20;
}

static void answer_unasked(struct ring_slot *slot)
{
	slot->op = WIRE_READ_RESPONSE;
	slot->flags = RING_IS_LAST;
	slot->length = 8;
}

static void foreign_stag(struct ring_slot *slot)
{
	slot->op = WIRE_WRITE;
	slot->flags = RING_IS_LAST;
	slot->length = 8;
	slot->word = 0x12345678;
}

static void acknowledges_too_much(struct ring_slot *slot)
{
	slot->op = WIRE_ACK;
	slot->flags = RING_IS_LAST;
	slot->delivered = 1000;
}

/* One side stores an invalid message. The other ends the connection, and the device works on. */
UNIT_TEST(invalid_message_ends_its_connection)
{
	static void (*const bad[])(struct ring_slot *) = {
		bad_opcode, too_long, elsewhere, request_too_short, answer_unasked, foreign_stag,
		acknowledges_too_much, lent_too_little, lent_too_much, rendezvous_of_nothing,
	};

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct ring_tx *tx;
		struct ring_slot *slot;

		open_two(0);
		post_receive(&ends[1]);
		tx = &ends[0].conn->shm->tx;
		slot = &tx->slot[tx->tail % RING_SLOTS];
		bad[i](slot);
		__atomic_store_n(&slot->seq, tx->tail + 1, __ATOMIC_RELEASE);
		while (!upcall_count(BROKEN, &ends[1]) &&
		       !ibv_poll_cq(ends[1].cq, 0, NULL))
			soft_progress_poll((const struct soft_cq *)ends[1].cq);
		wait_up(&ends[1], BROKEN);
		assert_int_equal(next_status(&ends[1]), IBV_WC_WR_FLUSH_ERR);
		close_two();
	}
}

/* The peer requests the payload of a rendezvous that there is not. */
UNIT_TEST(request_for_a_payload_that_was_not_offered_ends_the_connection)
{
	struct ring_ack *ack;
	time_t end = now() + LIMIT_S;

	open_two(0);
	post_receive(&ends[0]);
	ack = (struct ring_ack *)ends[1].conn->shm->rx.ack;
	__atomic_store_n(&ack->fallback_at, 4096, __ATOMIC_RELAXED);
	__atomic_add_fetch(&ack->fallback_request, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&ack->count, 1, __ATOMIC_RELEASE);
	while (!upcall_count(BROKEN, &ends[0]) && now() < end)
		soft_progress_poll((const struct soft_cq *)ends[0].cq);
	wait_up(&ends[0], BROKEN);
	assert_int_equal(next_status(&ends[0]), IBV_WC_WR_FLUSH_ERR);
	close_two();
}

/* The peer stores another message each time that one was received. */
enum { STORES_MAX = 1000 };
static bool stores_on;		/* atomic, like stores */
static unsigned stores;

/* Replaces the function by which the peer reports its end. */
static void report_no_end(struct dapl_conn *conn)
{
	struct ring_ack *ack = (struct ring_ack *)conn->shm->tx.ack;

	__atomic_add_fetch(&ack->count, 1, __ATOMIC_RELEASE);
}

EXTEND(shm_rx_receive)
bool __wrap_shm_rx_receive(struct dapl_conn *conn, bool later)
{
	bool more = __real_shm_rx_receive(conn, later);

	if (conn->owner != &ends[1] || !__atomic_load_n(&stores_on, __ATOMIC_RELAXED) ||
	    __atomic_load_n(&stores, __ATOMIC_RELAXED) == STORES_MAX)
		return more;
	__atomic_add_fetch(&stores, 1, __ATOMIC_RELAXED);
	report_no_end(conn);
	return more;
}

/* The peer closes its socket and continues to store: the receiver sees the end. */
UNIT_TEST(peer_that_stores_after_its_end_is_closed)
{
	open_two(0);
	__atomic_store_n(&stores_on, true, __ATOMIC_RELAXED);
	soft_progress_lock(ends[0].dev);
	report_no_end(ends[1].conn);
	OK(shutdown(ends[0].conn->fd, SHUT_WR));
	soft_progress_unlock(ends[0].dev);
	wait_up(&ends[1], BROKEN);
	__atomic_store_n(&stores_on, false, __ATOMIC_RELAXED);
	assert_in_range(__atomic_load_n(&stores, __ATOMIC_RELAXED), 1, STORES_MAX - 1);
	close_two();
}

UNIT_MAIN(use_shared_memory, NULL)
