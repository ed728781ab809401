/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_fastpath.c - the fast path of small messages over TCP, when the socket accepts
 * only a part of a message or nothing: the rest follows, and the receiver joins the parts. */
#include "test/unit/soft/ends.h"
#include "test/unit/unit.h"

enum {
	OVER_TCP = 3,
	MESSAGE = 32, ACK = 40,		/* bytes of an FPDU: 8 bytes of data; the ACK behind it */
	NOTHING_CUT = -1,
};

static struct { int fd, most, cuts; } cut = { .fd = -1, .most = NOTHING_CUT };

EXTEND(send)

/* Makes one call on one socket accept no more than `most` bytes. */
ssize_t __wrap_send(int fd, const void *from, size_t length, int flags)
{
	int most = NOTHING_CUT;

	if (fd == __atomic_load_n(&cut.fd, __ATOMIC_ACQUIRE))
		most = __atomic_exchange_n(&cut.most, NOTHING_CUT, __ATOMIC_ACQ_REL);
	if (most == NOTHING_CUT || (size_t)most >= length)
		return __real_send(fd, from, length, flags);
	__atomic_add_fetch(&cut.cuts, 1, __ATOMIC_ACQ_REL);
	if (most)
		return __real_send(fd, from, most, flags);
	errno = EAGAIN;
	return -1;
}

static void cut_next(const struct end *e, int most)
{
	__atomic_store_n(&cut.fd, e->conn->fd, __ATOMIC_RELEASE);
	__atomic_store_n(&cut.most, most, __ATOMIC_RELEASE);
}

static void cut_nothing(void)
{
	__atomic_store_n(&cut.fd, -1, __ATOMIC_RELEASE);
	__atomic_store_n(&cut.most, NOTHING_CUT, __ATOMIC_RELEASE);
}

static void send_8(struct end *from, struct end *to, unsigned seed)
{
	pattern(from->buf, 8, seed);
	post_receive(to);
	post(from, IBV_WR_SEND, 8, 0, 0);
}

static void takes_8(struct end *e, unsigned seed)
{
	done(e);
	assert_true(has_pattern(e->buf + HALF, 8, seed));
}

/* Two messages in opposite directions, so that each carries an acknowledgement; the second is cut. */
UNIT_TEST(send_may_be_cut_anywhere)
{
	struct end *a = &ends[0], *b = &ends[1];

	open_two(OVER_TCP);
	for (int most = 0; most < MESSAGE + ACK; most++) {
		send_8(a, b, most);
		takes_8(b, most);
		cut_next(b, most);
		send_8(b, a, most + 1);
		done(a);		/* the receive and the send, in either order */
		done(a);
		done(b);
		assert_true(has_pattern(a->buf + HALF, 8, most + 1));
		cut_nothing();
	}
	assert_true(cut.cuts >= MESSAGE);	/* more, if an acknowledgement was sent with it */
	close_two();
}

UNIT_TEST(write_may_be_cut_anywhere)
{
	struct end *a = &ends[0];
	int before = cut.cuts;

	open_two(OVER_TCP);
	for (int most = 0; most < MESSAGE - 4; most++) {
		pattern(a->buf, 8, most);
		cut_next(a, most);
		post_to_other(IBV_WR_RDMA_WRITE, 8, 64);
		done(a);
		assert_true(has_pattern(ends[1].buf + 64, 8, most));
		cut_nothing();
	}
	assert_true(cut.cuts - before > MESSAGE / 2);
	close_two();
}

/* All lengths around the limit of the fast path, each followed by another message. */
UNIT_TEST(messages_of_all_lengths_arrive)
{
	struct end *a = &ends[0], *b = &ends[1];

	open_two(OVER_TCP);
	for (uint32_t length = 0; length < 600; length++) {
		memset(b->buf, 0, length + 8);
		memset(b->buf + HALF, 0, length + 8);
		pattern(a->buf, length + 1, length);
		post_receive(b);
		post_to_other(IBV_WR_SEND, length, 0);
		post_to_other(IBV_WR_RDMA_WRITE, length, 0);
		done(b);
		done(a);
		done(a);
		assert_true(has_pattern(b->buf, length, length));
		assert_true(has_pattern(b->buf + HALF, length, length));
		assert_int_equal(b->buf[length], 0);
		assert_int_equal(b->buf[HALF + length], 0);
	}
	close_two();
}

UNIT_MAIN(NULL, NULL)
