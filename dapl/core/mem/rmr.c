/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rmr.c - remote memory regions: memory windows. They are bound through an endpoint's request queue
 * (ep/rmr_bind.c). dat_rmr_create makes a window of type 1 (usable on any endpoint of the PZ),
 * dat_rmr_create_for_ep one of type 2 (of one endpoint at a time); each makes the other type if the device
 * has only that one. */
#include <string.h>
#include "dapl/core/base/ia_handle.h"
#include "dapl/core/mem/rmr.h"

static void end_rmr(struct dapl_object *obj)
{
	struct dapl_rmr *rmr = (struct dapl_rmr *)obj;

	if (rmr->mw)
		dapl_device_ops.dealloc_mw(rmr->mw);
}

/* Changes the binding under ia->lock, under which dapl_rmr_target looks at all RMRs of the IA. */
static void set_lmr(struct dapl_rmr *rmr, struct dapl_lmr *lmr, const DAT_RMR_PARAM *param)
{
	struct dapl_ia *ia = rmr->obj.ia;
	struct dapl_lmr *old;

	dapl_mutex_lock(&ia->lock);
	old = rmr->lmr;
	rmr->lmr = lmr;
	rmr->param = *param;
	dapl_mutex_unlock(&ia->lock);
	if (old)
		dapl_unuse(&old->obj);
}

void dapl_rmr_unbound(struct dapl_rmr *rmr)
{
	DAT_RMR_PARAM param = rmr->param;

	set_lmr(rmr, NULL, &param);
}

void dapl_rmr_bound(struct dapl_rmr *rmr, struct dapl_lmr *lmr, const DAT_LMR_TRIPLET *range,
		    DAT_MEM_PRIV_FLAGS priv, DAT_VA_TYPE va_type, DAT_RMR_CONTEXT context)
{
	DAT_RMR_PARAM param = rmr->param;

	assert_held(&rmr->lock);
	param.lmr_triplet = *range;
	param.mem_priv = priv;
	param.va_type = va_type;
	param.rmr_context = context;
	set_lmr(rmr, lmr, &param);
}

/* Enters the RMR that is bound and has this context. Returns NULL if there is none. */
static struct dapl_rmr *enter_bound(struct dapl_ia *ia, DAT_RMR_CONTEXT context)
{
	struct dapl_rmr *found = NULL;

	dapl_mutex_lock(&ia->lock);
	for (struct dapl_object *o = ia->objects[DAPL_RMR]; o && !found; o = o->next) {
		struct dapl_rmr *rmr = (struct dapl_rmr *)o;

		if (rmr->lmr && rmr->param.rmr_context == context)
			found = dapl_rmr_enter((DAT_RMR_HANDLE)rmr);
	}
	dapl_mutex_unlock(&ia->lock);
	return found;
}

/* RMR-15 */
void dapl_rmr_invalidated(struct dapl_ia *ia, DAT_RMR_CONTEXT context)
{
	DAPL_ENTERED struct dapl_rmr *rmr = enter_bound(ia, context);

	if (!rmr)
		return;
	dapl_mutex_lock(&rmr->lock);
	if (rmr->param.rmr_context == context)	/* another thread may have bound it again */
		dapl_rmr_unbound(rmr);
	dapl_mutex_unlock(&rmr->lock);
}

void dapl_rmr_destroy(struct dapl_rmr *rmr)
{
	dapl_rmr_unbound(rmr);
	dapl_unuse(&rmr->pz->obj);
	dapl_object_bury(&rmr->obj);
}

/* RMR-1, 13 */
static DAT_RETURN create(DAT_PZ_HANDLE pz_handle, bool for_ep, DAT_RMR_HANDLE *handle)
{
	DAPL_ENTERED struct dapl_pz *pz = dapl_pz_enter(pz_handle);
	enum ibv_mw_type type;
	struct dapl_rmr *rmr;
	struct dapl_ia *ia;
	int err;

	if (!pz)
		return BAD_HANDLE(PZ);
	if (!handle)
		return BAD_PARAM(2);
	ia = pz->obj.ia;
	if (!ia->attr.windows_1 && !ia->attr.windows_2)
		return NOT_SUPPORTED;
	type = (for_ep && ia->attr.windows_2) || !ia->attr.windows_1 ? IBV_MW_TYPE_2 :
		IBV_MW_TYPE_1;
	if (!(rmr = dapl_object_new(DAPL_RMR, sizeof *rmr, ia, end_rmr)))
		return NO_RESOURCE(MEMORY);
	dapl_mutex_init(&rmr->lock, RANK_RMR);
	err = dapl_device_ops.alloc_mw(pz->pd, type, &rmr->mw);
	if (err) {
		rmr->mw = NULL;
		dapl_object_put(&rmr->obj);
		return dapl_status(err, DAT_RESOURCE_MEMORY_REGION);
	}
	if (!dapl_use(&pz->obj)) {
		dapl_object_put(&rmr->obj);
		return BAD_HANDLE(PZ);
	}
	rmr->pz = pz;
	rmr->scope = type == IBV_MW_TYPE_1 ? DAT_RMR_SCOPE_PZ : DAT_RMR_SCOPE_EP;
	dapl_object_publish(&rmr->obj);
	dapl_count(ia, DCNT_IA_RMR_CREATE);
	*handle = (DAT_RMR_HANDLE)rmr;
	return DAT_SUCCESS;
}

DAT_RETURN dapl_rmr_create(DAT_PZ_HANDLE pz, DAT_RMR_HANDLE *handle)
{
	return create(pz, false, handle);
}

DAT_RETURN dapl_rmr_create_for_ep(DAT_PZ_HANDLE pz, DAT_RMR_HANDLE *handle)
{
	return create(pz, true, handle);
}

/* RMR-11 */
DAT_RETURN dapl_rmr_query(DAT_RMR_HANDLE handle, DAT_RMR_PARAM_MASK mask, DAT_RMR_PARAM *param)
{
	DAPL_ENTERED struct dapl_rmr *rmr = dapl_rmr_enter(handle);

	if (!rmr)
		return BAD_HANDLE(RMR);
	if (mask & ~DAT_RMR_FIELD_ALL)
		return BAD_PARAM(2);
	if (!param)
		return BAD_PARAM(3);
	dapl_mutex_lock(&rmr->lock);
	*param = rmr->param;
	param->ia_handle = dapl_ia_handle(rmr->obj.ia);
	param->pz_handle = (DAT_PZ_HANDLE)rmr->pz;
	param->rmr_scope = rmr->scope;
	dapl_mutex_unlock(&rmr->lock);
	return DAT_SUCCESS;
}

/* RMR-10 */
DAT_RETURN dapl_rmr_free(DAT_RMR_HANDLE handle)
{
	DAPL_ENTERED struct dapl_rmr *rmr = dapl_rmr_enter(handle);

	if (!rmr || !dapl_object_kill(&rmr->obj))
		return BAD_HANDLE(RMR);
	dapl_object_wait_calls(&rmr->obj, 1);
	dapl_count(rmr->obj.ia, DCNT_IA_RMR_FREE);
	dapl_rmr_destroy(rmr);
	return DAT_SUCCESS;
}

struct dapl_lmr *dapl_rmr_target(struct dapl_ia *ia, const DAT_RMR_TRIPLET *range)
{
	struct dapl_lmr *lmr = NULL;

	dapl_mutex_lock(&ia->lock);
	for (struct dapl_object *o = ia->objects[DAPL_RMR]; o && !lmr; o = o->next) {
		struct dapl_rmr *rmr = (struct dapl_rmr *)o;
		const DAT_LMR_TRIPLET *bound = &rmr->param.lmr_triplet;
		uint64_t from = range->virtual_address - bound->virtual_address;

		if (rmr->lmr && rmr->param.rmr_context == range->rmr_context &&
		    (rmr->param.mem_priv & DAT_MEM_PRIV_REMOTE_WRITE_FLAG) &&
		    from <= bound->segment_length &&
		    range->segment_length <= bound->segment_length - from)
			lmr = dapl_lmr_enter((DAT_HANDLE)rmr->lmr);
	}
	dapl_mutex_unlock(&ia->lock);
	return lmr;
}
