/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* api.c - the calls of <dat/dat_socket.h>. */
#include <dat/dat_socket.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include "sock/conn.h"
#include "sock/move.h"
#include "sock/real.h"
#include "sock/service.h"

#define EXPORT __attribute__((visibility("default")))

static int find(int fd, struct conn **c)
{
	if (REAL(fcntl)(fd, F_GETFD) < 0)
		return EBADF;
	*c = conn_of(fd);
	return *c ? 0 : ENOTSOCK;
}

EXPORT int dat_socket_move(int fd, unsigned flags)
{
	struct sockaddr_storage sa;
	socklen_t size = sizeof sa;
	struct conn *c;
	int err = find(fd, &c);

	if (err)
		return err;
	if (flags)
		return EINVAL;
	if (getpeername(fd, (void *)&sa, &size))
		return ENOTCONN;
	if (c->mode == CONN_ATTACHED)
		return 0;
	if (c->never)
		return EPERM;
	if (c->asked)
		return EAGAIN;
	if (c->tries && c->why == DAT_SOCKET_WHY_PEER)
		err = ECONNREFUSED;
	service_ask(c);
	return err ? err : c->never || !c->asked ? EPERM : EAGAIN;
}

EXPORT int dat_socket_back(int fd, int timeout_ms)
{
	struct conn *c;
	int err = find(fd, &c);

	if (err)
		return err;
	return move_back(c, DAT_SOCKET_WHY_DRAIN, false, timeout_ms) ? 0 : ETIMEDOUT;
}

EXPORT int dat_socket_exclude(int fd)
{
	struct conn *c;
	int err = find(fd, &c);

	if (err)
		return err;
	move_back(c, DAT_SOCKET_WHY_EXCLUDED, true, -1);
	return 0;
}

EXPORT int dat_socket_info(int fd, struct dat_socket_info *info)
{
	struct dat_socket_info own = { 0 };
	enum dat_socket_carrier ring;
	struct conn *c;
	int err = find(fd, &c);

	if (err)
		return err;
	if (info->size < offsetof(struct dat_socket_info, read))
		return EINVAL;
	if (!conn_lock(c))
		return EBUSY;
	own.size = info->size < sizeof own ? info->size : sizeof own;
	ring = c->remote ? DAT_SOCKET_RDMA : DAT_SOCKET_MEMORY;
	own.in = c->rx.active ? ring : DAT_SOCKET_TCP;
	own.out = c->tx.active ? ring : DAT_SOCKET_TCP;
	own.why_not = c->mode == CONN_ATTACHED ? DAT_SOCKET_WHY_NONE : c->why;
	own.read[DAT_SOCKET_TCP] = c->tcp_in - c->frames_in, own.read[DAT_SOCKET_MEMORY] = c->ring_in;
	own.written[DAT_SOCKET_TCP] = c->tcp_out - c->frames_out, own.written[DAT_SOCKET_MEMORY] = c->ring_out;
	own.wakeups = c->wakeups, own.moves = c->moves, own.backs = c->backs;
	if (c->segment) {
		own.ring_in = c->rx.ring->size;
		own.ring_out = c->tx.size;
	}
	conn_unlock(c);
	memcpy(info, &own, own.size);
	return 0;
}
