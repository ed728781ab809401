/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_service.c - the service thread: what flush, stop and drain wait for, and that tasks and timers run once. */
#include <dirent.h>
#include <sys/eventfd.h>
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
