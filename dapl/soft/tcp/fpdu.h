/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fpdu.h - a batch of segments on its way out, and where they go: into the connection's ring in shared memory, or as
 * FPDUs into buffers that one sendmsg takes. rdmap/requester.c fills the batch; rdmap/transmit.c begins it and
 * sends it. */
#ifndef SOFT_TCP_FPDU_H
#define SOFT_TCP_FPDU_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/shm/shm_conn.h"
#include "dapl/soft/shm/shm_ring.h"
#include "dapl/soft/tunables.h"
#include "dapl/soft/wire/wire.h"

struct soft_region;
struct wire_segment;

struct soft_batch {
	struct dapl_conn *ring;		/* segments go into its ring; NULL: over the socket */
	int frames, iovs;		/* elements of frame and of iov in use */
	size_t used, total;		/* bytes of `bytes` in use; bytes of all FPDUs */
	struct soft_region *window;	/* the locked window that a read response is sent from */
	uint8_t *bounce;		/* a stable copy for the CRC */
	int term;			/* STEP_BROKEN: the Terminate code */
	bool answer;			/* STEP_BROKEN: because of an answer */
	const char *check;		/* STEP_BROKEN: what failed */
	/* batch_has_room() leaves room in these for an acknowledgement and a last FPDU */
	struct {
		size_t end;		/* bytes of the batch up to the end of this FPDU */
		struct soft_tx_cursor cursor;	/* behind it */
	} frame[BATCH_FRAMES + 3];
	struct iovec iov[BATCH_IOV + 6];
	uint8_t bytes[BATCH_BYTES + 512];
};

/* Returns true if there is room for a segment of `length` bytes of payload in that many pieces. */
static inline bool batch_has_room(const struct soft_batch *b, int pieces, uint32_t length)
{
	if (b->ring)
		return ring_room(&b->ring->shm->tx, length);
	return b->frames < BATCH_FRAMES && b->total < BATCH_PAYLOAD &&
	       b->iovs + pieces + 2 <= BATCH_IOV &&
	       b->used + WIRE_HEAD_MAX + WIRE_BODY_MAX + BATCH_COPY_MAX + 4 /* padding */ + WIRE_CRC <=
		       BATCH_BYTES;
}

/* Appends one FPDU to a batch that has room for it. */
void fpdu_put(struct soft_batch *b, bool crc_on, const struct wire_segment *seg, const void *body,
	      uint32_t body_length, const struct iovec *payload, int pieces, uint32_t length);

/* Appends one segment. The caller has checked batch_has_room(), and calls batch_note_cursor() next. */
static inline void batch_put(struct soft_batch *b, bool crc_on, const struct wire_segment *segment,
			     const void *body, uint32_t body_length, const struct iovec *payload,
			     int pieces, uint32_t length)
{
	if (b->ring)
		shm_conn_put(b->ring, segment, body, body_length, payload, pieces, length);
	else
		fpdu_put(b, crc_on, segment, body, body_length, payload, pieces, length);
}

/* Notes the cursor behind the segment that was appended last. */
static inline void batch_note_cursor(struct soft_batch *b, const struct soft_tx_cursor *cursor)
{
	if (b->ring) {
		b->frames++;
		return;
	}
	b->frame[b->frames].end = b->total;
	b->frame[b->frames++].cursor = *cursor;
}

#endif
