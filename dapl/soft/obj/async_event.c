/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* async_event.c - carries the asynchronous events of CQs, SRQs and QPs to core: queued under any lock,
 * reported on the service thread. */
#include "dapl/soft/obj/async_event.h"
#include "common/container_of.h"
#include "dapl/core/base/service.h"
#include "dapl/core/device.h"
#include "dapl/soft/obj/rnic.h"

/* Called with dev->async.lock held. */
static void end_event(struct dapl_device *dev, struct soft_event *event)
{
	assert_held(&dev->async.lock);
	TAILQ_REMOVE(&dev->async.list, event, link);
	event->times = 0;
}

static void report_events(struct dapl_task *task)
{
	struct dapl_device *dev = container_of(task, struct dapl_device, async.task);
	struct ibv_async_event ack;
	struct soft_event *event;

	dapl_mutex_lock(&dev->async.lock);
	while ((event = TAILQ_FIRST(&dev->async.list))) {
		ack = event->event;
		if (!--event->times)
			end_event(dev, event);
		dev->async.running = ack.element.cq;	/* one union of pointers */
		dapl_mutex_unlock(&dev->async.lock);
		dapl_up_async(dev->ia, &ack);	/* the upcall may free the object */
		dapl_mutex_lock(&dev->async.lock);
		dev->async.running = NULL;
		dapl_cond_broadcast(&dev->async.done);
	}
	dapl_mutex_unlock(&dev->async.lock);
}

void soft_event_post(struct dapl_device *dev, struct soft_event *event, enum ibv_event_type type,
		     void *object)
{
	dapl_mutex_lock(&dev->async.lock);
	event->event.event_type = type;
	event->event.element.cq = object;
	if (!event->times++)
		TAILQ_INSERT_TAIL(&dev->async.list, event, link);
	dapl_mutex_unlock(&dev->async.lock);
	dapl_task_queue(&dev->async.task, report_events);
}

void soft_event_forget(struct dapl_device *dev, struct soft_event *event, const void *object)
{
	dapl_mutex_lock(&dev->async.lock);
	if (event->times)
		end_event(dev, event);
	while (dev->async.running == object && !dapl_service_here())
		dapl_cond_wait(&dev->async.done, &dev->async.lock);
	dapl_mutex_unlock(&dev->async.lock);
}
