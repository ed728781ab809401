/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* recv_repost.c - keeps receives that may have to be posted again (recv_repost.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "dapl/core/ep/recv_repost.h"

struct dapl_saved_recv {
	struct dapl_saved_recv *next;
	int n;
	struct ibv_sge segments[];
};

struct dapl_saved_recv *dapl_saved_recv_new(const struct ibv_recv_wr *wr)
{
	size_t bytes = wr->num_sge * sizeof(struct ibv_sge);
	struct dapl_saved_recv *saved = malloc(sizeof *saved + bytes);

	if (!saved)
		return NULL;
	saved->next = NULL;
	saved->n = wr->num_sge;
	if (bytes)
		memcpy(saved->segments, wr->sg_list, bytes);
	return saved;
}

void dapl_saved_recv_add(struct dapl_ep *ep, struct dapl_saved_recv *saved)
{
	assert_held(&ep->rq.lock);
	*(ep->saved_recvs ? &ep->saved_recvs_last->next : &ep->saved_recvs) = saved;
	ep->saved_recvs_last = saved;
}

struct dapl_saved_recv *dapl_saved_recv_detach(struct dapl_ep *ep)
{
	struct dapl_saved_recv *list = ep->saved_recvs;

	assert_held(&ep->rq.lock);
	ep->saved_recvs = ep->saved_recvs_last = NULL;
	return list;
}

void dapl_saved_recv_free(struct dapl_saved_recv *list)
{
	while (list) {
		struct dapl_saved_recv *next = list->next;

		free(list);
		list = next;
	}
}

int dapl_saved_recv_repost(struct dapl_ep *ep, struct ibv_qp *qp, unsigned max_sge)
{
	struct dapl_queue *q = &ep->rq;
	struct dapl_saved_recv *saved = ep->saved_recvs;
	int err = 0;

	assert_held(&ep->rq.lock);
	for (uint32_t i = q->tail; i != q->head && !err; i++, saved = saved->next) {
		struct ibv_recv_wr *bad, wr = { .wr_id = (uintptr_t)&q->ring[i & q->mask] };

		if (!saved)
			return ENODATA;
		if ((unsigned)saved->n > max_sge)
			return E2BIG;
		wr.sg_list = saved->segments;
		wr.num_sge = saved->n;
		err = ibv_post_recv(qp, &wr, &bad);
	}
	return err;
}
