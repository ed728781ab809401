/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* race_fuzz.c - a hostile peer that stores into the rings while this side reads them: a second thread
 * changes words of the memory back and forth, so a word may differ between two loads. Nothing
 * crashes or reads beyond the memory, memory that the peer may not write stays as it is, and
 * everything posted completes once. What changes, between which values, is the input's; when it
 * changes is chance, so an input is tried with several interleavings.
 *
 * Inputs are those of ring_side.h, with these records, too:
 *
 *   FLIP_SLOT   place and two values: a word of one of the peer's next slots changes
 *   FLIP_ANY    the same for a word of acknowledgements, bulk or fallback buffers
 *   FLIP_NONE   no word changes from now on */
#include "test/fuzz/ring_side.h"
#include <pthread.h>
#include <sched.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FLIP_SLOT = RING_KINDS, FLIP_ANY, FLIP_NONE };
enum { FLIPS = 16, LOOKS = 4, SLOT_WORDS = sizeof(struct ring_slot) / 4 };

/* --- the thread that writes ------------------------------------------------------------------ */

static struct flip {
	uint32_t *at, value[2];
} flips[FLIPS];
static unsigned flip_count;	/* those that the thread changes; it grows, or becomes 0 */
static bool flipping;		/* the thread is in flip_all() */

static void flip_all(void)
{
	unsigned count = __atomic_load_n(&flip_count, __ATOMIC_SEQ_CST);

	for (unsigned i = 0; i < 2 * count; i++)
		WRITE_ONCE(*flips[i / 2].at, flips[i / 2].value[i & 1]);
}

static void *keep_flipping(void *arg)
{
	(void)arg;
	for (;;) {
		__atomic_store_n(&flipping, true, __ATOMIC_SEQ_CST);
		flip_all();
		__atomic_store_n(&flipping, false, __ATOMIC_SEQ_CST);
		if (!__atomic_load_n(&flip_count, __ATOMIC_RELAXED))
			sched_yield();
	}
	return NULL;
}

/* Returns when the thread changes no word any more. */
static void flip_nothing(void)
{
	__atomic_store_n(&flip_count, 0, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&flipping, __ATOMIC_SEQ_CST))
		sched_yield();
}

/* --- records --------------------------------------------------------------------------------- */

static void add_flip(uint32_t *at, const uint8_t *p)
{
	struct flip *new = &flips[flip_count];

	if (flip_count == FLIPS)
		return;
	new->at = at;
	new->value[0] = wire_get32(p);
	new->value[1] = wire_get32(p + 4);
	__atomic_store_n(&flip_count, flip_count + 1, __ATOMIC_SEQ_CST);
}

/* p: which of the next slots, which of its words, two values. */
static void flip_slot(const struct ring_run *r, const uint8_t *p, uint32_t length)
{
	struct ring_slot *slot = ring_segment->memory->slot[ring_theirs(r)];

	if (length < 10)
		return;
	slot += (r->tail + p[0] % 8) % RING_SLOTS;
	add_flip((uint32_t *)slot + p[1] % SLOT_WORDS, p + 2);
}

static void flip_any(const uint8_t *p, uint32_t length)
{
	struct ring_memory *m = ring_segment->memory;
	const struct {
		void *at;
		uint32_t words;
	} areas[] = {
		{ m->ack, sizeof m->ack / 4 }, { m->bulk, sizeof m->bulk / 4 },
		{ m->fallback, sizeof m->fallback / 4 },
	}, *area;

	if (length < 11)
		return;
	area = &areas[p[0] % 3];
	add_flip((uint32_t *)area->at + wire_get16(p + 1) % area->words, p + 3);
}

static void look(struct ring_run *r, uint8_t how)
{
	for (int i = 0; i < LOOKS; i++)
		ring_serve(r, how);
}

static void play(struct ring_run *r, const struct ring_record *record)
{
	const uint8_t *p = record->bytes;

	ring_make_room(r);
	switch (record->kind) {
	case ACT:
		side_act(&r->s, p, record->length);
		return;
	case SERVE:
		look(r, record->length ? p[0] : 0);
		return;
	case FLIP_SLOT:
		flip_slot(r, p, record->length);
		return;
	case FLIP_ANY:
		flip_any(p, record->length);
		return;
	case FLIP_NONE:
		flip_nothing();
		return;
	}
	ring_peer_act(r, record);
	if (!r->lazy)
		look(r, 0);
	ring_check_room(r);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	pthread_t thread;

	(void)argc, (void)argv;
	ring_side_open();
	side_demand(!pthread_create(&thread, NULL, keep_flipping, NULL) && !pthread_detach(thread),
		    "no thread");
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ring_input input = { data, size };
	struct ring_record record;
	struct ring_run r;

	if (!ring_begin(&r, &input))
		return 0;
	while (ring_next(&input, &record))
		play(&r, &record);
	flip_nothing();
	ring_end(&r);
	return 0;
}
