/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* poll.c - joins what the rings tell with what the kernel tells about the other descriptors. */
#include "sock/poll.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "common/clock.h"
#include "sock/conn.h"
#include "sock/epoll.h"
#include "sock/real.h"
#include "sock/remote.h"
#include "sock/remote_in.h"
#include "sock/wait.h"

enum { ON_STACK = 64, IN = POLLIN | POLLRDNORM, OUT = POLLOUT | POLLWRNORM };

struct entry {
	struct conn *conn; /* NULL: the kernel's alone */
	bool plain;        /* counted in kernel_in */
	short ring;        /* events that the ring has */
};

/* Returns how many descriptors have events of their ring. */
static int look(struct pollfd *fds, nfds_t count, struct entry *e)
{
	int ready = 0;

	for (nfds_t i = 0; i < count; i++) {
		struct conn *c = e[i].conn;

		e[i].ring = 0;
		if (!c || c->mode != CONN_ATTACHED)
			continue;
		if (fds[i].events & IN && conn_lock_in(c)) {
			if (conn_ring_readable(c))
				e[i].ring |= fds[i].events & IN;
			conn_unlock_in(c);
		}
		if (fds[i].events & OUT && conn_lock_out(c)) {
			if (conn_ring_writable(c))
				e[i].ring |= fds[i].events & OUT;
			conn_unlock_out(c);
		}
		ready += !!e[i].ring;
	}
	return ready;
}

/* Counts this thread among those that sleep for the connections, or no longer. */
static void enlist(struct pollfd *fds, nfds_t count, struct entry *e, int n)
{
	for (nfds_t i = 0; i < count; i++) {
		struct conn *c = e[i].conn;

		if (!c || e[i].plain)
			continue;
		if (fds[i].events & IN)
			__atomic_add_fetch(&c->waiters_in, n, __ATOMIC_SEQ_CST);
		if (fds[i].events & OUT)
			__atomic_add_fetch(&c->waiters_out, n, __ATOMIC_SEQ_CST);
		if (n > 0 && conn_lock(c)) {
			wait_announce(c, fds[i].events & IN, fds[i].events & OUT);
			if (c->remote)
				remote_return(c);
			conn_unlock(c);
		}
	}
}

/* Fills the kernel's set: the descriptors, without events that the ring carries, then those that peers wake. Returns
 * whether a connection is watched by epoll, too: such a one is looked at again and again. */
static bool fill(struct pollfd *all, struct pollfd *fds, nfds_t count, struct entry *e)
{
	bool tick = false;

	for (nfds_t i = 0; i < count; i++) {
		struct conn *c = e[i].conn;

		all[i] = (struct pollfd){ fds[i].fd, fds[i].events, 0 };
		all[count + i] = (struct pollfd){ -1, POLLIN, 0 };
		if (!c || e[i].plain)
			continue;
		if (c->mode == CONN_ATTACHED && c->tx.active)
			all[i].events &= ~OUT;
		if (c->regs)
			tick = true;
		else
			all[count + i].fd = c->efd;
	}
	return tick;
}

/* A connection that is the kernel's may not move while a thread sleeps on its TCP socket alone. */
static bool classify(struct pollfd *fds, nfds_t count, struct entry *e)
{
	bool carried = false;

	for (nfds_t i = 0; i < count; i++) {
		struct conn *c = conn_of(fds[i].fd);

		e[i] = (struct entry){ .conn = c };
		if (!c)
			continue;
		__atomic_add_fetch(&c->kernel_in, 1, __ATOMIC_SEQ_CST);
		e[i].plain = __atomic_load_n(&c->mode, __ATOMIC_SEQ_CST) == CONN_PLAIN;
		if (!e[i].plain) {
			__atomic_sub_fetch(&c->kernel_in, 1, __ATOMIC_SEQ_CST);
			carried = true;
		}
	}
	return carried;
}

static void declassify(nfds_t count, struct entry *e)
{
	for (nfds_t i = 0; i < count; i++)
		if (e[i].plain)
			__atomic_sub_fetch(&e[i].conn->kernel_in, 1, __ATOMIC_SEQ_CST);
}

/* The kernel tells of a frame as of bytes. A program that then reads must not wait. */
static void drop_frames(struct pollfd *p, struct conn *c)
{
	if (!(p->revents & IN) || !conn_lock_in(c))
		return;
	if (!remote_tcp_is_readable(c))
		p->revents &= ~IN;
	conn_unlock_in(c);
}

static int merge(struct pollfd *fds, struct pollfd *all, nfds_t count, struct entry *e)
{
	int ready = 0;

	for (nfds_t i = 0; i < count; i++) {
		if (all[i].revents && e[i].conn)
			e[i].conn->look_at_tcp = true;
		if (all[i].revents && e[i].conn && e[i].conn->had_frames && !e[i].plain)
			drop_frames(&all[i], e[i].conn);
		fds[i].revents = all[i].revents | e[i].ring;
		ready += !!fds[i].revents;
	}
	return ready;
}

static void drain(struct pollfd *all, nfds_t count, struct entry *e)
{
	for (nfds_t i = 0; i < count; i++)
		if (all[count + i].fd >= 0 && all[count + i].revents)
			wait_drain(e[i].conn);
}

int poll_wait(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
	struct pollfd on_stack[2 * ON_STACK], *all = on_stack;
	struct entry few[ON_STACK], *e = few;
	uint64_t deadline = 0, now;
	struct timespec none = { 0 }, left;
	struct spin s;
	int n, err = 0, ready;

	for (nfds_t i = 0; i < count; i++)
		if (epoll_of(fds[i].fd))
			epoll_is_nested(epoll_of(fds[i].fd));
	if (count > ON_STACK) {
		e = malloc(count * sizeof *e);
		all = malloc(2 * count * sizeof *all);
		if (!e || !all) {
			free(e), free(all);
			errno = ENOMEM;
			return -1;
		}
	}
	if (!classify(fds, count, e)) {
		n = REAL(ppoll)(fds, count, timeout, mask);
		err = errno;
		declassify(count, e);
		goto out;
	}
	if (timeout)
		deadline = clock_now_ns() + timeout->tv_sec * 1000000000ull + timeout->tv_nsec;
	for (;;) {
		bool tick, sleeps = !timeout || timeout->tv_sec || timeout->tv_nsec;

		ready = look(fds, count, e);
		if (!ready && sleeps) {
			spin_begin(&s);
			while (!ready && spin_again(&s))
				ready = look(fds, count, e);
			spin_end(&s, ready);
		}
		if (!ready && sleeps) {
			enlist(fds, count, e, 1);
			ready = look(fds, count, e);
			if (ready)
				enlist(fds, count, e, -1);
		}
		if (ready || !sleeps) {
			fill(all, fds, count, e);
			for (nfds_t i = 0; i < count; i++)
				all[count + i].fd = -1;
			n = REAL(ppoll)(all, count, &none, mask);
			err = errno;
			if (n < 0 && ready)
				for (nfds_t i = 0; i < count; i++)
					all[i].revents = 0;
			else if (n < 0)
				break;
			n = merge(fds, all, count, e);
			break;
		}
		tick = fill(all, fds, count, e);
		now = clock_now_ns();
		left = (struct timespec){ 0 };
		if (timeout && deadline > now)
			left = (struct timespec){ (deadline - now) / 1000000000, (deadline - now) % 1000000000 };
		if (tick && (!timeout || deadline > now + 1000000))
			left = (struct timespec){ 0, 1000000 };
		n = REAL(ppoll)(all, 2 * count, timeout || tick ? &left : NULL, mask);
		err = errno;
		enlist(fds, count, e, -1);
		if (n < 0)
			break;
		drain(all, count, e);
		look(fds, count, e);
		n = merge(fds, all, count, e);
		if (n || (timeout && clock_now_ns() >= deadline))
			break;
	}
	declassify(count, e);
out:
	if (e != few)
		free(e), free(all);
	errno = err;
	return n;
}

int poll_select(int n, fd_set *in, fd_set *out, fd_set *except, const struct timespec *timeout, const sigset_t *mask,
		struct timespec *left)
{
	struct pollfd fds[FD_SETSIZE];
	uint64_t begin = clock_now_ns(), spent, limit;
	nfds_t count = 0;
	int ready = 0, got;

	if (n < 0 || n > FD_SETSIZE) {
		errno = EINVAL;
		return -1;
	}
	for (int fd = 0; fd < n; fd++) {
		short events = (in && FD_ISSET(fd, in) ? POLLIN | POLLRDNORM | POLLRDBAND : 0) |
			       (out && FD_ISSET(fd, out) ? POLLOUT | POLLWRNORM | POLLWRBAND : 0) |
			       (except && FD_ISSET(fd, except) ? POLLPRI : 0);

		if (events)
			fds[count++] = (struct pollfd){ fd, events, 0 };
	}
	got = poll_wait(fds, count, timeout, mask);
	if (left && timeout) {
		limit = timeout->tv_sec * 1000000000ull + timeout->tv_nsec;
		spent = clock_now_ns() - begin;
		spent = spent < limit ? limit - spent : 0;
		*left = (struct timespec){ spent / 1000000000, spent % 1000000000 };
	}
	if (got < 0)
		return -1;
	for (nfds_t i = 0; i < count; i++)
		if (fds[i].revents & POLLNVAL) {
			errno = EBADF;
			return -1;
		}
	if (in)
		FD_ZERO(in);
	if (out)
		FD_ZERO(out);
	if (except)
		FD_ZERO(except);
	for (nfds_t i = 0; i < count; i++) {
		/* What the kernel's select() takes as readable, writable, exceptional. */
		if (fds[i].events & POLLIN && fds[i].revents & (POLLIN | POLLRDNORM | POLLRDBAND | POLLHUP | POLLERR))
			FD_SET(fds[i].fd, in), ready++;
		if (fds[i].events & POLLOUT && fds[i].revents & (POLLOUT | POLLWRNORM | POLLWRBAND | POLLERR))
			FD_SET(fds[i].fd, out), ready++;
		if (fds[i].events & POLLPRI && fds[i].revents & POLLPRI)
			FD_SET(fds[i].fd, except), ready++;
	}
	return ready;
}
