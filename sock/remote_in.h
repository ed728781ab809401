/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* remote_in.h - the receiving direction of a stream over DAT: the peer's epochs, the frames that end them, and what the
 * peer gets to know of the bytes that were taken. */
#ifndef SOCK_REMOTE_IN_H
#define SOCK_REMOTE_IN_H
#include <stdbool.h>
#include <stdint.h>
#include "sock/conn_types.h"

/* --- for the files that move bytes; in_lock held ------------------------------------------------------------------ */

/* Bytes were taken from the ring: the peer gets to know it, now and then. */
void remote_taken(struct conn *c);
/* Looks at the head of TCP while an epoch goes on: a frame ends it, as other bytes do that came before the ring had
 * any. Returns false if the peer has lied; the connection is reset. */
bool remote_look(struct conn *c);
/* The epoch has ended. Drops bytes of TCP that were taken from the ring. Returns whether all of them have come;
 * then the receiver leaves the epoch, and calls remote_left(). */
bool remote_skip(struct conn *c);
void remote_left(struct conn *c);
/* The bytes in TCP that are the program's. Drops what is not. */
int remote_tcp_bytes(struct conn *c);
/* Whether what made the TCP socket readable is the program's: bytes, or the end. */
bool remote_tcp_is_readable(struct conn *c);
/* Bytes were received over TCP. An epoch that begins behind them may begin now. */
void remote_received(struct conn *c);

/* --- for the other files of streams ------------------------------------------------------------------------------- */

/* in_lock held. Ends the peer's epoch. skip: bytes of TCP that were taken from the ring. frame: one has come. */
void remote_in_end_epoch(struct conn *c, uint64_t skip, bool frame);
/* Whether no byte comes any more by TCP. */
bool remote_in_has_ended(const struct conn *c);
/* Messages, and time; the service thread, without a lock. */
void remote_in_on_move(struct remote *r, struct conn *c, const struct link_message *m);
void remote_in_on_cancel(struct remote *r, struct conn *c, const struct link_message *m);
void remote_in_on_ended(struct remote *r, struct conn *c, const struct link_message *m);
/* Any thread. Returns false, and takes no bytes, if the peer lies. */
bool remote_in_take_notice(struct remote *r, struct conn *c, const struct link_message *m);
void remote_in_on_notice(struct remote *r, struct conn *c, const struct link_message *m);
void remote_in_on_sync(struct remote *r, const struct link_message *m);
/* Tells the peer what was taken, when it is time. Returns whether it waits on. */
bool remote_in_tick(struct remote *r);

#endif
