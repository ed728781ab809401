/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_wakeup.c - the socket that is busy-polled causes no wake-up, and does so again as
 * soon as the polling thread stops: the next progress owner finds data that arrived before.
 * Data goes over TCP. */
#include "test/unit/soft/ends.h"
#include "test/unit/unit.h"
#include <poll.h>
#include <sys/ioctl.h>

enum { OVER_TCP = 3 };		/* both ends */

static struct end *polls = &ends[1], *other = &ends[0];

static void let_go(void)
{
	dapl_mutex_unlock(&polls->dev->progress.owner_lock);
	soft_progress_unlock(polls->dev);
}

static void send_one(void)
{
	post_receive(polls);
	post_to_other(IBV_WR_SEND, 8, 0);
}

/* Sends until the wake-ups of the polled socket are suppressed, and keeps them so: no thread
 * takes over before let_go(). */
static void hold_quiet(void)
{
	time_t end = now() + LIMIT_S;

	for (;;) {
		send_one();
		done(polls);
		served = polls;			/* it acknowledges only when it polls again */
		done(other);
		served = NULL;
		soft_progress_lock(polls->dev);
		dapl_mutex_lock(&polls->dev->progress.owner_lock);
		if (polls->dev->progress.suppressed == polls->conn)
			return;
		let_go();
		assert_true(now() <= end);
	}
}

/* Sends while wake-ups are suppressed: the message stays in the socket. */
static void send_into_socket(void)
{
	time_t end = now() + LIMIT_S;
	int bytes = 0;

	call_in_thread(send_one);	/* this one holds the owner lock */
	while (!bytes) {
		OK(ioctl(polls->conn->fd, FIONREAD, &bytes));
		assert_true(now() <= end);
	}
}

static int mark(void)
{
	socklen_t length = sizeof(int);
	int bytes = 0;

	OK(getsockopt(polls->conn->fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, &length));
	return bytes;
}

static bool acks(void)
{
	struct pollfd set = { .fd = polls->dev->data_epoll, .events = POLLIN };

	return poll(&set, 1, 0) > 0;
}

static const struct dapl_conn *suppressed(void)
{
	return __atomic_load_n(&polls->dev->progress.suppressed, __ATOMIC_RELAXED);
}

static uint32_t delivered(void)
{
	uint32_t n;

	soft_progress_lock(polls->dev);
	n = polls->conn->stream.delivered;
	soft_progress_unlock(polls->dev);
	return n;
}

static void await_delivery(uint32_t n)
{
	time_t end = now() + LIMIT_S;

	while (delivered() != n) {
		assert_true(now() <= end);
		usleep(100);
	}
}

UNIT_FIXTURE(open_over_tcp) { open_two(OVER_TCP); }
UNIT_FIXTURE(close_ends) { close_two(); }

#define WITH_ENDS(test) UNIT_TEST_WITH(test, open_over_tcp, close_ends)

WITH_ENDS(data_for_a_poller_causes_no_wake_up)
{
	uint32_t before;

	hold_quiet();
	before = polls->conn->stream.delivered;
	send_into_socket();
	assert_true(mark() > 1);
	assert_false(acks());
	let_go();
	done(polls);
	done(other);
	assert_int_equal(delivered(), before + 1);
}

WITH_ENDS(data_is_received_after_polling_stopped)
{
	uint32_t before;

	hold_quiet();
	before = polls->conn->stream.delivered;
	send_into_socket();
	let_go();
	await_delivery(before + 1);		/* without a poll */
	assert_int_equal(mark(), 1);
	assert_null(suppressed());
	send_one();
	await_delivery(before + 2);
}

static void await_event(void)
{
	struct pollfd channel = { .fd = polls->channel->fd, .events = POLLIN };
	struct ibv_cq *cq;

	assert_int_equal(poll(&channel, 1, LIMIT_S * 1000), 1);
	OK(soft_cq_channel_get(polls->channel, &cq));
}

/* Polls once more before it sleeps, as every waiter must. */
WITH_ENDS(blocked_thread_is_woken)
{
	struct ibv_wc wc;

	for (int unexpected = 0; unexpected < 2; unexpected++) {
		hold_quiet();
		if (!unexpected)
			send_into_socket();
		let_go();
		OK(ibv_req_notify_cq(polls->cq, 0));
		assert_null(suppressed());
		assert_int_equal(mark(), 1);
		if (unexpected)
			send_one();
		while (!ibv_poll_cq(polls->cq, 1, &wc))
			await_event();
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		done(other);
	}
}

WITH_ENDS(an_end_is_heard)
{
	hold_quiet();
	let_go();
	OK(ops->disconnect(other->conn));
	wait_up(polls, CLOSED);
	assert_null(suppressed());
}

WITH_ENDS(a_large_message_comes_whole)
{
	for (uint32_t length = 1024; length <= HALF; length *= 3) {
		hold_quiet();
		let_go();
		pattern(other->buf, length, length);
		post_receive(polls);
		post_to_other(IBV_WR_SEND, length, 0);
		done(polls);
		done(other);
		assert_true(has_pattern(polls->buf + HALF, length, length));
	}
}

UNIT_MAIN(NULL, NULL)
