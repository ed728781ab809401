/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tap_records.c - see tap_records.h. */
#include "dapl/core/base/tap.h"
#include "test/unit/tap_records.h"
#include "test/unit/unit.h"

static struct tap_ring *ring;
static uint64_t position;		/* of the next entry */
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

static const char *take(const char *from, bool is_there, void *to, size_t size)
{
	memset(to, 0, size);
	if (is_there)
		memcpy(to, from, size);
	return is_there ? from + size : from;
}

bool next_record(void)
{
	const struct tap_entry *e;
	const char *at;

	do {
		if (position == ring->head)
			return false;
		e = (const struct tap_entry *)((const char *)ring + TAP_HEAD + position % TAP_SIZE);
		position += e->size;
	} while (e->state == TAP_SKIP);
	seen.entry = *e;
	at = take((const char *)(e + 1), e->parts & TAP_PART_MEMORY, &seen.memory, sizeof seen.memory);
	at = take(at, e->parts & TAP_PART_ATOMIC, &seen.atomic, sizeof seen.atomic);
	at = take(at, e->parts & TAP_PART_ENDS, &seen.ends, sizeof seen.ends);
	assert_true(e->captured < sizeof seen.payload);
	memset(seen.payload, 0, sizeof seen.payload);
	memcpy(seen.payload, at, e->captured);
	return true;
}

void is_recorded(enum tap_kind kind, enum tap_op op, uint32_t length, const char *payload)
{
	assert_true(next_record());
	assert_int_equal(seen.entry.kind, kind);
	assert_int_equal(seen.entry.op, op);
	assert_int_equal(seen.entry.length, length);
	assert_int_equal(seen.entry.captured, strlen(payload));
	assert_string_equal(seen.payload, payload);
	assert_int_not_equal(seen.entry.time, 0);
}
