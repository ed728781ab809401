/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tap_records.c - see tap_records.h. */
#include "dapl/core/base/tap.h"
#include "test/unit/tap_records.h"
#include "test/unit/unit.h"

static struct tap_ring *ring;
static uint64_t position;		/* of the next entry */
static uint8_t flags;			/* of the connection whose ends came last */
struct tap_seen seen;

void tap_records_begin(uint32_t snap)
{
	uint64_t began;
	int fd = dapl_tap_begin(snap, &began);

	assert_true(fd >= 0);
	if (!ring)
		ring = mmap(NULL, TAP_HEAD + TAP_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(ring != MAP_FAILED);
	position = 0;
}

void tap_records_release(void)
{
	if (ring)
		munmap(ring, TAP_HEAD + TAP_SIZE);
	ring = NULL;
	dapl_tap_release();
}

/* Returns the next entry, or NULL if there is none. */
static const struct tap_entry *next_entry(void)
{
	const struct tap_entry *e = (const struct tap_entry *)((const char *)ring + TAP_HEAD + position % TAP_SIZE);

	if (position == ring->head)
		return NULL;
	assert_true(e->kind != TAP_FILL);	/* the cases record less */
	position += sizeof *e;
	if (e->kind != TAP_ENDS)
		position += tap_payload_size(e->op, e->message.captured);
	return e;
}

bool next_record(void)
{
	const struct tap_entry *e;
	uint32_t captured;

	seen.first = false;
	while ((e = next_entry()) && (e->state == TAP_VOID || e->kind == TAP_ENDS))
		if (e->kind == TAP_ENDS) {
			seen.first = true;
			seen.ends = e->ends;
			flags = e->flags;
		}
	if (!e)
		return false;
	seen.entry = *e;
	seen.entry.flags |= flags;
	captured = e->message.captured;
	assert_true(captured < sizeof seen.payload);
	memset(seen.payload, 0, sizeof seen.payload);
	memcpy(seen.payload, tap_payload_size(e->op, captured) ? (const void *)(e + 1) : e->message.payload, captured);
	return true;
}

void is_recorded(enum tap_kind kind, enum tap_op op, uint32_t length, const char *payload)
{
	assert_true(next_record());
	assert_int_equal(seen.entry.kind, kind);
	assert_int_equal(seen.entry.op, op);
	assert_int_equal(seen.entry.message.length, length);
	assert_int_equal(seen.entry.message.captured, strlen(payload));
	assert_string_equal(seen.payload, payload);
	assert_int_not_equal(seen.entry.time, 0);
}
