/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* evd_notify.c - queues events and notifies: the thread in dat_evd_wait if there is one, else the CNO. The
 * completion channel is in evd_channel.c.
 *
 * No wake-up is lost: the waiter sets evd->waiting under evd->mutex before it looks at the queue for the
 * last time, and producers read it under evd->mutex after they have queued their event. */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "dapl/core/base/service.h"
#include "dapl/core/event/async.h"
#include "dapl/core/event/cno.h"
#include "dapl/core/event/cno_trigger.h"
#include "dapl/core/event/evd.h"
#include "dapl/core/event/evd_notify.h"
#include "dapl/core/event/event.h"
#include "dapl/core/event/polled.h"

void dapl_evd_signal(const struct dapl_evd *evd)
{
	uint64_t one = 1;

	while (write(evd->wake_fd, &one, sizeof one) < 0 && errno == EINTR)
		;
}

/* The waiter sets `wait_blocked` and then checks the queue once more. The producer queues the
 * event, sets `notified`, and then reads `wait_blocked`. A full fence on each side makes one of
 * them see the other. A waiter that is not blocked costs no system call. */
static void wake_waiter(struct dapl_evd *evd)
{
	__atomic_store_n(&evd->notified, true, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&evd->wait_blocked, __ATOMIC_RELAXED) &&
	    __atomic_exchange_n(&evd->wait_blocked, false, __ATOMIC_RELAXED)) {
		dapl_evd_signal(evd);
		dapl_service_woke();
	}
}

/* Wakes the waiter after evd->mutex is released, because the waiter takes the mutex at once.
 * dapl_evd_destroy waits for the reference. CNO-9, 10. */
void dapl_evd_notify(struct dapl_evd *evd)
{
	bool waiting;

	dapl_mutex_lock(&evd->mutex);
	waiting = dapl_flag(&evd->waiting);
	if (waiting)
		dapl_object_get(&evd->obj);
	else if (evd->cno && !evd->disabled && !dapl_flag(&evd->dying))
		dapl_cno_trigger(evd->cno, evd);
	dapl_mutex_unlock(&evd->mutex);
	if (waiting) {
		wake_waiter(evd);
		dapl_object_put(&evd->obj);
	}
}

void dapl_evd_release(struct dapl_evd *evd)
{
	bool held;

	dapl_spin_lock(&evd->lock);
	held = evd->awaits_established;
	evd->awaits_established = false;
	dapl_spin_unlock(&evd->lock);
	if (held)
		dapl_evd_notify(evd);
}

bool dapl_evd_has_room(struct dapl_evd *evd, unsigned events)
{
	bool room;

	dapl_spin_lock(&evd->post_lock);	/* because of dat_evd_resize */
	room = evd->evq.slot && evq_count(&evd->evq) + events <= evd->evq.size;
	dapl_spin_unlock(&evd->post_lock);
	return room;
}

/* A connect EVD whose IA was closed takes no events, although the endpoint of another open of the adapter
 * still holds it. */
static bool is_ended(const struct dapl_evd *evd)
{
	return dapl_flag(&evd->dying);
}

static bool put_event(struct dapl_evd *evd, const DAT_EVENT *event)
{
	DAT_EVENT *slot = NULL;

	dapl_spin_lock(&evd->post_lock);
	if (!is_ended(evd) && evd->evq.slot && (slot = evq_reserve(&evd->evq))) {
		*slot = *event;
		slot->evd_handle = (DAT_EVD_HANDLE)evd;	/* EVD-18 */
		evq_commit(&evd->evq);
		__atomic_store_n(&evd->queued, true, __ATOMIC_RELEASE);
	}
	dapl_spin_unlock(&evd->post_lock);
	return slot != NULL;
}

bool dapl_evd_offer(struct dapl_evd *evd, const DAT_EVENT *event)
{
	if (!put_event(evd, event))
		return false;
	DAPL_PROBE2(event, evd, event->event_number);
	dapl_evd_notify(evd);
	return true;
}

/* EVD-52 */
bool dapl_evd_post(struct dapl_evd *evd, const DAT_EVENT *event)
{
	struct dapl_ia *ia = evd->obj.ia;

	if (dapl_evd_offer(evd, event))
		return true;
	if (is_ended(evd))
		return false;
	trace(TRC_LVL_ERROR, TRC_DAPL_ERROR, "evd", evd, "full", "event 0x%x lost, qlen %d",
	      event->event_number, evd->qlen);
	/* Relaxed: async_evd changes under ias_lock, and an event for it is posted with that lock held. */
	if (evd != READ_ONCE(ia->async_evd))
		dapl_async_post(ia, DAT_ASYNC_ERROR_EVD_OVERFLOW, evd, DAT_EVD_OVERFLOW_ERROR);
	return false;
}

/* EVD-44, 45, 46, 47, 48 */
DAT_RETURN dapl_evd_post_se(DAT_EVD_HANDLE handle, const DAT_EVENT *event)
{
	DAPL_ENTERED struct dapl_evd *evd = dapl_evd_enter(handle);
	DAT_EVENT copy;

	if (!evd)
		return BAD_HANDLE(EVD_REQUEST);
	if (!(evd->flags & DAT_EVD_SOFTWARE_FLAG))
		return BAD_PARAM(1);
	if (!event || event->event_number != DAT_SOFTWARE_EVENT)
		return BAD_PARAM(2);
	memset(&copy, 0, sizeof copy);
	copy.event_number = event->event_number;
	copy.event_data.software_event_data = event->event_data.software_event_data;
	if (!put_event(evd, &copy))
		return DAT_ERROR(DAT_QUEUE_FULL, DAT_NO_SUBTYPE);
	dapl_evd_notify(evd);
	return DAT_SUCCESS;
}
