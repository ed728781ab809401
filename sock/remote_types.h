/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* remote_types.h - what the files of streams over DAT (remote.h) share: the messages of a stream, its object, and
 * how its atomic members are read and written. Only these files include it.
 *
 * Messages of a stream; `epoch` is the number that the sender of a direction gives to each of its epochs:
 *
 *	OPEN	a, b: key; c: bytes of a ring		asker
 *	RING	a: address, b: RMR context, c: bytes	both, before and after OPEN's answer
 *	OPENED						answerer, which is attached
 *	NO	a: DAT_SOCKET_WHY_*			answerer
 *	MOVE	a: bytes sent over TCP, b: position of the ring, c: epoch. Bytes from here on wait in the sender's ring
 *	AGREE	c: epoch. The receiver has read TCP up to there
 *	CANCEL	c: epoch, which was not agreed to: its bytes come by TCP, without a frame
 *	NOTICE	a: tail, c: epoch. RDMA has written the bytes before, or the last of them are behind the message. b: as
 *		a of TAKEN, for the other direction, if flags are the last byte of the number of its epoch
 *	TAKEN	a: head, c: epoch
 *	ENDED	c: epoch. The frame is under way: a hint, since a receiver finds it by itself when it reads on
 *	LEFT	c: epoch. The receiver has taken the frame: another epoch may begin
 *	SYNC	a: tail, c: epoch. SYNCED answers that all bytes before are in the receiver's ring
 *	BACK	ends the peer's epoch; BACKED answers that it has ended
 *	CLOSE	a, c: as of TAKEN. Nothing more is written; CLOSED answers that all of the peer's writes were before
 *
 * When the link breaks, a sender that got AGREE sends the frame, one that did not sends none. A receiver that sent
 * AGREE and got no NOTICE does not know which: it looks whether what comes on TCP is the frame, which begins with
 * the key. */
#ifndef SOCK_REMOTE_TYPES_H
#define SOCK_REMOTE_TYPES_H
#include <stdbool.h>
#include <stdint.h>
#include "sock/conn_types.h"
#include "sock/link.h"

enum remote_message {
	OPEN = 1,
	RING,
	OPENED,
	NO,
	MOVE,
	AGREE,
	CANCEL,
	NOTICE,
	TAKEN,
	LEFT,
	BACK,
	BACKED,
	CLOSE,
	CLOSED,
	ENDED,
	SYNC,
	SYNCED,
};

enum remote_state {
	EXPECTED, /* waits for OPEN with its key; no link */
	OPENING,  /* waits for the link, or for OPENED */
	ANSWERED, /* has got OPEN, waits for RING */
	ATTACHED,
	CLOSING, /* waits for CLOSED; no connection any more */
};

struct remote {
	enum remote_state state; /* the service thread's, but for CLOSING */
	struct conn *conn; /* atomic; NULL: given up */
	struct link *link;
	uint32_t number;
	unsigned char key[LINK_KEY];
	struct segment *segment;
	uint32_t ring; /* bytes */
	struct link_memory staging, exposed;
	struct ring *tx, *rx;
	char *staged, *received;
	uint64_t peer_address;
	uint32_t peer_context;

	/* guarded by the connection's out_lock */
	bool agreed;
	bool waiting;  /* for AGREE */
	uint64_t begun; /* when MOVE was sent; monotonic ns */
	uint64_t posted; /* position up to which the peer's ring was written */
	bool push_later; /* the link had no room */
	uint32_t after_cancel; /* bytes */
	uint64_t synced; /* atomic: position that SYNCED has told */
	uint64_t full_at; /* claim of the ring + 1 when a look has found it full, else 0; the service thread's */

	/* guarded by in_lock */
	bool wanted; /* the peer has sent MOVE */
	uint64_t want_start, want_position;
	uint32_t want_epoch;
	bool noticed;  /* atomic: bytes have come in this epoch */
	bool no_frame; /* the epoch has ended without one */
	bool ends;     /* the frame has come: the epoch ends when the ring was read up to end_at */
	uint64_t end_at;
	uint64_t told; /* atomic: the position of the last TAKEN or NOTICE */
	uint64_t skip; /* bytes of TCP to be dropped */

	uint8_t ticks_to_tell; /* atomic: until the peer gets to know what was taken; 0: nothing to tell */
	bool finishing; /* both ends go back to TCP; the service thread's */
	bool came;      /* a peer has connected with the key; the service thread's */
	unsigned ticks;
	struct remote *next;      /* of a bucket */
	struct remote *next_all, *prev_all;
};

#define LOAD(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define STORE(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)

#endif
