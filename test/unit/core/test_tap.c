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

/* A message of `n` bytes on a connection whose addresses were given before, or are now. */
static bool put(enum tap_op op, uint32_t n)
{
	static char bytes[4096];
	const struct iovec pieces[2] = { { "head", n < 4 ? n : 4 }, { bytes, n < 4 ? 0 : n - 4 } };
	const struct tap_record record = { .time = 7, .qpn = 5, .op = op, .length = n, .captured = n, .word = 9,
		.memory = { .remote = 1, .stag = 2 }, .atomic = { .swap = 3 },
		.ends.local = { .family = 4, .port = 99 } };

	return dapl_tap_put(&record, &shown, pieces, &place);
}

static void an_entry_has_the_parts_of_its_operation(void **state)
{
	assert_true(put(TAP_SEND, 5));
	assert_int_equal(ring->magic, TAP_MAGIC);
	assert_int_equal(ring->began, began);
	assert_int_equal(at(0)->state, TAP_VALID);
	assert_int_equal(at(0)->parts, TAP_PART_ENDS);
	assert_int_equal(at(0)->size, sizeof(struct tap_entry) + sizeof(struct tap_ends) + 8);
	assert_int_equal(ring->head, at(0)->size);
	assert_int_equal(((struct tap_ends *)(at(0) + 1))->local.port, 99);
	assert_memory_equal((char *)(at(0) + 1) + sizeof(struct tap_ends), "head", 5);
	assert_true(put(TAP_WRITE, 0));
	assert_int_equal(at(place.at)->parts, TAP_PART_MEMORY);
	assert_int_equal(((struct tap_memory *)(at(place.at) + 1))->stag, 2);
	assert_true(put(TAP_CMP_SWAP, 0));
	assert_int_equal(at(place.at)->parts, TAP_PART_MEMORY | TAP_PART_ATOMIC);
	assert_int_equal(((struct tap_atomic *)((struct tap_memory *)(at(place.at) + 1) + 1))->swap, 3);
	assert_int_equal(dapl_tap_snap(), SNAP);
}

static void a_short_message_takes_one_cache_line(void **state)
{
	put(TAP_SEND, 8);
	assert_true(put(TAP_SEND, 8));
	assert_true(at(place.at)->size <= 64);
	assert_int_equal(at(place.at)->parts, 0);
}

static void a_refused_message_is_void(void **state)
{
	struct tap_place old;

	put(TAP_SEND, 8);
	dapl_tap_cancel(&place);
	assert_int_equal(at(0)->state, TAP_SKIP);
	old = place;
	end(state);
	begin(state);
	put(TAP_SEND, 8);
	dapl_tap_cancel(&old);	/* of another capture */
	assert_int_equal(at(0)->state, TAP_VALID);
}

static void each_capture_has_the_addresses_once(void **state)
{
	put(TAP_SEND, 0);
	assert_int_equal(shown, dapl_tap_capture());
	end(state);
	begin(state);
	assert_int_not_equal(shown, dapl_tap_capture());
	put(TAP_SEND, 0);
	assert_int_equal(at(0)->parts, TAP_PART_ENDS);
	put(TAP_SEND, 0);
	assert_int_equal(at(place.at)->parts, 0);
}

static void nothing_is_put_without_a_capture(void **state)
{
	dapl_tap_end();
	assert_false(put(TAP_SEND, 0));
	assert_int_equal(ring->head, 0);
	assert_int_equal(ring->lost, 0);
}

/* Fills the ring; returns the number of entries. */
static unsigned fill(uint32_t payload)
{
	unsigned n = 0;

	while (put(TAP_SEND, payload))
		n++;
	return n;
}

static void a_full_ring_counts_losses(void **state)
{
	uint32_t size = sizeof(struct tap_entry) + 1000;

	assert_int_equal(fill(1000), (TAP_SIZE - sizeof(struct tap_ends)) / size);
	assert_int_equal(ring->lost, 1);
	assert_false(put(TAP_SEND, 1000));
	assert_int_equal(ring->lost, 2);
}

static void addresses_that_were_lost_come_again(void **state)
{
	fill(1000);
	shown = 0;
	assert_false(put(TAP_SEND, 1000));
	assert_int_equal(shown, 0);
	ring->tail = ring->head;
	assert_true(put(TAP_SEND, 1000));
	assert_int_equal(at(place.at)->parts, TAP_PART_ENDS);
}

static void an_entry_does_not_wrap(void **state)
{
	uint64_t position = 0;
	unsigned skipped = 0, valid = 0;

	for (int round = 0; round < 3; round++) {
		fill(1000);
		for (; position != ring->head; position += at(position)->size) {
			assert_true(at(position)->size <= TAP_SIZE - position % TAP_SIZE);
			skipped += at(position)->state == TAP_SKIP;
			valid += at(position)->state == TAP_VALID;
		}
		ring->tail = position;
	}
	assert_true(skipped >= 2);
	assert_true(valid > 2 * (TAP_SIZE / (sizeof(struct tap_entry) + 1000) - 2));
}

static void a_wrong_client_only_loses_messages(void **state)
{
	fill(1000);
	ring->tail = 1234567890;	/* never written */
	assert_false(put(TAP_SEND, 1000));
	ring->tail = ring->head;
	ring->head = 77;		/* the program's own position counts */
	ring->size = 1;
	assert_true(put(TAP_SEND, 1000));
	assert_true(ring->head > TAP_SIZE - 2000);
}

static void a_child_records_nothing(void **state)
{
	pid_t child = fork_child();

	if (!child)
		_exit(put(TAP_SEND, 0));
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
		cmocka_unit_test_setup_teardown(an_entry_has_the_parts_of_its_operation, begin, end),
		cmocka_unit_test_setup_teardown(a_short_message_takes_one_cache_line, begin, end),
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
