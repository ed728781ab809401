/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_eth_clock.c - time stamps of a device as CLOCK_REALTIME: pairs of both clocks, the drift between them, a clock
 * that was set, and stamps of few bits. The clocks and the device are replaced here. */
#include "dapl/verbs/eth_clock.h"
#include "dapl/verbs/hw.h"
#include "test/unit/unit.h"

#define SECOND 1000000000ll		/* ns */
#define CYCLES_OF_SECOND 500000000ll	/* 500 MHz: a cycle is 2 ns */

static struct dapl_device dev;
static struct hw_eth_device eth;
static struct verbs_context verbs;

static uint64_t monotonic, realtime, cycles;
static uint64_t reading_takes;		/* ns of CLOCK_REALTIME */
static int reads, read_error;
static bool no_raw_clock;

REPLACE(clock_gettime)
int __wrap_clock_gettime(clockid_t id, struct timespec *now)
{
	uint64_t ns = id == CLOCK_REALTIME ? realtime : monotonic;

	assert_true(id == CLOCK_REALTIME || id == CLOCK_MONOTONIC);
	*now = (struct timespec){ (time_t)(ns / SECOND), (long)(ns % SECOND) };
	return 0;
}

static int query_rt_values(struct ibv_context *of, struct ibv_values_ex *values)
{
	assert_ptr_equal(of, &verbs.context);
	assert_int_equal(values->comp_mask, IBV_VALUES_MASK_RAW_CLOCK);
	reads++;
	realtime += reading_takes;
	if (no_raw_clock)
		values->comp_mask = 0;
	values->raw_clock = (struct timespec){ (time_t)(cycles / SECOND), (long)(cycles % SECOND) };
	return read_error;
}

UNIT_FIXTURE(begin)
{
	verbs = (struct verbs_context){ .sz = sizeof verbs, .query_rt_values = query_rt_values,
		.context = { .abi_compat = __VERBS_ABI_IS_EXTENDED } };
	dev = (struct dapl_device){ .verbs = &verbs.context, .eth = &eth };
	eth = (struct hw_eth_device){ .dev = &dev, .caps = { .core_khz = 500000, .stamp_mask = ~(uint64_t)0 } };
	dapl_mutex_init(&eth.lock, RANK_VERBS_ETH_DEVICE);
	hw_eth_clock_init(&eth);
	monotonic = 5 * SECOND;
	realtime = 1700000000 * SECOND;
	cycles = 12345 * SECOND;
	reading_takes = 0;
	reads = read_error = 0;
	no_raw_clock = false;
}

/* Time passes, of which CLOCK_REALTIME counts `more` ns more than it was. */
static void pass(int64_t ns, int64_t more)
{
	monotonic += (uint64_t)ns;
	realtime += (uint64_t)(ns + more);
	cycles += (uint64_t)(ns / 2);
}

/* The time of a stamp, after that of the last pair. */
static int64_t after_pair(uint64_t stamp)
{
	return (int64_t)(hw_eth_clock_convert(&eth, stamp) - eth.clock.realtime_ns);
}

#define TEST(name) UNIT_TEST_WITH(name, begin, NULL)

TEST(clock_has_a_frequency_and_stamps)
{
	assert_true(hw_eth_clock_works(&eth));
	eth.caps.stamp_mask = 0;
	hw_eth_clock_init(&eth);
	assert_false(hw_eth_clock_works(&eth));
	eth.caps.stamp_mask = 0xffff;
	eth.caps.core_khz = 0;
	hw_eth_clock_init(&eth);
	assert_false(hw_eth_clock_works(&eth));
}

/* --- stamps ----------------------------------------------------------------------------------------------------- */

TEST(first_stamp_has_the_nominal_frequency)
{
	const uint64_t start = realtime;

	assert_true(hw_eth_clock_convert(&eth, cycles) == start);
	assert_true(hw_eth_clock_convert(&eth, cycles + 100) == start + 200);
	assert_true(hw_eth_clock_convert(&eth, cycles - 100) == start - 200);
}

/* One of a device that counts since 1970 too. */
TEST(first_pair_has_no_drift)
{
	cycles = realtime / 2 + realtime / 20000;
	hw_eth_clock_convert(&eth, cycles);
	assert_int_equal(after_pair(cycles + CYCLES_OF_SECOND), SECOND);
}

/* The device may have read its clock at any time between. */
TEST(pair_lies_in_the_middle_of_its_reading)
{
	const uint64_t start = realtime;

	reading_takes = 100;
	assert_true(hw_eth_clock_convert(&eth, cycles) == start + 50);
}

TEST(pair_serves_for_a_second)
{
	hw_eth_clock_convert(&eth, cycles);
	pass(SECOND, 0);
	hw_eth_clock_convert(&eth, cycles);
	assert_int_equal(reads, 1);
	pass(2, 0);
	hw_eth_clock_convert(&eth, cycles);
	assert_int_equal(reads, 2);
	hw_eth_clock_convert(&eth, cycles);
	assert_int_equal(reads, 2);
}

TEST(stamps_follow_the_drift_of_the_last_two_pairs)
{
	static const int64_t drifts[] = { 100000, -100000, 499000 };	/* ns a second */

	for (size_t i = 0; i < sizeof drifts / sizeof *drifts; i++) {
		begin(state);
		hw_eth_clock_convert(&eth, cycles);
		pass(2 * SECOND, 2 * drifts[i]);
		assert_true(hw_eth_clock_convert(&eth, cycles) == realtime);
		assert_in_range(after_pair(cycles + CYCLES_OF_SECOND) - drifts[i], SECOND - 1, SECOND + 1);
		pass(2 * SECOND, 0);					/* and no other */
		hw_eth_clock_convert(&eth, cycles);
		assert_in_range(after_pair(cycles + CYCLES_OF_SECOND), SECOND - 1, SECOND + 1);
	}
}

/* Forward and back, by more than clocks drift. */
TEST(clock_that_was_set_is_no_drift)
{
	static const int64_t sets[] = { 600000, -600000, 3600 * SECOND, -3600 * SECOND };

	for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
		begin(state);
		hw_eth_clock_convert(&eth, cycles);
		pass(SECOND + 2, sets[i]);
		assert_true(hw_eth_clock_convert(&eth, cycles) == realtime);
		assert_int_equal(after_pair(cycles + CYCLES_OF_SECOND), SECOND);
	}
}

TEST(device_that_was_reset_starts_anew)
{
	hw_eth_clock_convert(&eth, cycles);
	pass(2 * SECOND, 0);
	cycles = 1000;
	assert_true(hw_eth_clock_convert(&eth, cycles) == realtime);
	assert_int_equal(after_pair(cycles + 100), 200);
}

/* The pair has all bits of the clock, a stamp those of the mask only. */
TEST(stamps_of_few_bits_wrap_around)
{
	eth.clock.mask = 0xffff;
	cycles = 0x7770010;
	hw_eth_clock_convert(&eth, cycles & 0xffff);
	assert_int_equal(after_pair(0x10), 0);
	assert_int_equal(after_pair(0x20), 0x20);
	assert_int_equal(after_pair(0xfff0), -0x40);
	assert_int_equal(after_pair(0x10 + 0x7fff), 2 * 0x7fff);
	assert_int_equal(after_pair(0x10 + 0x8000), -2 * 0x8000);
	cycles = 0x777fff0;
	pass(SECOND * 2, 0);
	cycles = 0x999fff0;
	hw_eth_clock_convert(&eth, 0);
	assert_int_equal(after_pair(0x10), 0x40);
}

TEST(time_is_unknown_while_the_device_cannot_be_read)
{
	for (int i = 0; i < 2; i++) {
		begin(state);
		read_error = i ? EIO : 0;
		no_raw_clock = !i;
		assert_true(hw_eth_clock_convert(&eth, cycles) == 0);
		assert_true(hw_eth_clock_convert(&eth, cycles) == 0);
		assert_int_equal(reads, 2);		/* it is tried again */
		read_error = 0;
		no_raw_clock = false;
		assert_true(hw_eth_clock_convert(&eth, cycles) == realtime);
	}
}

TEST(last_pair_serves_until_there_is_another)
{
	const uint64_t start = realtime, first = cycles;

	hw_eth_clock_convert(&eth, cycles);
	pass(3 * SECOND, 0);
	read_error = EIO;
	assert_true(hw_eth_clock_convert(&eth, first + 100) == start + 200);
	assert_int_equal(reads, 2);
}

/* --- both clocks for the consumer ------------------------------------------------------------------------------- */

TEST(reading_gives_both_clocks_and_how_far_apart)
{
	uint64_t device = 0, system = 0, error = 0;
	const uint64_t start = realtime;

	reading_takes = 101;
	assert_int_equal(hw_eth_clock_read(&dev, &device, &system, &error), 0);
	assert_true(device == 2 * cycles);
	assert_true(system == start + 51);
	assert_int_equal(error, 51);
}

TEST(clock_that_is_set_back_during_the_reading_gives_no_large_error)
{
	uint64_t device = 0, system = 0, error = 77;
	const uint64_t start = realtime;

	reading_takes = (uint64_t)-SECOND;
	assert_int_equal(hw_eth_clock_read(&dev, &device, &system, &error), 0);
	assert_true(system == start);
	assert_int_equal(error, 0);
}

TEST(refused_reading_gives_nothing)
{
	static const struct { bool no_eth, no_clock, no_raw; int error, result; } cases[] = {
		{ .no_eth = true, .result = EOPNOTSUPP },
		{ .no_clock = true, .result = EOPNOTSUPP },
		{ .no_raw = true, .result = EOPNOTSUPP },
		{ .error = EIO, .result = EIO },
		{ .error = -ENODEV, .result = ENODEV },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint64_t device = 1, system = 2, error = 3;

		begin(state);
		dev.eth = cases[i].no_eth ? NULL : &eth;
		eth.clock.khz = cases[i].no_clock ? 0 : 500000;
		no_raw_clock = cases[i].no_raw;
		read_error = cases[i].error;
		assert_int_equal(hw_eth_clock_read(&dev, &device, &system, &error), cases[i].result);
		assert_true(device == 1 && system == 2 && error == 3);
	}
}

UNIT_MAIN(NULL, NULL)
