/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_async_event.c - asynchronous events of objects: each post is one upcall, in their order, and none for an
 * object that is gone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "dapl/soft/obj/async_event.h"
#include "dapl/soft/obj/device.h"

static struct dapl_device dev;
static struct soft_event events[2];
static int objects[2];
static unsigned calls;
static const void *told[8];
static void (*during)(void);		/* an upcall */

void __wrap_dapl_task_queue(struct dapl_task *task, void (*run)(struct dapl_task *));
void __wrap_dapl_task_queue(struct dapl_task *task, void (*run)(struct dapl_task *))
{
	task->run = run;
	task->queued = true;
}

void __wrap_dapl_up_async(void *ia, const struct ibv_async_event *event);
void __wrap_dapl_up_async(void *ia, const struct ibv_async_event *event)
{
	assert_ptr_equal(ia, &dev);
	assert_int_equal(event->event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
	told[calls++ % 8] = event->element.srq;
	if (during)
		during();
}

static int set_up(void **state)
{
	(void)state;
	dev = (struct dapl_device){ .ia = &dev };
	dapl_mutex_init(&dev.events_lock, RANK_SOFT_EVENTS);
	TAILQ_INIT(&dev.events);
	events[0] = events[1] = (struct soft_event){ .times = 0 };
	calls = 0;
	during = NULL;
	return 0;
}

static void post(int i)
{
	soft_event_post(&dev, &events[i], IBV_EVENT_SRQ_LIMIT_REACHED, &objects[i]);
}

/* What the service thread does. */
static void serve(void)
{
	if (!dev.event_task.queued)
		return;
	dev.event_task.queued = false;
	dev.event_task.run(&dev.event_task);
}

static void event_waits_for_the_service_thread(void **state)
{
	(void)state;
	post(0);
	assert_int_equal(calls, 0);
	serve();
	assert_int_equal(calls, 1);
	assert_ptr_equal(told[0], &objects[0]);
	serve();
	assert_int_equal(calls, 1);
}

static void each_post_is_an_upcall(void **state)
{
	(void)state;
	post(0);
	post(1);
	post(0);
	serve();
	assert_int_equal(calls, 3);
	assert_ptr_equal(told[0], &objects[0]);
	assert_ptr_equal(told[2], &objects[1]);
	assert_true(TAILQ_EMPTY(&dev.events));
}

static void forgotten_object_has_no_upcall(void **state)
{
	(void)state;
	post(0);
	post(0);
	post(1);
	soft_event_forget(&dev, &events[0], &objects[0]);
	soft_event_forget(&dev, &events[0], &objects[0]);	/* there is none */
	serve();
	assert_int_equal(calls, 1);
	assert_ptr_equal(told[0], &objects[1]);
}

static void post_again(void)
{
	during = NULL;
	post(0);
}

static void post_within_an_upcall_is_told(void **state)
{
	(void)state;
	during = post_again;
	post(0);
	serve();
	assert_int_equal(calls, 2);
	assert_true(TAILQ_EMPTY(&dev.events));
}

/* By another thread, which has to wait: soft_event_forget() is called for the other object here. */
static void forget_other(void)
{
	assert_ptr_equal(dev.event_running, &objects[0]);
	soft_event_forget(&dev, &events[1], &objects[1]);
}

static void forget_waits_for_its_own_object_only(void **state)
{
	(void)state;
	during = forget_other;
	post(0);
	post(1);
	serve();
	assert_int_equal(calls, 1);
	assert_null(dev.event_running);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, set_up)
	const struct CMUnitTest tests[] = {
		TEST(event_waits_for_the_service_thread),
		TEST(each_post_is_an_upcall),
		TEST(forgotten_object_has_no_upcall),
		TEST(post_within_an_upcall_is_told),
		TEST(forget_waits_for_its_own_object_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
