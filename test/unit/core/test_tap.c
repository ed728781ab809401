/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_tap.c - the ring of captured messages, read as a client reads it. */
#include "dapl/core/base/tap.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

enum { SNAP = 100 };

static struct tap_ring *ring;
static uint64_t began;

static int begin(void **state)
{
	int fd = dapl_tap_begin(SNAP, &began);

	(void)state;
	if (fd < 0)
		return -1;
	ring = mmap(NULL, TAP_HEAD + TAP_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return ring == MAP_FAILED;
}

static int end(void **state)
{
	(void)state;
	munmap(ring, TAP_HEAD + TAP_SIZE);
	dapl_tap_end();
	dapl_tap_release();
	return 0;
}

static struct tap_record *at(uint64_t position)
{
	return (struct tap_record *)((char *)ring + TAP_HEAD + position % TAP_SIZE);
}

static void a_record_is_pending_until_it_is_committed(void **state)
{
	struct tap_record *record = dapl_tap_reserve(5);

	(void)state;
	assert_non_null(record);
	assert_int_equal(ring->magic, TAP_MAGIC);
	assert_int_equal(ring->began, began);
	assert_int_equal(ring->head, sizeof *record + 8);
	assert_int_equal(at(0)->state, TAP_PENDING);
	assert_int_equal(at(0)->size, sizeof *record + 8);
	assert_true(at(0)->time > 0);
	dapl_tap_commit(record, true);
	assert_int_equal(at(0)->state, TAP_VALID);
	record = dapl_tap_reserve(0);
	dapl_tap_commit(record, false);
	assert_int_equal(at(sizeof *record + 8)->state, TAP_SKIP);
	assert_int_equal(dapl_tap_snap(), SNAP);
}

static void nothing_is_reserved_without_a_capture(void **state)
{
	(void)state;
	dapl_tap_end();
	assert_null(dapl_tap_reserve(0));
	assert_int_equal(ring->head, 0);
	assert_int_equal(ring->lost, 0);
}

static void a_pending_record_delays_the_next_capture(void **state)
{
	struct tap_record *record = dapl_tap_reserve(0);
	uint64_t unused;

	(void)state;
	dapl_tap_end();
	assert_true(dapl_tap_begin(SNAP, &unused) < 0);
	dapl_tap_commit(record, true);
	assert_true(dapl_tap_begin(SNAP, &unused) >= 0);
	assert_int_equal(ring->head, 0);
}

/* Fills the ring; returns the number of records. */
static unsigned fill(uint32_t payload)
{
	struct tap_record *record;
	unsigned n = 0;

	while ((record = dapl_tap_reserve(payload))) {
		dapl_tap_commit(record, true);
		n++;
	}
	return n;
}

static void a_full_ring_counts_losses(void **state)
{
	uint32_t size = sizeof(struct tap_record) + 1000;

	(void)state;
	assert_int_equal(fill(1000), TAP_SIZE / size);
	assert_int_equal(ring->lost, 1);
	assert_null(dapl_tap_reserve(1000));
	assert_int_equal(ring->lost, 2);
}

static void a_record_does_not_wrap(void **state)
{
	uint64_t position = 0;
	unsigned skipped = 0, valid = 0;

	(void)state;
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
	assert_true(valid > 2 * (TAP_SIZE / (sizeof(struct tap_record) + 1000) - 2));
}

static void a_wrong_client_only_loses_records(void **state)
{
	(void)state;
	ring->tail = 12345678;	/* never written */
	assert_null(dapl_tap_reserve(0));
	ring->tail = 0;
	ring->head = 77;	/* the program's own position counts */
	ring->size = 1;
	dapl_tap_commit(dapl_tap_reserve(0), true);
	assert_int_equal(ring->head, sizeof(struct tap_record));
	assert_int_equal(at(0)->state, TAP_VALID);
}

static void a_child_records_nothing(void **state)
{
	int status;
	pid_t child = fork();

	(void)state;
	if (!child)
		_exit(dapl_tap_reserve(0) != NULL);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(ring->head, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_record_is_pending_until_it_is_committed, begin, end),
		cmocka_unit_test_setup_teardown(nothing_is_reserved_without_a_capture, begin, end),
		cmocka_unit_test_setup_teardown(a_pending_record_delays_the_next_capture, begin, end),
		cmocka_unit_test_setup_teardown(a_full_ring_counts_losses, begin, end),
		cmocka_unit_test_setup_teardown(a_record_does_not_wrap, begin, end),
		cmocka_unit_test_setup_teardown(a_wrong_client_only_loses_records, begin, end),
		cmocka_unit_test_setup_teardown(a_child_records_nothing, begin, end),
	};

	dapl_tap_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
