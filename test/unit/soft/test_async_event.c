/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_async_event.c - asynchronous events of objects: each post is one upcall, in their order, and none for an
 * object that is gone. */
#include "dapl/core/device.h"
#include "dapl/soft/obj/async_event.h"
#include "dapl/soft/obj/rnic.h"
#include "test/unit/unit.h"

static struct dapl_device dev;
static struct soft_event events[2];
static int objects[2];
static unsigned calls;
static const void *told[8];
static void (*during)(void);		/* an upcall */

REPLACE(dapl_task_queue)
void __wrap_dapl_task_queue(struct dapl_task *task, void (*run)(struct dapl_task *))
{
	task->run = run;
	task->queued = true;
}

REPLACE(dapl_up_async)
void __wrap_dapl_up_async(void *ia, const struct ibv_async_event *event)
{
	assert_ptr_equal(ia, &dev);
	assert_int_equal(event->event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
	told[calls++ % 8] = event->element.srq;
	if (during)
		during();
}

UNIT_FIXTURE(set_up)
{
	dev = (struct dapl_device){ .ia = &dev };
	dapl_mutex_init(&dev.async.lock, RANK_SOFT_EVENTS);
	TAILQ_INIT(&dev.async.list);
	events[0] = events[1] = (struct soft_event){ .times = 0 };
	calls = 0;
	during = NULL;
}

static void post(int i) { soft_event_post(&dev, &events[i], IBV_EVENT_SRQ_LIMIT_REACHED, &objects[i]); }

/* What the service thread does. */
static void serve(void)
{
	if (!dev.async.task.queued)
		return;
	dev.async.task.queued = false;
	dev.async.task.run(&dev.async.task);
}

#define TEST(name) UNIT_TEST_WITH(name, set_up, NULL)

TEST(event_waits_for_the_service_thread)
{
	post(0);
	assert_int_equal(calls, 0);
	serve();
	assert_int_equal(calls, 1);
	assert_ptr_equal(told[0], &objects[0]);
	serve();
	assert_int_equal(calls, 1);
}

TEST(each_post_is_an_upcall)
{
	post(0);
	post(1);
	post(0);
	serve();
	assert_int_equal(calls, 3);
	assert_ptr_equal(told[0], &objects[0]);
	assert_ptr_equal(told[2], &objects[1]);
	assert_true(TAILQ_EMPTY(&dev.async.list));
}

TEST(forgotten_object_has_no_upcall)
{
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

TEST(post_within_an_upcall_is_told)
{
	during = post_again;
	post(0);
	serve();
	assert_int_equal(calls, 2);
	assert_true(TAILQ_EMPTY(&dev.async.list));
}

/* By another thread, which has to wait: soft_event_forget() is called for the other object here. */
static void forget_other(void)
{
	assert_ptr_equal(dev.async.running, &objects[0]);
	soft_event_forget(&dev, &events[1], &objects[1]);
}

TEST(forget_waits_for_its_own_object_only)
{
	during = forget_other;
	post(0);
	post(1);
	serve();
	assert_int_equal(calls, 1);
	assert_null(dev.async.running);
}

UNIT_MAIN(NULL, NULL)
