/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rmr.c - remote memory regions: memory windows, bound through an endpoint's request
 * queue. dat_rmr_create makes a window of type 1 (usable on any endpoint of the PZ),
 * dat_rmr_create_for_ep one of type 2 (of one endpoint at a time); each falls back on the
 * other where the device has but one. */
#include <string.h>
#include "dapl/core/mem/lmr.h"
#include "dapl/core/ep/post.h"
#include "dapl/core/ia/provider.h"
#include "dapl/core/mem/rmr.h"

static void end_rmr(struct dapl_object *obj)
{
	struct dapl_rmr *rmr = (struct dapl_rmr *)obj;

	if (rmr->mw)
		dapl_device_ops.dealloc_mw(rmr->mw);
}

static void unbound(struct dapl_rmr *rmr)
{
	if (rmr->lmr)
		dapl_unuse(&rmr->lmr->obj);
	rmr->lmr = NULL;
}

void dapl_rmr_destroy(struct dapl_rmr *rmr)
{
	unbound(rmr);
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

/* May the LMR be seen through a window with these rights?. RMR-6. */
static DAT_RETURN check_rights(const struct dapl_lmr *lmr, DAT_MEM_PRIV_FLAGS priv)
{
	if (priv & ~(DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG))
		return BAD_PARAM(4);
	if ((priv & DAT_MEM_PRIV_REMOTE_READ_FLAG) &&
	    !(lmr->param.mem_priv & DAT_MEM_PRIV_LOCAL_READ_FLAG))
		return DAT_ERROR(DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_READ);
	if ((priv & DAT_MEM_PRIV_REMOTE_WRITE_FLAG) &&
	    !(lmr->param.mem_priv & DAT_MEM_PRIV_LOCAL_WRITE_FLAG))
		return DAT_ERROR(DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_WRITE);
	return DAT_SUCCESS;
}

static unsigned window_access(DAT_MEM_PRIV_FLAGS priv)
{
	return (priv & DAT_MEM_PRIV_REMOTE_READ_FLAG ? IBV_ACCESS_REMOTE_READ : 0) |
		(priv & DAT_MEM_PRIV_REMOTE_WRITE_FLAG ? IBV_ACCESS_REMOTE_WRITE : 0);
}

/* RMR-5, 7 */
static DAT_RETURN check_bind(struct dapl_rmr *rmr, struct dapl_lmr *lmr,
			     const DAT_LMR_TRIPLET *range, DAT_MEM_PRIV_FLAGS priv,
			     const struct dapl_pz *ep_pz)
{
	DAT_RETURN ret;

	if (rmr->pz != ep_pz || (lmr && lmr->pz != rmr->pz))
		return DAT_ERROR(DAT_PROTECTION_VIOLATION, DAT_NO_SUBTYPE);
	if (!lmr)
		return DAT_SUCCESS;
	if ((ret = check_rights(lmr, priv)))
		return ret;
	if (range->lmr_context != lmr->param.lmr_context ||
	    !dapl_lmr_holds(lmr, range->virtual_address, range->segment_length))
		return BAD_PARAM(3);
	return DAT_SUCCESS;
}

/* rmr->lock held. A bound window of type 2 must be invalidated before it's bound anew. */
static DAT_RETURN post_bind(struct dapl_rmr *rmr, struct dapl_lmr *lmr,
			    const DAT_LMR_TRIPLET *range, DAT_MEM_PRIV_FLAGS priv,
			    struct dapl_ep *ep, DAT_RMR_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	struct dapl_bind bind = { .mw = rmr->mw };
	bool type_2 = rmr->mw->type == IBV_MW_TYPE_2;
	DAT_RETURN ret;

	if (type_2 && rmr->lmr && lmr) {
		bind.invalidate = true;
		ret = dapl_ep_post_bind(ep, &bind, (DAT_RMR_HANDLE)rmr, cookie,
					DAT_COMPLETION_DEFAULT_FLAG, true);
		if (ret != DAT_SUCCESS)
			return ret;
		unbound(rmr);
	}
	bind.invalidate = type_2 && !lmr;
	if (lmr)
		bind.info = (struct ibv_mw_bind_info){ lmr->mr, range->virtual_address,
			range->segment_length, window_access(priv) };
	else if (rmr->lmr)
		bind.info.mr = rmr->lmr->mr;
	return dapl_ep_post_bind(ep, &bind, (DAT_RMR_HANDLE)rmr, cookie, flags, false);
}

/* dat_rmr_bind (doc/spec/calls.md 6); a range of length 0 unbinds. */
DAT_RETURN dapl_rmr_bind(DAT_RMR_HANDLE handle, DAT_LMR_HANDLE lmr_handle,
			 const DAT_LMR_TRIPLET *range, DAT_MEM_PRIV_FLAGS priv, DAT_VA_TYPE va_type,
			 DAT_EP_HANDLE ep_handle, DAT_RMR_COOKIE cookie,
			 DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT *context)
{
	DAPL_ENTERED struct dapl_rmr *rmr = dapl_rmr_enter(handle);
	DAPL_ENTERED struct dapl_ep *ep = dapl_ep_enter(ep_handle);
	DAPL_ENTERED struct dapl_lmr *lmr = NULL;
	const struct dapl_pz *ep_pz;
	DAT_RETURN ret;
	bool tells;

	if (!rmr)
		return BAD_HANDLE(RMR);
	if (!range)
		return BAD_PARAM(3);
	if (range->segment_length && (!(lmr = dapl_lmr_enter(lmr_handle)) ||
				      lmr->obj.ia != rmr->obj.ia))
		return BAD_HANDLE(LMR);
	if (va_type != DAT_VA_TYPE_VA && va_type != DAT_VA_TYPE_ZB)
		return BAD_PARAM(5);
	if (va_type == DAT_VA_TYPE_ZB)
		return NOT_SUPPORTED;
	if (!ep || ep->obj.ia != rmr->obj.ia)
		return BAD_HANDLE(EP);
	if (!context)
		return BAD_PARAM(9);
	dapl_mutex_lock(&ep->lock);
	tells = !ep->request_evd || (ep->request_evd->flags & DAT_EVD_RMR_BIND_FLAG);
	ep_pz = ep->pz;
	dapl_mutex_unlock(&ep->lock);
	if (!tells)
		return BAD_STATE(EP_EVD_REQUEST);
	dapl_mutex_lock(&rmr->lock);
	ret = check_bind(rmr, lmr, range, priv, ep_pz);
	if (!ret && lmr && !dapl_use(&lmr->obj))
		ret = BAD_HANDLE(LMR);
	if (!ret && (ret = post_bind(rmr, lmr, range, priv, ep, cookie, flags)) && lmr)
		dapl_unuse(&lmr->obj);
	if (!ret) {
		unbound(rmr);
		rmr->lmr = lmr;
		rmr->param.lmr_triplet = *range;
		rmr->param.mem_priv = priv;
		rmr->param.va_type = va_type;
		rmr->param.rmr_context = *context = rmr->mw->rkey;
	}
	dapl_mutex_unlock(&rmr->lock);
	return ret;
}

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
