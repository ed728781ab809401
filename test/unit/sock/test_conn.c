/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The table of descriptors, the list of connections, and the positions in a stream that the kernel tells. */
#include "sock/conn.h"
#include <sys/resource.h>
#include "test/unit/unit.h"

enum { FD = 700, OTHER = 1500, FAR = 5000 }; /* in different chunks of the table; no descriptors are behind them */

static struct conn *track(int fd)
{
	struct conn *c = conn_track(fd, false);

	assert_non_null(c);
	return c;
}

static void forget(int fd)
{
	struct conn *c = conn_forget(fd);

	assert_non_null(c);
	conn_recycle(c);
}

static unsigned listed(const struct conn *wanted)
{
	const struct conn *prev = NULL;
	unsigned found = 0;

	for (struct conn *c = conn_list; c; c = c->next) {
		assert_ptr_equal(c->prev, prev);
		assert_true(!prev || c->id > prev->id);
		found += c == wanted;
		prev = c;
	}
	return found;
}

UNIT_TEST(descriptor_is_found_until_it_is_forgotten)
{
	struct conn *c;

	assert_null(conn_of(FD));
	assert_null(conn_of(-1));
	assert_null(conn_of(INT32_MAX));
	c = track(FD);
	assert_ptr_equal(conn_of(FD), c);
	assert_int_equal(listed(c), 1);
	assert_ptr_equal(conn_forget(FD), c);
	assert_null(conn_of(FD));
	conn_recycle(c);
	assert_int_equal(listed(c), 0);
	assert_null(conn_forget(FD));
}

UNIT_TEST(copies_share_a_connection)
{
	struct conn *c = track(FD);

	conn_share(FD, OTHER);
	conn_share(OTHER, FAR);
	assert_ptr_equal(conn_of(FAR), c);
	assert_null(conn_forget(FD));
	assert_true(c->fd == OTHER || c->fd == FAR);
	assert_null(conn_forget(OTHER));
	assert_int_equal(c->fd, FAR);
	forget(FAR);
	conn_share(FD, OTHER);
	assert_null(conn_of(OTHER));
}

UNIT_TEST(list_is_in_the_order_of_ids_and_ids_are_new)
{
	struct conn *c[5];
	uint64_t last;

	for (int i = 0; i < 5; i++)
		c[i] = track(FD + i);
	last = c[4]->id;
	forget(FD + 2);
	forget(FD);
	forget(FD + 4);
	assert_int_equal(listed(c[1]), 1);
	assert_int_equal(listed(c[3]), 1);
	c[0] = track(FD);
	assert_true(c[0]->id > last);
	assert_int_equal(listed(c[0]), 1);
	for (int i = 0; i < 4; i += i ? 2 : 1)
		forget(FD + i);
	assert_null(conn_list);
}

UNIT_TEST(number_that_was_closed_unseen_is_tracked_anew)
{
	uint64_t old = track(FD)->id;
	struct conn *c = track(FD);

	assert_true(c->id > old);
	assert_ptr_equal(conn_of(FD), c);
	assert_ptr_equal(conn_list, c);
	assert_null(c->next);
	forget(FD);
}

UNIT_TEST(own_descriptor_is_out_of_the_way_and_marked)
{
	struct rlimit limit;
	int fd = own_fd(dup(0));

	assert_return_code(getrlimit(RLIMIT_NOFILE, &limit), errno);
	assert_true(fd >= (int)((limit.rlim_cur < 65536 ? limit.rlim_cur : 65536) * 3 / 4));
	assert_true(slot_of(fd)->own);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	own_fd_close(fd);
	assert_false(slot_of(fd)->own);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	assert_int_equal(own_fd(-1), -1);
}

UNIT_TEST(lock_is_not_taken_twice_by_a_thread)
{
	struct conn *c = track(FD);

	assert_true(conn_lock_in(c));
	assert_false(conn_lock_in(c));
	assert_false(conn_lock(c));
	assert_true(conn_lock_out(c));
	conn_unlock(c);
	assert_true(conn_lock(c));
	conn_unlock(c);
	forget(FD);
}

UNIT_TEST(ring_is_readable_when_tcp_has_brought_what_comes_before)
{
	static _Alignas(RING_LINE) char memory[sizeof(struct segment)];
	static char data[RING_MIN];
	struct conn *c = track(FD);
	struct iovec iov = { "ring", 4 };
	struct ring_sender s;
	bool broken = false;

	assert_false(conn_ring_readable(c));
	c->segment = (struct segment *)memory;
	ring_sender_init(&s, &c->segment->ring[0], data, sizeof data);
	ring_receiver_init(&c->rx, &c->segment->ring[0], data, sizeof data);
	ring_begin(&s, 10);
	assert_int_equal(ring_write(&s, &iov, 1, 0, 4, &broken), 4);
	c->tcp_in = 9;
	assert_false(conn_ring_readable(c));
	c->tcp_in = 10;
	assert_true(conn_ring_readable(c));
	assert_int_equal(ring_enter(&c->rx, &broken), 10);
	c->rx_left = 1;
	assert_false(conn_ring_readable(c));
	c->rx_left = 0;
	assert_true(conn_ring_readable(c));
	/* The read finds a start that cannot be. */
	c->rx.active = false, c->rx.epoch = 0, c->tcp_in = 11;
	assert_true(conn_ring_readable(c));
	c->segment = NULL;
	forget(FD);
}

/* --- positions --- */

static struct conn *end[2]; /* 0: called connect() */

static int connect_ends(void **state)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof sa;
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);

	if (bind(listener, (void *)&sa, size) || listen(listener, 1) || getsockname(listener, (void *)&sa, &size) ||
	    connect(fd, (void *)&sa, size))
		return -1;
	end[0] = track(fd), end[0]->connector = true;
	end[1] = track(accept(listener, NULL, NULL)), end[1]->acceptor = true;
	return close(listener);
}

UNIT_FIXTURE(disconnect_ends)
{
	for (int i = 0; i < 2; i++) {
		int fd = end[i]->fd;

		forget(fd);
		close(fd);
	}
}

#define CONNECTED(name) UNIT_TEST_WITH(name, connect_ends, disconnect_ends)

static void assert_sent(struct conn *c, uint64_t wanted)
{
	uint64_t bytes;

	assert_true(conn_kernel_sent(c, &bytes));
	assert_int_equal(bytes, wanted);
}

static void assert_received(struct conn *c, uint64_t wanted)
{
	uint64_t bytes;

	assert_true(conn_kernel_received(c, &bytes));
	assert_int_equal(bytes, wanted);
}

CONNECTED(sent_bytes_count_when_written_and_received_ones_when_read)
{
	static char bytes[100000];

	for (int i = 0; i < 2; i++) {
		assert_int_equal(write(end[i]->fd, bytes, 1000), 1000);
		assert_sent(end[i], 1000);
		assert_int_equal(recv(end[!i]->fd, bytes, 400, MSG_WAITALL), 400);
		assert_received(end[!i], 400);
		assert_int_equal(recv(end[!i]->fd, bytes, 100, MSG_PEEK), 100);
		assert_received(end[!i], 400);
		assert_int_equal(recv(end[!i]->fd, bytes, 600, MSG_WAITALL), 600);
		assert_received(end[!i], 1000);
	}
}

/* More than the receiver's window takes: it stays in the sender's queue. */
CONNECTED(bytes_that_the_peer_does_not_take_count_as_sent)
{
	static char bytes[100000];
	uint64_t sent = 0;
	ssize_t n;

	while ((n = send(end[0]->fd, bytes, sizeof bytes, MSG_DONTWAIT)) > 0)
		sent += n;
	assert_true(sent > 0);
	assert_sent(end[0], sent);
	assert_received(end[1], 0);
}

UNIT_TEST(socket_that_is_none_has_no_position)
{
	struct conn *c;
	uint64_t bytes;
	int fds[2];

	assert_return_code(pipe(fds), errno);
	c = track(fds[0]);
	assert_false(conn_kernel_sent(c, &bytes));
	assert_false(conn_kernel_received(c, &bytes));
	forget(fds[0]);
	close(fds[0]), close(fds[1]);
}

UNIT_MAIN(NULL, NULL)
