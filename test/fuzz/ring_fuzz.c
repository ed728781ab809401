/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ring_fuzz.c - any bytes as what the peer of a pair stores in the shared memory, and when we
 * look, post and poll meanwhile, through the device's engine with a real QP: nothing crashes
 * or reads beyond the memory, memory that the peer may not write stays as it is, everything
 * posted completes once, and what the device puts into its ring is well formed. All on one
 * thread; race_fuzz.c stores while the memory is being read.
 *
 * An input is RING_HEAD bytes (ring_side.h) and records of two bytes, `kind` and length, and so many more:
 *
 *   PUT    a message, in the next slot, as a peer would put it or with a lie in it
 *   TELL   what a consumer tells, relative to what is true
 *   STORE  bytes anywhere in the memory
 *   ACT    our consumer's, see soft_side.c
 *   SERVE  which thread looks at the rings */
#include "test/fuzz/ring_side.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PUT, TELL, STORE, ACT, SERVE, KINDS };
enum { TIMES = 16 };

/* --- what must hold ---------------------------------------------------------------------- */

/* What the device has put since the peer's last store. */
static void check_sent(struct ring_run *r)
{
	const struct ring_tx *tx = &r->shm->tx;
	const struct ring_slot *slot;

	side_demand(tx->tail - tx->head <= RING_SLOTS, "more slots are used than there are");
	side_demand(tx->tail - r->checked <= RING_SLOTS, "slots were used again unseen");
	for (; r->checked != tx->tail; r->checked++) {
		slot = &ring_segment->memory->slot[!ring_theirs(r)][r->checked % RING_SLOTS];
		side_demand(!r->over, "a message after a Terminate");
		side_demand(slot->seq == r->checked + 1 && slot->op <= WIRE_CLOSE && !slot->zero,
			    "a malformed message was sent");
		if (slot->flags & RING_IS_RNDV)
			side_demand(slot->length > RING_CHUNK && slot->length <= RING_RNDV_MAX, "a false loan");
		else
			side_demand(slot->length <= RING_CHUNK && (slot->length <= RING_INLINE ||
				    slot->at <= RING_BULK - slot->length), "a payload that lies elsewhere");
		r->over = slot->op == WIRE_TERMINATE;
	}
}

/* --- inputs ------------------------------------------------------------------------------ */

static void record(struct ring_run *r, unsigned kind, const uint8_t *p, uint32_t length)
{
	ring_make_room(r);
	switch (kind % KINDS) {
	case PUT:
		ring_peer_put(r, p, length);
		break;
	case TELL:
		ring_peer_tell(r, p, length);
		break;
	case STORE:
		ring_peer_store(p, length);
		break;
	case ACT:
		side_act(&r->s, p, length);
		check_sent(r);
		return;
	case SERVE:
		ring_serve(r, length ? p[0] : 0);
		break;
	}
	if (!r->lazy)
		ring_serve(r, 0);
	check_sent(r);
	ring_check_room(r);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	ring_side_open();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ring_run r;

	if (size < RING_HEAD)
		return 0;
	ring_begin(&r, data);
	check_sent(&r);
	data += RING_HEAD;
	size -= RING_HEAD;
	while (size >= 2) {
		uint32_t length = wire_get16(data) & 0xfff, times = data[0] & 0x10 ? TIMES : 1;

		length = length < size - 2 ? length : size - 2;
		for (; times; times--)
			record(&r, data[0] >> 5, data + 2, length);
		data += 2 + length;
		size -= 2 + length;
	}
	ring_end(&r);
	return 0;
}
