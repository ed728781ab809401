/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_diag_limit.c - one line in five seconds for the same failure, and how many there were. The clock and
 * the timer are the test's. */
#include "dapl/core/base/diag_limit.h"
#include "dapl/core/base/service.h"
#include "test/unit/printed.h"
#include "test/unit/unit.h"

static uint64_t now_s;
static struct dapl_timer *timer;
static void (*fire)(struct dapl_timer *);

REPLACE(clock_gettime)
int __wrap_clock_gettime(clockid_t id, struct timespec *now)
{
	*now = (struct timespec){ .tv_sec = (time_t)now_s };
	return 0;
}

REPLACE(dapl_timer_start)
void __wrap_dapl_timer_start(struct dapl_timer *started, uint64_t delay_us, void (*call)(struct dapl_timer *))
{
	assert_int_equal(delay_us, 1000000);
	assert_null(timer);		/* it is not running */
	timer = started;
	fire = call;
}

/* Failures of one kind for each errno. */
struct failures {
	int err;
	unsigned count;
};

static void say(void *arg)
{
	const struct failures *failures = arg;
	struct dapl_diag diag = { .ia = "ia0", .what = DIAG_CONNECT, .cause = { .err = failures->err } };

	for (unsigned i = 0; i < failures->count; i++)
		dapl_diag_say(&diag);
}

static const char *said(int err, unsigned count) { return printed_by(say, &(struct failures){ err, count }); }

static void pass_seconds(void *seconds)
{
	for (unsigned i = 0; i < *(unsigned *)seconds; i++) {
		struct dapl_timer *fired = timer;

		now_s++;
		timer = NULL;
		if (fired)
			fire(fired);
	}
}

static const char *after_seconds(unsigned seconds) { return printed_by(pass_seconds, &seconds); }
static void flush(void *unused) { dapl_diag_flush(); }

UNIT_FIXTURE(set_up)
{
	log_init("t", NULL, NULL, NULL, 3);
	now_s += 100;
}

UNIT_FIXTURE(tear_down)
{
	after_seconds(2 * DIAG_WINDOW_S + 2);
	assert_null(timer);		/* it does not tick for nothing */
}

UNIT_CASE(end_of_the_window_tells_how_many_more)
{
	said(ECONNREFUSED, 4);
	assert_string_equal(after_seconds(DIAG_WINDOW_S - 1), "");
	assert_int_equal(times_in(after_seconds(1), ": 3 more like this\n"), 1);
}

/* Each window with repetitions is followed by another. */
UNIT_CASE(failures_that_go_on_are_told_each_window)
{
	said(ECONNREFUSED, 2);
	after_seconds(DIAG_WINDOW_S);
	assert_string_equal(said(ECONNREFUSED, 2), "");
	assert_int_equal(times_in(after_seconds(DIAG_WINDOW_S), ": 2 more like this\n"), 1);
}

UNIT_CASE(window_without_repetitions_ends)
{
	said(ECONNREFUSED, 1);
	assert_string_equal(after_seconds(DIAG_WINDOW_S), "");
	assert_int_equal(times_in(said(ECONNREFUSED, 1), "connection refused"), 1);
}

/* 32 kinds in a window: others are counted as one. */
UNIT_CASE(too_many_kinds_are_counted_together)
{
	for (int err = 1; err <= 32; err++)
		said(err, 1);
	assert_string_equal(said(ECONNREFUSED, 2), "");
	assert_string_equal(said(ETIMEDOUT, 1), "");
	assert_int_equal(times_in(after_seconds(1), "other failed connections: 3 more like this\n"), 1);
}

UNIT_CASE(window_that_is_over_makes_room)
{
	for (int err = 1; err <= 32; err++)
		said(err, 1);
	now_s += DIAG_WINDOW_S;		/* the timer is late */
	assert_int_equal(times_in(said(ECONNREFUSED, 1), "connection refused"), 1);
}

static const char *kind_of_line;

static bool note_kind(const struct log_message *message)
{
	kind_of_line = message->kind ? message->kind : "none";
	return false;
}

static void say_of_endpoint(void *ep)
{
	struct dapl_diag diag = { .ia = "ia0", .what = DIAG_CONNECT, .ep = ep, .cause = { .err = ECONNREFUSED } };

	dapl_diag_say(&diag);
	dapl_diag_say(&diag);
}

/* A program that reports failures of its endpoints itself takes the counts, too. */
UNIT_CASE(count_is_about_what_the_line_is_about)
{
	int ep;

	log_set_handler(note_kind);
	printed_by(say_of_endpoint, &ep);
	assert_string_equal(kind_of_line, "ep");
	kind_of_line = NULL;
	assert_int_equal(times_in(printed_by(flush, NULL), ": 1 more like this\n"), 1);
	assert_string_equal(kind_of_line, "ep");
	after_seconds(2 * DIAG_WINDOW_S + 2);
	printed_by(say_of_endpoint, NULL);
	assert_string_equal(kind_of_line, "none");
	kind_of_line = NULL;
	printed_by(flush, NULL);
	assert_string_equal(kind_of_line, "none");
	log_set_handler(NULL);
}

UNIT_CASE(flush_tells_at_once)
{
	said(ECONNREFUSED, 3);
	assert_int_equal(times_in(printed_by(flush, NULL), ": 2 more like this\n"), 1);
	assert_string_equal(printed_by(flush, NULL), "");
	assert_string_equal(said(ECONNREFUSED, 1), "");	/* its window goes on */
}

UNIT_CASE(nothing_is_said_without_the_bits)
{
	log_set_mask(~3u);
	assert_string_equal(said(ECONNREFUSED, 2), "");
	log_set_mask(3);
	assert_int_equal(times_in(said(ECONNREFUSED, 1), "connection refused"), 1);
}

/* What the parent has counted is the parent's to print. */
UNIT_CASE(child_of_a_fork_begins_anew)
{
	said(ECONNREFUSED, 3);
	dapl_diag_fork_prepare();
	dapl_diag_fork_child();
	timer = NULL;
	assert_int_equal(times_in(said(ECONNREFUSED, 1), "connection refused"), 1);
	assert_string_equal(printed_by(flush, NULL), "");
	assert_non_null(timer);
}

UNIT_CASE(parent_of_a_fork_goes_on)
{
	said(ECONNREFUSED, 3);
	dapl_diag_fork_prepare();
	dapl_diag_fork_parent();
	assert_int_equal(times_in(printed_by(flush, NULL), ": 2 more like this\n"), 1);
}

UNIT_MAIN(NULL, NULL)
