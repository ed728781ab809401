/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cq.c - completion queues and completion channels. Which completions are added, and in which order,
 * is decided by qp.c and rdmap/. */
#include "dapl/soft/obj/cq.h"
#include "common/bits.h"
#include "common/compiler.h"
#include "common/container_of.h"
#include "common/lock.h"
#include "common/trace.h"
#include "dapl/soft/obj/async_event.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/rq.h"
#include "dapl/soft/tunables.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

static struct soft_channel *soft_channel(struct ibv_comp_channel *channel)
{
	return (struct soft_channel *)channel;
}

/* --- channels ------------------------------------------------------------------ */

int soft_cq_channel_create(struct dapl_device *dev, struct ibv_comp_channel **channel)
{
	struct soft_channel *new = calloc(1, sizeof *new);
	int err;

	if (!new)
		return ENOMEM;
	dapl_mutex_init(&new->lock, RANK_SOFT_CHANNEL);
	new->channel.context = &dev->verbs;
	new->channel.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (new->channel.fd < 0) {
		err = errno;
		free(new);
		return err;
	}
	TAILQ_INIT(&new->ready);
	__atomic_add_fetch(&dev->objects, 1, __ATOMIC_RELAXED);
	*channel = &new->channel;
	return 0;
}

int soft_cq_channel_destroy(struct ibv_comp_channel *channel)
{
	if (__atomic_load_n(&soft_channel(channel)->refs, __ATOMIC_ACQUIRE))
		return EBUSY;
	__atomic_sub_fetch(&soft_device(channel->context)->objects, 1, __ATOMIC_RELAXED);
	close(channel->fd);
	free(channel);
	return 0;
}

/* The descriptor is readable exactly while the list is not empty. */
static void channel_signal(struct soft_channel *channel)
{
	uint64_t one = 1;
	ssize_t n = write(channel->channel.fd, &one, sizeof one);

	(void)n;	/* fails only if the descriptor is readable already */
}

/* Clears the descriptor if the list is empty. */
static void channel_clear(struct soft_channel *channel)
{
	uint64_t count;
	ssize_t n;

	if (!TAILQ_EMPTY(&channel->ready))
		return;
	n = read(channel->channel.fd, &count, sizeof count);
	(void)n;
}

/* Adds an event of the CQ. */
static void channel_notify(struct soft_channel *channel, struct soft_cq *cq)
{
	dapl_mutex_lock(&channel->lock);
	if (!cq->events++) {
		if (TAILQ_EMPTY(&channel->ready))
			channel_signal(channel);
		TAILQ_INSERT_TAIL(&channel->ready, cq, ready_link);
	}
	dapl_mutex_unlock(&channel->lock);
}

int soft_cq_channel_get(struct ibv_comp_channel *ibchannel, struct ibv_cq **cq)
{
	struct soft_channel *channel = soft_channel(ibchannel);
	struct soft_cq *first;

	dapl_mutex_lock(&channel->lock);
	first = TAILQ_FIRST(&channel->ready);
	if (first) {
		TAILQ_REMOVE(&channel->ready, first, ready_link);
		if (--first->events)
			TAILQ_INSERT_TAIL(&channel->ready, first, ready_link);
		channel_clear(channel);
		*cq = &first->cq;
	}
	dapl_mutex_unlock(&channel->lock);
	return first ? 0 : EAGAIN;
}

static void channel_forget(struct soft_channel *channel, struct soft_cq *cq)
{
	dapl_mutex_lock(&channel->lock);
	if (cq->events) {
		TAILQ_REMOVE(&channel->ready, cq, ready_link);
		channel_clear(channel);
	}
	dapl_mutex_unlock(&channel->lock);
}

/* --- queues ---------------------------------------------------------------------- */

enum { CQE_MIN = 16 };		/* completions of the smallest ring, which takes 768 bytes */

static uint32_t ring_size(int cqe)
{
	return round_up_power_of_two(cqe > CQE_MIN ? (uint32_t)cqe : CQE_MIN);
}

int soft_cq_create(struct dapl_device *dev, int cqe, void *context,
		   struct ibv_comp_channel *channel, struct ibv_cq **cq)
{
	struct soft_cq *new;
	uint32_t size;

	if (cqe < 1 || cqe > SOFT_MAX_CQE)
		return EINVAL;
	size = ring_size(cqe);
	new = calloc(1, sizeof *new);
	if (new)
		new->ring = malloc(size * sizeof *new->ring);
	if (!new || !new->ring) {
		free(new);
		return ENOMEM;
	}
	dapl_spin_init(&new->lock, RANK_SOFT_CQ);
	new->dev = dev;
	new->mask = size - 1;
	new->cq.context = &dev->verbs;
	new->cq.channel = channel;
	new->cq.cq_context = context;
	new->cq.cqe = size;
	if (channel)
		__atomic_add_fetch(&soft_channel(channel)->refs, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&dev->objects, 1, __ATOMIC_RELAXED);
	*cq = &new->cq;
	return 0;
}

int soft_cq_resize(struct ibv_cq *ibcq, int cqe)
{
	struct soft_cq *cq = soft_cq(ibcq);
	struct ibv_wc *ring, *old = NULL;
	uint32_t size, used;
	int err = 0;

	if (cqe < 1 || cqe > SOFT_MAX_CQE)
		return EINVAL;
	size = ring_size(cqe);
	ring = malloc(size * sizeof *ring);
	if (!ring)
		return ENOMEM;
	dapl_spin_lock(&cq->lock);
	used = cq->tail - cq->head;
	if (used > size) {
		old = ring;
		err = EINVAL;
	} else {
		for (uint32_t i = cq->head; i != cq->tail; i++)
			ring[i & (size - 1)] = cq->ring[i & cq->mask];
		old = cq->ring;
		cq->ring = ring;
		cq->mask = size - 1;
		ibcq->cqe = size;
	}
	dapl_spin_unlock(&cq->lock);
	free(old);
	return err;
}

int soft_cq_destroy(struct ibv_cq *ibcq)
{
	struct soft_cq *cq = soft_cq(ibcq);

	if (__atomic_load_n(&cq->refs, __ATOMIC_ACQUIRE))
		return EBUSY;
	soft_event_forget(cq->dev, &cq->overran, ibcq);
	dapl_timer_drain(&cq->hold_timer);
	if (ibcq->channel) {
		channel_forget(soft_channel(ibcq->channel), cq);
		__atomic_sub_fetch(&soft_channel(ibcq->channel)->refs, 1, __ATOMIC_RELEASE);
	}
	__atomic_sub_fetch(&cq->dev->objects, 1, __ATOMIC_RELAXED);
	free(cq->ring);
	free(cq);
	return 0;
}

int soft_cq_take(struct soft_cq *cq, int entries, struct ibv_wc *wc)
{
	int n = 0;

	if (__atomic_load_n(&cq->head, __ATOMIC_RELAXED) ==
	    __atomic_load_n(&cq->tail, __ATOMIC_RELAXED))
		return 0;
	dapl_spin_lock(&cq->lock);
	while (n < entries && cq->head != cq->tail) {
		wc[n++] = cq->ring[cq->head & cq->mask];
		__atomic_store_n(&cq->head, cq->head + 1, __ATOMIC_RELAXED);
	}
	dapl_spin_unlock(&cq->lock);
	return n;
}

/* --- moderation -------------------------------------------------------------------- */

static void hold_ended(struct dapl_timer *timer)
{
	struct soft_cq *cq = container_of(timer, struct soft_cq, hold_timer);
	bool notify;

	dapl_spin_lock(&cq->lock);
	notify = (cq->armed & SOFT_ARMED) && cq->head != cq->tail;
	if (notify)
		__atomic_store_n(&cq->armed, 0, __ATOMIC_RELAXED);
	cq->holding = false;
	dapl_spin_unlock(&cq->lock);
	if (notify && cq->cq.channel)
		channel_notify(soft_channel(cq->cq.channel), cq);
}

/* Returns true if the notification of a completion waits for more completions. cq->lock held. */
static bool hold_back(struct soft_cq *cq)
{
	assert_held(&cq->lock);
	if (cq->tail - cq->head >= cq->moderate_frames)
		return false;
	if (!cq->holding)
		dapl_timer_start(&cq->hold_timer, cq->moderate_us, hold_ended);
	cq->holding = true;
	return true;
}

int soft_cq_moderate(struct ibv_cq *ibcq, uint32_t frames, uint32_t microseconds)
{
	struct soft_cq *cq = soft_cq(ibcq);

	dapl_spin_lock(&cq->lock);
	cq->moderate_frames = frames;
	cq->moderate_us = microseconds;
	cq->holding = true;
	dapl_timer_start(&cq->hold_timer, 0, hold_ended);	/* notifies of what was held back */
	dapl_spin_unlock(&cq->lock);
	return 0;
}

void soft_cq_add(struct soft_cq *cq, const struct ibv_wc *wc, bool solicited)
{
	bool notify = false, overrun = false;

	dapl_spin_lock(&cq->lock);
	if (unlikely(cq->tail - cq->head > cq->mask)) {
		overrun = !cq->overrun;
		cq->overrun = true;
	} else {
		cq->ring[cq->tail & cq->mask] = *wc;
		__atomic_store_n(&cq->tail, cq->tail + 1, __ATOMIC_RELAXED);
	}
	if (unlikely(cq->armed)) {
		notify = (cq->armed & SOFT_ARMED) || solicited || wc->status != IBV_WC_SUCCESS;
		if (notify && cq->moderate_frames && !solicited && wc->status == IBV_WC_SUCCESS)
			notify = !hold_back(cq);
		if (notify)
			__atomic_store_n(&cq->armed, 0, __ATOMIC_RELAXED);
	}
	dapl_spin_unlock(&cq->lock);
	if (notify && cq->cq.channel)
		channel_notify(soft_channel(cq->cq.channel), cq);
	if (unlikely(overrun)) {
		soft_trace(TRC_LVL_ERROR, "cq", cq, "overrun, %d entries", cq->cq.cqe);
		soft_event_post(cq->dev, &cq->overran, IBV_EVENT_CQ_ERR, &cq->cq);
	}
}

void soft_cq_purge(struct soft_cq *cq, uint32_t qp_num)
{
	uint32_t keep;

	dapl_spin_lock(&cq->lock);
	keep = cq->head;
	for (uint32_t i = cq->head; i != cq->tail; i++)
		if (cq->ring[i & cq->mask].qp_num != qp_num)
			cq->ring[keep++ & cq->mask] = cq->ring[i & cq->mask];
	__atomic_store_n(&cq->tail, keep, __ATOMIC_RELAXED);
	dapl_spin_unlock(&cq->lock);
}
