/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_service.c - the service thread: what flush, stop and drain wait for, that tasks and timers run once,
 * and that none is lost while blocked threads run its loop. */
#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include "dapl/core/base/loop_owner.h"
#include "dapl/core/base/service.h"
#include "test/unit/unit.h"

enum { CALLBACK_US = 20000 };	/* long enough that a thread that does not wait returns before */

static int begun, ended;	/* callbacks; atomic */

static int set_up(void **state)
{
	begun = ended = 0;
	return dapl_service_get();
}

UNIT_FIXTURE(tear_down) { dapl_service_put(); }
static int count(const int *n) { return __atomic_load_n(n, __ATOMIC_SEQ_CST); }

static void take_a_while(void)
{
	assert_true(dapl_service_here());
	__atomic_add_fetch(&begun, 1, __ATOMIC_SEQ_CST);
	usleep(CALLBACK_US);
	__atomic_add_fetch(&ended, 1, __ATOMIC_SEQ_CST);
}

static void wait_until_begun(void)
{
	while (!count(&begun))
		usleep(100);	/* the alarm ends it */
}

/* --- callbacks that take a while ---------------------------------------------------------- */

static void slow_task(struct dapl_task *task) { take_a_while(); }
static void slow_timer(struct dapl_timer *timer) { take_a_while(); }

/* Once: the descriptor is not readable afterwards. */
static void slow_watch(struct dapl_watch *watch)
{
	uint64_t value;

	assert_int_equal(read(watch->fd, &value, sizeof value), sizeof value);
	take_a_while();
}

static int readable(void)
{
	int fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);

	assert_true(fd >= 0);
	return fd;
}

UNIT_CASE(flush_waits_for_tasks_that_were_queued)
{
	struct dapl_task tasks[3] = { { .run = NULL } };

	for (int i = 0; i < 3; i++)
		dapl_task_queue(&tasks[i], slow_task);
	dapl_service_flush();
	assert_int_equal(count(&ended), 3);
	dapl_service_flush();	/* nothing to wait for */
}

UNIT_CASE(flush_waits_for_the_callback_that_runs)
{
	struct dapl_watch watch = { .fd = -1 };
	struct dapl_timer timer = { .fire = NULL };
	int fd = readable();

	assert_int_equal(dapl_watch_start(&watch, fd, slow_watch), 0);
	wait_until_begun();
	dapl_service_flush();
	assert_int_equal(count(&ended), 1);
	dapl_watch_stop(&watch);
	close(fd);
	begun = ended = 0;
	dapl_timer_start(&timer, 0, slow_timer);
	wait_until_begun();
	dapl_service_flush();
	assert_int_equal(count(&ended), 1);
}

UNIT_CASE(stop_of_a_watch_waits_for_its_callback)
{
	struct dapl_watch watch = { .fd = -1 };
	uint64_t one = 1;
	int fd = readable();

	assert_int_equal(dapl_watch_start(&watch, fd, slow_watch), 0);
	wait_until_begun();
	dapl_watch_stop(&watch);
	assert_int_equal(count(&ended), 1);
	assert_int_equal(write(fd, &one, sizeof one), sizeof one);
	dapl_service_flush();
	dapl_watch_stop(&watch);
	assert_int_equal(count(&begun), 1);	/* it is not called any more */
	close(fd);
}

UNIT_CASE(watch_that_was_not_started_can_be_stopped)
{
	struct dapl_watch watch = { .fd = 0 };

	dapl_watch_stop(&watch);
}

UNIT_CASE(drain_of_a_timer_waits_for_its_callback)
{
	struct dapl_timer timer = { .fire = NULL };

	dapl_timer_start(&timer, 0, slow_timer);
	wait_until_begun();
	dapl_timer_drain(&timer);
	assert_int_equal(count(&ended), 1);
	dapl_timer_drain(&timer);
}

/* --- once ------------------------------------------------------------------------------------ */

UNIT_CASE(timer_that_is_stopped_does_not_fire)
{
	struct dapl_timer timer = { .fire = NULL };

	assert_false(dapl_timer_stop(&timer));
	dapl_timer_start(&timer, 3600000000u, slow_timer);	/* an hour */
	assert_true(dapl_timer_stop(&timer));
	assert_false(dapl_timer_stop(&timer));
	dapl_timer_start(&timer, 3600000000u, slow_timer);
	dapl_timer_drain(&timer);
	assert_false(dapl_timer_stop(&timer));
	assert_int_equal(count(&begun), 0);
}

UNIT_CASE(timer_that_is_started_again_moves)
{
	struct dapl_timer timer = { .fire = NULL };

	dapl_timer_start(&timer, 3600000000u, slow_timer);
	dapl_timer_start(&timer, 0, slow_timer);
	wait_until_begun();
	dapl_service_flush();
	assert_false(dapl_timer_stop(&timer));
	assert_int_equal(count(&begun), 1);
}

UNIT_CASE(timer_that_is_due_does_not_wait_for_a_later_one)
{
	struct dapl_timer late = { .fire = NULL }, soon = { .fire = NULL };

	dapl_timer_start(&late, 3600000000u, slow_timer);
	dapl_timer_start(&soon, 0, slow_timer);
	wait_until_begun();
	dapl_timer_drain(&soon);
	assert_int_equal(count(&begun), 1);
	assert_true(dapl_timer_stop(&late));
}

static bool released;

static void wait_for_release(struct dapl_task *task)
{
	while (!__atomic_load_n(&released, __ATOMIC_SEQ_CST))
		usleep(100);
	take_a_while();
}

UNIT_CASE(task_that_is_queued_twice_runs_once)
{
	struct dapl_task first = { .run = NULL }, twice = { .run = NULL };

	released = false;
	dapl_task_queue(&first, wait_for_release);
	dapl_task_queue(&twice, slow_task);
	dapl_task_queue(&twice, slow_task);
	__atomic_store_n(&released, true, __ATOMIC_SEQ_CST);
	dapl_service_flush();
	assert_int_equal(count(&ended), 2);
	dapl_task_queue(&twice, slow_task);	/* again, after it ran */
	dapl_service_flush();
	assert_int_equal(count(&ended), 3);
}

static void flush_on_the_service_thread(struct dapl_task *task)
{
	dapl_service_flush();	/* it would wait for itself */
	take_a_while();
}

UNIT_CASE(service_thread_does_not_wait_for_itself)
{
	struct dapl_task task = { .run = NULL };

	assert_false(dapl_service_here());
	dapl_task_queue(&task, flush_on_the_service_thread);
	dapl_service_flush();
	assert_int_equal(count(&ended), 1);
}

/* --- a blocked thread runs the loop ------------------------------------------------------------- */

static void wake_blocked_threads(struct dapl_task *task)
{
	for (int i = 0; i < LOOP_WAKEUPS; i++)
		dapl_service_woke();
}

/* Returns the descriptor that the calling thread watches from now on. The service thread may be descheduled between
 * two wake-ups, so that they do not count. */
static int own_loop(void)
{
	struct dapl_task task = { .run = NULL };
	int fd;

	for (;;) {
		dapl_task_queue(&task, wake_blocked_threads);
		dapl_service_flush();
		fd = dapl_service_block();
		if (fd >= 0)
			return fd;
		dapl_service_awake(false);
	}
}

static bool is_readable(int fd, int ms)
{
	return poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, ms) == 1;
}

/* A callback that notes its thread. */
static struct noted {
	pthread_t thread;
	bool in_callback;
	int calls;		/* atomic */
} noted;

static void note(void)
{
	noted.thread = pthread_self();
	noted.in_callback = dapl_service_here();
	__atomic_add_fetch(&noted.calls, 1, __ATOMIC_SEQ_CST);
}

static void note_task(struct dapl_task *task) { note(); }
static void note_timer(struct dapl_timer *timer) { note(); }

static void note_watch(struct dapl_watch *watch)
{
	uint64_t value;

	assert_int_equal(read(watch->fd, &value, sizeof value), sizeof value);
	note();
}

static void wait_until_noted(int calls)
{
	while (count(&noted.calls) < calls)
		usleep(100);
}

/* The calling thread is blocked and owns the loop until `calls` callbacks have run. Returns false if the service thread
 * has taken the loop back. */
static bool run_callbacks(int fd, int calls)
{
	bool owns = true;

	while (owns && count(&noted.calls) < calls)
		if (is_readable(fd, 1))
			owns = dapl_service_work();
	return owns;
}

static int set_up_owner(void **state)
{
	noted = (struct noted){ .calls = 0 };
	return set_up(state);
}

#define OWNER_CASE(name) UNIT_TEST_WITH(name, set_up_owner, tear_down)

/* Repeated until the service thread did not take the loop back, because this thread was descheduled. */
OWNER_CASE(blocked_thread_runs_watches_and_tasks)
{
	struct dapl_watch watch = { .fd = -1 };
	struct dapl_task task = { .run = NULL };
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), loop;
	uint64_t one = 1;
	bool owned;

	assert_int_equal(dapl_watch_start(&watch, fd, note_watch), 0);
	do {
		loop = own_loop();
		noted.calls = 0;
		assert_int_equal(write(fd, &one, sizeof one), sizeof one);
		dapl_task_queue(&task, note_task);
		owned = run_callbacks(loop, 2);
		dapl_service_awake(owned);
		dapl_service_flush();
	} while (!owned);
	assert_int_equal(noted.calls, 2);
	assert_true(pthread_equal(noted.thread, pthread_self()));
	assert_true(noted.in_callback);
	assert_false(dapl_service_here());
	dapl_watch_stop(&watch);
	close(fd);
}

OWNER_CASE(task_queued_between_waits_runs_in_the_next)
{
	struct dapl_task task = { .run = NULL };
	bool owned;
	int loop;

	do {
		loop = own_loop();
		noted.calls = 0;
		dapl_service_awake(true);
		dapl_task_queue(&task, note_task);
		loop = dapl_service_block();
		owned = loop >= 0 && run_callbacks(loop, 1);
		dapl_service_awake(owned);
		dapl_service_flush();
	} while (!owned);
	assert_true(pthread_equal(noted.thread, pthread_self()));
}

/* The owner does not wait again. */
OWNER_CASE(task_queued_after_the_last_wait_runs)
{
	struct dapl_task task = { .run = NULL };

	own_loop();
	dapl_service_awake(true);
	dapl_task_queue(&task, note_task);
	wait_until_noted(1);
	assert_false(pthread_equal(noted.thread, pthread_self()));
}

OWNER_CASE(task_runs_though_the_owner_does_not_look)
{
	struct dapl_task task = { .run = NULL };

	own_loop();
	dapl_task_queue(&task, note_task);
	wait_until_noted(1);
	assert_false(pthread_equal(noted.thread, pthread_self()));
	dapl_service_awake(dapl_service_work());
}

OWNER_CASE(timer_fires_while_a_blocked_thread_owns_the_loop)
{
	struct dapl_timer timer = { .fire = NULL };

	own_loop();
	dapl_timer_start(&timer, 100, note_timer);
	wait_until_noted(1);
	assert_false(pthread_equal(noted.thread, pthread_self()));
	dapl_service_awake(true);
}

OWNER_CASE(flush_takes_the_loop_back)
{
	struct dapl_task task = { .run = NULL };

	own_loop();
	dapl_task_queue(&task, note_task);
	dapl_service_flush();
	assert_int_equal(noted.calls, 1);
	assert_false(pthread_equal(noted.thread, pthread_self()));
	assert_false(dapl_service_work());
	dapl_service_awake(false);
}

static struct dapl_task agent = { .runs_consumer = true };

static void queue_agent(struct dapl_task *task) { dapl_task_queue(&agent, note_task); }

/* Such code may wait for the thread that would run it. */
OWNER_CASE(code_of_the_consumer_runs_on_the_service_thread)
{
	struct dapl_task task = { .run = NULL };

	own_loop();
	dapl_task_queue(&task, queue_agent);
	while (dapl_service_work())
		;
	dapl_service_awake(false);
	wait_until_noted(1);
	assert_false(pthread_equal(noted.thread, pthread_self()));
	dapl_task_queue(&task, wake_blocked_threads);
	dapl_service_flush();
	assert_int_equal(dapl_service_block(), -1);	/* from now on */
	dapl_service_awake(false);
}

OWNER_CASE(only_the_service_thread_counts_wakeups)
{
	for (int i = 0; i < LOOP_WAKEUPS; i++)
		dapl_service_woke();
	assert_int_equal(dapl_service_block(), -1);
	dapl_service_awake(false);
}

static void count_slowly(struct dapl_task *task)
{
	static int inside;

	assert_int_equal(__atomic_fetch_add(&inside, 1, __ATOMIC_SEQ_CST), 0);
	usleep(10);
	__atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
	note();
}

static void count_in_timer(struct dapl_timer *timer) { count_slowly(NULL); }

enum { CALLBACKS = 2000 };

static void *call_back(void *unused)
{
	for (int i = 1; i < CALLBACKS; i += 2) {
		struct dapl_timer timer = { .fire = NULL };
		struct dapl_task task = { .run = NULL };

		dapl_task_queue(&task, count_slowly);
		dapl_timer_start(&timer, i % 50, count_in_timer);
		wait_until_noted(i + 1);
		if (i % 64 == 1)
			dapl_service_flush();
		dapl_timer_drain(&timer);
	}
	return NULL;
}

/* The owner changes all the time. No callback is lost, and two never run at once. */
OWNER_CASE(owner_that_changes_loses_no_callback)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, call_back, NULL), 0);
	for (unsigned i = 0; count(&noted.calls) < CALLBACKS; i++) {
		struct dapl_task task = { .run = NULL };
		int loop;

		if (i % 8 == 0) {
			dapl_task_queue(&task, wake_blocked_threads);
			dapl_service_flush();
		}
		loop = dapl_service_block();
		for (int k = 0; k < 4; k++)
			if (loop >= 0 && is_readable(loop, i % 3) && !dapl_service_work())
				loop = -1;
		dapl_service_awake(loop >= 0);
	}
	pthread_join(thread, NULL);
}

/* --- the last IA is closed in a callback ------------------------------------------------------- */

static int service_threads(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *entry;
	int n = 0;

	assert_non_null(tasks);
	while ((entry = readdir(tasks))) {
		char path[64], name[16] = "";
		FILE *comm;

		snprintf(path, sizeof path, "/proc/self/task/%.16s/comm", entry->d_name);
		comm = fopen(path, "r");
		if (!comm)
			continue;		/* "..", or a thread that has ended */
		n += fgets(name, sizeof name, comm) && !strcmp(name, "dapl\n");
		fclose(comm);
	}
	closedir(tasks);
	return n;
}

static void close_and_open(struct dapl_task *task)
{
	dapl_service_put();
	assert_int_equal(dapl_service_get(), 0);
	take_a_while();		/* still the service thread */
}

UNIT_CASE(ia_that_is_opened_in_the_same_callback_has_one_thread)
{
	struct dapl_watch watch = { .fd = readable() };
	struct dapl_task task = { .run = NULL };

	dapl_task_queue(&task, close_and_open);
	dapl_service_flush();
	assert_int_equal(service_threads(), 1);
	assert_int_equal(dapl_watch_start(&watch, watch.fd, slow_watch), 0);
	while (count(&ended) < 2)
		usleep(100);
	dapl_watch_stop(&watch);
	close(watch.fd);
}

static void close_and_wait(struct dapl_task *task)
{
	dapl_service_put();
	__atomic_add_fetch(&begun, 1, __ATOMIC_SEQ_CST);
	wait_for_release(task);
}

UNIT_CASE(ia_that_is_opened_during_the_callback_has_one_thread)
{
	struct dapl_task task = { .run = NULL }, other = { .run = NULL };

	released = false;
	dapl_task_queue(&task, close_and_wait);
	wait_until_begun();
	assert_int_equal(dapl_service_get(), 0);
	__atomic_store_n(&released, true, __ATOMIC_SEQ_CST);
	dapl_task_queue(&other, slow_task);
	dapl_service_flush();
	assert_int_equal(count(&ended), 2);
	assert_int_equal(service_threads(), 1);
}

UNIT_CASE(thread_ends_after_the_callback)
{
	struct dapl_task task = { .run = NULL }, other = { .run = NULL };

	released = false;
	dapl_task_queue(&task, close_and_wait);
	wait_until_begun();
	__atomic_store_n(&released, true, __ATOMIC_SEQ_CST);
	while (service_threads())
		usleep(100);
	assert_int_equal(dapl_service_get(), 0);
	dapl_task_queue(&other, slow_task);
	dapl_service_flush();
	assert_int_equal(count(&ended), 2);
	assert_int_equal(service_threads(), 1);
}

UNIT_MAIN(NULL, NULL)
