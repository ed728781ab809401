/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* calls_fd.c - interposed calls that make, copy, change and close descriptors. */
#include "sock/calls.h"
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include "sock/aware.h"
#include "sock/link.h"

/* The number is about to be another file's, or none. */
static void release(int fd)
{
	struct conn *c = conn_of(fd);

	epoll_forget(fd);
	if (!c || conn_is_vfork_child())
		return;
	if (c->refs > 1 && epoll_has(c, fd))
		move_back(c, DAT_SOCKET_WHY_EPOLL, true, BACK_FOR_EVER);
	c = conn_forget(fd);
	if (c)
		move_close(c, fd);
}

/* A descriptor of the library: the program does not know of it. */
static bool is_own(int fd)
{
	struct slot *slot = slot_of(fd);

	return slot && slot->own && !conn_is_vfork_child();
}

/* Notes whether a DAT library made the socket, and returns it. */
static bool set_dat(int fd, bool dat)
{
	struct slot *slot = dat ? conn_slot(fd) : slot_of(fd);

	if (slot)
		slot->dat = dat;
	return dat;
}

/* accept() is not always called from where it is written: libasan, for one, has an accept() that calls this one. */
static bool is_listener_of_dat(int fd)
{
	struct slot *slot = slot_of(fd);

	return slot && slot->dat;
}

EXPORT int socket(int domain, int type, int protocol)
{
	int fd = REAL(socket)(domain, type, protocol);

	if (fd >= 0 && conn_of(fd))
		release(fd); /* it was closed where this library does not see it */
	if (fd >= 0 && (domain == AF_INET || domain == AF_INET6) && (type & 0xf) == SOCK_STREAM &&
	    (!protocol || protocol == IPPROTO_TCP) && !set_dat(fd, link_is_caller(__builtin_return_address(0))))
		conn_track(fd, type & SOCK_NONBLOCK);
	return fd;
}

static void accepted(int listener, int fd, bool nonblock, const void *caller)
{
	int saved = errno, protocol = 0;
	socklen_t size = sizeof protocol;
	struct conn *c;

	if (fd < 0 || is_listener_of_dat(listener) || link_is_caller(caller))
		return;
	if (conn_of(listener) ||
	    (!REAL(getsockopt)(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) && protocol == IPPROTO_TCP)) {
		c = conn_track(fd, nonblock);
		if (c) {
			c->acceptor = true;
			service_counts.connections++;
		}
	}
	errno = saved;
}

EXPORT int accept4(int listener, struct sockaddr *sa, socklen_t *length, int flags)
{
	int fd = REAL(accept4)(listener, sa, length, flags);

	accepted(listener, fd, flags & SOCK_NONBLOCK, __builtin_return_address(0));
	return fd;
}

EXPORT int accept(int listener, struct sockaddr *sa, socklen_t *length)
{
	int fd = REAL(accept)(listener, sa, length);

	accepted(listener, fd, false, __builtin_return_address(0));
	return fd;
}

EXPORT int connect(int fd, const struct sockaddr *sa, socklen_t length)
{
	struct conn *c = conn_of(fd);
	int result;

	if (c && length >= sizeof sa->sa_family && sa && sa->sa_family == AF_UNSPEC)
		move_back(c, DAT_SOCKET_WHY_CALL, true, BACK_FOR_EVER);
	if (c)
		aware_before_connect(fd, sa, length);
	result = REAL(connect)(fd, sa, length);
	if (c && (!result || errno == EINPROGRESS || errno == EINTR) && !c->connector) {
		c->connector = true;
		service_counts.connections++;
	}
	return result;
}
extern int __connect(int, const struct sockaddr *, socklen_t) ALIAS(connect);

EXPORT int listen(int fd, int backlog)
{
	if (conn_of(fd))
		aware_before_listen(fd);
	return REAL(listen)(fd, backlog);
}

EXPORT int shutdown(int fd, int how)
{
	struct conn *c = conn_of(fd);
	bool late = false;

	if (!c || conn_is_vfork_child() || how < SHUT_RD || how > SHUT_RDWR)
		return REAL(shutdown)(fd, how);
	if (how != SHUT_WR)
		move_back(c, DAT_SOCKET_WHY_CALL, true, BACK_FOR_EVER);
	if (how != SHUT_RD && conn_lock_out(c)) {
		c->shut = true;
		move_revoke(c);
		/* The FIN follows the bytes that are not in TCP yet. */
		late = c->resend && !move_flush(c);
		c->shutdown_late = late;
		conn_unlock_out(c);
	}
	if (late)
		return how == SHUT_RDWR ? REAL(shutdown)(fd, SHUT_RD) : 0;
	return REAL(shutdown)(fd, how);
}

/* Options that leave the byte stream as it is. After any other one the connection stays on TCP. */
static bool is_harmless(int level, int name)
{
	if (level == SOL_SOCKET)
		switch (name) {
		case SO_REUSEADDR:
		case SO_REUSEPORT:
		case SO_KEEPALIVE:
		case SO_LINGER:
		case SO_SNDBUF:
		case SO_RCVBUF:
		case SO_RCVTIMEO:
		case SO_SNDTIMEO:
		case SO_PRIORITY:
		case SO_BUSY_POLL:
		case SO_INCOMING_CPU:
		case SO_MARK:
		case SO_BINDTODEVICE:
		case SO_DONTROUTE:
		case SO_SNDBUFFORCE:
		case SO_RCVBUFFORCE:
		case SO_BROADCAST:
		case SO_MAX_PACING_RATE:
		case SO_DEBUG:
			return true;
		default:
			return false;
		}
	if (level == IPPROTO_TCP)
		switch (name) {
		case TCP_NODELAY:
		case TCP_CORK:
		case TCP_QUICKACK:
		case TCP_KEEPIDLE:
		case TCP_KEEPINTVL:
		case TCP_KEEPCNT:
		case TCP_USER_TIMEOUT:
		case TCP_CONGESTION:
		case TCP_NOTSENT_LOWAT:
		case TCP_DEFER_ACCEPT:
		case TCP_SYNCNT:
		case TCP_LINGER2:
		case TCP_MAXSEG:
		case TCP_WINDOW_CLAMP:
		case TCP_FASTOPEN:
			return true;
		default:
			return false;
		}
	return level == IPPROTO_IP || level == IPPROTO_IPV6;
}

EXPORT int setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
	struct conn *c = conn_of(fd);

	if (c && !is_harmless(level, name))
		move_back(c, DAT_SOCKET_WHY_OPTION, true, BACK_FOR_EVER);
	return REAL(setsockopt)(fd, level, name, value, size);
}

EXPORT int getsockopt(int fd, int level, int name, void *value, socklen_t *size)
{
	struct conn *c = conn_of(fd);
	int result, error;

	if (c && level == IPPROTO_TCP && name == TCP_ZEROCOPY_RECEIVE)
		move_back(c, DAT_SOCKET_WHY_OPTION, true, BACK_FOR_EVER);
	result = REAL(getsockopt)(fd, level, name, value, size);
	/* The kernel tells an error once, and the library may have been the first to ask. */
	if (!result && c && level == SOL_SOCKET && name == SO_ERROR && *size == sizeof error) {
		memcpy(&error, value, sizeof error);
		if (!error)
			error = conn_take_error(c);
		memcpy(value, &error, sizeof error);
	}
	return result;
}

EXPORT int close(int fd)
{
	struct slot *slot = slot_of(fd);

	if (likely(!slot || (!slot->conn && !slot->epoll && !slot->own)))
		return REAL(close)(fd);
	if (is_own(fd)) {
		errno = EBADF;
		return -1;
	}
	release(fd);
	return REAL(close)(fd);
}
extern int __close(int) ALIAS(close);

EXPORT int close_range(unsigned first, unsigned last, int flags)
{
	unsigned end = last < SLOTS * SLOT_CHUNKS ? last + 1 : SLOTS * SLOT_CHUNKS, from = first;
	int result;

	if (flags || first > last || conn_is_vfork_child())
		return REAL(close_range)(first, last, flags);
	for (unsigned fd = first; fd < end; fd++) {
		if (!conn_chunks[fd / SLOTS]) {
			fd |= SLOTS - 1;
		} else if (is_own(fd)) {
			result = from < fd ? REAL(close_range)(from, fd - 1, 0) : 0;
			if (result)
				return result;
			from = fd + 1;
		} else {
			release(fd);
		}
	}
	return from <= last ? REAL(close_range)(from, last, 0) : 0;
}

EXPORT void closefrom(int first)
{
	if (close_range(first < 0 ? 0 : first, ~0u, 0))
		REAL(closefrom)(first);
}

EXPORT int dup(int old)
{
	int fd;

	process_passes_on(old);
	fd = REAL(dup)(old);

	if (fd >= 0)
		conn_share(old, fd);
	return fd;
}

static int replace(int old, int fd, int flags)
{
	int result;

	if (is_own(fd)) {
		errno = EBUSY;
		return -1;
	}
	process_passes_on(old);
	if (old != fd && REAL(fcntl)(old, F_GETFD) >= 0 && fd >= 0)
		release(fd);
	result = flags < 0 ? REAL(dup2)(old, fd) : REAL(dup3)(old, fd, flags);
	if (result >= 0 && old != fd)
		conn_share(old, fd);
	return result;
}

EXPORT int dup2(int old, int fd)
{
	return replace(old, fd, -1);
}

EXPORT int dup3(int old, int fd, int flags)
{
	if (old == fd)
		return REAL(dup3)(old, fd, flags);
	return replace(old, fd, flags);
}

EXPORT int fcntl(int fd, int command, ...)
{
	struct conn *c = conn_of(fd);
	va_list args;
	long arg;
	int result;

	va_start(args, command);
	arg = va_arg(args, long);
	va_end(args);
	if (command == F_DUPFD || (command == F_SETFD && !(arg & FD_CLOEXEC)))
		process_passes_on(fd);
	if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) {
		result = REAL(fcntl)(fd, command, arg);
		if (result >= 0)
			conn_share(fd, result);
		return result;
	}
	if (c && (command == F_SETOWN || command == F_SETSIG || command == F_SETOWN_EX ||
		  (command == F_SETFL && arg & O_ASYNC)))
		move_back(c, DAT_SOCKET_WHY_CALL, true, BACK_FOR_EVER);
	result = REAL(fcntl)(fd, command, arg);
	if (c && command == F_SETFL && !result)
		c->nonblock = arg & O_NONBLOCK;
	return result;
}
extern int fcntl64(int, int, ...) ALIAS(fcntl);
extern int __fcntl(int, int, ...) ALIAS(fcntl);

EXPORT int ioctl(int fd, unsigned long request, ...)
{
	struct conn *c = conn_of(fd);
	va_list args;
	void *arg;
	int result;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if (!c)
		return REAL(ioctl)(fd, request, arg);
	if (request == FIONREAD && c->mode == CONN_ATTACHED && arg) {
		result = stream_readable_bytes(c, fd);
		if (result < 0)
			return -1;
		*(int *)arg = result;
		return 0;
	}
	if (request == FIONCLEX)
		process_passes_on(fd);
	if (request == FIOASYNC || request == FIOSETOWN || request == SIOCSPGRP)
		move_back(c, DAT_SOCKET_WHY_CALL, true, BACK_FOR_EVER);
	result = REAL(ioctl)(fd, request, arg);
	if (request == FIONBIO && !result && arg)
		c->nonblock = *(int *)arg;
	return result;
}

/* stdio reads and writes where this library does not see it. */
EXPORT FILE *fdopen(int fd, const char *mode)
{
	if (conn_of(fd))
		move_back(conn_of(fd), DAT_SOCKET_WHY_CALL, true, BACK_FOR_EVER);
	return REAL(fdopen)(fd, mode);
}

EXPORT int vdprintf(int fd, const char *format, va_list args)
{
	if (conn_of(fd))
		move_back(conn_of(fd), DAT_SOCKET_WHY_CALL, true, BACK_FOR_EVER);
	return REAL(vdprintf)(fd, format, args);
}

EXPORT int dprintf(int fd, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vdprintf(fd, format, args);
	va_end(args);
	return n;
}

int __dprintf_chk(int fd, int flag, const char *format, ...) __attribute__((format(printf, 3, 4)));
int __vdprintf_chk(int fd, int flag, const char *format, va_list args);

EXPORT int __vdprintf_chk(int fd, int flag, const char *format, va_list args)
{
	(void)flag;
	return vdprintf(fd, format, args);
}

EXPORT int __dprintf_chk(int fd, int flag, const char *format, ...)
{
	va_list args;
	int n;

	(void)flag;
	va_start(args, format);
	n = vdprintf(fd, format, args);
	va_end(args);
	return n;
}
