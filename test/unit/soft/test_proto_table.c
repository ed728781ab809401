/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_proto_table.c - which of two protocols is faster, from durations that the test gives: when each is tried,
 * what is kept of a measurement, series of requests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "dapl/soft/shm/proto_table.h"

enum { K = 1024 };
static const uint64_t lengths[] = { 8 * K, 16 * K - 1, 100 * K, 1024 * K, PROTO_MAX };
enum { LENGTHS = sizeof lengths / sizeof *lengths };

/* Makes `n` reads, which take `ring` through the ring and `kernel` by CMA. Returns how many
 * used CMA. */
static unsigned reads(struct shm_proto_table *table, uint64_t length, unsigned n, uint64_t ring,
		      uint64_t kernel)
{
	unsigned by_kernel = 0;

	for (unsigned i = 0; i < n; i++) {
		bool try;
		enum shm_proto proto = proto_choose(table, length, &try);

		assert_true(proto == PROTO_CMA || proto == PROTO_COPY);
		by_kernel += proto == PROTO_CMA;
		proto_learn(table, proto, length, proto == PROTO_CMA ? kernel : ring);
	}
	return by_kernel;
}

static void both_protocols_are_tried_in_turn(void **state)
{
	(void)state;
	for (int i = 0; i < LENGTHS; i++) {
		struct shm_proto_table table = { 0 };

		assert_int_equal(reads(&table, lengths[i], 16, 1000, 2000), 8);
	}
}

/* A protocol without measurements is tried. */
static void both_protocols_are_tried_until_measured(void **state)
{
	struct shm_proto_table table = { 0 };
	unsigned by_kernel = 0;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		bool try;

		if (proto_choose(&table, 65536, &try) != PROTO_CMA)
			continue;
		by_kernel++;
		proto_learn(&table, PROTO_CMA, 65536, 1000);
	}
	assert_int_equal(by_kernel, 500);
}

static void faster_protocol_is_selected(void **state)
{
	struct shm_proto_table table = { 0 };

	(void)state;
	for (int i = 0; i < LENGTHS; i++) {
		reads(&table, lengths[i], 16, 3000, 2000);
		assert_int_equal(reads(&table, lengths[i], 5120, 3000, 2000), 5100);
	}
}

/* The ring's bandwidth depends on how many requests are outstanding. */
static void ring_is_tried_several_times_in_a_row(void **state)
{
	struct shm_proto_table table = { 0 };

	(void)state;
	reads(&table, 65536, 1024, 3000, 2000);
	assert_int_equal(reads(&table, 65536, 4, 3000, 2000), 0);
	assert_int_equal(reads(&table, 65536, 4, 3000, 2000), 4);
	table = (struct shm_proto_table){ 0 };
	reads(&table, 65536, 1024, 2000, 3000);
	assert_int_equal(reads(&table, 65536, 4, 2000, 3000), 1);
}

static void trial_is_reported_to_the_request(void **state)
{
	struct shm_proto_table table = { 0 };
	unsigned tries = 0;

	(void)state;
	for (int i = 0; i < 2048; i++) {
		bool try;

		proto_learn(&table, proto_choose(&table, 65536, &try), 65536, 1000);
		tries += try;
	}
	assert_in_range(tries, 16 + 1, 16 + PROTO_SERIES);
}

static void each_length_has_its_own_selection(void **state)
{
	struct shm_proto_table table = { 0 };

	(void)state;
	reads(&table, 8 * K, 1000, 1000, 3000);
	reads(&table, 1024 * K, 1000, 300000, 100000);
	assert_true(reads(&table, 8 * K, 640, 1000, 3000) < 20);
	assert_true(reads(&table, 1024 * K, 640, 300000, 100000) > 620);
}

static void far_slower_protocol_is_tried_seldom(void **state)
{
	struct shm_proto_table table = { 0 };

	(void)state;
	reads(&table, 65536, 4096, 1000, 1000000000);
	assert_int_equal(reads(&table, 65536, 8192, 1000, 1000000000), 2);
}

/* A thread was preempted, in one of ten measurements. */
static void single_slow_measurement_is_ignored(void **state)
{
	struct shm_proto_table table = { 0 };
	unsigned by_kernel = 0;

	(void)state;
	reads(&table, 65536, 100, 3000, 2000);
	for (int i = 0; i < 100; i++) {
		by_kernel += reads(&table, 65536, 9, 3000, 2000);
		by_kernel += reads(&table, 65536, 1, 3000, 4000000);
	}
	assert_true(by_kernel > 950);
}

static void changed_speed_is_noticed(void **state)
{
	struct shm_proto_table table = { 0 };

	(void)state;
	reads(&table, 65536, 1000, 3000, 2000);
	reads(&table, 65536, 1000, 3000, 6000);
	assert_true(reads(&table, 65536, 640, 3000, 6000) < 20);
}

/* Makes `n` reads, some of which cannot be measured: the others are selected as before. */
static unsigned without_measure(struct shm_proto_table *table, unsigned n, uint64_t ring, uint64_t kernel)
{
	unsigned by_kernel = 0;

	for (unsigned i = 0; i < n; i++) {
		if (proto_is_cma(table, 65536))
			by_kernel++;
		else
			reads(table, 65536, 1, ring, kernel);
	}
	return by_kernel;
}

static void few_requests_are_measured_once_cma_is_faster(void **state)
{
	struct shm_proto_table slow = { 0 }, fast = { 0 };

	(void)state;
	assert_int_equal(without_measure(&fast, 16, 3000, 2000), 0);	/* both protocols are tried */
	assert_int_equal(without_measure(&fast, 3200, 3000, 2000), 3091);
	assert_int_equal(without_measure(&slow, 800, 2000, 3000), 0);
	assert_true(without_measure(&fast, 2000, 2000, 6000) < 1900);	/* CMA is no longer used */
	assert_int_equal(without_measure(&fast, 800, 2000, 6000), 0);
}

static void series_is_measured_as_one_request(void **state)
{
	struct proto_series s = { 0 };

	(void)state;
	assert_false(proto_series_join(&s, false, 500));		/* others are outstanding */
	assert_true(proto_series_join(&s, true, 1000));
	for (int i = 1; i < PROTO_SERIES; i++)
		assert_true(proto_series_join(&s, false, 2000));
	assert_false(proto_series_join(&s, false, 2000));
	for (int i = 1; i < PROTO_SERIES; i++)
		assert_false(proto_series_ends(&s, 100));
	assert_true(proto_series_ends(&s, 100));
	assert_int_equal(proto_series_share(&s, 100, 1000 + 40 * PROTO_SERIES), 40);
	assert_false(proto_series_join(&s, false, 9000));
	s = (struct proto_series){ .begun_ns = 1, .bytes = 4ull << 30 };
	assert_true(proto_series_share(&s, 4ull << 30, 60000000001) == 60000000000);	/* one minute */
}

static void series_may_be_short(void **state)
{
	struct proto_series s = { 0 };

	(void)state;
	assert_true(proto_series_join(&s, true, 1000));
	assert_true(proto_series_ends(&s, 100));
	assert_int_equal(proto_series_share(&s, 100, 1030), 30);
	assert_false(proto_series_join(&s, false, 1500));
	assert_true(proto_series_join(&s, true, 2000));
	assert_true(proto_series_join(&s, false, 2100));
	assert_false(proto_series_ends(&s, 300));
	assert_true(proto_series_ends(&s, 100));
	assert_int_equal(proto_series_share(&s, 100, 2400), 100);
	assert_false(proto_series_join(&s, false, 9000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_protocols_are_tried_in_turn),
		cmocka_unit_test(both_protocols_are_tried_until_measured),
		cmocka_unit_test(faster_protocol_is_selected),
		cmocka_unit_test(ring_is_tried_several_times_in_a_row),
		cmocka_unit_test(trial_is_reported_to_the_request),
		cmocka_unit_test(each_length_has_its_own_selection),
		cmocka_unit_test(far_slower_protocol_is_tried_seldom),
		cmocka_unit_test(single_slow_measurement_is_ignored),
		cmocka_unit_test(changed_speed_is_noticed),
		cmocka_unit_test(few_requests_are_measured_once_cma_is_faster),
		cmocka_unit_test(series_is_measured_as_one_request),
		cmocka_unit_test(series_may_be_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
