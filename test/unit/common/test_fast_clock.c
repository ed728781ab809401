/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The fast clock lies between two readings of CLOCK_REALTIME around it, but for its tolerance. A clock that is set
 * meanwhile, or a virtual machine that stops, may spoil a round. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <time.h>
#include <cmocka.h>
#include "common/fast_clock.h"

enum {
	READINGS = 300000,
	TOLERANCE_NS = 5000,		/* of pairs of readings, and of their rate within a millisecond */
	ROUNDS = 5,
};

/* How many of the readings are wrong. */
static unsigned count_wrong(void)
{
	unsigned wrong = 0;

	for (unsigned i = 0; i < READINGS; i++) {
		uint64_t before = clock_read_ns(CLOCK_REALTIME), is = fast_clock_realtime_ns(),
			 after = clock_read_ns(CLOCK_REALTIME);

		wrong += is + TOLERANCE_NS < before || is > after + TOLERANCE_NS;
	}
	return wrong;
}

static void *read_in_thread(void *unused)
{
	unsigned wrong = 1;

	(void)unused;
	for (unsigned round = 0; wrong && round < ROUNDS; round++)
		wrong = count_wrong();
	return (void *)(uintptr_t)wrong;
}

static void it_is_the_system_clock_in_each_thread(void **state)
{
	pthread_t threads[2];
	void *wrong;

	(void)state;
	fast_clock_init();
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, read_in_thread, NULL), 0);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(pthread_join(threads[i], &wrong), 0);
		assert_null(wrong);
	}
}

static void it_does_not_go_back(void **state)
{
	unsigned back = 1;

	(void)state;
	fast_clock_init();
	for (unsigned round = 0; back && round < ROUNDS; round++) {
		uint64_t before = 0;

		back = 0;
		for (unsigned i = 0; i < READINGS; i++) {
			uint64_t now = fast_clock_realtime_ns();

			back += now + 200 < before;	/* ns, of two pairs */
			before = now;
		}
	}
	assert_int_equal(back, 0);
}

static void it_is_right_after_a_pause(void **state)
{
	static const struct timespec pauses[] = { { 0, 3000000 }, { 1, 200000000 } };

	(void)state;
	fast_clock_init();
	for (unsigned i = 0; i < 2; i++) {
		count_wrong();
		nanosleep(&pauses[i], NULL);
		assert_null(read_in_thread(NULL));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_the_system_clock_in_each_thread),
		cmocka_unit_test(it_does_not_go_back),
		cmocka_unit_test(it_is_right_after_a_pause),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
