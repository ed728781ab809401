/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_proto_table.c - which of two protocols is faster, from durations that the test gives: when each is tried,
 * what is kept of a measurement, series of requests. */
#include "dapl/soft/shm/proto_table.h"
#include "test/unit/unit.h"

enum { K = 1024, HALF = PROTO_TRIES / 2 };
#define MINUTE (60 * 1000000000ull)
#define NEVER (UINT64_MAX - 1)
static const uint64_t lengths[] = { 8 * K, 16 * K - 1, 100 * K, 1024 * K, PROTO_MAX };
enum { LENGTHS = sizeof lengths / sizeof *lengths };

static uint64_t now_ns;

UNIT_FIXTURE(at_noon) { now_ns = 43200000000000; }

/* Makes `n` requests, which take `ring` through the ring and `kernel` by CMA; NEVER: they are not
 * measured. Returns how many used CMA. */
static unsigned requests(struct shm_proto_table *table, uint64_t length, unsigned n, uint64_t ring,
			 uint64_t kernel)
{
	unsigned by_kernel = 0;

	for (unsigned i = 0; i < n; i++) {
		bool trying;
		enum shm_proto proto = proto_choose(table, length, now_ns, &trying);
		uint64_t ns = proto == PROTO_CMA ? kernel : ring;

		assert_true(proto == PROTO_CMA || proto == PROTO_COPY);
		by_kernel += proto == PROTO_CMA;
		if (trying && ns != NEVER)
			proto_learn(table, proto, length, ns);
	}
	return by_kernel;
}

UNIT_TEST_WITH(both_protocols_are_tried_equally_often, at_noon, NULL)
{
	for (int i = 0; i < LENGTHS; i++) {
		struct shm_proto_table table = { 0 };

		assert_int_equal(requests(&table, lengths[i], PROTO_TRIES, 1000, 1400), HALF);
		assert_int_equal(proto_known(&table, lengths[i], now_ns), PROTO_UNDECIDED);
	}
}

/* The ring's bandwidth depends on how many requests are outstanding. */
UNIT_TEST_WITH(protocol_is_tried_several_times_in_succession, at_noon, NULL)
{
	struct shm_proto_table table = { 0 };

	assert_int_equal(requests(&table, 65536, PROTO_SERIES, 1, 1), PROTO_SERIES);
	assert_int_equal(requests(&table, 65536, PROTO_SERIES, 1, 1), 0);
	assert_int_equal(requests(&table, 65536, PROTO_SERIES, 1, 1), PROTO_SERIES);
}

UNIT_TEST_WITH(faster_protocol_is_selected, at_noon, NULL)
{
	for (int i = 0; i < LENGTHS; i++)
		for (int fast = 0; fast < 2; fast++) {
			struct shm_proto_table table = { 0 };
			uint64_t ring = fast ? 3000 : 2000, kernel = fast ? 2000 : 3000;

			requests(&table, lengths[i], PROTO_TRIES, ring, kernel);
			assert_int_equal(requests(&table, lengths[i], 100000, ring, kernel), fast ? 100000 : 0);
			assert_int_equal(proto_known(&table, lengths[i], now_ns), fast ? PROTO_CMA : PROTO_COPY);
		}
}

/* The slower protocol is used only for half of the first requests. */
UNIT_TEST_WITH(much_faster_protocol_is_selected_early, at_noon, NULL)
{
	for (int fast = 0; fast < 2; fast++) {
		struct shm_proto_table table = { 0 };
		uint64_t ring = fast ? 3010 : 2000, kernel = fast ? 2000 : 3010;

		assert_int_equal(requests(&table, 65536, PROTO_CLEAR_TRIES, ring, kernel), PROTO_CLEAR_TRIES / 2);
		assert_int_equal(requests(&table, 65536, 1000, ring, kernel), fast ? 1000 : 0);
	}
}

UNIT_TEST_WITH(request_learns_that_it_is_measured, at_noon, NULL)
{
	struct shm_proto_table table = { 0 };
	unsigned measured = 0;

	for (int i = 0; i < 1000; i++) {
		bool trying;

		proto_learn(&table, proto_choose(&table, 65536, now_ns, &trying), 65536, 1000);
		measured += trying;
	}
	assert_int_equal(measured, PROTO_TRIES);
}

/* The ring needs no permission of the kernel. */
UNIT_TEST_WITH(ring_is_selected_if_both_are_equal, at_noon, NULL)
{
	struct shm_proto_table table = { 0 };

	requests(&table, 65536, PROTO_TRIES, 1000, 1000);
	assert_int_equal(requests(&table, 65536, 1, 1000, 1000), 0);
}

UNIT_TEST_WITH(both_protocols_are_tried_until_measured, at_noon, NULL)
{
	struct shm_proto_table table = { 0 };

	assert_int_equal(requests(&table, 65536, 1024, NEVER, 1000), 512);
	requests(&table, 65536, 2 * PROTO_SERIES, 3000, 2000);
	assert_int_equal(requests(&table, 65536, 1000, 3000, 2000), 1000);
}

UNIT_TEST_WITH(each_size_has_its_own_selection, at_noon, NULL)
{
	struct shm_proto_table table = { 0 };

	requests(&table, 8 * K, PROTO_TRIES, 1000, 3000);
	requests(&table, 1024 * K, PROTO_TRIES, 300000, 100000);
	assert_int_equal(requests(&table, 8 * K, 640, 1000, 3000), 0);
	assert_int_equal(requests(&table, 16 * K - 1, 640, 1000, 3000), 0);
	assert_int_equal(requests(&table, 1024 * K, 640, 300000, 100000), 640);
	assert_int_equal(proto_known(&table, 16 * K, now_ns), PROTO_UNDECIDED);
}

/* Lengths within a class differ by up to a factor of two. */
UNIT_TEST_WITH(times_are_compared_by_the_byte, at_noon, NULL)
{
	struct shm_proto_table table = { 0 };

	for (int i = 0; i < PROTO_TRIES; i++) {
		bool trying;
		bool cma = proto_choose(&table, 64 * K, now_ns, &trying) == PROTO_CMA;

		proto_learn(&table, cma ? PROTO_CMA : PROTO_COPY, cma ? 100 * K : 64 * K, cma ? 1500 : 1200);
	}
	assert_int_equal(requests(&table, 64 * K, 1, 1, 1), 1);
}

/* A thread was preempted, in all measurements but one. */
UNIT_TEST_WITH(shortest_time_of_a_measurement_counts, at_noon, NULL)
{
	struct shm_proto_table table = { 0 };

	requests(&table, 65536, PROTO_TRIES / 2, 3000, 4000);
	requests(&table, 65536, 1, 3000, 2000);
	requests(&table, 65536, PROTO_TRIES / 2 - 1, 3000, 4000);
	assert_int_equal(requests(&table, 65536, 100, 3000, 2000), 100);
}

UNIT_TEST_WITH(changed_speed_is_noticed_after_a_minute, at_noon, NULL)
{
	struct shm_proto_table table = { 0 };

	requests(&table, 65536, PROTO_TRIES, 3000, 2000);
	assert_int_equal(requests(&table, 65536, 1000, 3000, 4000), 1000);
	now_ns += MINUTE / 2;
	assert_int_equal(requests(&table, 65536, 1000, 3000, 4000), 1000);
	now_ns += MINUTE;
	assert_int_equal(proto_known(&table, 65536, now_ns), PROTO_UNDECIDED);
	assert_int_equal(requests(&table, 65536, PROTO_TRIES, 3000, 4000), HALF);
	assert_int_equal(requests(&table, 65536, 1000, 3000, 4000), 0);
}

/* For a year no large request was made. */
UNIT_TEST_WITH(old_selection_is_not_kept, at_noon, NULL)
{
	struct shm_proto_table table = { 0 };

	requests(&table, 65536, PROTO_TRIES + 1, 3000, 2000);
	now_ns += 365 * 24 * 60 * MINUTE;
	assert_int_equal(proto_known(&table, 65536, now_ns), PROTO_UNDECIDED);
}

/* The program always has requests outstanding, so that none can be measured. */
UNIT_TEST_WITH(selection_remains_if_nothing_can_be_measured, at_noon, NULL)
{
	struct shm_proto_table table = { 0 };

	requests(&table, 65536, PROTO_TRIES + 1, 3000, 2000);
	now_ns += 2 * MINUTE;
	assert_int_equal(requests(&table, 65536, PROTO_TRIES, NEVER, 4000), HALF);
	assert_int_equal(requests(&table, 65536, 1000, NEVER, NEVER), 1000);
}

UNIT_TEST_WITH(late_result_does_not_count_for_the_next_measurement, at_noon, NULL)
{
	struct shm_proto_table table = { 0 };

	requests(&table, 65536, PROTO_TRIES + 1, 3000, 2000);
	proto_learn(&table, PROTO_COPY, 65536, 1);
	now_ns += 2 * MINUTE;
	requests(&table, 65536, PROTO_TRIES, 3000, 2000);
	assert_int_equal(requests(&table, 65536, 1, 3000, 2000), 1);
}

UNIT_TEST_WITH(failed_copy_makes_requests_take_the_ring_for_a_minute, at_noon, NULL)
{
	struct shm_proto_table table = { 0 };

	requests(&table, 65536, PROTO_TRIES + 1, 3000, 2000);
	proto_avoid_cma(&table, 65536, now_ns);
	assert_int_equal(requests(&table, 65536, 1000, 3000, 2000), 0);
	now_ns += 2 * MINUTE;
	requests(&table, 65536, PROTO_TRIES, 3000, 2000);
	assert_int_equal(requests(&table, 65536, 1000, 3000, 2000), 1000);
}

UNIT_TEST(series_is_measured_as_one_request)
{
	struct proto_series s = { 0 };

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

UNIT_TEST(series_may_be_short)
{
	struct proto_series s = { 0 };

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

UNIT_MAIN(NULL, NULL)
