/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Trace records: printed at once, kept for later, from many threads. */
#include "common/trace.h"
#include "test/unit/unit.h"
#include <signal.h>
#include <sys/resource.h>

static char text[1 << 20];

static void read_back(FILE *f)
{
	ssize_t n = pread(fileno(f), text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	fclose(f);
}

/* Reads the contents of all rings. */
static void dump(void)
{
	FILE *f = tmpfile();

	trace_dump(fileno(f));
	read_back(f);
}

/* Records are printed too, to this file. */
static int saved_stderr;

UNIT_FIXTURE(silence)
{
	int null = open("/dev/null", O_WRONLY);

	saved_stderr = dup(2);
	dup2(null, 2);
	close(null);
	trace_set_level(TRC_LVL_NORMAL);
}

UNIT_FIXTURE(unsilence)
{
	dup2(saved_stderr, 2);
	close(saved_stderr);
	trace_fini();
}

static int count(const char *what)
{
	int n = 0;

	for (const char *at = text; (at = strstr(at, what)); at++)
		n++;
	return n;
}

#define TEST(name) UNIT_TEST_WITH(name, silence, unsilence)

TEST(levels_are_clamped)
{
	trace_set_level(99);
	assert_int_equal(trace_level, 10);
	trace_set_level(0);
	assert_false(trace_on(TRC_LVL_ERROR));
	trace_set_level(3);
	assert_true(trace_on(TRC_LVL_NORMAL));
	assert_false(trace_on(TRC_LVL_DETAIL));
}

static int evaluated(void) { return fail(), 0; }

TEST(level_off_evaluates_no_argument)
{
	trace_set_level(0);
	trace(TRC_LVL_ERROR, TRC_DAT_ERROR, "ep", NULL, NULL, "%d", evaluated());
}

TEST(a_record_is_a_line)
{
	char expected[128];
	FILE *f = tmpfile();

	dup2(fileno(f), 2);
	trace(TRC_LVL_NORMAL, TRC_DAPL_EVENT, "ep", f, "connected", "to %s", "peer");
	trace(TRC_LVL_DETAIL, TRC_DAPL_EVENT, "ep", f, "connected", "too detailed");
	snprintf(expected, sizeof(expected), " ep %p connected to peer\n", (void *)f);
	read_back(f);
	assert_memory_equal(text, "5C3 ", 4);
	assert_string_equal(text + strlen(text) - strlen(expected), expected);
	dump();
	assert_int_equal(count("\n"), 1);
	assert_string_equal(text + strlen(text) - strlen(expected), expected);
}

TEST(a_long_record_is_cut)
{
	static char tail[1000];

	memset(tail, 'x', sizeof(tail) - 1);
	trace(TRC_LVL_ERROR, TRC_DAPL_ERROR, "ep", NULL, NULL, "%s", tail);
	trace(TRC_LVL_ERROR, TRC_DAPL_ERROR, tail, NULL, tail, "%s", tail);
	dump();
	assert_int_equal(count("\n"), 2);
	assert_int_equal(count("xxx\n"), 2);
}

TEST(ring_keeps_the_last_records)
{
	for (int i = 0; i < 1000; i++)
		trace(TRC_LVL_ERROR, TRC_DAPL_ERROR, "ep", NULL, NULL, "record %d.", i);
	dump();
	assert_int_equal(count("\n"), 256);
	assert_int_equal(count("record 743."), 0);
	assert_int_equal(count("record 744."), 1);
	assert_int_equal(count("record 999."), 1);
}

static void *record_100(void *arg)
{
	for (int i = 0; i < 100; i++)
		trace(TRC_LVL_ERROR, TRC_DAPL_ERROR, "ep", arg, NULL, "number %d.", i);
	return NULL;
}

static pthread_barrier_t all_recorded;

/* No thread ends, and leaves its ring to another, before all have recorded. */
static void *record_100_together(void *arg)
{
	record_100(arg);
	pthread_barrier_wait(&all_recorded);
	return NULL;
}

static void in_threads(int n)
{
	pthread_t threads[16];

	pthread_barrier_init(&all_recorded, NULL, n);
	for (intptr_t i = 0; i < n; i++)
		pthread_create(&threads[i], NULL, record_100_together, (void *)(i + 1));
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&all_recorded);
}

TEST(records_outlive_their_thread)
{
	in_threads(8);
	dump();
	assert_int_equal(count("\n"), 800);
	for (int i = 0; i < 100; i++) {
		char line[32];

		snprintf(line, sizeof(line), "number %d.", i);
		assert_int_equal(count(line), 8);
	}
}

TEST(dump_begins_with_the_oldest_record)
{
	trace(TRC_LVL_ERROR, TRC_DAPL_ERROR, "ep", NULL, NULL, "before");
	in_threads(1);
	trace(TRC_LVL_ERROR, TRC_DAPL_ERROR, "ep", NULL, NULL, "after");
	dump();
	assert_true(strstr(text, "before") < strstr(text, "number 0."));
	assert_true(strstr(text, "number 0.") < strstr(text, "number 99."));
	assert_true(strstr(text, "number 99.") < strstr(text, "after"));
}

/* 30 threads, one after the other, use one ring. */
TEST(ring_of_an_ended_thread_is_reused)
{
	for (int i = 0; i < 30; i++)
		in_threads(1);
	dump();
	assert_int_equal(count("\n"), 256);
}

TEST(trace_starts_again_after_fini)
{
	trace(TRC_LVL_ERROR, TRC_DAPL_ERROR, "ep", NULL, NULL, "first");
	trace_fini();
	dump();
	assert_string_equal(text, "");
	trace(TRC_LVL_ERROR, TRC_DAPL_ERROR, "ep", NULL, NULL, "second");
	dump();
	assert_int_equal(count("second"), 1);
	assert_int_equal(count("first"), 0);
}

static FILE *dumped;

static void dump_on_signal(int signal) { trace_dump(fileno(dumped)); }

static void *interrupt(void *arg)
{
	for (int i = 0; i < 50; i++) {
		pthread_kill(*(pthread_t *)arg, SIGUSR1);
		usleep(200);
	}
	return NULL;
}

/* The signals arrive in the middle of records. */
TEST(a_signal_handler_may_dump)
{
	pthread_t self = pthread_self(), thread;

	dumped = tmpfile();
	signal(SIGUSR1, dump_on_signal);
	record_100(NULL);
	pthread_create(&thread, NULL, interrupt, &self);
	for (int i = 0; i < 100; i++)
		record_100(NULL);
	pthread_join(thread, NULL);
	signal(SIGUSR1, SIG_DFL);
	read_back(dumped);
	assert_true(count("number 1.\n") > 0);
}

/* The dump is shorter, and the program gets no signal. */
TEST(file_at_its_limit_gets_no_records)
{
	const int null = dup(STDERR_FILENO);
	struct rlimit before, limit;
	FILE *f = tmpfile();

	trace(TRC_LVL_NORMAL, TRC_DAPL_EVENT, "ep", NULL, "s", "one");
	getrlimit(RLIMIT_FSIZE, &before);
	limit = (struct rlimit){ 10, before.rlim_max };
	setrlimit(RLIMIT_FSIZE, &limit);
	dup2(fileno(f), STDERR_FILENO);
	trace(TRC_LVL_NORMAL, TRC_DAPL_EVENT, "ep", NULL, "s", "two");
	trace_dump(STDERR_FILENO);
	dup2(null, STDERR_FILENO);
	setrlimit(RLIMIT_FSIZE, &before);
	close(null);
	read_back(f);
	assert_int_equal(strlen(text), 10);
}

UNIT_MAIN(NULL, NULL)
