/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ring_side.h - a connection in shared memory whose peer is a fuzzer: the form of inputs, what the peer stores
 * there, and which thread of this side looks. What is checked is each target's matter.
 *
 * An input is four bytes for ring_begin() and records of two bytes, kind and length, and so many more. The kind is
 * in the upper three bits:
 *
 *   PUT    a message in the next slot, as a peer would put it or with a wrong field
 *   ACK    an acknowledgement, relative to a correct one
 *   STORE  bytes anywhere in the memory
 *   ACT    a call of this side's consumer (side_act)
 *   SERVE  which thread looks at the rings (ring_serve) */
#ifndef TEST_FUZZ_RING_SIDE_H
#define TEST_FUZZ_RING_SIDE_H
#include "test/fuzz/soft_side.h"
#include "dapl/soft/shm/shm_conn.h"
#include "dapl/soft/shm/shm_segment.h"

enum ring_kind { PUT, ACK, STORE, ACT, SERVE, RING_KINDS };	/* a target may have more */

struct ring_input {
	const uint8_t *at;
	size_t left;
};

struct ring_record {
	uint8_t kind, flags;		/* flags: the lower bits of the byte that has the kind */
	const uint8_t *bytes;
	uint32_t length;
};

struct ring_run {
	struct stream s;
	struct shm_conn *shm;
	bool lazy;			/* no thread looks except in ring_serve() */
	uint32_t tail, bulk;		/* the peer's */
	uint32_t checked;		/* slots of ours */
	bool over;			/* our Terminate was seen */
};

extern struct shm_segment *ring_segment;	/* one for all, and all zeros for each input */

/* Opens the device and makes the segment. */
void ring_side_open(void);
/* Opens a connection as the input's first bytes say: its kind; receives posted; requests posted; the thread that
 * looks. False if the input is too short. */
bool ring_begin(struct ring_run *r, struct ring_input *input);
/* Takes the next record of the input. False at its end. */
bool ring_next(struct ring_input *input, struct ring_record *record);
/* Ends it, and checks memory and completions. */
void ring_end(struct ring_run *r);
/* This side looks at the rings; `how` says on which thread. */
void ring_serve(struct ring_run *r, uint8_t how);
/* Polls completions before the queue overruns. */
void ring_make_room(struct ring_run *r);
/* Index of what the peer produces. */
unsigned ring_theirs(const struct ring_run *r);

/* Does what the peer does in PUT, ACK and STORE. */
void ring_peer_act(struct ring_run *r, const struct ring_record *record);

/* What was received is acknowledged, and little is kept for later. */
void ring_check_room(const struct ring_run *r);

#endif
