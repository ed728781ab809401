/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* early.c - receives that may have to be posted again: see early.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "dapl/core/early.h"

struct dapl_early {
	struct dapl_early *next;
	int n;
	struct ibv_sge segments[];
};

struct dapl_early *dapl_early_new(const struct ibv_recv_wr *wr)
{
	size_t bytes = wr->num_sge * sizeof(struct ibv_sge);
	struct dapl_early *early = malloc(sizeof *early + bytes);

	if (!early)
		return NULL;
	early->next = NULL;
	early->n = wr->num_sge;
	if (bytes)
		memcpy(early->segments, wr->sg_list, bytes);
	return early;
}

void dapl_early_add(struct dapl_ep *ep, struct dapl_early *early)
{
	*(ep->early ? &ep->early_last->next : &ep->early) = early;
	ep->early_last = early;
}

struct dapl_early *dapl_early_detach(struct dapl_ep *ep)
{
	struct dapl_early *list = ep->early;

	ep->early = ep->early_last = NULL;
	return list;
}

void dapl_early_free(struct dapl_early *list)
{
	while (list) {
		struct dapl_early *next = list->next;

		free(list);
		list = next;
	}
}

int dapl_early_repost(struct dapl_ep *ep, struct ibv_qp *qp, unsigned max_sge)
{
	struct dapl_queue *q = &ep->rq;
	struct dapl_early *early = ep->early;
	int err = 0;

	for (uint32_t i = q->tail; i != q->head && !err; i++, early = early->next) {
		struct ibv_recv_wr *bad, wr = { .wr_id = (uintptr_t)&q->ring[i & q->mask] };

		if (!early)
			return ENODATA;
		if ((unsigned)early->n > max_sge)
			return E2BIG;
		wr.sg_list = early->segments;
		wr.num_sge = early->n;
		err = ibv_post_recv(qp, &wr, &bad);
	}
	return err;
}
