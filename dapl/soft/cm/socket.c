/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* socket.c - options and addresses of sockets (socket.h). */
#include "dapl/soft/cm/socket.h"
#include "common/address.h"
#include "dapl/core/base/traffic_class.h"
#include "dapl/core/device.h"
#include "dapl/soft/cm/conn.h"
#include "dapl/soft/obj/conn.h"
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void cm_set_no_delay(int fd)
{
	int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void cm_delay_handshake_ack(int fd)
{
	int off = 0;

	setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &off, sizeof off);
}

void cm_set_reset_on_close(int fd)
{
	struct linger none = { .l_onoff = 1 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
}

bool cm_same_address(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	struct sockaddr_storage other = *b;

	address_set_port((struct sockaddr *)&other, address_port((const struct sockaddr *)a));
	return a->ss_family == b->ss_family &&
	       !memcmp(a, &other, address_length((const struct sockaddr *)a));
}

void cm_set_traffic_class(const struct dapl_conn *conn)
{
	int class = dapl_traffic_class(&conn->cm->tuning, conn->cm->qos);

	if (class < 0)
		return;
	if (conn->remote.ss_family == AF_INET6)
		setsockopt(conn->fd, IPPROTO_IPV6, IPV6_TCLASS, &class, sizeof class);
	else
		setsockopt(conn->fd, IPPROTO_IP, IP_TOS, &class, sizeof class);
}

bool cm_peer_is_local(const struct dapl_conn *conn)
{
	struct sockaddr_storage remote = conn->remote;
	bool bound;
	int fd;

	if (cm_same_address(&conn->remote, &conn->local))
		return true;
	address_set_port((struct sockaddr *)&remote, 0);
	fd = socket(remote.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bound = fd >= 0 && !bind(fd, (struct sockaddr *)&remote,
				 address_length((struct sockaddr *)&remote));
	if (fd >= 0)
		close(fd);
	return bound;
}
