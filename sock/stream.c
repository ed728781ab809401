/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stream.c - receives and sends over the carrier that a direction has at the moment. */
#include "sock/stream.h"
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include "common/clock.h"
#include "sock/conn.h"
#include "sock/full.h"
#include "sock/move.h"
#include "sock/rate.h"
#include "sock/real.h"
#include "sock/remote.h"
#include "sock/remote_in.h"
#include "sock/remote_out.h"
#include "sock/settings.h"
#include "sock/wait.h"

enum {
	TCP_TURN = 16,       /* an empty ring's reader that does not wait looks at the socket at one of so many reads */
	RING_ALWAYS = 256 << 10, /* bytes that a ring may have however many there are: below, wake-ups cost more */
	VECTORS = 64,        /* pieces of a vector that one call of the kernel takes */
	TURNS = 10000,       /* epochs without a byte that one call sees: no correct peer is so fast */
	RATE_NS = 200000000, /* traffic of less time is not measured: it is fast */
	SLOW_CALL_NS = 25000000, /* 40 calls a second */
	SLOW_BYTE_NS = 3000,     /* 330 KB a second */
	STALL_NS = 20000000, /* a full ring that the peer has not touched for so long: the rest goes by TCP */
};

static size_t total_of(const struct iovec *iov, int count)
{
	size_t total = 0;

	for (int i = 0; i < count; i++)
		total += iov[i].iov_len;
	return total < SSIZE_MAX ? total : SSIZE_MAX;
}

/* Stores the part of a vector from `offset` on, at most `length` bytes of it. Returns the number of pieces. */
static int slice(struct iovec out[VECTORS], const struct iovec *iov, int count, size_t offset, size_t length)
{
	int n = 0;

	for (int i = 0; i < count && n < VECTORS && length; i++) {
		size_t size = iov[i].iov_len;

		if (offset >= size) {
			offset -= size;
			continue;
		}
		size -= offset;
		if (size > length)
			size = length;
		out[n++] = (struct iovec){ (char *)iov[i].iov_base + offset, size };
		length -= size, offset = 0;
	}
	return n;
}

static ssize_t reset(void)
{
	errno = ECONNRESET;
	return -1;
}

/* out_lock held: the ring has bytes for the peer. */
static NOINLINE void wake_reader(struct conn *c)
{
	if (c->remote)
		remote_push(c);
	else
		conn_wake_peer(c);
}

/* in_lock held: the ring has room for the peer. */
static NOINLINE void wake_writer(struct conn *c)
{
	if (c->remote)
		remote_taken(c);
	else
		conn_wake_peer(c);
}

/* in_lock held, after a receive of the kernel that has failed. An error of the connection, which the kernel tells once,
 * ends the other direction, too: a write does not go into the ring any more. */
static void note_error(struct conn *c)
{
	if (c->segment && errno != EAGAIN && errno != EINTR && errno != EFAULT && errno != EINVAL && errno != ENOMEM)
		__atomic_store_n(&c->peer_gone, true, __ATOMIC_SEQ_CST);
}

/* in_lock held. Receives what there is, at least one byte. The caller waits if there is none and `wait` is set. */
static ssize_t receive_some(struct conn *c, int fd, const struct iovec *iov, int count, size_t offset, size_t length,
			    int flags, bool wait)
{
	struct iovec part[VECTORS];
	struct msghdr msg = { .msg_iov = part };
	bool broken = false, checked = false;
	size_t wanted = length;
	unsigned turns = 0;
	ssize_t n;

again:
	if (!c->broken && ++turns > TURNS)
		move_break(c, "began epochs without end");
	if (c->broken || !move_receive(c))
		return reset();
	if (c->rx.active && !c->rx_left) {
		char byte;

		if (flags & MSG_PEEK)
			n = ring_peek(&c->rx, iov, count, offset, length, &broken);
		else
			n = ring_read(&c->rx, flags & MSG_TRUNC ? NULL : iov, count, offset, length, &broken);
		if (broken) {
			move_break(c, "stored positions that cannot be in the ring");
			return reset();
		}
		if (n > 0) {
			if (!(flags & MSG_PEEK)) {
				c->ring_in += n, c->reads++;
				if (ring_take_room_wish(&c->rx))
					wake_writer(c);
			}
			return n;
		}
		if (ring_is_revoked(&c->rx)) {
			if (!c->remote)
				goto again;
			/* Bytes that were taken from the ring come by TCP once more. */
			errno = EAGAIN;
			return -1;
		}
		if (checked) {
			/* The kernel has said that the stream ends, and no byte has come before that. */
			errno = conn_take_error(c);
			n = errno ? -1 : 0;
			c->look_at_tcp = true; /* the next read finds the end, too */
			return n;
		}
		if (c->pending_error) {
			checked = true;
			goto again;
		}
		if (!wait && !c->look_at_tcp && !c->peer_gone && ++c->empty_reads % TCP_TURN) {
			errno = EAGAIN;
			return -1;
		}
		c->look_at_tcp = false;
		n = REAL(recv)(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
			errno = EAGAIN;
			return -1;
		}
		if (n > 0) {
			if (unlikely(c->remote != NULL)) {
				if (!remote_look(c))
					return reset();
				if (ring_is_revoked(&c->rx) || conn_ring_readable(c))
					goto again;
				errno = EAGAIN;
				return -1;
			}
			if (ring_is_revoked(&c->rx) || conn_ring_readable(c))
				goto again;
			move_break(c, "sent over TCP while the ring carried the stream");
			return reset();
		}
		/* What was in the ring before the end of the connection comes first. */
		checked = true;
		if (n < 0) {
			c->pending_error = errno;
			note_error(c);
		}
		goto again;
	}
	if (c->rx.active && c->rx_left < length)
		length = c->rx_left;
	msg.msg_iovlen = slice(part, iov, count, offset, length);
	n = REAL(recvmsg)(fd, &msg, (flags & ~MSG_WAITALL) | MSG_DONTWAIT);
	if (n < 0)
		note_error(c);
	if (n > 0 && flags & MSG_PEEK && (uint64_t)n == c->rx_left && c->rx.active && (size_t)n < wanted)
		n += ring_peek(&c->rx, iov, count, offset + n, wanted - n, &broken);
	if (n > 0 && !(flags & MSG_PEEK)) {
		__atomic_add_fetch(&c->tcp_in, n, __ATOMIC_RELAXED);
		c->reads++;
		if (c->rx.active)
			c->rx_left -= n;
		if (c->remote)
			remote_received(c);
	}
	if (n <= 0 && c->segment && !c->rx.active && ring_has_epoch(&c->rx) && (!n || errno != EAGAIN)) {
		if (n < 0)
			c->pending_error = errno;
		goto again;
	}
	/* The kernel has told the error before, when the library looked; now it tells the end. */
	if (!n && c->pending_error) {
		errno = conn_take_error(c);
		return errno ? -1 : 0;
	}
	if (n < 0 && errno == EAGAIN && c->segment && !c->rx.active && ring_has_epoch(&c->rx))
		goto again;
	return n;
}

bool stream_is_empty(const struct iovec *iov, int count)
{
	return !total_of(iov, count);
}

/* A receive of no bytes waits for bytes, as TCP does. */
static ssize_t receive_nothing(struct conn *c, int fd, int flags, bool wait)
{
	struct msghdr msg = { 0 };
	uint64_t deadline = 0;
	ssize_t n;
	int err;

	for (;;) {
		if (conn_lock_in(c)) {
			bool ready = conn_ring_readable(c);

			conn_unlock_in(c);
			if (ready)
				return 0;
		}
		n = REAL(recvmsg)(fd, &msg, flags | MSG_DONTWAIT);
		if (n >= 0 || errno != EAGAIN || !wait)
			return n;
		err = wait_for(c, fd, true, &deadline);
		if (err) {
			errno = err;
			return -1;
		}
	}
}

/* in_lock held. The kernel has told an error after bytes that this read returns. It tells it once, and a plain
 * connection would read the end of the stream instead. */
static void keep_for_next_read(struct conn *c, int error)
{
	c->pending_error = error;
	if (!conn_lock_out(c))
		return;
	if (c->mode == CONN_PLAIN)
		__atomic_store_n(&c->mode, CONN_WATCHED, __ATOMIC_SEQ_CST);
	conn_unlock_out(c);
}

/* A program that reads again and again takes messages of the borrowed link itself. Returns whether some have come. */
static bool poll_link(struct conn *c, struct link *link)
{
	int saved = errno;
	enum link_taken taken = link_take(link, 0);

	if (taken == LINK_SERVED && c->polls.empty >= POLLS_FIRST / 2)
		link_ask(link);
	link_give_back(link);
	errno = saved;
	return taken == LINK_TAKEN;
}

ssize_t stream_receive(struct conn *c, int fd, const struct iovec *iov, int count, int flags)
{
	size_t total = total_of(iov, count), done = 0;
	bool wait = !c->nonblock && !(flags & MSG_DONTWAIT), more, polled;
	uint64_t deadline = 0, id = c->id;
	struct link *link;
	ssize_t n;
	int err;

	if (!total)
		return receive_nothing(c, fd, flags, wait);
	for (;;) {
		if (!conn_lock_in(c)) {
			errno = EAGAIN;
			return done ? (ssize_t)done : -1;
		}
		if (c->closed || c->id != id) {
			conn_unlock_in(c);
			errno = EBADF;
			return done ? (ssize_t)done : -1;
		}
		n = receive_some(c, fd, iov, count, done, total - done, flags, wait);
		if (n < 0 && done && errno != EAGAIN)
			keep_for_next_read(c, errno);
		more = n > 0 && c->segment &&
		       (c->rx.active ? !c->rx_left && (conn_ring_readable(c) || ring_is_revoked(&c->rx))
				     : ring_has_epoch(&c->rx));
		polled = !wait && c->rx.active && (n > 0 || errno == EAGAIN) && polls_note(&c->polls, n > 0);
		link = n < 0 && errno == EAGAIN && !wait && c->remote && !c->regs ? remote_link(c) : NULL;
		conn_unlock_in(c);
		if (link && poll_link(c, link))
			continue;
		if (n > 0 && flags & MSG_PEEK) {
			/* With MSG_WAITALL too it is enough: the bytes are not all in one place. */
			done = n;
			break;
		}
		if (n > 0) {
			done += n;
			/* Bytes of the next carrier are as much there as those of this one. */
			if (done == total || (!(flags & MSG_WAITALL) && !more))
				break;
			if (more && !(flags & MSG_WAITALL))
				wait = false;
			continue;
		}
		if (!n || errno != EAGAIN) {
			if (n && !done)
				return -1;
			break;
		}
		if (!wait) {
			if (polled && !done) {
				sched_yield();
				errno = EAGAIN;
			}
			return done ? (ssize_t)done : -1;
		}
		err = wait_for(c, fd, true, &deadline);
		if (err) {
			errno = err;
			return done ? (ssize_t)done : -1;
		}
	}
	if (c->mode == CONN_WATCHED)
		stream_count(c);
	return done;
}

/* A slow connection gains little, and a ring has its price in memory, descriptors and the time of a move. */
static bool is_fast(const struct conn *c)
{
	uint64_t ns = clock_now_ns() - c->rate.at;
	uint64_t calls = rate_calls(c) - c->rate.calls;
	uint64_t bytes = rate_bytes(c) - c->rate.bytes;

	return !settings.after_calls || ns <= RATE_NS || calls * SLOW_CALL_NS >= ns || bytes * SLOW_BYTE_NS >= ns;
}

void stream_shows_traffic(struct conn *c)
{
	if (is_fast(c) && rate_may_ask(c))
		service_ask(c);
	else
		rate_ask_after(c, settings.after_calls, settings.after_bytes);
}

/* For tests: ends or begins epochs at random. */
static void disturb(struct conn *c)
{
	static __thread unsigned seed __attribute__((tls_model("initial-exec")));

	if (!seed)
		seed = (unsigned)(uintptr_t)c | 1;
	seed = seed * 1103515245 + 12345;
	if ((seed >> 16) % settings.test_back == 0)
		move_revoke(c);
}

/* out_lock held. A ring that runs full grows. Rings stream fastest while together they fit into the cache, so those
 * that are large already share DATSOCK_RING bytes, and shrink when there are more of them. */
static void resize_ring(struct conn *c)
{
	uint32_t limit = c->tx.max;
	int streams;

	if (c->tx.wish || c->remote)
		return;
	if (c->tx.size >= RING_ALWAYS && !c->streaming) {
		c->streaming = true;
		__atomic_add_fetch(&settings_streams, 1, __ATOMIC_RELAXED);
	}
	streams = __atomic_load_n(&settings_streams, __ATOMIC_RELAXED);
	while (c->streaming && limit > RING_ALWAYS && (uint64_t)limit * streams > c->tx.max)
		limit /= 2;
	if (c->tx.size > limit)
		c->tx.wish = limit;
	else if (c->tx.size < limit && c->memory >= 2 * c->tx.size)
		c->tx.wish = 2 * c->tx.size;
	else if (c->tx.size < limit && settings_take_memory(2 * c->tx.size - c->memory))
		c->memory = c->tx.wish = 2 * c->tx.size;
}

/* out_lock held. Sends what fits without waiting. */
static ssize_t send_some(struct conn *c, int fd, const struct iovec *iov, int count, size_t offset, size_t length,
			 int flags)
{
	struct iovec part[VECTORS];
	struct msghdr msg = { .msg_iov = part };
	bool broken = false;
	ssize_t n;

	if (c->broken)
		return reset();
	if (unlikely(c->pending_error)) {
		errno = conn_take_error(c);
		if (errno)
			return -1;
	}
	if (c->segment) {
		if (unlikely(settings.test_back))
			disturb(c);
		if (c->tx.active && c->peer_gone)
			move_revoke(c);
		else if (!c->tx.active)
			move_begin(c);
	}
	if (c->tx.active) {
		n = ring_write(&c->tx, iov, count, offset, length, &broken);
		if (broken) {
			move_break(c, "stored a head that cannot be in the ring");
			return reset();
		}
		c->ring_out += n;
		if ((size_t)n < length) {
			c->full_count++;
			full_note(c);
			/* A thread may sleep in epoll_wait() that did not wait for room before. */
			if (c->regs) {
				ring_ask(&c->tx.ring->full);
				if (ring_is_writable(&c->tx))
					conn_wake(c);
			}
			resize_ring(c);
		}
		if (n) {
			c->writes++;
			if (ring_take_wish(&c->tx.ring->asleep))
				wake_reader(c);
			return n;
		}
		errno = EAGAIN;
		return -1;
	}
	if (c->resend && !move_flush(c)) {
		errno = EAGAIN;
		return -1;
	}
	msg.msg_iovlen = slice(part, iov, count, offset, length);
	n = REAL(sendmsg)(fd, &msg, flags | MSG_DONTWAIT);
	if (n > 0) {
		__atomic_add_fetch(&c->tcp_out, n, __ATOMIC_RELAXED);
		c->writes++;
	}
	return n;
}

/* A peer that does not read gets the rest as the kernel's TCP would take it: its buffers are there besides the ring. */
static void leave_full_ring(struct conn *c, uint64_t *head, uint64_t *since)
{
	uint64_t now = clock_now_ns(), seen;

	if (!conn_lock_out(c))
		return;
	if (c->tx.active) {
		seen = __atomic_load_n(&c->tx.ring->head, __ATOMIC_RELAXED);
		if (!*since || seen != *head) {
			*head = seen, *since = now;
		} else if (now - *since > STALL_NS) {
			move_leave_ring(c);
			*since = 0;
		}
	}
	conn_unlock_out(c);
}

ssize_t stream_send(struct conn *c, int fd, const struct iovec *iov, int count, int flags)
{
	size_t total = total_of(iov, count), done = 0;
	bool wait = !c->nonblock && !(flags & MSG_DONTWAIT);
	uint64_t deadline = 0, id = c->id, head = 0, since = 0;
	ssize_t n;
	int err;

	if (!total) {
		struct msghdr msg = { 0 };

		return REAL(sendmsg)(fd, &msg, flags | MSG_DONTWAIT);
	}
	for (;;) {
		if (!conn_lock_out(c)) {
			errno = EAGAIN;
			return done ? (ssize_t)done : -1;
		}
		if (c->closed || c->id != id) {
			conn_unlock_out(c);
			errno = EBADF;
			return done ? (ssize_t)done : -1;
		}
		n = send_some(c, fd, iov, count, done, total - done, flags | (done ? MSG_NOSIGNAL : 0));
		conn_unlock_out(c);
		if (n >= 0) {
			done += n;
			if (done == total)
				break;
			continue;
		}
		if (errno != EAGAIN)
			return done ? (ssize_t)done : -1;
		if (!wait)
			return done ? (ssize_t)done : -1;
		leave_full_ring(c, &head, &since);
		err = wait_for(c, fd, false, &deadline);
		if (err) {
			errno = err;
			return done ? (ssize_t)done : -1;
		}
	}
	if (c->mode == CONN_WATCHED)
		stream_count(c);
	return done;
}

int stream_readable_bytes(struct conn *c, int fd)
{
	int n = 0;
	bool broken = false;

	if (REAL(ioctl)(fd, FIONREAD, &n))
		return -1;
	if (conn_lock_in(c)) {
		if (c->remote)
			n = remote_tcp_bytes(c);
		if (c->segment && move_receive(c) && c->rx.active)
			n += ring_available(&c->rx, &broken);
		conn_unlock_in(c);
	}
	return n;
}
