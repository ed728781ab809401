/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_pace.c - turns of frames at a rate (eth/pace.c). */
#include "dapl/soft/eth/pace.h"
#include "test/unit/unit.h"

#define SECOND 1000000000ull
enum { FRAME = 1514 };

/* Sends frames as soon as they may leave, each served `late` after its time. Returns when the last one left. */
static uint64_t send_all(struct pace *pace, uint64_t now, unsigned frames, uint64_t bytes, uint64_t late)
{
	for (unsigned i = 0; i < frames; i++) {
		uint64_t due = pace_due(pace);
		bool waited = due > now;

		if (waited)
			now = due + late;
		pace_charge(pace, now, bytes, waited || i ? UINT64_MAX : 0);
	}
	return now;
}

UNIT_TEST(without_a_rate_nothing_waits)
{
	struct pace pace = { .rate = 0 };

	pace_set(&pace, 0, 0);
	assert_true(send_all(&pace, SECOND, 1000, FRAME, 0) == SECOND);
}

UNIT_TEST(the_rate_is_exact)
{
	static const uint64_t rates[] = { 8000, 1000000, 999999937, 40000000000, 100000000000 };
	struct pace pace;

	for (unsigned i = 0; i < sizeof rates / sizeof *rates; i++) {
		uint64_t expected = 1000ull * FRAME * 8 * SECOND / rates[i], took;

		pace = (struct pace){ .rate = 0 };
		pace_set(&pace, rates[i], 0);
		took = send_all(&pace, SECOND, 1001, FRAME, 0) - SECOND;
		assert_true(took >= expected - 1 && took <= expected + 1);
	}
}

UNIT_TEST(a_long_delay_is_no_claim)
{
	struct pace pace = { .rate = 0 };

	pace_set(&pace, 1000000, 0);
	pace_charge(&pace, SECOND, FRAME, 0);
	pace_charge(&pace, 60 * SECOND, FRAME, UINT64_MAX);
	assert_true(pace_due(&pace) > 60 * SECOND);	/* 12 ms later, less the 10 that are made up for */
}

UNIT_TEST(no_more_is_made_up_for_than_the_delay)
{
	struct pace pace = { .rate = 0 };

	pace_set(&pace, 8 * FRAME * 1000, 0);		/* 1 ms a frame */
	pace_charge(&pace, SECOND, FRAME, 3000000);
	assert_true(pace_due(&pace) == SECOND - 2000000);
}

UNIT_TEST(a_pause_allows_one_frame_or_the_burst)
{
	struct pace pace = { .rate = 0 };
	uint64_t now = SECOND;
	unsigned at_once = 0;

	pace_set(&pace, 1000000, 0);
	pace_charge(&pace, now, FRAME, 0);
	assert_true(pace_due(&pace) > now);
	pace_set(&pace, 1000000, 4 * FRAME);
	for (now = 100 * SECOND; pace_due(&pace) <= now; at_once++)
		pace_charge(&pace, now, FRAME, 0);
	assert_int_equal(at_once, 5);
}

UNIT_MAIN(NULL, NULL)
