/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eth_cq.c - makes a poll of an EVD's CQ return the frames of raw QPs, too, which have CQs of their own.
 *
 * At the first raw QP of an open device two functions of its ibv_context are replaced: poll_cq and
 * req_notify_cq. Until then other QPs have no extra cost. Both CQs have the EVD's completion channel. */
#include "eth_cq.h"
#include "eth_recv.h"
#include "hw.h"
#include <errno.h>

/* Guards both lists, and is held while a raw QP is polled, so that the QP is not destroyed meanwhile. */
static struct dapl_mutex list_lock = DAPL_MUTEX_INIT(RANK_VERBS_ETH_LIST);
static struct hw_eth *qps;
static struct hw_eth_device *devices;
static struct dapl_cond unused;		/* the users of a QP have become 0 */

static const struct hw_eth_device *device_of(const struct ibv_cq *cq)
{
	const struct hw_eth_device *eth;

	dapl_mutex_lock(&list_lock);
	for (eth = devices; eth && eth->dev->verbs != cq->context; eth = eth->next)
		;
	dapl_mutex_unlock(&list_lock);
	return eth;
}

static int poll_frames(const struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	int taken = 0;

	dapl_mutex_lock(&list_lock);
	for (struct hw_eth *q = qps; q && taken < n; q = q->next)
		if (q->init.recv_cq == cq)
			taken += hw_eth_poll_frames(q, n - taken, wc + taken);
	dapl_mutex_unlock(&list_lock);
	return taken;
}

/* Of a batch at most half are frames if there are others, so neither kind waits for the other for ever. */
static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	const struct hw_eth_device *eth = device_of(cq);
	int frames, others;

	if (n < 2) {	/* no room for both: others first */
		others = eth->poll_cq(cq, n, wc);
		return others ? others : poll_frames(cq, n, wc);
	}
	frames = poll_frames(cq, n / 2, wc);
	others = eth->poll_cq(cq, n - frames, wc + frames);
	if (others < 0)
		return frames ? frames : others;
	if (frames == n / 2)
		frames += poll_frames(cq, n - frames - others, wc + frames + others);
	return frames + others;
}

static int req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	const struct hw_eth_device *eth = device_of(cq);
	int err = eth->req_notify_cq(cq, solicited_only);

	dapl_mutex_lock(&list_lock);
	for (struct hw_eth *q = qps; q && !err; q = q->next)
		if (q->init.recv_cq == cq && (!q->config.ring_frames || __atomic_load_n(&q->armed, __ATOMIC_RELAXED)))
			err = q->eth->req_notify_cq(q->cq, 0);
	dapl_mutex_unlock(&list_lock);
	return err;
}

/* list_lock held. Other threads may poll meanwhile. */
static void adopt(struct hw_eth_device *eth)
{
	struct ibv_context_ops *ops = &eth->dev->verbs->ops;

	assert_held(&list_lock);
	if (eth->adopted)
		return;
	eth->adopted = true;
	eth->poll_cq = ops->poll_cq;
	eth->req_notify_cq = ops->req_notify_cq;
	eth->next = devices;
	devices = eth;
	__atomic_store_n(&ops->poll_cq, poll_cq, __ATOMIC_RELEASE);
	__atomic_store_n(&ops->req_notify_cq, req_notify_cq, __ATOMIC_RELEASE);
}

void hw_eth_cq_add(struct hw_eth *q)
{
	dapl_mutex_lock(&list_lock);
	adopt(q->eth);
	q->next = qps;
	qps = q;
	dapl_mutex_unlock(&list_lock);
}

void hw_eth_cq_remove(struct hw_eth *q)
{
	dapl_mutex_lock(&list_lock);
	while (q->users)
		dapl_cond_wait(&unused, &list_lock);
	for (struct hw_eth **at = &qps; *at; at = &(*at)->next)
		if (*at == q) {
			*at = q->next;
			break;
		}
	dapl_mutex_unlock(&list_lock);
}

static int modify(struct ibv_cq *cq, uint32_t frames, uint32_t microseconds)
{
	struct ibv_modify_cq_attr attr = { .attr_mask = IBV_CQ_ATTR_MODERATE,
		.moderate = { .cq_count = (uint16_t)frames, .cq_period = frames ? (uint16_t)microseconds : 0 } };

	return hw_errno(ibv_modify_cq(cq, &attr));
}

/* list_lock held; it is released while the device is called, which may block. The QP stays in the list. */
static int modify_of(struct hw_eth *q, uint32_t frames, uint32_t microseconds)
{
	int err;

	assert_held(&list_lock);
	q->users++;
	dapl_mutex_unlock(&list_lock);
	err = modify(q->cq, frames, microseconds);
	dapl_mutex_lock(&list_lock);
	if (!--q->users)
		dapl_cond_broadcast(&unused);
	return err;
}

/* Moderates the EVD's CQ, and the CQs of the raw QPs that it has now. If one fails, the others are moderated all the
 * same. Without a raw QP the limits are unknown. */
int hw_eth_moderate(struct ibv_cq *cq, uint32_t frames, uint32_t microseconds)
{
	const struct hw_eth_device *eth = device_of(cq);
	int err, failed;

	if (!eth || !eth->caps.moderate_frames)
		return EOPNOTSUPP;
	if (frames > eth->caps.moderate_frames || microseconds > eth->caps.moderate_us)
		return EINVAL;
	err = modify(cq, frames, microseconds);
	dapl_mutex_lock(&list_lock);
	for (struct hw_eth *q = qps; q; q = q->next)
		if (q->init.recv_cq == cq) {
			failed = modify_of(q, frames, microseconds);
			err = err ? err : failed;
		}
	dapl_mutex_unlock(&list_lock);
	return err;
}

void hw_eth_cq_forget(struct hw_eth_device *eth)
{
	dapl_mutex_lock(&list_lock);
	for (struct hw_eth_device **at = &devices; *at; at = &(*at)->next)
		if (*at == eth) {
			*at = eth->next;
			break;
		}
	dapl_mutex_unlock(&list_lock);
}
