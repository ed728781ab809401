/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* move.h - moves the directions of a connection to their rings and back to TCP. */
#ifndef SOCK_MOVE_H
#define SOCK_MOVE_H
#include "sock/conn_types.h"

/* Both locks held. Takes the mapped segment and the descriptor. Returns 0, or a DAT_SOCKET_WHY_* and takes nothing. */
int move_attach(struct conn *c, struct segment *segment, size_t size, uint32_t ring_size, int peer_efd);
/* Both locks held. Gives the segment up; what is unread in it is lost. */
void move_detach(struct conn *c);

/* out_lock held, attached: begins an epoch of the ring if that is possible now. */
void move_begin(struct conn *c);
/* out_lock held: ends the epoch of the sending direction, if there is one; unclaimed bytes go to TCP. */
void move_revoke(struct conn *c);
/* The same, because the peer does not read from a full ring: TCP carries the next bytes for longer. */
void move_leave_ring(struct conn *c);
/* out_lock held, at the end of the connection: ends the epoch if TCP takes all unclaimed bytes at once. If not, they
 * stay in the ring, which the peer reads before the end of the stream. */
void move_revoke_what_fits(struct conn *c);
/* out_lock held: sends on what came back from the ring. Returns whether all is in TCP. */
bool move_flush(struct conn *c);

/* No lock held. Takes both directions back. `never`: for good. Waits for the peer up to `timeout_ms` (-1: until it
 * answers, 0: not at all). Returns whether the connection is on TCP. */
bool move_back(struct conn *c, enum dat_socket_why why, bool never, int timeout_ms);
/* Both ends have ended their epochs, or the peer is gone. Called by the service thread, no lock held. Returns whether
 * the connection is on TCP now: what a dead peer has left in the ring is read first. */
bool move_finish_back(struct conn *c);
/* The thread that waits in move_back() goes on. */
void move_wake_back(struct conn *c);
/* The peer's process or connection is gone. */
void move_peer_gone(struct conn *c);
/* in_lock held: the receiver notes epochs that begin or end. Returns false if the peer has lied. */
bool move_receive(struct conn *c);
/* The program closes the last descriptor. Called before it is closed. */
void move_close(struct conn *c, int fd);
/* The peer has stored what cannot be: the connection is reset. A lock may be held. */
void move_break(struct conn *c, const char *what);
/* One line about the connection on stderr, if the user wants it. */
void move_log(struct conn *c, const char *what);
/* Logs, unless a line about the connection was logged before, that it stays on TCP, and why. */
void move_log_stays(struct conn *c);
const char *move_why(enum dat_socket_why why);
enum { MOVE_REASON = 256 }; /* bytes of a reason; what dat_strerror() returns is shorter */
/* As move_why() of the connection's reason; it names the call of DAT that failed. `text`: where it may be stored. */
const char *move_reason(const struct conn *c, char *text, size_t size);

#endif
