/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_change.c - a change and the threads that look at frames meanwhile. A thread that nothing stops would be through
 * within PAUSE_US; one that is slower hides an error, and fails no correct program. */
#include "dapl/softeth/change.h"
#include "test/unit/unit.h"

enum { PAUSE_US = 20000, INSTANT_NS = 123456789 };

static uint64_t from_ns;		/* atomic: what the change stores */
static uint64_t seen_ns;		/* atomic: what a thread read of it; 0: nothing yet */
static pthread_t thread;
static bool running, changing;		/* the thread; a change of the main thread */
static void *(*begun_at_clock)(void *);	/* a thread that is started when the clock is read */

static void start(void *(*run)(void *))
{
	assert_int_equal(pthread_create(&thread, NULL, run, NULL), 0);
	running = true;
	usleep(PAUSE_US);
}

static uint64_t seen(void) { return __atomic_load_n(&seen_ns, __ATOMIC_ACQUIRE); }

static void join(void)
{
	running = false;
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static uint64_t begin(void)
{
	changing = true;
	return change_begin();
}

static void end(void)
{
	changing = false;
	change_end();
}

REPLACE(clock_gettime)
int __wrap_clock_gettime(clockid_t id, struct timespec *now)
{
	assert_int_equal(id, CLOCK_REALTIME);	/* as time stamps of frames */
	if (begun_at_clock)
		start(begun_at_clock);
	begun_at_clock = NULL;
	*now = (struct timespec){ .tv_sec = 7, .tv_nsec = INSTANT_NS };
	return 0;
}

static void *look_at_frame(void *unused)
{
	change_wait();
	__atomic_store_n(&seen_ns, __atomic_load_n(&from_ns, __ATOMIC_RELAXED), __ATOMIC_RELEASE);
	return unused;
}

static void *change_once_more(void *unused)
{
	__atomic_store_n(&seen_ns, change_begin(), __ATOMIC_RELEASE);
	change_end();
	return unused;
}

UNIT_FIXTURE(set_up)
{
	from_ns = 1;
	seen_ns = 0;
	begun_at_clock = NULL;
}

/* A case that fails leaves no change that the next one would wait for. */
UNIT_FIXTURE(tear_down)
{
	if (changing)
		end();
	if (running)
		join();
}

UNIT_CASE(frames_are_not_held_up_without_a_change)
{
	look_at_frame(NULL);
	assert_int_equal(seen(), 1);
	begin();
	end();
	look_at_frame(NULL);
}

UNIT_CASE(instant_is_of_the_clock_of_time_stamps)
{
	assert_int_equal(begin(), 7000000000ull + INSTANT_NS);
	end();
}

UNIT_CASE(thread_that_sees_a_change_reads_its_times)
{
	begin();
	start(look_at_frame);
	assert_int_equal(seen(), 0);
	__atomic_store_n(&from_ns, 5, __ATOMIC_RELAXED);
	end();
	join();
	assert_int_equal(seen(), 5);
}

/* Else a thread could look at a frame of after the instant, and see no change. */
UNIT_CASE(change_is_announced_before_the_clock_is_read)
{
	begun_at_clock = look_at_frame;
	begin();
	assert_int_equal(seen(), 0);
	__atomic_store_n(&from_ns, 5, __ATOMIC_RELAXED);
	end();
	join();
	assert_int_equal(seen(), 5);
}

UNIT_CASE(changes_exclude_each_other)
{
	begin();
	start(change_once_more);
	assert_int_equal(seen(), 0);
	end();
	join();
	assert_int_not_equal(seen(), 0);
}

UNIT_MAIN(NULL, NULL)
