/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* net_socket.h - the rtnetlink socket of the process, which the service thread reads while an IA is watched. The
 * thread that takes it from the process closes it. */
#ifndef DAPL_NET_SOCKET_H
#define DAPL_NET_SOCKET_H

struct dapl_net_socket;

/* Opens a socket, whose messages are read from now on. Returns 0 or an errno. */
int dapl_net_socket_open(struct dapl_net_socket **out);
/* Waits until no message is being read, so the caller holds no lock. Does nothing with NULL. */
void dapl_net_socket_close(struct dapl_net_socket *s);
/* The next three are called with dapl_net_lock held. */
/* If the process has no socket: *s becomes its socket, and *s NULL. */
void dapl_net_socket_give(struct dapl_net_socket **s);
/* Takes the socket from the process. Returns NULL if the process has none. */
struct dapl_net_socket *dapl_net_socket_take(void);
/* Called in the child of a fork, which has no service thread: closes the socket. */
void dapl_net_socket_drop(void);

#endif
