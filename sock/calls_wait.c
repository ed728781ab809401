/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* calls_wait.c - interposed calls that wait for several descriptors. */
#include "sock/calls.h"
#include <stdlib.h>
#include <sys/time.h>
#include "sock/link.h"
#include "sock/poll.h"

/* The headers say that the kernel only writes the array. */
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

static bool has_conn(const struct pollfd *fds, nfds_t count)
{
	for (nfds_t i = 0; i < count; i++)
		if (conn_of(fds[i].fd) || epoll_of(fds[i].fd))
			return true;
	return false;
}

EXPORT int poll(struct pollfd *fds, nfds_t count, int timeout)
{
	struct timespec t = { timeout / 1000, timeout % 1000 * 1000000L };

	if (!has_conn(fds, count))
		return REAL(poll)(fds, count, timeout);
	return poll_wait(fds, count, timeout < 0 ? NULL : &t, NULL);
}
extern int __poll(struct pollfd *, nfds_t, int) ALIAS(poll);

EXPORT int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
	if (!has_conn(fds, count))
		return REAL(ppoll)(fds, count, timeout, mask);
	return poll_wait(fds, count, timeout, mask);
}

int __poll_chk(struct pollfd *fds, nfds_t count, int timeout, size_t size);
int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask, size_t size);

EXPORT int __poll_chk(struct pollfd *fds, nfds_t count, int timeout, size_t size)
{
	if (size / sizeof *fds < count)
		abort();
	return poll(fds, count, timeout);
}

EXPORT int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask,
		       size_t size)
{
	if (size / sizeof *fds < count)
		abort();
	return ppoll(fds, count, timeout, mask);
}

static bool sets_have_conn(int n, const fd_set *a, const fd_set *b, const fd_set *c)
{
	if (n > FD_SETSIZE)
		return false;
	for (int fd = 0; fd < n; fd++)
		if (((a && FD_ISSET(fd, a)) || (b && FD_ISSET(fd, b)) || (c && FD_ISSET(fd, c))) &&
		    (conn_of(fd) || epoll_of(fd)))
			return true;
	return false;
}

EXPORT int select(int n, fd_set *in, fd_set *out, fd_set *except, struct timeval *timeout)
{
	struct timespec t, left = { 0 };
	int ready;

	if (!sets_have_conn(n, in, out, except) ||
	    (timeout && (timeout->tv_sec < 0 || timeout->tv_usec < 0 || timeout->tv_usec >= 1000000)))
		return REAL(select)(n, in, out, except, timeout);
	if (timeout)
		t = (struct timespec){ timeout->tv_sec, timeout->tv_usec * 1000 };
	ready = poll_select(n, in, out, except, timeout ? &t : NULL, NULL, &left);
	if (timeout)
		*timeout = (struct timeval){ left.tv_sec, left.tv_nsec / 1000 };
	return ready;
}

EXPORT int pselect(int n, fd_set *in, fd_set *out, fd_set *except, const struct timespec *timeout, const sigset_t *mask)
{
	if (!sets_have_conn(n, in, out, except))
		return REAL(pselect)(n, in, out, except, timeout, mask);
	return poll_select(n, in, out, except, timeout, mask, NULL);
}

/* An instance that a DAT library makes for itself has no connections of the program. */
static void track(int fd, const void *caller)
{
	if (fd >= 0 && !link_is_caller(caller))
		epoll_track(fd);
}

EXPORT int epoll_create(int size)
{
	int fd = REAL(epoll_create)(size);

	track(fd, __builtin_return_address(0));
	return fd;
}

EXPORT int epoll_create1(int flags)
{
	int fd = REAL(epoll_create1)(flags);

	track(fd, __builtin_return_address(0));
	return fd;
}

EXPORT int epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	if (conn_is_vfork_child())
		return REAL(epoll_ctl)(epfd, op, fd, event);
	return epoll_control(epfd, op, fd, event);
}

EXPORT int epoll_pwait(int epfd, struct epoll_event *events, int max, int timeout, const sigset_t *mask)
{
	struct epoll *ep = epoll_of(epfd);
	struct timespec t = { timeout / 1000, timeout % 1000 * 1000000L };

	if (!ep)
		return REAL(epoll_pwait)(epfd, events, max, timeout, mask);
	return epoll_sleep(epfd, ep, events, max, timeout < 0 ? NULL : &t, mask);
}

EXPORT int epoll_wait(int epfd, struct epoll_event *events, int max, int timeout)
{
	return epoll_pwait(epfd, events, max, timeout, NULL);
}

EXPORT int epoll_pwait2(int epfd, struct epoll_event *events, int max, const struct timespec *timeout,
			const sigset_t *mask)
{
	struct epoll *ep = epoll_of(epfd);

	if (!ep)
		return REAL(epoll_pwait2)(epfd, events, max, timeout, mask);
	return epoll_sleep(epfd, ep, events, max, timeout, mask);
}
