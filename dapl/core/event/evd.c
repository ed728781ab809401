/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* evd.c - event dispatchers (EVD) as objects: creating, querying, modifying, freeing. evd_notify.c queues
 * events and notifies, evd_wait.c waits for them, event.c makes them of completions. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "common/descriptors.h"
#include "dapl/core/base/ia_handle.h"
#include "dapl/core/event/cno.h"
#include "dapl/core/event/event.h"
#include "dapl/core/event/evd.h"
#include "dapl/core/event/evd_channel.h"
#include "dapl/core/event/evd_notify.h"
#include "dapl/core/event/evd_resize.h"

/* --- making and ending ----------------------------------------------------------- */

static int make_cq(struct dapl_evd *evd, int qlen)
{
	struct dapl_ia *ia = evd->obj.ia;
	int err;

	err = dapl_device_ops.create_channel(ia->dev, &evd->channel);
	if (err)
		return err;
	err = dapl_device_ops.create_cq(ia->dev, dapl_evd_cq_entries(ia, qlen), evd, evd->channel, &evd->cq);
	if (err)
		return err;
	evd->wc_size = evd->cq->cqe > qlen ? evd->cq->cqe : qlen;
	if (evd->wc_size < DAPL_POLL_BATCH)
		evd->wc_size = DAPL_POLL_BATCH;
	evd->wc = malloc(evd->wc_size * sizeof *evd->wc);
	return evd->wc ? 0 : ENOMEM;
}

/* Takes away all that a dequeue with a stale handle could use, and returns the CQ. Such a dequeue cannot
 * take the fast path: `queued` stays set, also when the memory is used again (dapl_evd_make). */
static struct ibv_cq *take_queues(struct dapl_evd *evd)
{
	struct ibv_cq *cq;

	dapl_spin_lock(&evd->lock);
	cq = evd->cq;
	evd->cq = NULL;
	evd->wc_head = evd->wc_tail = 0;
	dapl_spin_lock(&evd->post_lock);	/* the endpoint of another open may still post */
	evd->evq.head = evd->evq.tail = 0;
	dapl_spin_unlock(&evd->post_lock);
	__atomic_store_n(&evd->queued, true, __ATOMIC_RELEASE);
	dapl_spin_unlock(&evd->lock);
	return cq;
}

/* Destroys the device's objects, because the device may be closed before the last reference is dropped. */
static void end_cq(struct dapl_evd *evd)
{
	struct ibv_cq *cq = take_queues(evd);

	if (cq)
		dapl_device_ops.destroy_cq(cq);
	if (evd->channel)
		dapl_device_ops.destroy_channel(evd->channel);
	evd->channel = NULL;
}

static void end_evd(struct dapl_object *obj)
{
	struct dapl_evd *evd = (struct dapl_evd *)obj;

	end_cq(evd);
	if (evd->wake_fd >= 0)
		close(evd->wake_fd);
	free(evd->wc);
	free(evd->evq.slot);
}

DAT_RETURN dapl_evd_make(struct dapl_ia *ia, int qlen, DAT_EVD_FLAGS flags,
			 struct dapl_cno *cno, bool discard, struct dapl_evd **made)
{
	struct dapl_evd *evd = dapl_object_new(DAPL_EVD, sizeof *evd, ia, end_evd);
	int err = 0;

	if (!evd)
		return NO_RESOURCE(MEMORY);
	dapl_mutex_init(&evd->change, RANK_EVD_CHANGE);
	dapl_mutex_init(&evd->mutex, RANK_EVD);
	dapl_spin_init(&evd->lock, RANK_EVD_QUEUE);
	dapl_spin_init(&evd->post_lock, RANK_EVD_POST);
	dapl_flag_set(&evd->inspect, false);	/* lock and flags keep their values over a reuse
						 * (dapl_object_new) */
	evd->flags = flags;
	evd->qlen = qlen;
	evd->discard = discard;
	evd->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (evd->wake_fd < 0)
		err = errno;
	if (!err && (flags & EVD_RING_STREAMS))
		err = dapl_evd_make_queue(&evd->evq, qlen);
	if (!err && (flags & EVD_CQ_STREAMS))
		err = make_cq(evd, qlen);
	if (!err && discard)
		err = dapl_evd_watch(evd);
	if (!err && cno) {
		dapl_mutex_lock(&evd->change);
		err = dapl_cno_attach(cno, evd);
		dapl_mutex_unlock(&evd->change);
	}
	if (err) {
		trace(TRC_LVL_ERROR, TRC_DAPL_ERROR, "evd", evd, NULL, "create qlen %d: %s", qlen,
		      strerror(err));
		report_no_descriptors(ia->ia_attr.adapter_name, err, "EVD creation");
		dapl_evd_unwatch(evd);
		dapl_object_put(&evd->obj);
		if (err == EBADF)
			return BAD_HANDLE(CNO);
		return dapl_status(err, err == ENOMEM ? DAT_RESOURCE_MEMORY : DAT_RESOURCE_TEVD);
	}
	*made = evd;
	return DAT_SUCCESS;
}

void dapl_evd_send_waiter_away(struct dapl_evd *evd)
{
	__atomic_store_n(&evd->dying, true, __ATOMIC_RELEASE);
	dapl_evd_signal(evd);
}

void dapl_evd_destroy(struct dapl_evd *evd)
{
	dapl_evd_send_waiter_away(evd);	/* there is no waiter left; this keeps a CNO's waiter from using the
					 * EVD */
	dapl_mutex_lock(&evd->change);
	if (evd->cno)
		dapl_cno_detach(evd->cno, evd);
	dapl_evd_unwatch(evd);
	dapl_mutex_unlock(&evd->change);
	while (__atomic_load_n(&evd->obj.refs, __ATOMIC_ACQUIRE) >
	       1 + __atomic_load_n(&evd->pins, __ATOMIC_ACQUIRE))
		sched_yield();	/* a CNO's waiter, or a thread that wakes a waiter, uses the EVD */
	end_cq(evd);
	dapl_object_bury(&evd->obj);
}

void dapl_evd_pin(struct dapl_evd *evd)
{
	__atomic_add_fetch(&evd->pins, 1, __ATOMIC_ACQ_REL);
	dapl_object_get(&evd->obj);
}

void dapl_evd_unpin(struct dapl_evd *evd)
{
	__atomic_sub_fetch(&evd->pins, 1, __ATOMIC_ACQ_REL);
	dapl_object_put(&evd->obj);
}

static DAT_EVD_FLAGS valid_flags(void)
{
	return (DAT_EVD_FLAGS)(DAT_EVD_SOFTWARE_FLAG | DAT_EVD_CR_FLAG | DAT_EVD_DTO_FLAG |
			       DAT_EVD_CONNECTION_FLAG | DAT_EVD_RMR_BIND_FLAG |
			       (int)DAT_IB_EVD_EXTENSION_FLAG);
}

/* Ends an EVD that the calling call has published and entered. If dat_ia_close has killed it, that ends
 * it. */
static void end_published(struct dapl_evd *evd)
{
	bool own = dapl_object_kill(&evd->obj);

	if (own)
		dapl_object_wait_calls(&evd->obj, 1);
	dapl_object_leave(&evd->obj);
	if (own)
		dapl_evd_destroy(evd);
}

/* dat_evd_create (doc/spec/calls.md 4). DAT_EVD_DEFAULT_FLAG carries the asynchronous stream, which only
 * dat_ia_open can bind: the bit alone is refused, and is ignored among others. EVD-1, 2, 3, 4, 5, 6, 9. */
DAT_RETURN dapl_evd_create(DAT_IA_HANDLE ia_handle, DAT_COUNT qlen, DAT_CNO_HANDLE cno_handle,
			   DAT_EVD_FLAGS flags, DAT_EVD_HANDLE *handle)
{
	DAPL_ENTERED struct dapl_ia *ia = dapl_ia_enter(ia_handle);
	DAPL_ENTERED struct dapl_cno *cno = NULL;
	struct dapl_evd *evd;
	DAT_RETURN ret;
	int err;

	if (!ia)
		return BAD_HANDLE(IA);
	if (!handle)
		return BAD_PARAM(5);
	*handle = DAT_HANDLE_NULL;
	if (qlen <= 0)
		return BAD_PARAM(2);
	if (qlen > ia->ia_attr.max_evd_qlen)
		return NO_RESOURCE(TEVD);
	if (cno_handle && (!(cno = dapl_cno_enter(cno_handle)) || cno->obj.ia != ia))
		return BAD_HANDLE(CNO);
	if (flags != DAT_EVD_ASYNC_FLAG)
		flags = (DAT_EVD_FLAGS)(flags & ~DAT_EVD_ASYNC_FLAG);
	if (!flags || (flags & ~valid_flags()))
		return BAD_PARAM(4);
	ret = dapl_evd_make(ia, qlen, flags, cno, false, &evd);
	if (ret != DAT_SUCCESS)
		return ret;
	dapl_object_enter_own(&evd->obj);
	dapl_object_publish(&evd->obj);
	/* dat_cno_modify_agent looks at published EVDs only */
	if (cno && (err = dapl_cno_follow_agent(evd))) {
		end_published(evd);
		return dapl_status(err, DAT_RESOURCE_MEMORY);
	}
	dapl_count(ia, DCNT_IA_EVD_CREATE);
	*handle = (DAT_EVD_HANDLE)evd;
	dapl_object_leave(&evd->obj);
	return DAT_SUCCESS;
}

/* Takes an event from the ring. Returns false if there is none. Takes the lock, because a dequeue, which
 * does not enter the EVD, may still hold it. */
static bool take_queued(struct dapl_evd *evd, DAT_EVENT *event)
{
	const DAT_EVENT *queued;

	dapl_spin_lock(&evd->lock);
	queued = evd->evq.slot ? evq_peek(&evd->evq) : NULL;
	if (queued) {
		*event = *queued;
		evq_drop(&evd->evq);
	}
	dapl_spin_unlock(&evd->lock);
	return queued != NULL;
}

/* Discards the events of an EVD that no call can dequeue from any more, and refuses the connection requests
 * among them: the consumer cannot get their handles to answer them. SP-42, 43. */
static void discard_events(struct dapl_evd *evd)
{
	DAT_EVENT event;

	while (take_queued(evd, &event))
		if (event.event_number == DAT_CONNECTION_REQUEST_EVENT ||
		    (int)event.event_number == (int)DAT_IB_UD_CONNECTION_REQUEST_EVENT)
			dapl_conn_hooks.refuse_request(event.event_data.cr_arrival_event_data.cr_handle);
}

/* dat_evd_free (doc/spec/calls.md 4): wakes a waiter; refused while a stream feeds the EVD.
 * EVD-49, 50, 51. */
DAT_RETURN dapl_evd_free(DAT_EVD_HANDLE handle)
{
	DAPL_ENTERED struct dapl_evd *evd = dapl_evd_enter(handle);

	if (!evd)
		return BAD_HANDLE(EVD_REQUEST);
	if (evd == __atomic_load_n(&evd->obj.ia->async_evd, __ATOMIC_RELAXED))
		return BAD_STATE(EVD_IN_USE);
	switch (dapl_object_kill_unused(&evd->obj)) {
	case KILL_IN_USE:	return BAD_STATE(EVD_IN_USE);
	case KILL_LOST:		return BAD_HANDLE(EVD_REQUEST);
	case KILL_DONE:		break;
	}
	dapl_evd_send_waiter_away(evd);
	dapl_object_wait_calls(&evd->obj, 1);
	discard_events(evd);
	dapl_count(evd->obj.ia, DCNT_IA_EVD_FREE);
	dapl_evd_destroy(evd);
	return DAT_SUCCESS;
}

/* --- small calls -------------------------------------------------------------------- */

static DAT_EVD_STATE config_state(const struct dapl_evd *evd)
{
	if (evd->feeds.solicited)
		return DAT_EVD_STATE_CONFIG_SOLICITED;
	if (evd->feeds.threshold && !evd->feeds.unsignaled)
		return DAT_EVD_STATE_CONFIG_THRESHOLD;
	return DAT_EVD_STATE_CONFIG_NOTIFY;
}

/* EVD-10, 11 */
DAT_RETURN dapl_evd_query(DAT_EVD_HANDLE handle, DAT_EVD_PARAM_MASK mask, DAT_EVD_PARAM *param)
{
	DAPL_ENTERED struct dapl_evd *evd = dapl_evd_enter(handle);

	if (!evd)
		return BAD_HANDLE(EVD_REQUEST);
	if (mask & ~DAT_EVD_FIELD_ALL)
		return BAD_PARAM(2);
	if (!param)
		return BAD_PARAM(3);
	dapl_mutex_lock(&evd->mutex);
	param->ia_handle = dapl_ia_handle(evd->obj.ia);
	param->evd_qlen = evd->qlen;
	param->evd_state = (DAT_EVD_STATE)
		((evd->disabled ? DAT_EVD_STATE_DISABLED : DAT_EVD_STATE_ENABLED) |
		 (evd->unwaitable ? DAT_EVD_STATE_UNWAITABLE : DAT_EVD_STATE_WAITABLE) |
		 config_state(evd));
	param->cno_handle = (DAT_CNO_HANDLE)evd->cno;
	param->evd_flags = evd->flags;
	dapl_mutex_unlock(&evd->mutex);
	return DAT_SUCCESS;
}

/* CNO-16, 17 */
DAT_RETURN dapl_evd_modify_cno(DAT_EVD_HANDLE handle, DAT_CNO_HANDLE cno_handle)
{
	DAPL_ENTERED struct dapl_evd *evd = dapl_evd_enter(handle);
	DAPL_ENTERED struct dapl_cno *cno = NULL;
	struct dapl_cno *old;
	int err = 0;

	if (!evd)
		return BAD_HANDLE(EVD_REQUEST);
	if (cno_handle && (!(cno = dapl_cno_enter(cno_handle)) || cno->obj.ia != evd->obj.ia))
		return BAD_HANDLE(CNO);
	dapl_mutex_lock(&evd->change);
	old = evd->cno;
	if (old && old != cno) {
		dapl_use_again(&old->obj);	/* so that it can be attached again after an error */
		dapl_cno_detach(old, evd);
	}
	if (cno && old != cno)
		err = dapl_cno_attach(cno, evd);
	if (err && old)
		dapl_cno_attach(old, evd);
	if (old && old != cno)
		dapl_unuse(&old->obj);
	dapl_mutex_unlock(&evd->change);
	if (err == EBADF)
		return BAD_HANDLE(CNO);
	return dapl_status(err, DAT_RESOURCE_MEMORY);
}

/* EVD-40 */
static DAT_RETURN set_disabled(DAT_EVD_HANDLE handle, bool disabled)
{
	DAPL_ENTERED struct dapl_evd *evd = dapl_evd_enter(handle);

	if (!evd)
		return BAD_HANDLE(EVD_REQUEST);
	dapl_mutex_lock(&evd->mutex);
	evd->disabled = disabled;
	dapl_mutex_unlock(&evd->mutex);
	return DAT_SUCCESS;
}

DAT_RETURN dapl_evd_enable(DAT_EVD_HANDLE handle)
{
	return set_disabled(handle, false);
}

DAT_RETURN dapl_evd_disable(DAT_EVD_HANDLE handle)
{
	return set_disabled(handle, true);
}

/* EVD-30, 31, 32 */
static DAT_RETURN set_unwaitable(DAT_EVD_HANDLE handle, bool unwaitable)
{
	DAPL_ENTERED struct dapl_evd *evd = dapl_evd_enter(handle);

	if (!evd)
		return BAD_HANDLE(EVD_REQUEST);
	dapl_mutex_lock(&evd->mutex);
	__atomic_store_n(&evd->unwaitable, unwaitable, __ATOMIC_RELEASE);
	if (unwaitable && dapl_flag(&evd->waiting))
		dapl_evd_signal(evd);
	dapl_mutex_unlock(&evd->mutex);
	return DAT_SUCCESS;
}

DAT_RETURN dapl_evd_set_unwaitable(DAT_EVD_HANDLE handle)
{
	return set_unwaitable(handle, true);
}

DAT_RETURN dapl_evd_clear_unwaitable(DAT_EVD_HANDLE handle)
{
	return set_unwaitable(handle, false);
}
