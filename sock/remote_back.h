/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* remote_back.h - the way of a stream over DAT back to TCP: both directions when one end asks, when the link
 * breaks, and at the end of the connection or the process. */
#ifndef SOCK_REMOTE_BACK_H
#define SOCK_REMOTE_BACK_H
#include <stdbool.h>
#include "sock/conn_types.h"

/* Both locks held, the own epoch has ended: asks the peer to end its epoch. move_wake_back() tells when it has. */
void remote_send_back(struct conn *c);
/* Both locks held, at the end of the process: tells the peer what was taken, so that it sends the rest over TCP. */
void remote_notify_end(struct conn *c);
/* Both locks held: the connection gives its rings up. */
void remote_detach(struct conn *c);

/* --- for the other files of streams; the service thread, without a lock ------------------------------------------- */

/* The peer has given the stream up, or the link is broken. */
void remote_back_peer_gone(struct remote *r);
void remote_back_on_back(struct remote *r, struct conn *c);
void remote_back_on_backed(struct remote *r);
/* The peer's end has both directions on TCP, or the program has closed it: it waits for no frame. */
void remote_back_on_close(struct remote *r, const struct link_message *m);
/* Goes on with the way back. Returns whether there is one. */
bool remote_back_tick(struct remote *r);

#endif
