/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* async_event.c - carries the asynchronous events of CQs, SRQs and QPs to core: queued under any lock,
 * reported on the service thread. */
#include "dapl/soft/obj/async_event.h"
#include "common/container_of.h"
#include "dapl/core/base/service.h"
#include "dapl/core/device.h"
#include "dapl/soft/obj/device.h"

/* Called with dev->events_lock held. */
static void end_event(struct dapl_device *dev, struct soft_event *event)
{
	assert_held(&dev->events_lock);
	TAILQ_REMOVE(&dev->events, event, link);
	event->times = 0;
}

static void report_events(struct dapl_task *task)
{
	struct dapl_device *dev = container_of(task, struct dapl_device, event_task);
	struct ibv_async_event ack;
	struct soft_event *event;

	dapl_mutex_lock(&dev->events_lock);
	while ((event = TAILQ_FIRST(&dev->events))) {
		ack = event->event;
		if (!--event->times)
			end_event(dev, event);
		dev->event_running = ack.element.cq;	/* one union of pointers */
		dapl_mutex_unlock(&dev->events_lock);
		dapl_up_async(dev->ia, &ack);	/* the upcall may free the object */
		dapl_mutex_lock(&dev->events_lock);
		dev->event_running = NULL;
		dapl_cond_broadcast(&dev->events_done);
	}
	dapl_mutex_unlock(&dev->events_lock);
}

void soft_event_post(struct dapl_device *dev, struct soft_event *event, enum ibv_event_type type,
		     void *object)
{
	dapl_mutex_lock(&dev->events_lock);
	event->event.event_type = type;
	event->event.element.cq = object;
	if (!event->times++)
		TAILQ_INSERT_TAIL(&dev->events, event, link);
	dapl_mutex_unlock(&dev->events_lock);
	dapl_task_queue(&dev->event_task, report_events);
}

void soft_event_forget(struct dapl_device *dev, struct soft_event *event, const void *object)
{
	dapl_mutex_lock(&dev->events_lock);
	if (event->times)
		end_event(dev, event);
	while (dev->event_running == object && !dapl_service_here())
		dapl_cond_wait(&dev->events_done, &dev->events_lock);
	dapl_mutex_unlock(&dev->events_lock);
}
