/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* remote.h - a connection whose rings lie in two processes that share no memory. What is written goes into a ring in
 * this process (staging), whose bytes are written by RDMA into a ring of the same size in the peer's process. Both
 * rings are those of ring.h: this file is the other side of each. Not responsible for: how the processes find each
 * other (service.h), the DAT connection (link.h).
 *
 * An epoch begins by messages: MOVE (my bytes from position N of TCP on are in the ring), and AGREE when the receiver
 * has read TCP up to N. It ends by a frame of 32 bytes in TCP, which says at which position of the ring TCP goes on. A
 * receiver that has taken more drops so many bytes of TCP. */
#ifndef SOCK_REMOTE_H
#define SOCK_REMOTE_H
#include <sys/socket.h>
#include "sock/conn_types.h"
#include "sock/link.h"

enum { REMOTE_FRAME = 32 }; /* bytes of a frame in TCP */

/* --- for the rendezvous; the service thread, no lock held ------------------------------------------------------- */

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

/* --- for the files that move bytes ------------------------------------------------------------------------------ */

/* out_lock held. Writes to the peer's ring what is new in the own one. */
void remote_push(struct conn *c);
/* in_lock held, after bytes were taken from the ring: the peer gets to know it, now and then. */
void remote_taken(struct conn *c);
/* out_lock held: an epoch has begun in the own ring. */
void remote_begin(struct conn *c);
/* out_lock held: the epoch of the own ring was revoked. Stores the frame that TCP must carry before the revoked bytes,
 * and returns its length: 0 if the peer has not agreed to the epoch. */
size_t remote_end(struct conn *c, unsigned char frame[REMOTE_FRAME]);
/* out_lock held: the frame is in TCP. */
void remote_ended(struct conn *c);
/* out_lock held: whether the frame, which no bytes follow, waits for the program's next write, or its close. */
bool remote_keeps_frame(struct conn *c);
/* in_lock held. Looks at the head of TCP while an epoch goes on: a frame ends it, as other bytes do that came before
 * the ring had any. Returns false if the peer has lied; the connection is reset. */
bool remote_look(struct conn *c);
/* in_lock held, the epoch has ended. Drops bytes of TCP that were taken from the ring. Returns whether all of them have
 * come; then the receiver leaves the epoch, and calls remote_left(). */
bool remote_skip(struct conn *c);
void remote_left(struct conn *c);
/* in_lock held: the bytes in TCP that are the program's. Drops what is not. */
int remote_tcp_bytes(struct conn *c);
/* in_lock held: whether what made the TCP socket readable is the program's: bytes, or the end. */
bool remote_tcp_is_readable(struct conn *c);
/* in_lock held: bytes were received over TCP. An epoch that begins behind them may begin now. */
void remote_received(struct conn *c);
/* Both locks held, the own epoch has ended: asks the peer to end its epoch. move_wake_back() tells when it has. */
void remote_send_back(struct conn *c);
/* out_lock held, at the end of the process. Whether the peer's program has still to read more than TCP takes at once;
 * then remote_ask_synced() asks whether it is all in the peer's memory. remote_take_synced() returns true when it is:
 * the epoch then ends behind these bytes, and they are not sent again. */
bool remote_leaves_much(const struct conn *c);
void remote_ask_synced(struct conn *c);
bool remote_take_synced(struct conn *c);
/* Both locks held, at the end of the process: tells the peer what was taken, so that it sends the rest over TCP. */
void remote_notify_end(struct conn *c);
/* Both locks held: the connection gives its rings up. */
void remote_detach(struct conn *c);

/* out_lock held, or the service thread. The adapter that carries the stream; "": none. */
const char *remote_ia(const struct conn *c);
/* The service thread: does what is due, and returns the time until it must be called again in ms, -1: never. */
int remote_run(void);
void remote_after_fork(void);

/* Frames. `position`: of the ring, from which on TCP carries the stream. Returns false for what is none of this epoch.
 */
void remote_encode_frame(unsigned char frame[REMOTE_FRAME], const unsigned char key[LINK_KEY], uint32_t epoch,
			 uint64_t position);
bool remote_decode_frame(const unsigned char frame[REMOTE_FRAME], const unsigned char key[LINK_KEY], uint32_t epoch,
			 uint64_t *position);

#endif
