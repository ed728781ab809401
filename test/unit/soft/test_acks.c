/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_acks.c - when an acknowledgement is sent at once, when it waits, and what sends one that waits: over TCP on
 * a connection in memory, through rings between two devices. */
#include "common/lock.h"
#include "dapl/soft/progress/acks.h"
#include "dapl/soft/progress/owner_state.h"
#include "dapl/soft/progress/progress.h"
#include "dapl/soft/tunables.h"
#include "test/unit/soft/ends.h"
#include "test/unit/soft/stream_test.h"
#include "test/unit/unit.h"

enum {
	ACK_FRAME = WIRE_FPDU_LENGTH + WIRE_UNTAGGED + WIRE_ACK_LENGTH + WIRE_CRC,
	ACK_PART = SOFT_WINDOW / ACK_WINDOW_FRACTION,
};

static void set_owner(struct dapl_device *dev, enum progress_owner owner)
{
	dapl_mutex_lock(&dev->progress.owner_lock);
	if (dev->progress.owner != owner)
		soft_owner_set(dev, owner, "test");
	dapl_mutex_unlock(&dev->progress.owner_lock);
}

/* --- over TCP -------------------------------------------------------------------------------------- */

UNIT_FIXTURE(set_up)
{
	stream_test_open(state);
	set_owner(stream_device.dev, OWNER_POLLING_THREADS);
}

static int tear_down(void **state)
{
	set_owner(stream_device.dev, OWNER_SERVICE_THREAD);
	return stream_test_close(state);
}

/* Input was processed, by a polling thread or by another. Returns whether an acknowledgement is due at once. */
static bool processed(bool polling)
{
	bool now;

	soft_progress_lock(stream_device.dev);
	dapl_mutex_lock(&s.qp->lock);
	soft_acks_schedule(s.conn, polling);
	now = s.conn->stream.tx.ack_now;
	dapl_mutex_unlock(&s.qp->lock);
	soft_progress_unlock(stream_device.dev);
	return now;
}

static unsigned waiting(void)
{
	struct dapl_conn *conn;
	unsigned count = 0;

	soft_progress_lock(stream_device.dev);
	TAILQ_FOREACH(conn, &stream_device.dev->progress.acks, progress.ack_link)
		count++;
	soft_progress_unlock(stream_device.dev);
	return count;
}

static void flush(void)
{
	soft_progress_lock(stream_device.dev);
	soft_acks_flush(stream_device.dev);
	soft_progress_unlock(stream_device.dev);
}

/* Returns the number of acknowledgements that the peer has got; *delivered is that of the last. */
static unsigned received(uint32_t *delivered)
{
	uint8_t frames[4 * ACK_FRAME];
	ssize_t n = recv(s.peer, frames, sizeof frames, MSG_DONTWAIT);

	if (n <= 0)
		return 0;
	assert_int_equal(n % ACK_FRAME, 0);
	assert_int_equal(frames[WIRE_FPDU_LENGTH + 1] & 15, WIRE_ACK);
	*delivered = wire_get32(frames + n - ACK_FRAME + WIRE_FPDU_LENGTH + WIRE_UNTAGGED);
	return n / ACK_FRAME;
}

static void acknowledgement_waits_while_a_thread_polls(void **state)
{
	uint32_t delivered = 0;

	s.conn->stream.delivered = 1;
	assert_false(processed(true));
	assert_int_equal(waiting(), 1);
	assert_int_equal(received(&delivered), 0);
	s.conn->stream.delivered = 2;
	flush();
	assert_int_equal(waiting(), 0);
	assert_int_equal(received(&delivered), 1);
	assert_int_equal(delivered, 2);
}

static void acknowledgement_is_sent_at_once_if_nothing_polls(void **state)
{
	s.conn->stream.delivered = 1;
	assert_true(processed(false));
	s.conn->stream.tx.ack_now = false;
	set_owner(stream_device.dev, OWNER_SERVICE_THREAD);
	assert_true(processed(true));
	assert_int_equal(waiting(), 0);
}

static void nothing_is_acknowledged_twice(void **state)
{
	uint32_t delivered = 0;

	assert_false(processed(false));
	s.conn->stream.delivered = 1;
	processed(true);
	flush();
	assert_int_equal(received(&delivered), 1);
	assert_false(processed(false));
	assert_false(processed(true));
	assert_int_equal(waiting(), 0);
	flush();
	assert_int_equal(received(&delivered), 0);
}

static void many_messages_do_not_wait(void **state)
{
	s.conn->stream.delivered = ACKS_MAX - 1;
	assert_false(processed(true));
	s.conn->stream.delivered = ACKS_MAX;
	assert_true(processed(true));
}

static void a_large_part_of_the_window_does_not_wait(void **state)
{
	s.conn->stream.delivered = 1;
	s.conn->stream.consumed = ACK_PART - 1;
	assert_false(processed(true));
	s.conn->stream.consumed = ACK_PART;
	assert_true(processed(true));
}

/* A Send that is still coming in is acknowledged a part of the window at a time. */
static void less_of_the_window_alone_is_not_acknowledged(void **state)
{
	s.conn->stream.consumed = ACK_PART - 1;
	assert_false(processed(false));
	assert_false(processed(true));
	assert_int_equal(waiting(), 0);
	s.conn->stream.consumed = ACK_PART;
	assert_true(processed(false));
}

static void connection_waits_once(void **state)
{
	uint32_t delivered = 0;

	for (int i = 1; i < 4; i++) {
		s.conn->stream.delivered = i;
		assert_false(processed(true));
		assert_int_equal(waiting(), 1);
	}
	flush();
	assert_int_equal(received(&delivered), 1);
	assert_int_equal(delivered, 3);
}

static void ended_connection_waits_no_longer(void **state)
{
	uint32_t delivered = 0;

	s.conn->stream.delivered = 1;
	processed(true);
	for (int i = 0; i < 2; i++) {		/* the second time it does not wait */
		soft_progress_lock(stream_device.dev);
		soft_acks_forget(s.conn);
		soft_progress_unlock(stream_device.dev);
		assert_int_equal(waiting(), 0);
	}
	flush();
	assert_int_equal(received(&delivered), 0);
}

static void connection_without_a_queue_pair_is_left_out(void **state)
{
	uint32_t delivered = 0;

	s.conn->stream.delivered = 1;
	processed(true);
	soft_progress_lock(stream_device.dev);
	s.conn->qp = NULL;
	soft_acks_flush(stream_device.dev);
	s.conn->qp = s.qp;
	soft_progress_unlock(stream_device.dev);
	assert_int_equal(waiting(), 0);
	assert_int_equal(received(&delivered), 0);
}

static void other_implementations_get_none(void **state)
{
	s.conn->stream.peer_is_dapl = false;
	s.conn->stream.delivered = ACKS_MAX;
	assert_false(processed(false));
	assert_false(processed(true));
	assert_int_equal(waiting(), 0);
}

/* --- through rings --------------------------------------------------------------------------------- */

UNIT_FIXTURE(set_up_rings)
{
	use_shared_memory(state);
	open_two(0);
	assert_true(uses_rings(&ends[0]));
}

UNIT_FIXTURE(tear_down_rings) { close_two(); }

static bool all_acknowledged(const struct dapl_conn *conn)
{
	return conn->stream.delivered == conn->stream.tx.cursor.acked_seq;
}

/* A message comes to ends[1], and one poll takes it. Returns with the progress lock held. */
static struct dapl_conn *take_a_message(enum progress_owner owner)
{
	struct dapl_device *dev = ends[1].dev;

	post_receive(&ends[1]);
	soft_progress_lock(dev);
	set_owner(dev, owner);
	post(&ends[0], IBV_WR_SEND, 8, 0, 0);
	soft_progress_serve(dev, true);
	return ends[1].conn;
}

/* Releases the lock. */
static void expect_completions(void)
{
	set_owner(ends[1].dev, OWNER_SERVICE_THREAD);
	soft_progress_unlock(ends[1].dev);
	done(&ends[1]);
	done(&ends[0]);
}

static void ring_acknowledges_when_it_is_found_empty(void **state)
{
	struct dapl_conn *conn = take_a_message(OWNER_POLLING_THREADS);
	bool waits = conn->shm->ack_owed && !all_acknowledged(conn);

	soft_progress_serve(ends[1].dev, true);
	waits &= !conn->shm->ack_owed && all_acknowledged(conn);
	expect_completions();
	assert_true(waits);
}

static void acknowledgement_through_a_ring_waits_while_a_thread_polls(void **state)
{
	struct dapl_conn *conn = take_a_message(OWNER_POLLING_THREADS);
	bool waits;

	dapl_mutex_lock(&conn->qp->lock);
	conn->shm->ack_owed = false;
	soft_acks_schedule(conn, true);
	waits = conn->shm->ack_owed && !all_acknowledged(conn);
	soft_acks_schedule(conn, false);
	waits &= all_acknowledged(conn);
	dapl_mutex_unlock(&conn->qp->lock);
	expect_completions();
	assert_true(waits);
}

static void flush_acknowledges_through_rings(void **state)
{
	struct dapl_conn *conn = take_a_message(OWNER_POLLING_THREADS);
	bool sent;

	soft_acks_flush(ends[1].dev);
	sent = !conn->shm->ack_owed && all_acknowledged(conn);
	expect_completions();
	assert_true(sent);
}

static void ring_acknowledges_at_once_if_nothing_polls(void **state)
{
	bool sent = all_acknowledged(take_a_message(OWNER_SERVICE_THREAD));

	expect_completions();
	assert_true(sent);
}

static void ring_without_a_queue_pair_acknowledges_nothing(void **state)
{
	struct dapl_conn *conn = take_a_message(OWNER_POLLING_THREADS);
	struct soft_qp *qp = conn->qp;
	bool none;

	conn->qp = NULL;
	soft_acks_flush_ring(conn->shm);
	none = !conn->shm->ack_owed && !all_acknowledged(conn);
	conn->qp = qp;
	conn->shm->ack_owed = true;
	soft_acks_flush_ring(conn->shm);
	expect_completions();
	assert_true(none);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define R(name) cmocka_unit_test_setup_teardown(name, set_up_rings, tear_down_rings)
	const struct CMUnitTest tcp[] = {
		T(acknowledgement_waits_while_a_thread_polls),
		T(acknowledgement_is_sent_at_once_if_nothing_polls),
		T(nothing_is_acknowledged_twice),
		T(many_messages_do_not_wait),
		T(a_large_part_of_the_window_does_not_wait),
		T(less_of_the_window_alone_is_not_acknowledged),
		T(connection_waits_once),
		T(ended_connection_waits_no_longer),
		T(connection_without_a_queue_pair_is_left_out),
		T(other_implementations_get_none),
	}, rings[] = {
		R(ring_acknowledges_when_it_is_found_empty),
		R(acknowledgement_through_a_ring_waits_while_a_thread_polls),
		R(flush_acknowledges_through_rings),
		R(ring_acknowledges_at_once_if_nothing_polls),
		R(ring_without_a_queue_pair_acknowledges_nothing),
	};

	alarm(60);
	return cmocka_run_group_tests(tcp, stream_test_open_device, stream_test_close_device) +
	       cmocka_run_group_tests(rings, NULL, NULL);
}
