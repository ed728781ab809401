/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_datperf_stats.c - percentiles and histograms of tools/datperf/stats.c. */
#include "tools/datperf/stats.h"
#include "test/unit/unit.h"

UNIT_TEST(percentiles_are_nearest_ranks)
{
	double times[1000];
	struct stats s;

	for (int i = 0; i < 1000; i++)
		times[i] = (i * 7 + 3) % 1000 + 1;	/* 1 to 1000, in another order */
	s = stats_of(times, 1000);
	assert_int_equal(s.count, 1000);
	assert_true(s.min == 1 && s.max == 1000);
	assert_true(s.median == 501 && s.p99 == 991 && s.p999 == 1000);
	assert_true(s.mean > 500.4 && s.mean < 500.6);
}

UNIT_TEST(one_time_is_all_percentiles)
{
	double time = 4;
	struct stats s = stats_of(&time, 1);

	assert_true(s.min == 4 && s.median == 4 && s.p99 == 4 && s.p999 == 4 && s.max == 4 && s.mean == 4);
}

UNIT_TEST(a_histogram_has_every_time_once)
{
	double times[100];
	struct histogram h;
	uint32_t sum = 0;

	for (int i = 0; i < 100; i++)
		times[i] = 1 + i * i;	/* up to 9802: beyond the last border */
	h = histogram_of(times, 100);
	for (unsigned i = 0; i < h.buckets; i++) {
		sum += h.counts[i];
		assert_true(!i || h.from[i] > h.from[i - 1]);
	}
	assert_int_equal(sum, 100);
	assert_int_equal(h.buckets, HISTOGRAM_BUCKETS);
	assert_true(h.counts[HISTOGRAM_BUCKETS - 1] > 0);
}

UNIT_TEST(times_of_zero_share_a_bucket)
{
	double times[3] = { 0, 0, 1 };
	struct histogram h = histogram_of(times, 3);

	assert_int_equal(h.buckets, 1);
	assert_int_equal(h.counts[0], 3);
}

UNIT_MAIN(NULL, NULL)
