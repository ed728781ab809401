/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* post_own.c - requests of the provider's own: markers, and the binding of memory windows (post_own.h). */
#include <errno.h>
#include "dapl/core/ep/ep_state.h"
#include "dapl/core/ep/post_late.h"
#include "dapl/core/ep/post_own.h"
#include "dapl/core/ep/post_slow.h"

int dapl_ep_post_marker(struct dapl_ep *ep, bool flushing)
{
	struct dapl_queue *q = &ep->sq;
	struct ibv_send_wr wr = { .opcode = flushing ? IBV_WR_SEND : IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED }, *bad;
	struct dapl_dto *dto;
	int err = ENOSPC;

	dapl_post_lock(&q->lock);
	if (dapl_queue_used(q) <= q->mask) {
		dto = dapl_queue_next(q);
		*dto = (struct dapl_dto){ .ep = ep, .end = q->head + 1, .op = DAT_DTO_SEND,
			.flags = REQ_MARKER };
		wr.wr_id = (uintptr_t)dto;
		err = ibv_post_send(ep->qp, &wr, &bad);
		if (err && dapl_post_stands(ep, err))
			err = 0;
		if (!err) {
			dapl_queue_commit(q);
			q->markers++;
			q->limit++;
			q->room += q->room != 0;
		}
	}
	dapl_post_unlock(&q->lock);
	return err;
}

/* A window of type 1 is bound and unbound by ibv_bind_mw, one of type 2 by work requests. To unbind an unbound one, a
 * write of no data completes in its turn. */
static int post_window(struct dapl_ep *ep, struct dapl_dto *dto, const struct dapl_bind *bind,
		       unsigned to)
{
	struct ibv_mw_bind type_1 = { .wr_id = (uintptr_t)dto, .send_flags = to,
		.bind_info = bind->info };
	struct ibv_send_wr wr = { .wr_id = (uintptr_t)dto, .send_flags = to }, *bad;
	int err;

	if (bind->mw->type == IBV_MW_TYPE_1)
		return ibv_bind_mw(ep->qp, bind->mw, &type_1);
	if (bind->invalidate) {
		wr.opcode = IBV_WR_LOCAL_INV;
		wr.invalidate_rkey = bind->mw->rkey;
		return ibv_post_send(ep->qp, &wr, &bad);
	}
	if (!bind->info.mr) {	/* neither bound nor to be bound: devices refuse to invalidate it */
		wr.opcode = IBV_WR_RDMA_WRITE;
		return ibv_post_send(ep->qp, &wr, &bad);
	}
	wr.opcode = IBV_WR_BIND_MW;
	wr.bind_mw.mw = bind->mw;
	wr.bind_mw.rkey = ibv_inc_rkey(bind->mw->rkey);
	wr.bind_mw.bind_info = bind->info;
	err = ibv_post_send(ep->qp, &wr, &bad);
	if (!err)
		bind->mw->rkey = wr.bind_mw.rkey;
	return err;
}

DAT_RETURN dapl_ep_post_bind(struct dapl_ep *ep, const struct dapl_bind *bind,
			     DAT_RMR_HANDLE rmr, DAT_RMR_COOKIE cookie,
			     DAT_COMPLETION_FLAGS flags, bool silent)
{
	unsigned to, dto_flags = silent ? REQ_MARKER : REQ_BIND;
	struct dapl_dto *dto;
	int err;

	if (READ_ONCE(ep->is_raw))
		return NOT_SUPPORTED;
	if (flags & ~(DAPL_POST_FLAGS & ~READ_ONCE(ep->request_flags)))
		return BAD_PARAM(8);
	if (silent)
		flags &= DAT_COMPLETION_BARRIER_FENCE_FLAG;
	dapl_post_lock(&ep->sq.lock);
	if (!dapl_ep_may_request(ep)) {	/* RMR-4 */
		dapl_post_unlock(&ep->sq.lock);
		return dapl_post_late(ep, 0, cookie, flags, DAT_DTO_BIND_MW, dto_flags, DAPL_NOT_COUNTED, rmr);
	}
	dto = dapl_post_take_record(ep, 0, cookie, flags, DAT_DTO_BIND_MW, dto_flags, &to);
	if (!dto) {
		dapl_post_unlock(&ep->sq.lock);
		return NO_RESOURCE(MEMORY);
	}
	dto->rmr = rmr;
	err = post_window(ep, dto, bind, to);
	if (!err)
		dapl_queue_commit(&ep->sq);
	dapl_post_unlock(&ep->sq.lock);
	return err ? dapl_post_refused(ep, err) : DAT_SUCCESS;
}
