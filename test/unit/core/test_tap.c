/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_tap.c - the ring of captured messages, read as a client reads it. */
#include "dapl/core/base/tap.h"
#include <sys/resource.h>
#include "test/unit/child.h"
#include "test/unit/unit.h"

enum { SNAP = 100 };

static struct tap_ring *ring;
static uint64_t began;

static int begin(void **state)
{
	int fd = dapl_tap_begin(SNAP, &began);

	if (fd < 0)
		return -1;
	ring = mmap(NULL, TAP_HEAD + TAP_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return ring == MAP_FAILED;
}

UNIT_FIXTURE(end)
{
	munmap(ring, TAP_HEAD + TAP_SIZE);
	dapl_tap_end();
	dapl_tap_release();
}

static struct tap_entry *at(uint64_t position)
{
	return (struct tap_entry *)((char *)ring + TAP_HEAD + position % TAP_SIZE);
}

static uint32_t shown;
static struct tap_place place;
static struct tap_ends ends = { .local = { .family = 4, .port = 99 } };

/* A send of `n` bytes on a connection whose ends were shown before, or are now. */
static bool put(uint32_t n)
{
	uint32_t behind = tap_payload_size(TAP_SEND, n);
	struct tap_entry *entry;

	if (!dapl_tap_is_shown(shown) && !dapl_tap_show(5, TAP_ACTIVE, &ends, &shown))
		return false;
	entry = dapl_tap_reserve(TAP_LINE + behind, shown);
	if (!entry)
		return false;
	*entry = (struct tap_entry){ .time = dapl_tap_now(), .qpn = 5, .state = TAP_VALID, .kind = TAP_POSTED,
		.op = TAP_SEND, .message = { .length = n, .captured = n } };
	memset(behind ? (uint8_t *)(entry + 1) : entry->message.payload, 'x', n);
	place = dapl_tap_publish(TAP_LINE + behind);
	return true;
}

static void an_entry_has_whole_lines(void **state)
{
	assert_true(put(TAP_INLINE));
	assert_int_equal(ring->magic, TAP_MAGIC);
	assert_int_equal(ring->began, began);
	assert_int_equal(at(0)->kind, TAP_ENDS);
	assert_int_equal(at(0)->qpn, 5);
	assert_int_equal(at(0)->flags, TAP_ACTIVE);
	assert_int_equal(at(0)->ends.local.port, 99);
	assert_int_equal(place.at, TAP_LINE);
	assert_int_equal(ring->head, 2 * TAP_LINE);
	assert_memory_equal(at(TAP_LINE)->message.payload, "xxxxxxxxxxxxxxxxxxxxxxxx", TAP_INLINE);
	assert_true(put(TAP_INLINE + 1));
	assert_int_equal(ring->head, 4 * TAP_LINE);
	assert_true(put(TAP_LINE + 1));
	assert_int_equal(ring->head, 7 * TAP_LINE);
	assert_int_equal(dapl_tap_snap(), SNAP);
}

/* The client converts the time of entries by the clock that the ring names. */
static void an_entry_has_the_time_of_the_clock(void **state)
{
	uint64_t before = dapl_tap_now(), after;

	put(0);
	after = dapl_tap_found();
	assert_int_equal(ring->clock, ticks_are_usable() ? TAP_TICKS : TAP_REALTIME);
	assert_true(before <= at(place.at)->time && at(place.at)->time <= after);
}

static void a_refused_message_is_void(void **state)
{
	struct tap_place old;

	put(8);
	dapl_tap_cancel(&place);
	assert_int_equal(at(place.at)->state, TAP_VOID);
	old = place;
	end(state);
	begin(state);
	put(8);
	dapl_tap_cancel(&old);	/* of another capture */
	assert_int_equal(old.at, place.at);
	assert_int_equal(at(place.at)->state, TAP_VALID);
}

static void each_capture_has_the_addresses_once(void **state)
{
	put(0);
	assert_true(dapl_tap_is_shown(shown));
	end(state);
	assert_false(dapl_tap_is_shown(shown));
	begin(state);
	assert_false(dapl_tap_is_shown(shown));
	put(0);
	assert_int_equal(at(0)->kind, TAP_ENDS);
	put(0);
	assert_int_equal(ring->head, 3 * TAP_LINE);
}

static void nothing_is_put_without_a_capture(void **state)
{
	uint64_t before;

	put(0);
	before = ring->head;
	dapl_tap_end();
	assert_null(dapl_tap_reserve(TAP_LINE, shown));
	assert_false(put(0));
	assert_int_equal(ring->head, before);
	assert_int_equal(ring->lost, 0);
}

/* Fills the ring; returns the number of entries. */
static unsigned fill(uint32_t payload)
{
	unsigned n = 0;

	while (put(payload))
		n++;
	return n;
}

enum { PAYLOAD = 1000, ENTRY = TAP_LINE + 1024 };	/* bytes */

static void a_full_ring_counts_losses(void **state)
{
	assert_int_equal(fill(PAYLOAD), (TAP_SIZE - TAP_LINE) / ENTRY);
	assert_int_equal(ring->lost, 1);
	assert_false(put(PAYLOAD));
	assert_int_equal(ring->lost, 2);
	assert_true(put(0));		/* there is room for this one */
	assert_int_equal(ring->lost, 2);
}

static void addresses_that_were_lost_come_again(void **state)
{
	while (put(0))
		;
	shown = 0;
	assert_false(put(0));
	assert_int_equal(shown, 0);
	assert_int_equal(ring->lost, 2);
	ring->tail = ring->head;
	assert_true(put(0));
	assert_int_equal(at(place.at - TAP_LINE)->kind, TAP_ENDS);
}

static void an_entry_does_not_wrap(void **state)
{
	uint64_t position = 0;
	unsigned fills = 0, messages = 0;

	for (int round = 0; round < 3; round++) {
		fill(PAYLOAD);
		while (position != ring->head) {
			uint64_t before_end = TAP_SIZE - position % TAP_SIZE;
			const struct tap_entry *e = at(position);

			if (e->kind == TAP_FILL) {
				assert_int_equal(e->state, TAP_VOID);
				fills++;
				position += before_end;
			} else {
				assert_true(e->kind == TAP_ENDS || ENTRY <= before_end);
				messages += e->kind == TAP_POSTED;
				position += e->kind == TAP_ENDS ? TAP_LINE : ENTRY;
			}
		}
		ring->tail = position;
	}
	assert_int_equal(fills, 2);
	assert_true(messages > 2 * (TAP_SIZE / ENTRY - 2));
}

static void a_wrong_client_only_loses_messages(void **state)
{
	fill(PAYLOAD);
	ring->tail = 1234567890;	/* never written */
	assert_false(put(PAYLOAD));
	ring->tail = ring->head;
	ring->head = 77;		/* the program's own position counts */
	ring->size = 1;
	assert_true(put(PAYLOAD));
	assert_true(ring->head > TAP_SIZE - 2000);
}

static void a_child_records_nothing(void **state)
{
	pid_t child = fork_child();

	if (!child)
		_exit(put(0));
	expect_success(child);
	assert_int_equal(ring->head, 0);
}

/* The program goes on, without a signal. */
static void ring_beyond_the_limit_of_files_is_an_error(void **state)
{
	struct rlimit before, limit;

	getrlimit(RLIMIT_FSIZE, &before);
	limit = (struct rlimit){ TAP_SIZE, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(dapl_tap_begin(SNAP, &began), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ring_beyond_the_limit_of_files_is_an_error),	/* first: it makes the ring */
		cmocka_unit_test_setup_teardown(an_entry_has_whole_lines, begin, end),
		cmocka_unit_test_setup_teardown(an_entry_has_the_time_of_the_clock, begin, end),
		cmocka_unit_test_setup_teardown(a_refused_message_is_void, begin, end),
		cmocka_unit_test_setup_teardown(each_capture_has_the_addresses_once, begin, end),
		cmocka_unit_test_setup_teardown(nothing_is_put_without_a_capture, begin, end),
		cmocka_unit_test_setup_teardown(a_full_ring_counts_losses, begin, end),
		cmocka_unit_test_setup_teardown(addresses_that_were_lost_come_again, begin, end),
		cmocka_unit_test_setup_teardown(an_entry_does_not_wrap, begin, end),
		cmocka_unit_test_setup_teardown(a_wrong_client_only_loses_messages, begin, end),
		cmocka_unit_test_setup_teardown(a_child_records_nothing, begin, end),
	};

	dapl_tap_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
