/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cq.h - completion queues and completion channels. */
#ifndef SOFT_OBJ_CQ_H
#define SOFT_OBJ_CQ_H
#include "common/lock.h"
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include "dapl/core/base/service.h"
#include "dapl/soft/obj/async_event.h"

struct soft_cq;

struct soft_channel {
	struct ibv_comp_channel channel;
	struct dapl_mutex lock;		/* guards ready and the events of its CQs */
	TAILQ_HEAD(, soft_cq) ready;	/* CQs that have an event */
	unsigned refs;
};

enum { SOFT_ARMED = 1, SOFT_ARMED_SOLICITED = 2 };

struct soft_cq {
	struct ibv_cq cq;
	struct dapl_device *dev;
	struct dapl_spin lock;		/* guards what follows */
	struct ibv_wc *ring;
	uint32_t mask, head, tail;	/* may be read without the lock */
	uint8_t armed;			/* SOFT_ARMED*; may be read without the lock */
	bool overrun;			/* the overrun was reported */
	bool holding;			/* hold_timer was started, and has not fired */
	uint32_t moderate_frames, moderate_us;	/* arguments of soft_cq_moderate() */
	unsigned refs;			/* atomic: queues that complete here */

	unsigned events;		/* not consumed yet; guarded by channel->lock */
	TAILQ_ENTRY(soft_cq) ready_link;

	struct soft_event overran;
	struct dapl_timer hold_timer;
};

/* The device knows CQs as libibverbs does. */
static inline struct soft_cq *soft_cq(struct ibv_cq *cq)
{
	return (struct soft_cq *)cq;
}

int soft_cq_channel_create(struct dapl_device *dev, struct ibv_comp_channel **channel);
int soft_cq_channel_destroy(struct ibv_comp_channel *channel);
int soft_cq_channel_get(struct ibv_comp_channel *channel, struct ibv_cq **cq);
int soft_cq_create(struct dapl_device *dev, int cqe, void *context,
		   struct ibv_comp_channel *channel, struct ibv_cq **cq);
int soft_cq_resize(struct ibv_cq *cq, int cqe);
int soft_cq_destroy(struct ibv_cq *cq);
/* From now on the armed CQ notifies when it holds `frames` completions, or `microseconds` after the
 * first of them. Errors and solicited completions are notified at once. With 0 frames every completion
 * is. */
int soft_cq_moderate(struct ibv_cq *cq, uint32_t frames, uint32_t microseconds);
/* Takes completions from the ring. Returns their number, 0 if the ring is empty. */
int soft_cq_take(struct soft_cq *cq, int entries, struct ibv_wc *wc);
/* Adds a completion, and notifies if the CQ is armed for it. If the ring is full, the completion is
 * lost, and IBV_EVENT_CQ_ERR is reported once. */
void soft_cq_add(struct soft_cq *cq, const struct ibv_wc *wc, bool solicited);
/* Removes the completions of a QP. */
void soft_cq_purge(struct soft_cq *cq, uint32_t qp_num);

#endif
