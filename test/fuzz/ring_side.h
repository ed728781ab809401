/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ring_side.h - a connection in shared memory whose peer is a fuzzer: what the peer stores there, and when
 * our side looks. What is done when is each target's matter. */
#ifndef TEST_FUZZ_RING_SIDE_H
#define TEST_FUZZ_RING_SIDE_H
#include "test/fuzz/soft_side.h"
#include "dapl/soft/shm/shm_conn.h"
#include "dapl/soft/shm/shm_segment.h"

enum { RING_HEAD = 4 };		/* bytes in front of an input, see ring_begin() */

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
/* Opens a connection. The head says: kind of connection; receives posted; requests posted; how the
 * device is served. */
void ring_begin(struct ring_run *r, const uint8_t *head);
/* Ends it, and checks memory and completions. */
void ring_end(struct ring_run *r);
/* Our side looks at the rings; `how` says on which thread. */
void ring_serve(struct ring_run *r, uint8_t how);
/* Lest the completion queue overruns. */
void ring_make_room(struct ring_run *r);
/* Index of what the peer produces. */
unsigned ring_theirs(const struct ring_run *r);

/* The records of an input. A message in the next slot, as a peer would put it or with a lie in it. */
void ring_peer_put(struct ring_run *r, const uint8_t *p, uint32_t length);
/* What a consumer tells, relative to what is true. */
void ring_peer_tell(struct ring_run *r, const uint8_t *p, uint32_t length);
/* Bytes anywhere in the memory. */
void ring_peer_store(const uint8_t *p, uint32_t length);

/* What was received is acknowledged, and little is kept for later. */
void ring_check_room(const struct ring_run *r);

#endif
