/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rmr.h - remote memory regions (rmr.c). */
#ifndef DAPL_RMR_H
#define DAPL_RMR_H
#include "dapl/core/dapl.h"

struct dapl_rmr {
	struct dapl_object obj;
	struct ibv_mw *mw;
	struct dapl_pz *pz;
	DAT_RMR_SCOPE scope;
	struct dapl_mutex lock;		/* held over a bind. What follows is written under lock and ia->lock,
					 * and read under either */
	struct dapl_lmr *lmr;		/* bound to (a use of it), NULL when unbound */
	DAT_RMR_PARAM param;
};
DAPL_ENTER(rmr, dapl_rmr, DAPL_RMR)

/* Ends an RMR that was killed before. */
void dapl_rmr_destroy(struct dapl_rmr *rmr);

/* The LMR behind the RMR whose binding holds this range and may be written, entered; or NULL. */
struct dapl_lmr *dapl_rmr_target(struct dapl_ia *ia, const DAT_RMR_TRIPLET *range);
/* rmr->lock held, or no call is inside: the window is not bound, or no longer. */
void dapl_rmr_unbound(struct dapl_rmr *rmr);
/* rmr->lock held: the window is bound to the LMR, whose use the caller gives to it; or, NULL, unbound. */
void dapl_rmr_bound(struct dapl_rmr *rmr, struct dapl_lmr *lmr, const DAT_LMR_TRIPLET *range,
		    DAT_MEM_PRIV_FLAGS priv, DAT_VA_TYPE va_type, DAT_RMR_CONTEXT context);

DAT_RETURN dapl_rmr_create(DAT_PZ_HANDLE pz, DAT_RMR_HANDLE *handle);
DAT_RETURN dapl_rmr_create_for_ep(DAT_PZ_HANDLE pz, DAT_RMR_HANDLE *handle);
DAT_RETURN dapl_rmr_query(DAT_RMR_HANDLE handle, DAT_RMR_PARAM_MASK mask, DAT_RMR_PARAM *param);
DAT_RETURN dapl_rmr_free(DAT_RMR_HANDLE handle);

#endif
