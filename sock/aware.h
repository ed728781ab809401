/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* aware.h - marks TCP sockets whose peers may be on other hosts, so that the handshake tells both ends that they have
 * this library. Without the programs of `datsock enable --network` the kernel refuses the mark, and nothing changes.
 * Not responsible for: what the handshake has told (datsockd). */
#ifndef SOCK_AWARE_H
#define SOCK_AWARE_H
#include <sys/socket.h>

/* The settings decide whether a socket is marked. errno stays as it is. */
void aware_before_connect(int fd, const struct sockaddr *peer, socklen_t length);
void aware_before_listen(int fd);

#endif
