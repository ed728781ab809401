/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* remote_open.h - how a stream over DAT begins: one end expects it, the other one opens it over the link to that end's
 * process, and both attach the rings to their connections. The service thread calls these functions, without a lock. */
#ifndef SOCK_REMOTE_OPEN_H
#define SOCK_REMOTE_OPEN_H
#include <stdbool.h>
#include <sys/socket.h>
#include "sock/conn_types.h"

/* The peer will open a stream with this key for the connection, which is WATCHED. Both ends must have agreed on the key
 * where no other process can learn it. service_remote_opened() tells the outcome, unless remote_forget() comes before.
 * Returns false without memory. The peer is told the result of link_listen(). */
bool remote_expect(struct conn *c, const unsigned char key[LINK_KEY]);
/* Opens a stream to the peer that expects this key, over the link to its process. service_remote_opened() tells the
 * outcome. Returns 0 or a DAT_SOCKET_WHY_*. */
int remote_open(struct conn *c, const char *ia, const struct sockaddr *peer, uint64_t qualifier,
		const unsigned char key[LINK_KEY]);
/* Gives up what was expected, or is being opened. */
void remote_forget(struct conn *c);

/* A stream that is not attached ends, for that reason. */
void remote_open_refuse(struct remote *r, enum dat_socket_why why);
/* Of link_user. */
bool remote_open_knows(const unsigned char token[LINK_KEY]);
/* Messages. */
void remote_open_on_open(struct link *link, const struct link_message *m);
void remote_open_on_ring(struct remote *r, const struct link_message *m);
void remote_open_on_opened(struct remote *r);

#endif
