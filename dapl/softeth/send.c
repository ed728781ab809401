/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* send.c - sends a frame by the port's packet socket. */
#include <errno.h>
#include <sys/socket.h>
#include "dapl/softeth/packet.h"

static void count_sent(struct eth_port *port, uint64_t bytes)
{
	__atomic_add_fetch(&port->stats.sent, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&port->stats.sent_bytes, bytes, __ATOMIC_RELAXED);
}

int eth_send(struct eth_port *port, const struct iovec *iov, int n)
{
	struct msghdr message = { .msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)n };
	ssize_t sent;

	sent = sendmsg(port->fd, &message, MSG_DONTWAIT);
	if (sent < 0 && errno == ENETDOWN)	/* perhaps of an earlier time, told once by the socket */
		sent = sendmsg(port->fd, &message, MSG_DONTWAIT);
	if (sent < 0)
		return errno;
	count_sent(port, (uint64_t)sent);
	return 0;
}
