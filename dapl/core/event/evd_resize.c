/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* evd_resize.c - dat_evd_resize: resizes the ring, the CQ and the array of polled completions, with events
 * queued and while other threads poll and post (evd_resize.h).
 *
 * Nothing is allocated, and the device is not called, under a spin lock: other threads would spin for
 * the length of a system call. The new ring and array are allocated first, and replace the old ones under
 * the locks. evd->change serialises resizes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "common/bits.h"
#include "dapl/core/event/evd.h"
#include "dapl/core/event/evd_channel.h"
#include "dapl/core/event/evd_resize.h"
#include "dapl/core/event/polled.h"

int dapl_evd_make_queue(struct dapl_evq *ring, int qlen)
{
	uint32_t slots = round_up_power_of_two(qlen);

	ring->slot = malloc(slots * sizeof *ring->slot);
	if (!ring->slot)
		return ENOMEM;
	ring->size = qlen;
	ring->mask = slots - 1;
	return 0;
}

int dapl_evd_cq_entries(struct dapl_ia *ia, int qlen)
{
	int max = ia->attr.limits.max_cqe;

	if (ia->attr.delayed_ack && dapl_device_ops.create_delayed_qp)
		qlen = qlen > max / 2 ? max : qlen * 2;
	return qlen > max - DAPL_CQ_SPARE ? max : qlen + DAPL_CQ_SPARE;
}

/* The memory that a resize needs; afterwards the memory that it has replaced. */
struct room {
	int qlen;			/* new length of the EVD */
	struct dapl_evq evq;		/* slot NULL: the old one has room */
	struct ibv_wc *wc;		/* NULL: the old one has room */
	uint32_t wc_size;
};

static void free_room(struct room *room)
{
	free(room->evq.slot);
	free(room->wc);
}

/* Returns true if more events are queued than the new length. Called with evd->lock held. */
static bool has_too_many(struct dapl_evd *evd, int qlen)
{
	assert_held(&evd->lock);
	dapl_evd_fill(evd);
	return dapl_evd_count(evd) > (unsigned)qlen;
}

/* Returns true if the CQ must grow to *entries. */
static bool needs_cq(const struct dapl_evd *evd, int qlen, int *entries)
{
	*entries = dapl_evd_cq_entries(evd->obj.ia, qlen);
	return evd->cq && *entries > evd->cq->cqe;
}

/* Called without a lock: the ring's size changes in resizes only. The array may grow meanwhile
 * (dapl_evd_flush_posts). */
static int allocate(const struct dapl_evd *evd, struct room *room)
{
	int entries, err = 0;

	if (evd->evq.slot && (uint32_t)room->qlen > evd->evq.mask + 1)
		err = dapl_evd_make_queue(&room->evq, room->qlen);
	if (!err && needs_cq(evd, room->qlen, &entries)) {
		room->wc_size = entries > room->qlen ? entries : room->qlen;
		room->wc = malloc(room->wc_size * sizeof *room->wc);
		err = room->wc ? 0 : ENOMEM;
	}
	return err;
}

static void swap_ring(struct dapl_evq *ring, struct room *room)
{
	struct dapl_evq old = *ring, *new = &room->evq;
	const DAT_EVENT *event;

	if (new->slot) {
		new->head = new->tail = 0;
		while ((event = evq_peek(ring))) {
			new->slot[new->tail++] = *event;
			evq_drop(ring);
		}
		*ring = *new;
		*new = old;
	}
	ring->size = room->qlen;
}

static void swap_wc(struct dapl_evd *evd, struct room *room)
{
	struct ibv_wc *old = evd->wc;

	if (!room->wc || room->wc_size <= evd->wc_size)
		return;
	memcpy(room->wc, old + evd->wc_head, (evd->wc_tail - evd->wc_head) * sizeof *old);
	evd->wc_tail -= evd->wc_head;
	evd->wc_head = 0;
	evd->wc = room->wc;
	evd->wc_size = room->wc_size;
	room->wc = old;
}

/* Grows the CQ with no spin lock held: the device serialises this with polling. If the device cannot resize
 * a CQ, the service thread must empty it into evd->wc. */
static int grow_cq(struct dapl_evd *evd, int qlen)
{
	int entries, err = 0;

	if (needs_cq(evd, qlen, &entries) && !evd->spill)
		err = dapl_device_ops.resize_cq(evd->cq, entries);
	if (err == EOPNOTSUPP || err == ENOSYS) {
		evd->spill = true;
		err = 0;
	}
	return err;
}

/* Puts the new memory into use. Returns EBUSY if more events are queued than the new length. */
static int use_room(struct dapl_evd *evd, struct room *room)
{
	int err = 0;

	dapl_mutex_lock(&evd->mutex);
	dapl_spin_lock(&evd->lock);
	dapl_spin_lock(&evd->post_lock);
	if (has_too_many(evd, room->qlen)) {
		err = EBUSY;
	} else {
		swap_ring(&evd->evq, room);
		swap_wc(evd, room);
		__atomic_store_n(&evd->qlen, room->qlen, __ATOMIC_RELAXED);
	}
	dapl_spin_unlock(&evd->post_lock);
	dapl_spin_unlock(&evd->lock);
	dapl_mutex_unlock(&evd->mutex);
	return err;
}

static int resize(struct dapl_evd *evd, struct room *room)
{
	int err;

	if ((err = allocate(evd, room)) || (err = grow_cq(evd, room->qlen)))
		return err;
	if (evd->spill && (err = dapl_evd_watch(evd)))
		return err;
	return use_room(evd, room);
}

/* dat_evd_resize (doc/spec/calls.md 4), also while events are queued and threads poll.
 * EVD-41, 42, 43. */
DAT_RETURN dapl_evd_resize(DAT_EVD_HANDLE handle, DAT_COUNT qlen)
{
	DAPL_ENTERED struct dapl_evd *evd = dapl_evd_enter(handle);
	struct room room = { .qlen = qlen };
	int err;

	if (!evd)
		return BAD_HANDLE(EVD_REQUEST);
	if (qlen <= 0)
		return BAD_PARAM(2);
	if (qlen > evd->obj.ia->ia_attr.max_evd_qlen)
		return NO_RESOURCE(TEVD);
	dapl_mutex_lock(&evd->change);
	err = resize(evd, &room);
	dapl_mutex_unlock(&evd->change);
	free_room(&room);
	if (err == EBUSY)
		return BAD_STATE(EVD_IN_USE);
	return dapl_status(err, err == ENOMEM ? DAT_RESOURCE_MEMORY : DAT_RESOURCE_TEVD);
}
