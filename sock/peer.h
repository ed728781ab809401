/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* peer.h - finds the socket at the other end of a TCP connection of this host, by sock_diag. */
#ifndef SOCK_PEER_H
#define SOCK_PEER_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

struct peer {
	uint32_t inode; /* of its socket */
	uid_t uid;      /* of the user that owns it */
};
/* `diag` is a socket of NETLINK_SOCK_DIAG. Looks for the socket whose local address is `peer` and whose peer is
 * `local`. Returns 0, ENOENT if it is not in this network namespace, EAGAIN if its program has not accepted it
 * yet, or another errno. */
int peer_find(int diag, const struct sockaddr_storage *local, const struct sockaddr_storage *peer, struct peer *found);

#endif
