/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* srq.c - shared receive queues and the watermarks of endpoints on them. Completions of their buffers are
 * in event.c, their records in srq_records.c. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "dapl/core/base/ia_handle.h"
#include "dapl/core/base/srq_records.h"
#include "dapl/core/ep/ep_qp.h"
#include "dapl/core/ep/post_slow.h"
#include "dapl/core/ep/sge_list.h"
#include "dapl/core/ep/srq.h"
#include "dapl/core/event/async.h"
#include "dapl/core/event/evd.h"
#include "dapl/core/event/evd_channel.h"
#include "dapl/core/event/evd_feed.h"
#include "dapl/core/event/polled.h"
#include "dapl/core/event/watermark.h"

/* --- making and ending ------------------------------------------------------------------- */

static void end_srq(struct dapl_object *obj)
{
	struct dapl_srq *srq = (struct dapl_srq *)obj;

	dapl_srq_shut_records(srq);
	if (srq->srq)
		dapl_device_ops.destroy_srq(srq->srq);
	dapl_srq_free_records(srq);
}

void dapl_srq_destroy(struct dapl_srq *srq)
{
	dapl_unuse(&srq->pz->obj);
	dapl_object_bury(&srq->obj);
}

/* Returns the size of the device's queue for this many buffers. If the device cannot resize an SRQ, the
 * queue is larger than requested. */
static uint32_t room_for(const struct dapl_ia *ia, uint32_t dtos)
{
	enum { GROWTH = 4, AT_LEAST = 256 };
	uint32_t room = dtos < AT_LEAST / GROWTH ? AT_LEAST : dtos * GROWTH;
	uint32_t most = ia->ia_attr.max_recv_per_srq;

	if (ia->attr.limits.device_cap_flags & IBV_DEVICE_SRQ_RESIZE)
		return dtos;
	return dtos > most / GROWTH || room > most ? most : room;
}

/* dat_srq_create (doc/spec/calls.md 8). SRQ-1, 2, 3, 4, 16. */
DAT_RETURN dapl_srq_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle, DAT_SRQ_ATTR *attr,
			   DAT_SRQ_HANDLE *handle)
{
	DAPL_ENTERED struct dapl_ia *ia = dapl_ia_enter(ia_handle);
	struct ibv_srq_init_attr init;
	DAPL_ENTERED struct dapl_pz *pz = NULL;
	struct dapl_srq *srq;
	int err;

	if (!ia)
		return BAD_HANDLE(IA);
	if (!(pz = dapl_pz_enter(pz_handle)) || pz->obj.ia != ia)
		return BAD_HANDLE(PZ);
	if (!handle)
		return BAD_PARAM(4);
	if (!ia->ia_attr.max_srqs)
		return NOT_SUPPORTED;
	if (!attr || attr->max_recv_dtos <= 0 || attr->max_recv_iov <= 0 ||
	    attr->max_recv_dtos > ia->ia_attr.max_recv_per_srq ||
	    attr->max_recv_iov > ia->ia_attr.max_iov_segments_per_dto ||
	    attr->low_watermark != DAT_SRQ_LW_DEFAULT)
		return BAD_PARAM(3);
	if (!(srq = dapl_object_new(DAPL_SRQ, sizeof *srq, ia, end_srq)))
		return NO_RESOURCE(MEMORY);
	dapl_mutex_init(&srq->change, RANK_SRQ_CHANGE);
	dapl_post_lock_init(&srq->lock, RANK_SRQ, dapl_device_ops.posts_may_sleep);
	srq->room = room_for(ia, attr->max_recv_dtos);
	init = (struct ibv_srq_init_attr){ .srq_context = srq,
		.attr = { .max_wr = srq->room, .max_sge = attr->max_recv_iov } };
	err = dapl_srq_add_records(srq, attr->max_recv_dtos);
	if (!err)
		err = dapl_device_ops.create_srq(pz->pd, &init, &srq->srq);
	if (err) {
		srq->srq = NULL;
		dapl_object_put(&srq->obj);
		return dapl_status(err, DAT_RESOURCE_SRQ);
	}
	if (!dapl_use(&pz->obj)) {
		dapl_object_put(&srq->obj);
		return BAD_HANDLE(PZ);
	}
	srq->pz = pz;
	WRITE_ONCE(srq->max_iov, attr->max_recv_iov);	/* a late post reads it without the lock */
	dapl_post_lock(&srq->lock);
	srq->max = attr->max_recv_dtos;
	dapl_post_unlock(&srq->lock);
	srq->state = DAT_SRQ_STATE_OPERATIONAL;
	dapl_object_publish(&srq->obj);
	dapl_count(ia, DCNT_IA_SRQ_CREATE);
	*handle = (DAT_SRQ_HANDLE)srq;
	return DAT_SUCCESS;
}

/* SRQ-10 */
DAT_RETURN dapl_srq_free(DAT_SRQ_HANDLE handle)
{
	DAPL_ENTERED struct dapl_srq *srq = dapl_srq_enter(handle);

	if (!srq)
		return BAD_HANDLE(SRQ);
	switch (dapl_object_kill_unused(&srq->obj)) {
	case KILL_IN_USE:	return BAD_STATE(SRQ_IN_USE);
	case KILL_LOST:		return BAD_HANDLE(SRQ);
	case KILL_DONE:		break;
	}
	dapl_object_wait_calls(&srq->obj, 1);
	dapl_count(srq->obj.ia, DCNT_IA_SRQ_FREE);
	dapl_srq_destroy(srq);
	return DAT_SUCCESS;
}

/* --- posting ------------------------------------------------------------------------------- */

/* dat_srq_post_recv: the completion goes to the EVD of the endpoint that consumes the buffer. The call does
 * not enter the SRQ: a free takes room and records away under the lock (end_srq). */
DAT_RETURN dapl_srq_post_recv(DAT_SRQ_HANDLE handle, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
			      DAT_DTO_COOKIE cookie)
{
	struct dapl_srq *srq = (struct dapl_srq *)handle;
	struct ibv_recv_wr wr = { .next = NULL }, *bad;
	struct ibv_sge list[DAPL_SGE_MAX];
	struct dapl_dto *dto;
	int err;

	if (!dapl_srq_is_live(srq))
		return BAD_HANDLE(SRQ);
	if (n < 0 || n > READ_ONCE(srq->max_iov) || n > DAPL_SGE_MAX)
		return BAD_PARAM(2);
	if (!iov && n)
		return BAD_PARAM(3);
	wr.num_sge = n;
	dapl_sge_nonempty(iov, &wr.num_sge, list);
	if (!wr.num_sge && READ_ONCE(srq->obj.ia)->attr.no_empty_receive)
		list[wr.num_sge++] = (struct ibv_sge){ .length = 0 };
	wr.sg_list = list;
	dapl_post_lock(&srq->lock);
	dto = dapl_srq_take(srq);
	if (!dto) {
		dapl_post_unlock(&srq->lock);
		return dapl_srq_is_live(srq) ? NO_RESOURCE(MEMORY) : BAD_HANDLE(SRQ);
	}
	*dto = (struct dapl_dto){ .cookie = cookie, .srq = srq, .op = DAT_DTO_RECEIVE,
		.flags = REQ_SRQ };
	wr.wr_id = (uintptr_t)dto;
	err = ibv_post_srq_recv(srq->srq, &wr, &bad);
	if (err)
		dapl_srq_take_back(srq, dto);
	dapl_post_unlock(&srq->lock);
	return dapl_status(err, DAT_RESOURCE_SRQ);
}

/* --- counting -------------------------------------------------------------------------------- */

struct tally {
	const struct dapl_srq *srq;
	uint32_t *n;
};

static bool count_one(const struct dapl_dto *dto, const struct ibv_wc *wc, const void *arg)
{
	const struct tally *t = arg;

	(void)wc;
	if ((dto->flags & REQ_SRQ) && dto->srq == t->srq)
		++*t->n;
	return false;	/* go on to the next */
}

/* Adds an EVD with a reference, unless the array has it. Returns false if there is no memory. */
static bool add_once(struct dapl_evd ***evds, unsigned *n, struct dapl_evd *evd)
{
	struct dapl_evd **more;

	for (unsigned i = 0; i < *n; i++)
		if ((*evds)[i] == evd)
			return true;
	more = realloc(*evds, (*n + 1) * sizeof *more);
	if (!more)
		return false;
	*evds = more;
	more[(*n)++] = evd;
	dapl_object_get(&evd->obj);
	return true;
}

/* Adds the EVD that this endpoint's receives complete to, if the endpoint is on the SRQ. An EVD cannot
 * end while its endpoint is locked, or while the caller has a reference. Returns false if there is no
 * memory. */
static bool add_evd_of(struct dapl_ep *ep, const struct dapl_srq *srq, struct dapl_evd ***evds, unsigned *n)
{
	struct dapl_evd *evd;
	bool done;

	if (ep->srq != srq)
		return true;
	dapl_mutex_lock(&ep->lock);
	evd = dapl_ep_recv_evd(ep);
	done = !evd || add_once(evds, n, evd);
	dapl_mutex_unlock(&ep->lock);
	return done;
}

/* The EVDs that buffers of this SRQ complete to, each once, with a reference. Returns false if some are
 * missing, because there is no memory. */
static bool recv_evds(struct dapl_srq *srq, struct dapl_evd ***evds, unsigned *n)
{
	struct dapl_object **eps;
	size_t n_eps;
	bool all = dapl_object_enter_all(srq->obj.ia, DAPL_EP, &eps, &n_eps);

	*evds = NULL;
	*n = 0;
	for (size_t i = 0; i < n_eps; i++) {
		all = all && add_evd_of((struct dapl_ep *)eps[i], srq, evds, n);
		dapl_object_leave(eps[i]);
	}
	free(eps);
	return all;
}

/* Counts the buffers that have received a message and whose completions are not dequeued. Returns false if
 * there is no memory to count them. */
static bool count_arrived(struct dapl_srq *srq, uint32_t *count)
{
	struct tally t = { srq, count };
	struct dapl_evd **evds;
	unsigned n;
	bool all = recv_evds(srq, &evds, &n);

	*count = 0;
	for (unsigned i = 0; i < n; i++) {
		dapl_evd_contains(evds[i], count_one, &t);
		dapl_object_put(&evds[i]->obj);
	}
	free(evds);
	return all;
}

/* SRQ-7, 8, 9 */
DAT_RETURN dapl_srq_query(DAT_SRQ_HANDLE handle, DAT_SRQ_PARAM_MASK mask, DAT_SRQ_PARAM *param)
{
	DAPL_ENTERED struct dapl_srq *srq = dapl_srq_enter(handle);
	uint32_t taken;

	if (!srq)
		return BAD_HANDLE(SRQ);
	if (mask & ~DAT_SRQ_FIELD_ALL)
		return BAD_PARAM(2);
	if (!param)
		return BAD_PARAM(3);
	if (!count_arrived(srq, &taken))
		return NO_RESOURCE(MEMORY);
	dapl_post_lock(&srq->lock);
	param->srq_state = srq->state;
	param->pz_handle = (DAT_PZ_HANDLE)srq->pz;
	param->max_recv_dtos = srq->max;
	param->max_recv_iov = srq->max_iov;
	param->low_watermark = srq->low_watermark;
	param->outstanding_dto_count = srq->posted;
	param->available_dto_count = srq->posted > taken ? srq->posted - taken : 0;
	dapl_post_unlock(&srq->lock);
	param->ia_handle = dapl_ia_handle(srq->obj.ia);
	return DAT_SUCCESS;
}

/* Called with srq->change held, so that the limit and the device's queue are set by the same call. */
static DAT_RETURN resize(struct dapl_srq *srq, DAT_COUNT max)
{
	struct ibv_srq_attr attr = { .max_wr = max };
	uint32_t records;
	bool small;
	int err = 0;

	assert_held(&srq->change);
	dapl_post_lock(&srq->lock);
	small = (uint32_t)max < srq->posted || max < srq->low_watermark;
	records = srq->records;
	dapl_post_unlock(&srq->lock);
	if (small)
		return BAD_STATE(SRQ_IN_USE);
	if ((uint32_t)max > srq->room) {
		err = dapl_device_ops.modify_srq(srq->srq, &attr, IBV_SRQ_MAX_WR);
		if (!err)
			srq->room = max;
	}
	if (!err && (uint32_t)max > records)
		err = dapl_srq_add_records(srq, max - records);
	if (!err) {
		dapl_post_lock(&srq->lock);
		srq->max = max;
		dapl_post_unlock(&srq->lock);
	}
	return dapl_status(err, DAT_RESOURCE_SRQ);
}

/* dat_srq_resize: growing fails if the device cannot resize its queue and the queue is too small. Shrinking
 * only lowers core's own limit. SRQ-13. */
DAT_RETURN dapl_srq_resize(DAT_SRQ_HANDLE handle, DAT_COUNT max)
{
	DAPL_ENTERED struct dapl_srq *srq = dapl_srq_enter(handle);
	DAT_RETURN ret;

	if (!srq)
		return BAD_HANDLE(SRQ);
	if (max <= 0 || max > srq->obj.ia->ia_attr.max_recv_per_srq)
		return BAD_PARAM(2);
	dapl_mutex_lock(&srq->change);
	ret = resize(srq, max);
	dapl_mutex_unlock(&srq->change);
	return ret;
}

/* --- watermarks ---------------------------------------------------------------------------------- */

/* SRQ-12 */
void dapl_srq_limit(struct dapl_srq *srq)
{
	bool armed;

	dapl_post_lock(&srq->lock);
	armed = srq->low_watermark != 0;
	srq->low_watermark = 0;
	dapl_post_unlock(&srq->lock);
	if (armed)
		dapl_async_post(srq->obj.ia, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR, srq, DAT_SRQ_LOW_WATERMARK_EVENT);
}

void dapl_srq_failed(struct dapl_srq *srq)
{
	dapl_post_lock(&srq->lock);
	srq->state = DAT_SRQ_STATE_ERROR;
	dapl_post_unlock(&srq->lock);
	dapl_async_post(srq->obj.ia, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR, srq, DAT_SRQ_TRANSFER_TO_ERROR);
}

/* dat_srq_set_lw: requests one event when fewer buffers are left, perhaps at once. SRQ-11. */
DAT_RETURN dapl_srq_set_lw(DAT_SRQ_HANDLE handle, DAT_COUNT low)
{
	DAPL_ENTERED struct dapl_srq *srq = dapl_srq_enter(handle);
	struct ibv_srq_attr attr = { .srq_limit = low };
	uint32_t taken, left;
	int err, before;
	bool bad;

	if (!srq)
		return BAD_HANDLE(SRQ);
	dapl_post_lock(&srq->lock);
	bad = low < 0 || (uint32_t)low > srq->max;
	dapl_post_unlock(&srq->lock);
	if (bad)
		return BAD_PARAM(2);
	if (!count_arrived(srq, &taken))
		return NO_RESOURCE(MEMORY);
	dapl_post_lock(&srq->lock);
	left = srq->posted > taken ? srq->posted - taken : 0;
	before = srq->low_watermark;
	srq->low_watermark = low;
	dapl_post_unlock(&srq->lock);
	if (low && left < (uint32_t)low) {
		dapl_srq_limit(srq);
		return DAT_SUCCESS;
	}
	err = dapl_device_ops.modify_srq(srq->srq, &attr, IBV_SRQ_LIMIT);
	if (err) {
		dapl_post_lock(&srq->lock);
		srq->low_watermark = before;
		dapl_post_unlock(&srq->lock);
	}
	return dapl_status(err, DAT_RESOURCE_SRQ);
}

/* EP-29 */
static bool good_mark(DAT_COUNT mark, const struct dapl_ia *ia)
{
	return mark == DAT_WATERMARK_INFINITE || (mark >= 0 && mark <= ia->ia_attr.max_recv_per_srq);
}

/* From now on the service thread polls this EVD as completions come. Does nothing for NULL. Returns 0 or an
 * errno. */
static int watch(struct dapl_evd *evd)
{
	int err;

	if (!evd)
		return 0;
	dapl_evd_inspect(evd);
	dapl_mutex_lock(&evd->change);
	err = dapl_evd_watch(evd);
	evd->has_watermarks |= !err;
	dapl_mutex_unlock(&evd->change);
	return err;
}

DAT_RETURN dapl_ep_watch_receives(struct dapl_ep *ep, struct dapl_evd *evd)
{
	if (!dapl_watermark_is_set(ep, dapl_ep_recv_evd(ep)))
		return DAT_SUCCESS;
	return dapl_status(watch(evd), DAT_RESOURCE_MEMORY);
}

/* dat_ep_set_watermark (doc/spec/calls.md 5): always sets both watermarks again. From the first call on the
 * service thread polls the endpoint's receive EVD as completions come. */
DAT_RETURN dapl_ep_set_watermark(DAT_EP_HANDLE handle, DAT_COUNT soft, DAT_COUNT hard)
{
	DAPL_ENTERED struct dapl_ep *ep = dapl_ep_enter(handle);
	struct dapl_evd *evd;
	bool fits = true;
	int err = 0;

	if (!ep)
		return BAD_HANDLE(EP);
	if (!ep->srq)
		return NOT_SUPPORTED;
	if (!good_mark(soft, ep->obj.ia))
		return BAD_PARAM(2);
	if (!good_mark(hard, ep->obj.ia))
		return BAD_PARAM(3);
	dapl_ep_lock_settled(ep);
	evd = dapl_ep_recv_evd(ep);
	if (soft >= 0 || hard >= 0)
		err = watch(evd);
	if (!err)
		fits = dapl_watermark_set(ep, evd, soft, hard);
	dapl_mutex_unlock(&ep->lock);
	return fits ? dapl_status(err, DAT_RESOURCE_MEMORY) : BAD_STATE(EP_RECV_WATERMARK);
}
