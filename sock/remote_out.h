/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* remote_out.h - the sending direction of a stream over DAT: epochs of the own ring, writes into the peer's ring,
 * and what the peer tells of it. */
#ifndef SOCK_REMOTE_OUT_H
#define SOCK_REMOTE_OUT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "sock/remote_frame.h"
#include "sock/conn_types.h"

/* --- for the files that move bytes; out_lock held ----------------------------------------------------------------- */

/* Writes to the peer's ring what is new in the own one. */
void remote_push(struct conn *c);
/* An epoch has begun in the own ring. */
void remote_begin(struct conn *c);
/* The epoch of the own ring was revoked. Stores the frame that TCP must carry before the revoked bytes, and returns its
 * length: 0 if the peer has not agreed to the epoch. */
size_t remote_end(struct conn *c, unsigned char frame[REMOTE_FRAME]);
/* The frame is in TCP. */
void remote_ended(struct conn *c);
/* Whether the frame, which no bytes follow, waits for the program's next write, or its close. */
bool remote_keeps_frame(struct conn *c);
/* At the end of the process. Whether the peer's program has still to read more than TCP takes at once; then
 * remote_ask_synced() asks whether it is all in the peer's memory. remote_take_synced() returns true when it is: the
 * epoch then ends behind these bytes, and they are not sent again. */
bool remote_leaves_much(const struct conn *c);
void remote_ask_synced(struct conn *c);
bool remote_take_synced(struct conn *c);

/* --- for the other files of streams; the service thread, without a lock ------------------------------------------- */

void remote_out_on_agree(struct remote *r, struct conn *c, const struct link_message *m);
void remote_out_on_synced(struct remote *r, const struct link_message *m);
void remote_out_on_left(struct remote *r, const struct link_message *m);
/* Any thread. The peer has taken the bytes before `position` in that epoch. Returns false if that cannot be. */
bool remote_out_take_credit(struct remote *r, struct conn *c, uint64_t position, uint32_t epoch);
/* The same for a message; one that lies resets the connection. */
void remote_out_on_taken(struct remote *r, struct conn *c, const struct link_message *m);
/* The link has room again. */
void remote_out_on_room(struct remote *r);
/* Whether the peer has to do something for the stream: to take bytes, or to answer. */
bool remote_out_waits(const struct remote *r);
/* To be called each second while it waits: a full ring that the peer does not read is left to TCP, if the program
 * has set TCP_USER_TIMEOUT. The kernel then counts the time for which the window is closed. */
void remote_out_look(struct remote *r);
/* Gives up an epoch to which the peer does not agree. Returns whether one waits. */
bool remote_out_tick(struct remote *r, uint64_t now);

#endif
