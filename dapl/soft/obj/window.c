/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* window.c - see window.h. A window can be changed by another QP than the one that uses it, so a window has a lock of
 * its own, held for the length of an access (mem.c). */
#include "dapl/soft/obj/window.h"
#include "common/lock.h"
#include "common/trace.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/stags.h"
#include <errno.h>
#include <stdlib.h>

int soft_mw_alloc(struct ibv_pd *pd, enum ibv_mw_type type, struct ibv_mw **mw)
{
	struct soft_mw *new;
	int err;

	if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)
		return EINVAL;
	new = calloc(1, sizeof *new);
	if (!new)
		return ENOMEM;
	dapl_mutex_init(&new->region.lock, RANK_SOFT_WINDOW);
	new->region.kind = type == IBV_MW_TYPE_1 ? SOFT_WINDOW_1 : SOFT_WINDOW_2;
	new->region.file = -1;
	new->region.pd = soft_pd(pd);
	err = soft_stags_add(soft_device(pd->context), &new->region);
	if (err) {
		free(new);
		return err;
	}
	new->mw = (struct ibv_mw){
		.context = pd->context, .pd = pd, .rkey = new->region.stag, .type = type,
	};
	__atomic_add_fetch(&soft_pd(pd)->refs, 1, __ATOMIC_RELAXED);
	*mw = &new->mw;
	return 0;
}

/* Called with the window's lock held, or when no QP can find it any more. */
static void window_unbind(struct soft_region *window)
{
	if (window->parent)
		__atomic_sub_fetch(&window->parent->windows, 1, __ATOMIC_RELEASE);
	window->parent = NULL;
	window->valid = false;
	window->qp = NULL;
}

int soft_mw_dealloc(struct ibv_mw *ibmw)
{
	struct soft_mw *mw = (struct soft_mw *)ibmw;

	soft_stags_remove(soft_device(ibmw->context), mw->region.stag);
	window_unbind(&mw->region);
	__atomic_sub_fetch(&soft_pd(ibmw->pd)->refs, 1, __ATOMIC_RELEASE);
	free(mw);
	return 0;
}

/* Returns what is wrong with a bind, or NULL. */
static const char *bind_fault(const struct soft_qp *qp, const struct soft_swqe *wqe)
{
	const struct soft_region *mr = &wqe->bind.mr->region;
	int writes = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
	uint64_t offset;

	if (wqe->bind.mw->mw.pd != qp->qp.pd || wqe->bind.mr->mr.pd != qp->qp.pd)
		return "other protection domain";
	if (!(mr->access & IBV_ACCESS_MW_BIND))
		return "region without bind right";
	if ((wqe->bind.access & writes) && !(mr->access & IBV_ACCESS_LOCAL_WRITE))
		return "region is read-only";
	if (wqe->bind.addr < mr->first)
		return "outside the region";
	offset = wqe->bind.addr - mr->first;
	if (offset > mr->length || wqe->bind.length > mr->length - offset)
		return "outside the region";
	return NULL;
}

/* RMR-3, 8 */
enum ibv_wc_status soft_mw_bind(struct soft_qp *qp, const struct soft_swqe *wqe)
{
	struct soft_region *window = &wqe->bind.mw->region, *mr;
	bool type1 = window->kind == SOFT_WINDOW_1;
	const char *fault = NULL;

	assert_held(&qp->lock);
	if (type1 != wqe->bind_type1)
		return IBV_WC_MW_BIND_ERR;
	if (wqe->bind.mr && wqe->bind.length)
		fault = bind_fault(qp, wqe);
	dapl_mutex_lock(&window->lock);
	if (!type1 && window->valid)
		fault = "still bound";
	else if (window->stag >> 8 != wqe->rkey >> 8)
		fault = "STag of another window";
	if (!fault) {
		window_unbind(window);
		window->stag = wqe->rkey;
	}
	if (!fault && wqe->bind.mr && wqe->bind.length) {
		mr = &wqe->bind.mr->region;
		__atomic_add_fetch(&mr->windows, 1, __ATOMIC_RELAXED);
		window->parent = mr;
		window->base = mr->base + (wqe->bind.addr - mr->first);
		window->first = wqe->bind.access & IBV_ACCESS_ZERO_BASED ? 0 : wqe->bind.addr;
		window->length = wqe->bind.length;
		window->access = wqe->bind.access;
		window->qp = type1 ? NULL : qp;
		window->valid = true;
	}
	dapl_mutex_unlock(&window->lock);
	if (fault)
		soft_trace(TRC_LVL_ERROR, "qp", qp, "bind refused: %s", fault);
	return fault ? IBV_WC_MW_BIND_ERR : IBV_WC_SUCCESS;
}

enum ibv_wc_status soft_mw_invalidate(struct soft_qp *qp, uint32_t stag)
{
	struct soft_region *window = soft_stags_find(qp->dev, stag);
	bool mine;

	assert_held(&qp->lock);
	if (!window || window->kind != SOFT_WINDOW_2)
		return IBV_WC_MW_BIND_ERR;
	dapl_mutex_lock(&window->lock);
	mine = window->valid && window->qp == qp && window->stag == stag;
	if (mine)
		window_unbind(window);
	dapl_mutex_unlock(&window->lock);
	return mine ? IBV_WC_SUCCESS : IBV_WC_MW_BIND_ERR;
}

static void forget(struct soft_region *region, void *qp)
{
	if (region->kind != SOFT_WINDOW_2)
		return;
	dapl_mutex_lock(&region->lock);
	if (region->qp == qp)
		window_unbind(region);
	dapl_mutex_unlock(&region->lock);
}

void soft_mw_forget_qp(struct soft_qp *qp)
{
	soft_stags_each(qp->dev, forget, qp);
}
