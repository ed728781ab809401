/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* async_event.h - carries the asynchronous events of CQs, SRQs and QPs to core. */
#ifndef SOFT_OBJ_ASYNC_EVENT_H
#define SOFT_OBJ_ASYNC_EVENT_H
#include <infiniband/verbs.h>
#include <sys/queue.h>

struct dapl_device;

/* An asynchronous event of an object. It is part of the object, so that no allocation can fail.
 * Guarded by dev->async.lock. */
struct soft_event {
	TAILQ_ENTRY(soft_event) link;
	struct ibv_async_event event;
	unsigned times;			/* upcalls yet to be made; in dev->async.list unless 0 */
};

/* Queues the asynchronous event of an object. All events of one object have the same type. */
void soft_event_post(struct dapl_device *dev, struct soft_event *event, enum ibv_event_type type,
		     void *object);
/* Discards the event and waits for an upcall about the object that is running. */
void soft_event_forget(struct dapl_device *dev, struct soft_event *event, const void *object);

#endif
