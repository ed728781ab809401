/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ring_fuzz.c - any bytes as what a peer stores in the shared memory, and when this side
 * looks, posts and polls meanwhile, through the device's verbs with a real QP: nothing crashes
 * or reads beyond the memory, memory that the peer may not write stays as it is, everything
 * posted completes once, and what the device puts into its ring is well formed. All on one
 * thread; race_fuzz.c stores while the memory is being read. Inputs are those of ring_side.h. */
#include "test/fuzz/ring_side.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { REPEATED = 16, TIMES = 16 };	/* a flag of records, and how often they are played then */

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
			side_demand(slot->length > RING_CHUNK && slot->length <= RING_RNDV_MAX,
				    "a rendezvous of a wrong length");
		else
			side_demand(slot->length <= RING_CHUNK && (slot->length <= RING_INLINE ||
				    slot->at <= RING_BULK - slot->length), "a payload that lies elsewhere");
		r->over = slot->op == WIRE_TERMINATE;
	}
}

/* --- inputs ------------------------------------------------------------------------------ */

static void play(struct ring_run *r, const struct ring_record *record)
{
	ring_make_room(r);
	if (record->kind == ACT) {
		side_act(&r->s, record->bytes, record->length);
		check_sent(r);
		return;
	}
	if (record->kind == SERVE)
		ring_serve(r, record->length ? record->bytes[0] : 0);
	else
		ring_peer_act(r, record);
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
	struct ring_input input = { data, size };
	struct ring_record record;
	struct ring_run r;

	if (!ring_begin(&r, &input))
		return 0;
	check_sent(&r);
	while (ring_next(&input, &record)) {
		record.kind %= RING_KINDS;
		for (int i = record.flags & REPEATED ? TIMES : 1; i; i--)
			play(&r, &record);
	}
	ring_end(&r);
	return 0;
}
