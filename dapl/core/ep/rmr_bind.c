/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rmr_bind.c - dat_rmr_bind: checks the range and the rights, and binds or unbinds a memory window
 * through the request queue of an endpoint. */
#include "dapl/core/ep/post_slow.h"
#include "dapl/core/ep/calls.h"
#include "dapl/core/mem/dm.h"
#include "dapl/core/mem/lmr.h"
#include "dapl/core/mem/rmr.h"

/* Checks that a window onto the LMR may have these rights. RMR-6. */
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

static unsigned window_access(const struct dapl_ia *ia, DAT_MEM_PRIV_FLAGS priv)
{
	unsigned write = IBV_ACCESS_REMOTE_WRITE | (ia->attr.flush_global ? DAPL_ACCESS_FLUSH : 0);

	return (priv & DAT_MEM_PRIV_REMOTE_READ_FLAG ? IBV_ACCESS_REMOTE_READ : 0) |
	       (priv & DAT_MEM_PRIV_REMOTE_WRITE_FLAG ? write : 0);
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

/* Posts the request. A bound window of type 2 must be invalidated before it is bound again. Called with
 * rmr->lock held. The fence of the bind holds that back, too. RMR-8, 14. */
static DAT_RETURN post_bind(struct dapl_rmr *rmr, struct dapl_lmr *lmr,
			    const DAT_LMR_TRIPLET *range, DAT_MEM_PRIV_FLAGS priv,
			    struct dapl_ep *ep, DAT_RMR_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	struct dapl_bind bind = { .mw = rmr->mw };
	bool type_2 = rmr->mw->type == IBV_MW_TYPE_2;
	DAT_RETURN ret;

	assert_held(&rmr->lock);
	if (type_2 && rmr->lmr && lmr) {
		bind.invalidate = true;
		ret = dapl_ep_post_bind(ep, &bind, (DAT_RMR_HANDLE)rmr, cookie, flags, true);
		if (ret != DAT_SUCCESS)
			return ret;
		dapl_rmr_unbound(rmr);
	}
	bind.invalidate = type_2 && !lmr && rmr->lmr;
	if (lmr)
		bind.info = (struct ibv_mw_bind_info){ lmr->mr, range->virtual_address,
			range->segment_length, window_access(ep->obj.ia, priv) };
	else if (rmr->lmr)
		bind.info.mr = rmr->lmr->mr;
	return dapl_ep_post_bind(ep, &bind, (DAT_RMR_HANDLE)rmr, cookie, flags, false);
}

/* dat_rmr_bind (doc/spec/calls.md 6); a range of length 0 unbinds. RMR-3. */
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
	if (lmr && lmr->param.mem_type == DAT_DM_MEM_TYPE && !lmr->obj.ia->attr.dm_windows)	/* DM-19 */
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
		*context = rmr->mw->rkey;
		dapl_rmr_bound(rmr, lmr, range, priv, va_type, *context);
	}
	dapl_mutex_unlock(&rmr->lock);
	return ret;
}
