/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* evd.c - event dispatchers: making, feeding, waiting, resizing, ending them. What an
 * event looks like and the data path are event.c's job; triggers are cno.c's.
 *
 * Who is told: a producer (dapl_evd_post, or whoever takes the CQ's event from the
 * channel) tells the thread in dat_evd_wait if there is one, else the CNO. The waiter
 * announces itself under evd->mutex before it looks at the queue for the last time, and
 * producers look for it under evd->mutex after they queued: so no wake-up is lost. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include "dapl/core/evd.h"
#include "dapl/core/event.h"
#include "dapl/core/provider.h"

static uint32_t power_of_two(uint32_t n)
{
	uint32_t p = 1;

	while (p < n)
		p <<= 1;
	return p;
}

static void signal_fd(int fd)
{
	uint64_t one = 1;

	while (write(fd, &one, sizeof one) < 0 && errno == EINTR)
		;
}

static void clear_fd(int fd)
{
	uint64_t n;

	while (read(fd, &n, sizeof n) < 0 && errno == EINTR)
		;
}

/* --- telling ------------------------------------------------------------------ */

/* A waiter says `asleep` and then looks once more; who tells it has put the event, says `told`,
 * and then looks whether it's asleep: with a full fence between, one sees the other, and one
 * that is awake costs no system call. */
static void wake_waiter(struct dapl_evd *evd)
{
	__atomic_store_n(&evd->told, true, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&evd->asleep, __ATOMIC_RELAXED) &&
	    __atomic_exchange_n(&evd->asleep, false, __ATOMIC_RELAXED))
		signal_fd(evd->wake_fd);
}

/* The waiter is woken when the mutex is free, for it takes it at once: dapl_evd_destroy waits
 * for the reference. */
void dapl_evd_tell(struct dapl_evd *evd)
{
	bool waiting;

	pthread_mutex_lock(&evd->mutex);
	waiting = dapl_flag(&evd->waiting);
	if (waiting)
		dapl_object_get(&evd->obj);
	else if (evd->cno && !evd->disabled && !evd->dying)
		dapl_cno_trigger(evd->cno, evd);
	pthread_mutex_unlock(&evd->mutex);
	if (waiting) {
		wake_waiter(evd);
		dapl_object_put(&evd->obj);
	}
}

void dapl_evd_unhold(struct dapl_evd *evd)
{
	bool held;

	dapl_spin_lock(&evd->lock);
	held = evd->held_back;
	evd->held_back = false;
	dapl_spin_unlock(&evd->lock);
	if (held)
		dapl_evd_tell(evd);
}

bool dapl_evd_has_room(struct dapl_evd *evd, unsigned events)
{
	return evd->ring.slot && ring_count(&evd->ring) + events <= evd->ring.size;
}

static bool put_event(struct dapl_evd *evd, const DAT_EVENT *event)
{
	DAT_EVENT *slot = NULL;

	dapl_spin_lock(&evd->post_lock);
	if (evd->ring.slot && (slot = ring_reserve(&evd->ring))) {
		*slot = *event;
		slot->evd_handle = (DAT_EVD_HANDLE)evd;
		ring_commit(&evd->ring);
		__atomic_store_n(&evd->queued, true, __ATOMIC_RELEASE);
	}
	dapl_spin_unlock(&evd->post_lock);
	return slot != NULL;
}

bool dapl_evd_post(struct dapl_evd *evd, const DAT_EVENT *event)
{
	struct dapl_ia *ia = evd->obj.ia;

	if (put_event(evd, event)) {
		DAPL_PROBE2(event, evd, event->event_number);
		dapl_evd_tell(evd);
		return true;
	}
	trace(TRC_LVL_ERROR, TRC_DAPL_ERROR, "evd", evd, "full", "event 0x%x lost, qlen %d",
	      event->event_number, evd->qlen);
	if (evd != ia->async_evd)
		dapl_ia_async(ia, DAT_ASYNC_ERROR_EVD_OVERFLOW, evd, DAT_EVD_OVERFLOW_ERROR);
	return false;
}

void dapl_evd_arm(struct dapl_evd *evd)
{
	if (!evd->cq || evd->armed)
		return;
	evd->armed = true;
	ibv_req_notify_cq(evd->cq, evd->solicited && !evd->obj.ia->attr.no_solicited);
}

void dapl_evd_discard(struct dapl_evd *evd)
{
	struct dapl_after after = { NULL, 0 };
	enum dapl_take took;
	DAT_EVENT event;

	do {
		dapl_spin_lock(&evd->lock);
		took = dapl_evd_take(evd, &event, &after);
		dapl_spin_unlock(&evd->lock);
		if (after.ep)
			dapl_after_run(&after);
	} while (took == TAKE_EVENT || took == TAKE_AGAIN);
}

/* evd->lock held. Takes the CQ's events from the channel; 0, or why it can't be read. */
static int take_cq_events(struct dapl_evd *evd, bool *got)
{
	struct ibv_cq *cq;
	int err;

	*got = false;
	while (!(err = dapl_device_ops.get_cq_event(evd->channel, &cq)))
		*got = true;
	if (*got)
		evd->armed = false;
	return err == EAGAIN || err == EINTR ? 0 : err;
}

/* A channel that can't be read, for its device is gone, stays readable and never tells of an
 * event: who slept on it would not sleep, or for ever. All who wait are told, and who waits
 * later: dat_evd_wait returns an error where the queue is empty. Polling works on. */
static void lose_channel(struct dapl_evd *evd, int err)
{
	if (!__atomic_exchange_n(&evd->deaf, true, __ATOMIC_ACQ_REL)) {
		trace(TRC_LVL_ERROR, TRC_DAPL_ERROR, "evd", evd, "deaf", "its channel can't be read: %s",
		      strerror(err));
		dapl_ia_async(evd->obj.ia, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR,
			      evd->discard ? NULL : evd, DAT_EVD_OTHER_ERROR);
	}
	dapl_evd_tell(evd);
}

bool dapl_evd_cq_event(struct dapl_evd *evd)
{
	bool got, worth_telling = false;
	uint32_t notices;
	int err;

	dapl_spin_lock(&evd->lock);
	err = take_cq_events(evd, &got);
	if (got) {
		notices = evd->notices;
		if (!evd->discard)
			dapl_evd_fill(evd);
		dapl_evd_arm(evd);
		if (!evd->discard)
			dapl_evd_fill(evd);
		worth_telling = !evd->quiet || evd->notices > notices;
		evd->counters[DCNT_EVD_DTO_CALLBACK]++;
	}
	dapl_spin_unlock(&evd->lock);
	if (got && evd->discard)
		dapl_evd_discard(evd);
	else if (worth_telling)
		dapl_evd_tell(evd);
	if (err)
		lose_channel(evd, err);
	return !err;
}

static void channel_ready(struct dapl_watch *watch)
{
	if (!dapl_evd_cq_event(container_of(watch, struct dapl_evd, watch)))
		dapl_watch_stop(watch);
}

/* The service thread takes the CQ's events: proxies, spilling, sinks, watermarks. */
int dapl_evd_watch(struct dapl_evd *evd)
{
	int err = 0;

	if (!evd->channel || evd->watched)
		return 0;
	if ((err = dapl_watch_start(&evd->watch, evd->channel->fd, channel_ready)))
		return err;
	evd->watched = true;
	dapl_spin_lock(&evd->lock);
	dapl_evd_arm(evd);
	dapl_spin_unlock(&evd->lock);
	return 0;
}

void dapl_evd_unwatch(struct dapl_evd *evd)
{
	if (evd->watched)
		dapl_watch_stop(&evd->watch);
	evd->watched = false;
}

/* --- making and ending ----------------------------------------------------------- */

static int make_ring(struct dapl_ring *ring, int qlen)
{
	uint32_t slots = power_of_two(qlen);

	ring->slot = malloc(slots * sizeof *ring->slot);
	if (!ring->slot)
		return ENOMEM;
	ring->size = qlen;
	ring->mask = slots - 1;
	return 0;
}

/* Room in the CQ for qlen completions and for the provider's own. */
static int cq_entries(struct dapl_ia *ia, int qlen)
{
	int max = ia->attr.limits.max_cqe;

	return qlen > max - DAPL_CQ_SPARE ? max : qlen + DAPL_CQ_SPARE;
}

static int make_cq(struct dapl_evd *evd, int qlen)
{
	struct dapl_ia *ia = evd->obj.ia;
	int err;

	err = dapl_device_ops.create_channel(ia->dev, &evd->channel);
	if (err)
		return err;
	err = dapl_device_ops.create_cq(ia->dev, cq_entries(ia, qlen), evd, evd->channel, &evd->cq);
	if (err)
		return err;
	evd->wc_size = evd->cq->cqe > qlen ? evd->cq->cqe : qlen;
	if (evd->wc_size < DAPL_POLL_BATCH)
		evd->wc_size = DAPL_POLL_BATCH;
	evd->wc = malloc(evd->wc_size * sizeof *evd->wc);
	return evd->wc ? 0 : ENOMEM;
}

/* What belongs to the device goes before the device does. */
static void end_cq(struct dapl_evd *evd)
{
	if (evd->cq)
		dapl_device_ops.destroy_cq(evd->cq);
	if (evd->channel)
		dapl_device_ops.destroy_channel(evd->channel);
	evd->cq = NULL;
	evd->channel = NULL;
}

static void end_evd(struct dapl_object *obj)
{
	struct dapl_evd *evd = (struct dapl_evd *)obj;

	end_cq(evd);
	if (evd->wake_fd >= 0)
		close(evd->wake_fd);
	free(evd->wc);
	free(evd->ring.slot);
	pthread_mutex_destroy(&evd->mutex);
	pthread_cond_destroy(&evd->left);
}

#define RING_STREAMS (DAT_EVD_SOFTWARE_FLAG | DAT_EVD_CR_FLAG | DAT_EVD_CONNECTION_FLAG | \
		      DAT_EVD_ASYNC_FLAG | (int)DAT_IB_EVD_EXTENSION_FLAG)
#define CQ_STREAMS (DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG)

DAT_RETURN dapl_evd_make(struct dapl_ia *ia, int qlen, DAT_EVD_FLAGS flags,
			 struct dapl_cno *cno, bool discard, struct dapl_evd **made)
{
	struct dapl_evd *evd = dapl_object_new(DAPL_EVD, sizeof *evd, ia, end_evd);
	int err = 0;

	if (!evd)
		return NO_RESOURCE(MEMORY);
	pthread_mutex_init(&evd->mutex, NULL);
	pthread_cond_init(&evd->left, NULL);
	evd->flags = flags;
	evd->qlen = qlen;
	evd->discard = discard;
	evd->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (evd->wake_fd < 0)
		err = errno;
	if (!err && (flags & RING_STREAMS))
		err = make_ring(&evd->ring, qlen);
	if (!err && (flags & CQ_STREAMS))
		err = make_cq(evd, qlen);
	if (!err && discard)
		err = dapl_evd_watch(evd);
	if (!err && cno)
		err = dapl_cno_attach(cno, evd);
	if (err) {
		trace(TRC_LVL_ERROR, TRC_DAPL_ERROR, "evd", evd, NULL, "create qlen %d: %s", qlen,
		      strerror(err));
		dapl_evd_unwatch(evd);
		dapl_object_put(&evd->obj);
		return dapl_status(err, err == ENOMEM ? DAT_RESOURCE_MEMORY : DAT_RESOURCE_TEVD);
	}
	*made = evd;
	return DAT_SUCCESS;
}

/* A waiter leaves by itself once it sees `dying`; wait until it has. */
static void send_waiter_away(struct dapl_evd *evd)
{
	pthread_mutex_lock(&evd->mutex);
	__atomic_store_n(&evd->dying, true, __ATOMIC_RELEASE);
	signal_fd(evd->wake_fd);
	while (dapl_flag(&evd->waiting))
		pthread_cond_wait(&evd->left, &evd->mutex);
	pthread_mutex_unlock(&evd->mutex);
}

void dapl_evd_destroy(struct dapl_evd *evd)
{
	struct dapl_cno *cno = evd->cno;

	send_waiter_away(evd);
	dapl_evd_unwatch(evd);
	if (cno)
		dapl_cno_detach(cno, evd);
	while (__atomic_load_n(&evd->obj.refs, __ATOMIC_ACQUIRE) >
	       1 + __atomic_load_n(&evd->holds, __ATOMIC_ACQUIRE))
		sched_yield();	/* a CNO's waiter looks at it, or who tells a waiter */
	end_cq(evd);
	dapl_object_put(&evd->obj);
}

void dapl_evd_hold(struct dapl_evd *evd)
{
	__atomic_add_fetch(&evd->holds, 1, __ATOMIC_ACQ_REL);
	dapl_object_get(&evd->obj);
}

void dapl_evd_drop(struct dapl_evd *evd)
{
	__atomic_sub_fetch(&evd->holds, 1, __ATOMIC_ACQ_REL);
	dapl_object_put(&evd->obj);
}

static DAT_EVD_FLAGS valid_flags(void)
{
	return (DAT_EVD_FLAGS)(DAT_EVD_SOFTWARE_FLAG | DAT_EVD_CR_FLAG | DAT_EVD_DTO_FLAG |
			       DAT_EVD_CONNECTION_FLAG | DAT_EVD_RMR_BIND_FLAG |
			       (int)DAT_IB_EVD_EXTENSION_FLAG);
}

/* dat_evd_create (spec/calls.md 4). DAT_EVD_DEFAULT_FLAG carries the asynchronous stream,
 * which only dat_ia_open binds: the bit alone is refused, within others it is dropped. */
DAT_RETURN dapl_evd_create(DAT_IA_HANDLE ia_handle, DAT_COUNT qlen, DAT_CNO_HANDLE cno_handle,
			   DAT_EVD_FLAGS flags, DAT_EVD_HANDLE *handle)
{
	struct dapl_ia *ia = dapl_ia_from(ia_handle);
	struct dapl_cno *cno = NULL;
	struct dapl_evd *evd;
	DAT_RETURN ret;

	if (!ia)
		return BAD_HANDLE(IA);
	if (!handle)
		return BAD_PARAM(5);
	*handle = DAT_HANDLE_NULL;
	if (qlen <= 0)
		return BAD_PARAM(2);
	if (qlen > ia->ia_attr.max_evd_qlen)
		return NO_RESOURCE(TEVD);
	if (cno_handle && (!(cno = dapl_cno_from(cno_handle)) || cno->obj.ia != ia))
		return BAD_HANDLE(CNO);
	if (flags != DAT_EVD_ASYNC_FLAG)
		flags = (DAT_EVD_FLAGS)(flags & ~DAT_EVD_ASYNC_FLAG);
	if (!flags || (flags & ~valid_flags()))
		return BAD_PARAM(4);
	ret = dapl_evd_make(ia, qlen, flags, cno, false, &evd);
	if (ret != DAT_SUCCESS)
		return ret;
	dapl_object_publish(&evd->obj);
	dapl_count(ia, DCNT_IA_EVD_CREATE);
	*handle = (DAT_EVD_HANDLE)evd;
	return DAT_SUCCESS;
}

/* dat_evd_free (spec/calls.md 4): wakes a waiter, but is refused while a stream feeds it. */
DAT_RETURN dapl_evd_free(DAT_EVD_HANDLE handle)
{
	struct dapl_evd *evd = dapl_evd_from(handle);

	if (!evd)
		return BAD_HANDLE(EVD_REQUEST);
	if (dapl_in_use(&evd->obj) || evd == evd->obj.ia->async_evd)
		return BAD_STATE(EVD_IN_USE);
	if (!dapl_object_kill(&evd->obj))
		return BAD_HANDLE(EVD_REQUEST);
	dapl_count(evd->obj.ia, DCNT_IA_EVD_FREE);
	dapl_evd_destroy(evd);
	return DAT_SUCCESS;
}

/* --- who feeds it ------------------------------------------------------------------ */

/* DEFAULT and EVD_THRESHOLD notify alike: programs mix endpoints with attributes all zero
 * and endpoints without attributes on one EVD. */
static DAT_COMPLETION_FLAGS notify_class(DAT_COMPLETION_FLAGS flags)
{
	return (DAT_COMPLETION_FLAGS)(flags & ~DAT_COMPLETION_EVD_THRESHOLD_FLAG);
}

/* SOLICITED_WAIT receives tolerate no stream of another kind. */
static bool mixes(const struct dapl_evd *evd, DAT_COMPLETION_FLAGS flags)
{
	return !(flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG) ||
		!(evd->flags & ~(CQ_STREAMS | (int)DAT_IB_EVD_EXTENSION_FLAG));
}

static void set_feed_mode(struct dapl_evd *evd)
{
	DAT_COMPLETION_FLAGS flags = evd->feeds ? evd->feed_flags : DAT_COMPLETION_DEFAULT_FLAG;

	dapl_spin_lock(&evd->lock);
	evd->solicited = (flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG) != 0;
	evd->quiet = (flags & DAT_COMPLETION_UNSIGNALLED_FLAG) != 0;
	dapl_spin_unlock(&evd->lock);
	if (evd->quiet)
		dapl_evd_inspect(evd);
}

DAT_RETURN dapl_evd_feed(struct dapl_evd *evd, DAT_COMPLETION_FLAGS flags)
{
	DAT_RETURN ret = DAT_SUCCESS;

	pthread_mutex_lock(&evd->mutex);
	if ((evd->feeds && notify_class(flags) != notify_class(evd->feed_flags)) ||
	    !mixes(evd, flags)) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_NO_SUBTYPE);
	} else {
		if (!evd->feeds++)
			evd->feed_flags = flags;
		set_feed_mode(evd);
		dapl_use(&evd->obj);
	}
	pthread_mutex_unlock(&evd->mutex);
	return ret;
}

void dapl_evd_unfeed(struct dapl_evd *evd)
{
	pthread_mutex_lock(&evd->mutex);
	evd->feeds--;
	set_feed_mode(evd);
	pthread_mutex_unlock(&evd->mutex);
	dapl_unuse(&evd->obj);
}

void dapl_evd_inspect(struct dapl_evd *evd)
{
	dapl_spin_lock(&evd->lock);
	if (!dapl_flag(&evd->inspect)) {
		dapl_flag_set(&evd->inspect, true);
		dapl_evd_inspect_all(evd);
	}
	dapl_spin_unlock(&evd->lock);
}

/* --- small calls -------------------------------------------------------------------- */

static DAT_EVD_STATE config_state(const struct dapl_evd *evd)
{
	if (!evd->feeds)
		return DAT_EVD_STATE_CONFIG_NOTIFY;
	if (evd->feed_flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG)
		return DAT_EVD_STATE_CONFIG_SOLICITED;
	if (evd->feed_flags & DAT_COMPLETION_EVD_THRESHOLD_FLAG)
		return DAT_EVD_STATE_CONFIG_THRESHOLD;
	return DAT_EVD_STATE_CONFIG_NOTIFY;
}

DAT_RETURN dapl_evd_query(DAT_EVD_HANDLE handle, DAT_EVD_PARAM_MASK mask, DAT_EVD_PARAM *param)
{
	struct dapl_evd *evd = dapl_evd_from(handle);

	if (!evd)
		return BAD_HANDLE(EVD_REQUEST);
	if (mask & ~DAT_EVD_FIELD_ALL)
		return BAD_PARAM(2);
	if (!param)
		return BAD_PARAM(3);
	pthread_mutex_lock(&evd->mutex);
	param->ia_handle = dapl_ia_handle(evd->obj.ia);
	param->evd_qlen = evd->qlen;
	param->evd_state = (DAT_EVD_STATE)
		((evd->disabled ? DAT_EVD_STATE_DISABLED : DAT_EVD_STATE_ENABLED) |
		 (evd->unwaitable ? DAT_EVD_STATE_UNWAITABLE : DAT_EVD_STATE_WAITABLE) |
		 config_state(evd));
	param->cno_handle = (DAT_CNO_HANDLE)evd->cno;
	param->evd_flags = evd->flags;
	pthread_mutex_unlock(&evd->mutex);
	return DAT_SUCCESS;
}

DAT_RETURN dapl_evd_modify_cno(DAT_EVD_HANDLE handle, DAT_CNO_HANDLE cno_handle)
{
	struct dapl_evd *evd = dapl_evd_from(handle);
	struct dapl_cno *cno = NULL, *old;
	int err = 0;

	if (!evd)
		return BAD_HANDLE(EVD_REQUEST);
	if (cno_handle && (!(cno = dapl_cno_from(cno_handle)) || cno->obj.ia != evd->obj.ia))
		return BAD_HANDLE(CNO);
	old = evd->cno;
	if (old == cno)
		return DAT_SUCCESS;
	if (old)
		dapl_cno_detach(old, evd);
	if (cno && (err = dapl_cno_attach(cno, evd)) && old)
		dapl_cno_attach(old, evd);
	return dapl_status(err, DAT_RESOURCE_MEMORY);
}

static DAT_RETURN set_disabled(DAT_EVD_HANDLE handle, bool disabled)
{
	struct dapl_evd *evd = dapl_evd_from(handle);

	if (!evd)
		return BAD_HANDLE(EVD_REQUEST);
	pthread_mutex_lock(&evd->mutex);
	evd->disabled = disabled;
	pthread_mutex_unlock(&evd->mutex);
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

static DAT_RETURN set_unwaitable(DAT_EVD_HANDLE handle, bool unwaitable)
{
	struct dapl_evd *evd = dapl_evd_from(handle);

	if (!evd)
		return BAD_HANDLE(EVD_REQUEST);
	pthread_mutex_lock(&evd->mutex);
	__atomic_store_n(&evd->unwaitable, unwaitable, __ATOMIC_RELEASE);
	if (unwaitable && dapl_flag(&evd->waiting))
		signal_fd(evd->wake_fd);
	pthread_mutex_unlock(&evd->mutex);
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

DAT_RETURN dapl_evd_post_se(DAT_EVD_HANDLE handle, const DAT_EVENT *event)
{
	struct dapl_evd *evd = dapl_evd_from(handle);
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
	dapl_evd_tell(evd);
	return DAT_SUCCESS;
}

/* --- resizing ------------------------------------------------------------------------- */

static int resize_ring(struct dapl_evd *evd, int qlen)
{
	struct dapl_ring new = evd->ring;
	const DAT_EVENT *event;
	int err;

	if (!evd->ring.slot)
		return 0;
	if ((uint32_t)qlen <= evd->ring.mask + 1) {
		evd->ring.size = qlen;
		return 0;
	}
	new.head = new.tail = 0;
	if ((err = make_ring(&new, qlen)))
		return err;
	while ((event = ring_peek(&evd->ring))) {
		new.slot[new.tail++] = *event;
		ring_drop(&evd->ring);
	}
	free(evd->ring.slot);
	evd->ring = new;
	return 0;
}

/* The CQ grows; where the device can't, the service thread empties the CQ into wc, which
 * does grow (EOPNOTSUPP: begin with that). */
static int resize_cq(struct dapl_evd *evd, int qlen)
{
	int entries = cq_entries(evd->obj.ia, qlen), err = 0;
	uint32_t size = entries > qlen ? entries : qlen;
	struct ibv_wc *wc;

	if (!evd->cq || entries <= evd->cq->cqe)
		return 0;
	if (size > evd->wc_size) {
		wc = realloc(evd->wc, size * sizeof *wc);
		if (!wc)
			return ENOMEM;
		evd->wc = wc;
		evd->wc_size = size;
	}
	if (!evd->spill)
		err = dapl_device_ops.resize_cq(evd->cq, entries);
	return err;
}

/* dat_evd_resize (spec/calls.md 4), also while events are queued and threads poll. */
DAT_RETURN dapl_evd_resize(DAT_EVD_HANDLE handle, DAT_COUNT qlen)
{
	struct dapl_evd *evd = dapl_evd_from(handle);
	int err = 0;

	if (!evd)
		return BAD_HANDLE(EVD_REQUEST);
	if (qlen <= 0)
		return BAD_PARAM(2);
	if (qlen > evd->obj.ia->ia_attr.max_evd_qlen)
		return NO_RESOURCE(TEVD);
	pthread_mutex_lock(&evd->mutex);
	dapl_spin_lock(&evd->lock);
	dapl_spin_lock(&evd->post_lock);
	dapl_evd_fill(evd);
	if (dapl_evd_count(evd) > (unsigned)qlen)
		err = EBUSY;
	if (!err)
		err = resize_cq(evd, qlen);
	if (!err || err == EOPNOTSUPP || err == ENOSYS) {
		evd->spill |= err != 0;
		err = resize_ring(evd, qlen);
	}
	if (!err)
		evd->qlen = qlen;
	dapl_spin_unlock(&evd->post_lock);
	dapl_spin_unlock(&evd->lock);
	if (!err && evd->spill)
		err = dapl_evd_watch(evd);
	pthread_mutex_unlock(&evd->mutex);
	if (err == EBUSY)
		return BAD_STATE(EVD_IN_USE);
	return dapl_status(err, err == ENOMEM ? DAT_RESOURCE_MEMORY : DAT_RESOURCE_TEVD);
}

/* --- waiting ---------------------------------------------------------------------------- */

struct wait {
	struct dapl_evd *evd;
	int threshold;
	uint64_t deadline;	/* ns; UINT64_MAX: never */
	bool notified;		/* a CQ event came since the wait began */
	bool first;		/* the queue as it was found at entry */
	unsigned found;		/* events queued, as last counted */
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

/* evd->lock held, completions polled. */
static bool satisfied(const struct wait *w)
{
	struct dapl_evd *evd = w->evd;

	if (w->found < (unsigned)w->threshold)
		return false;
	if (w->threshold > 1 || w->first || ring_count(&evd->ring))
		return true;
	if (evd->solicited)
		return w->notified;
	return !evd->quiet || evd->notices;
}

/* Completions that make no event wait at the head; the provider needs them taken. */
static bool only_markers(const struct wait *w)
{
	return !w->found && w->threshold == 1 && w->evd->wc_head != w->evd->wc_tail;
}

/* One look at the queue. True when the wait is over. */
static bool look(struct wait *w, DAT_EVENT *event, bool arm)
{
	struct dapl_evd *evd = w->evd;
	struct dapl_after after = { NULL, 0 };
	enum dapl_take took;

	if (__atomic_load_n(&evd->told, __ATOMIC_RELAXED)) {
		__atomic_store_n(&evd->told, false, __ATOMIC_RELAXED);
		w->notified = true;
	}
	do {
		took = TAKE_EMPTY;
		dapl_spin_lock(&evd->lock);
		if (arm)
			dapl_evd_arm(evd);
		dapl_evd_fill(evd);
		w->found = dapl_evd_count(evd);
		if (satisfied(w) || only_markers(w))
			took = dapl_evd_take(evd, event, &after);
		if (took == TAKE_EVENT && !w->found)
			w->found = 1;
		dapl_spin_unlock(&evd->lock);
		if (after.ep)
			dapl_after_run(&after);
	} while (took == TAKE_AGAIN);
	w->first = false;
	return took == TAKE_EVENT;
}

static DAT_RETURN refused(const struct dapl_evd *evd)
{
	if (__atomic_load_n(&evd->dying, __ATOMIC_ACQUIRE))
		return DAT_ERROR(DAT_ABORT, DAT_NO_SUBTYPE);
	if (__atomic_load_n(&evd->unwaitable, __ATOMIC_ACQUIRE))
		return BAD_STATE(EVD_UNWAITABLE);
	return DAT_SUCCESS;
}

/* How long the wait may last yet; NULL: for ever. False: it's over. */
static bool time_left(const struct wait *w, struct timespec *left, struct timespec **timeout)
{
	uint64_t now;

	*timeout = NULL;
	if (w->deadline == UINT64_MAX)
		return true;
	now = now_ns();
	if (now >= w->deadline)
		return false;
	left->tv_sec = (w->deadline - now) / 1000000000;
	left->tv_nsec = (w->deadline - now) % 1000000000;
	*timeout = left;
	return true;
}

/* True: the channel had an event, or can't be read. */
static bool was_notified(struct wait *w)
{
	struct dapl_evd *evd = w->evd;
	bool got;
	int err;

	dapl_spin_lock(&evd->lock);
	err = take_cq_events(evd, &got);
	dapl_spin_unlock(&evd->lock);
	w->notified |= got;
	__atomic_add_fetch(&evd->counters[DCNT_EVD_WAIT_NOTIFY], got, __ATOMIC_RELAXED);
	if (err)
		lose_channel(evd, err);
	return got || err;
}

enum { WAKE, CHANNEL, DEVICE, FDS };

/* Until somebody tells, the channel has an event, or there is something to do for the device, which
 * is done. True: the wait is not over. */
static bool sleeps_on(struct wait *w, struct pollfd *fds)
{
	struct dapl_evd *evd = w->evd;

	if (fds[WAKE].revents) {
		clear_fd(evd->wake_fd);
		w->notified = true;
		return false;
	}
	if (fds[CHANNEL].revents) {
		was_notified(w);
		return false;
	}
	if (fds[DEVICE].revents) {
		dapl_works_asleep(evd->obj.ia, &fds[DEVICE].fd);
		return !evd->channel || !was_notified(w);
	}
	return false;
}

/* 0, EINTR, or ETIMEDOUT. */
static int sleep_on(struct wait *w)
{
	struct dapl_evd *evd = w->evd;
	struct pollfd fds[FDS] = {
		[WAKE] = { .fd = evd->wake_fd, .events = POLLIN },
		[CHANNEL] = { .fd = evd->channel ? evd->channel->fd : -1, .events = POLLIN },
		[DEVICE] = { .fd = -1, .events = POLLIN },
	};
	struct timespec left, *timeout;
	int err = 0;

	if (!time_left(w, &left, &timeout))
		return ETIMEDOUT;
	__atomic_add_fetch(&evd->counters[DCNT_EVD_WAIT_BLOCKED], 1, __ATOMIC_RELAXED);
	fds[DEVICE].fd = dapl_about_to_sleep(evd->obj.ia, evd->channel);
	do {
		if (ppoll(fds, FDS, timeout, NULL) < 0) {
			err = errno == EINTR ? EINTR : 0;
			break;
		}
	} while (sleeps_on(w, fds) && time_left(w, &left, &timeout));
	dapl_sleeps_no_more(evd->obj.ia, fds[DEVICE].fd);
	return err;
}

static DAT_RETURN wait_loop(struct wait *w, DAT_EVENT *event)
{
	struct dapl_evd *evd = w->evd;
	DAT_RETURN ret;
	bool last = false;

	/* Who finds an event leaves the CQ as it is: a notification that nobody sleeps for would wake
	 * the next one who does, in vain. But a solicited event between the look and the arming
	 * would be missed: arm first. */
	if (look(w, event, evd->solicited))
		return DAT_SUCCESS;
	if (w->deadline == 0)
		return (ret = refused(evd)) ? ret : DAT_ERROR(DAT_TIMEOUT_EXPIRED, DAT_NO_SUBTYPE);
	for (int i = 0; i < EVD_SPINS; i++) {
		dapl_pause();
		if (look(w, event, false))
			return DAT_SUCCESS;
	}
	for (;;) {
		if ((ret = refused(evd)))	/* first: an event must not hide it */
			return ret;
		__atomic_store_n(&evd->asleep, true, __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (look(w, event, true))
			return DAT_SUCCESS;
		if (last)
			return DAT_ERROR(DAT_TIMEOUT_EXPIRED, DAT_NO_SUBTYPE);
		if (dapl_evd_deaf(evd))
			return DAT_ERROR(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
		switch (sleep_on(w)) {
		case EINTR:
			return DAT_ERROR(DAT_INTERRUPTED_CALL, DAT_NO_SUBTYPE);
		case ETIMEDOUT:
			last = true;
			break;
		default:
			if (look(w, event, evd->solicited))
				return DAT_SUCCESS;
		}
	}
}

static DAT_RETURN begin_wait(struct dapl_evd *evd, int threshold)
{
	DAT_RETURN ret;

	pthread_mutex_lock(&evd->mutex);
	ret = refused(evd);
	if (!ret && dapl_flag(&evd->waiting))
		ret = BAD_STATE(EVD_WAITER);
	if (!ret && threshold > 1 && evd->solicited)
		ret = BAD_STATE(EVD_CONFIG_SOLICITED);
	if (!ret && threshold > 1 && evd->quiet)
		ret = BAD_STATE(EVD_CONFIG_NOTIFY);
	if (!ret) {
		dapl_spin_lock(&evd->lock);
		dapl_flag_set(&evd->waiting, true);
		__atomic_store_n(&evd->told, false, __ATOMIC_RELAXED);
		evd->counters[DCNT_EVD_WAIT]++;
		dapl_spin_unlock(&evd->lock);
	}
	pthread_mutex_unlock(&evd->mutex);
	return ret;
}

static void end_wait(struct dapl_evd *evd)
{
	pthread_mutex_lock(&evd->mutex);
	dapl_spin_lock(&evd->lock);
	dapl_flag_set(&evd->waiting, false);
	__atomic_store_n(&evd->asleep, false, __ATOMIC_RELAXED);
	if (evd->cno || evd->watched)
		dapl_evd_arm(evd);	/* the waiter may have used up its event */
	dapl_spin_unlock(&evd->lock);
	pthread_cond_broadcast(&evd->left);
	pthread_mutex_unlock(&evd->mutex);
}

/* dat_evd_wait (spec/calls.md 4). timeout in microseconds. INTERNAL_ERROR: no completion would
 * end the wait (lose_channel). */
DAT_RETURN dapl_evd_wait(DAT_EVD_HANDLE handle, DAT_TIMEOUT timeout, DAT_COUNT threshold,
			 DAT_EVENT *event, DAT_COUNT *nmore)
{
	struct dapl_evd *evd = dapl_evd_from(handle);
	struct wait w = { .evd = evd, .threshold = threshold, .first = true };
	DAT_RETURN ret;

	if (!evd)
		return BAD_HANDLE(EVD_REQUEST);
	if (threshold < 1 || threshold > evd->qlen)
		return BAD_PARAM(3);
	if (!event)
		return BAD_PARAM(4);
	if (!nmore)
		return BAD_PARAM(5);
	if ((ret = begin_wait(evd, threshold)))
		return ret;
	w.deadline = timeout == DAT_TIMEOUT_INFINITE ? UINT64_MAX :
		timeout ? now_ns() + timeout * 1000ull : 0;
	ret = wait_loop(&w, event);
	*nmore = ret == DAT_SUCCESS ? w.found - 1 : w.found;
	end_wait(evd);
	return ret;
}
