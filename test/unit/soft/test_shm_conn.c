/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_shm_conn.c - the rings of a connection: their memory, the end of a rendezvous, and when there is something
 * to receive. test_shm_conn_post.c is about the fast path. */
#include <sys/eventfd.h>
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/shm/peer.h"
#include "dapl/soft/shm/shm_conn.h"
#include "test/unit/unit.h"

enum { USERS = 100 };			/* of each process */

static struct dapl_device dev;
static struct dapl_conn conn;
static struct shm_process own, peer;
static uint32_t sleep_count;		/* of the peer */
static struct ring_rx rx;		/* the peer's side of the ring */
static bool no_memory;

UNIT_FAIL_CALLOC(no_memory)

/* Wake-ups of the peer since the last call. */
static unsigned wakes(void)
{
	uint64_t count = 0;

	return read(peer.wake_fd, &count, sizeof count) < 0 ? 0 : (unsigned)count;
}

static struct shm_conn *open_shm(void) { return shm_conn_new(&conn, shm_segment_new(-1, &own, &peer)); }

UNIT_FIXTURE(set_up)
{
	memset(&dev, 0, sizeof dev);
	dapl_spin_init(&dev.accesses.lock, RANK_SOFT_ACCESS);
	conn = (struct dapl_conn){ .dev = &dev, .stream.delivered = 5, .stream.consumed = 600 };
	own.sleep_count = peer.sleep_count = &sleep_count;
	sleep_count = 1;
	own.refs = peer.refs = USERS;
	peer.wake_fd = eventfd(0, EFD_NONBLOCK);
	peer.notified = 0;
	conn.shm = open_shm();
	ring_rx_init(&rx, conn.shm->segment->memory, 0);
}

UNIT_FIXTURE(tear_down)
{
	no_memory = false;
	shm_conn_free(conn.shm);
	shm_segment_drop_spares();
	close(peer.wake_fd);
}

static const struct ring_ack *sent_ack(void) { return &conn.shm->segment->memory->ack[1]; }
static const struct ring_grant *own_grant(void) { return &conn.shm->segment->memory->grant[1]; }

/* --- rendezvous --------------------------------------------------------------------------------------------------- */

static char payload[RING_RNDV_MAX];

static void send_by_rendezvous(uint32_t wqe, uint64_t offset)
{
	const struct wire_segment segment = { .op = WIRE_SEND, .last = true, .stag = 7, .to = 8 };
	struct iovec piece = { payload + offset, RING_CHUNK + 1 };

	rndv_send(&conn, &segment, wqe, offset, &piece);
}

UNIT_CASE(rendezvous_needs_a_peer_that_copies_and_memory)
{
	struct rndv_slot *slots;

	no_memory = true;
	assert_false(rndv_may_send(conn.shm));
	no_memory = false;
	assert_true(rndv_may_send(conn.shm));
	slots = conn.shm->rndv_slots;
	assert_true(rndv_may_send(conn.shm));
	assert_ptr_equal(conn.shm->rndv_slots, slots);
	conn.shm->peer_cannot_copy = true;
	assert_false(rndv_may_send(conn.shm));
}

UNIT_CASE(cancelled_payloads_are_not_copied_any_more)
{
	uint32_t count = sent_ack()->count;

	assert_true(rndv_may_send(conn.shm));
	send_by_rendezvous(0, 0);
	rndv_cancel(&conn);
	assert_false(own_grant()->rndv_enabled);
	assert_int_not_equal(sent_ack()->count, count);		/* a peer that waits looks again */
	assert_int_equal(wakes(), 1);
}

/* --- acknowledgements --------------------------------------------------------------------------------------------- */

UNIT_CASE(ring_is_ready_for_a_message_or_an_acknowledgement)
{
	struct shm_conn *shm = conn.shm;
	struct ring_memory *shared = shm->segment->memory;

	assert_false(shm_conn_ready(shm));
	shared->slot[1][0].seq = 1;
	assert_true(shm_conn_ready(shm));
	shm->rx_error = true;
	assert_false(shm_conn_ready(shm));
	shm->rx_error = false;
	shm->rx_stalled = true;
	assert_false(shm_conn_ready(shm));
	shared->ack[0].count++;
	assert_true(shm_conn_ready(shm));
	shm->seen++;
	assert_false(shm_conn_ready(shm));
}

UNIT_MAIN(NULL, NULL)
