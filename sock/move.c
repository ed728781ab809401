/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* move.c - the life of a connection's segment: attached, epochs of the rings, back to TCP, closed. */
#include "sock/move.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "common/clock.h"
#include "sock/conn.h"
#include "sock/epoll.h"
#include "sock/rate.h"
#include "sock/real.h"
#include "sock/remote.h"
#include "sock/remote_back.h"
#include "sock/remote_in.h"
#include "sock/remote_out.h"
#include "sock/service.h"
#include "sock/settings.h"
#include "sock/share.h"

enum {
	PIECES = 3, /* of what goes to TCP at the end of an epoch: a frame, the end of the ring, its beginning */
	MOVE_LINE = 300, /* the name of an IA, and what else is said */
	LAST_BYTES = 256 << 10, /* a quarter of it goes to TCP at the end of a connection */
	AFTER_FULL = 4 << 20, /* bytes that TCP carries after a full ring, at least */
};

const char *move_why(enum dat_socket_why why)
{
	static const char *const text[] = {
		"none",
		"too little traffic",
		"settings",
		"peer on another host",
		"user of the peer",
		"peer without the library",
		"memory or descriptors",
		"thread in a call",
		"excluded",
		"fork",
		"exec",
		"socket option",
		"call that only TCP has",
		"epoll",
		"bytes went past the library",
		"drained",
		"idle while memory was short",
		"process has changed its user",
		"adapter",
	};

	return why < sizeof text / sizeof *text ? text[why] : "?";
}

const char *move_reason(const struct conn *c, char *text, size_t size)
{
	int length;

	if (c->why != DAT_SOCKET_WHY_ADAPTER || !c->failure.call)
		return move_why(c->why);
	length = snprintf(text, size, "%s: ", move_why(c->why));
	link_failure_text(&c->failure, text + length, size - length);
	return text;
}

static void print_address(char *to, size_t size, const struct sockaddr_storage *sa)
{
	const struct sockaddr_in6 *in6 = (const void *)sa;
	const struct sockaddr_in *in = (const void *)sa;
	char text[INET6_ADDRSTRLEN] = "?";

	if (sa->ss_family == AF_INET6) {
		inet_ntop(AF_INET6, &in6->sin6_addr, text, sizeof text);
		snprintf(to, size, "[%s]:%u", text, ntohs(in6->sin6_port));
	} else {
		inet_ntop(AF_INET, &in->sin_addr, text, sizeof text);
		snprintf(to, size, "%s:%u", text, ntohs(in->sin_port));
	}
}

void move_log(struct conn *c, const char *what)
{
	struct sockaddr_storage local = { 0 }, peer = { 0 };
	socklen_t n = sizeof local, m = sizeof peer;
	char from[64], to[64], line[MOVE_REASON + 256];
	int length, saved = errno;

	if (settings.log && !getsockname(c->fd, (struct sockaddr *)&local, &n) &&
	    !getpeername(c->fd, (struct sockaddr *)&peer, &m)) {
		print_address(from, sizeof from, &local);
		print_address(to, sizeof to, &peer);
		length = snprintf(line, sizeof line, "datsock: %s %s %s: %s\n", from, c->connector ? ">" : "<", to,
				  what);
		if (REAL(write)(2, line, length) < 0)
			length = 0;
	}
	errno = saved;
}

void move_log_stays(struct conn *c)
{
	char reason[MOVE_REASON], line[MOVE_REASON + 32];

	if (c->logged)
		return;
	c->logged = true;
	snprintf(line, sizeof line, "stays on TCP: %s", move_reason(c, reason, sizeof reason));
	move_log(c, line);
}

int move_attach(struct conn *c, struct segment *segment, size_t size, uint32_t ring_size, int peer_efd)
{
	int side = c->connector ? 0 : 1;
	char *data = (char *)segment + SEGMENT_DATA;
	uint64_t received;

	if (c->closed || c->never || c->mode != CONN_WATCHED)
		return c->never ? c->why : DAT_SOCKET_WHY_BUSY;
	if (c->kernel_in || c->kernel_out || c->resend)
		return DAT_SOCKET_WHY_BUSY;
	if (!share_is_sole(c->share))
		return DAT_SOCKET_WHY_FORK;
	if (!conn_kernel_received(c, &received) || received != c->tcp_in) {
		c->never = true;
		return c->why = DAT_SOCKET_WHY_UNSEEN;
	}
	if (!settings_take_memory(RING_MIN))
		return DAT_SOCKET_WHY_MEMORY;
	c->memory = RING_MIN;
	c->segment = segment, c->segment_size = size;
	ring_sender_init(&c->tx, &segment->ring[side], data + side * (size_t)ring_size, ring_size);
	ring_receiver_init(&c->rx, &segment->ring[!side], data + !side * (size_t)ring_size, ring_size);
	c->peer_efd = peer_efd;
	c->rx_left = 0, c->begin_at = 0;
	c->peer_gone = false;
	if (!epoll_attach(c)) {
		c->segment = NULL, c->peer_efd = -1;
		settings_give_memory(c->memory), c->memory = 0;
		return DAT_SOCKET_WHY_EPOLL;
	}
	__atomic_store_n(&c->mode, CONN_ATTACHED, __ATOMIC_SEQ_CST);
	c->since = clock_now_ns();
	c->may_begin = true;
	c->why = DAT_SOCKET_WHY_NONE;
	conn_wake(c);
	return 0;
}

void move_detach(struct conn *c)
{
	if (c->mode != CONN_ATTACHED)
		return;
	c->may_begin = false;
	c->tx.active = c->rx.active = false;
	epoll_detach(c);
	if (c->remote)
		remote_detach(c);
	else
		munmap(c->segment, c->segment_size);
	c->segment = NULL;
	own_fd_close(c->peer_efd);
	c->peer_efd = -1;
	settings_give_memory(c->memory), c->memory = 0;
	if (c->streaming)
		__atomic_sub_fetch(&settings_streams, 1, __ATOMIC_RELAXED);
	c->streaming = false;
	/* While bytes wait to be sent again, the program's writes must come after them. */
	__atomic_store_n(&c->mode, c->resend || c->pending_error ? CONN_WATCHED : CONN_PLAIN, __ATOMIC_SEQ_CST);
	c->since = clock_now_ns();
	c->asked = false;
	rate_ask_after(c, settings.after_calls, settings.after_bytes);
	conn_wake(c);
}

void move_begin(struct conn *c)
{
	char line[MOVE_LINE];
	uint64_t sent;

	if (!c->may_begin || c->shut || c->peer_gone || c->resend || c->kernel_out || c->tcp_out < c->begin_at ||
	    !ring_can_begin(&c->tx))
		return;
	if (!conn_kernel_sent(c, &sent))
		return;
	if (sent != c->tcp_out) {
		c->may_begin = false;
		c->never = true, c->why = DAT_SOCKET_WHY_UNSEEN;
		move_log(c, "stays on TCP: bytes went past the library");
		return;
	}
	ring_begin(&c->tx, c->tcp_out);
	if (c->remote)
		remote_begin(c);
	c->moves++;
	epoll_out_changed(c);
	if (!c->logged) {
		c->logged = true;
		snprintf(line, sizeof line, "moved to RDMA by %s", remote_ia(c));
		move_log(c, c->remote ? line : "moved to shared memory");
	}
}

/* The kernel tells an error of a socket once. It is the program's to see, not the library's. */
static void keep_error(struct conn *c)
{
	if (errno != EAGAIN && errno != EINTR && errno != EPIPE)
		c->pending_error = errno;
}

/* out_lock held. Sends what TCP takes at once of the pieces, which together have `n` bytes, and leaves the rest in
 * them. Returns the length of the rest; an error of the connection leaves none: it takes no bytes. */
static size_t send_pieces(struct conn *c, struct iovec pieces[PIECES], size_t n)
{
	struct msghdr msg = { .msg_iov = pieces, .msg_iovlen = PIECES };
	ssize_t sent = REAL(sendmsg)(c->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (sent < 0) {
		keep_error(c);
		if (errno == EAGAIN || errno == EINTR)
			return n;
		sent = n;
	}
	c->tcp_out += sent;
	n -= sent;
	for (int i = 0; i < PIECES; i++) {
		size_t skip = (size_t)sent < pieces[i].iov_len ? (size_t)sent : pieces[i].iov_len;

		pieces[i].iov_base = (char *)pieces[i].iov_base + skip, pieces[i].iov_len -= skip;
		sent -= skip;
	}
	return n;
}

/* out_lock held. Keeps the pieces in c->resend. Without memory they can only wait here. */
static void keep_pieces(struct conn *c, struct iovec pieces[PIECES], size_t n, bool watch)
{
	char *rest, *to;

	while (!(rest = malloc(n))) {
		struct pollfd p = { c->fd, POLLOUT, 0 };

		REAL(poll)(&p, 1, 10);
		n = send_pieces(c, pieces, n);
		if (!n)
			return;
	}
	to = rest;
	for (int i = 0; i < PIECES; i++)
		if (pieces[i].iov_len)
			to = (char *)memcpy(to, pieces[i].iov_base, pieces[i].iov_len) + pieces[i].iov_len;
	c->resend = rest, c->resend_at = 0, c->resend_end = n;
	if (watch)
		service_watch_resend(c);
}

void move_revoke(struct conn *c)
{
	unsigned char frame[REMOTE_FRAME];
	struct iovec pieces[PIECES] = { { frame, 0 } };
	bool broken = false, keep;
	size_t n;

	if (!c->segment || !c->tx.active)
		return;
	n = ring_revoke(&c->tx, pieces + 1, &broken);
	if (broken) {
		move_break(c, "claimed bytes that are not in the ring");
		return;
	}
	c->ring_out -= n;
	c->backs++;
	if (c->remote)
		n += pieces[0].iov_len = remote_end(c, frame);
	keep = n && n == pieces[0].iov_len && remote_keeps_frame(c);
	if (n && !keep)
		n = send_pieces(c, pieces, n);
	if (n)
		keep_pieces(c, pieces, n, !keep);
	else if (c->remote)
		remote_ended(c);
	epoll_out_changed(c);
	conn_wake_peer(c);
	conn_wake(c);
}

void move_leave_ring(struct conn *c)
{
	move_revoke(c);
	c->begin_at = c->tcp_out + AFTER_FULL;
}

void move_revoke_what_fits(struct conn *c)
{
	int queued = 0, room = 0;
	socklen_t size = sizeof room;
	uint64_t claim;

	/* The ring of a peer that shares no memory may not have all bytes. */
	if (c->remote)
		move_revoke(c);
	if (!c->segment || !c->tx.active || REAL(ioctl)(c->fd, SIOCOUTQ, &queued) ||
	    REAL(getsockopt)(c->fd, SOL_SOCKET, SO_SNDBUF, &room, &size))
		return;
	claim = __atomic_load_n(&c->tx.ring->claim, __ATOMIC_RELAXED);
	/* Far less than the buffer: the kernel counts its own memory in it, and lowers it when memory is short. */
	if (room > LAST_BYTES)
		room = LAST_BYTES;
	if (room / 4 > queued && c->tx.tail - claim <= (uint64_t)(room / 4 - queued))
		move_revoke(c);
}

bool move_flush(struct conn *c)
{
	while (c->resend) {
		ssize_t n = REAL(send)(c->fd, c->resend + c->resend_at, c->resend_end - c->resend_at,
				       MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return false;
		if (n < 0)
			keep_error(c);
		if (n > 0)
			c->resend_at += n, c->tcp_out += n;
		if (n < 0 || c->resend_at == c->resend_end) {
			free(c->resend);
			c->resend = NULL;
			c->frame_kept = false;
			if (c->shutdown_late)
				REAL(shutdown)(c->fd, SHUT_WR);
		}
	}
	return true;
}

bool move_receive(struct conn *c)
{
	bool broken = false;

	if (!c->segment)
		return true;
	if (!c->rx.active && ring_has_epoch(&c->rx)) {
		uint64_t start = ring_enter(&c->rx, &broken);

		/* What was revoked has come by TCP, so this end may be past the start already. */
		c->rx_left = start - c->tcp_in;
		if (ring_is_revoked(&c->rx)) {
			ring_leave(&c->rx, &broken);
			c->rx_left = 0;
		}
		if (broken || c->rx_left > 1ull << 40) {
			move_break(c, "began an epoch at a position that cannot be");
			return false;
		}
	} else if (c->rx.active && ring_is_revoked(&c->rx) && !(c->remote && !remote_skip(c))) {
		ring_leave(&c->rx, &broken);
		c->rx_left = 0;
		if (broken) {
			move_break(c, "took back bytes that were read");
			return false;
		}
		if (c->remote)
			remote_left(c);
	}
	return true;
}

bool move_finish_back(struct conn *c)
{
	bool done;

	if (!conn_lock(c))
		return false;
	if (c->mode == CONN_ATTACHED) {
		c->may_begin = false;
		move_revoke(c);
		move_receive(c);
		if (!c->rx.active)
			move_detach(c);
	}
	done = c->mode != CONN_ATTACHED;
	conn_unlock(c);
	move_wake_back(c);
	return done;
}

void move_wake_back(struct conn *c)
{
	__atomic_store_n(&c->back_wait, 0, __ATOMIC_SEQ_CST);
	REAL(syscall)(SYS_futex, &c->back_wait, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

void move_peer_gone(struct conn *c)
{
	__atomic_store_n(&c->peer_gone, true, __ATOMIC_SEQ_CST);
	move_finish_back(c);
	conn_wake(c);
}

bool move_back(struct conn *c, enum dat_socket_why why, bool never, int timeout_ms)
{
	uint64_t end = clock_now_ns() + (uint64_t)(timeout_ms < 0 ? 0 : timeout_ms) * 1000000;
	uint64_t id = c->id;
	int saved = errno;

	if (!conn_lock(c))
		return false;
	if (never) {
		c->never = true;
		share_spoil(c->share);
	}
	if (never || c->mode == CONN_ATTACHED)
		c->why = why;
	if (c->mode == CONN_ATTACHED && !c->broken) {
		c->may_begin = false;
		move_revoke(c);
		__atomic_store_n(&c->back_wait, 1, __ATOMIC_SEQ_CST);
		if (c->remote) {
			remote_send_back(c);
		} else if (c->peer_gone || !service_send_back(c)) {
			conn_unlock(c);
			move_finish_back(c);
			errno = saved;
			return c->mode != CONN_ATTACHED;
		}
	}
	conn_unlock(c);
	while (timeout_ms && __atomic_load_n(&c->back_wait, __ATOMIC_SEQ_CST) && c->id == id) {
		uint64_t now = clock_now_ns();
		struct timespec left = { 1, 0 };

		if (timeout_ms > 0) {
			if (now >= end)
				break;
			left.tv_sec = (end - now) / 1000000000, left.tv_nsec = (end - now) % 1000000000;
		}
		REAL(syscall)(SYS_futex, &c->back_wait, FUTEX_WAIT_PRIVATE, 1, &left, NULL, 0);
	}
	errno = saved;
	return c->mode != CONN_ATTACHED;
}

/* There is no descriptor for the time after the close: the close waits. */
static void flush_before_close(struct conn *c)
{
	while (!move_flush(c)) {
		struct pollfd p = { c->fd, POLLOUT, 0 };

		REAL(poll)(&p, 1, 100);
	}
}

void move_close(struct conn *c, int fd)
{
	struct linger linger = { 0 };
	socklen_t size = sizeof linger;
	bool unread;
	int control;

	if (!conn_lock(c))
		return;
	if (c->mode == CONN_ATTACHED) {
		move_receive(c);
		unread = conn_ring_readable(c);
		c->may_begin = false;
		if (c->broken || unread) {
			/* As TCP does when a program closes a socket that it has not read empty: a reset. */
			linger = (struct linger){ .l_onoff = 1 };
			REAL(setsockopt)(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
		} else if (c->tx.active) {
			REAL(getsockopt)(fd, SOL_SOCKET, SO_LINGER, &linger, &size);
			if (!linger.l_onoff || linger.l_linger)
				move_revoke_what_fits(c);
		}
	}
	/* Before a reset they are dropped, as TCP's are; a late copy of the descriptor would put it off. */
	if (c->resend && (linger.l_onoff || !REAL(getsockopt)(fd, SOL_SOCKET, SO_LINGER, &linger, &size)) &&
	    linger.l_onoff && !linger.l_linger) {
		free(c->resend);
		c->resend = NULL;
	}
	control = c->control, c->control = -1;
	move_detach(c);
	own_fd_close(control);
	/* The bytes that are not in TCP yet precede the FIN. The descriptors that closed make room for one more. */
	if (c->resend && !move_flush(c)) {
		int late = own_fd(REAL(fcntl)(fd, F_DUPFD_CLOEXEC, 3));

		if (late < 0)
			flush_before_close(c);
		c->fd = late;
	}
	/* Bytes that are still to be sent come before those of others. */
	if (c->resend || c->inherited_epoll || c->kernel_in || c->kernel_out)
		share_spoil(c->share);
	share_leave(&c->share);
	c->closed = true;
	epoll_drop(c);
	c->back_wait = 0;
	conn_unlock(c);
	epoll_free_dead(c);
	service_closed(c);
}

void move_break(struct conn *c, const char *what)
{
	if (c->broken)
		return;
	c->broken = true;
	c->may_begin = false;
	c->tx.active = c->rx.active = false;
	move_log(c, what);
	REAL(shutdown)(c->fd, SHUT_RDWR);
	conn_wake(c);
}
