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
	struct dapl_lmr *lmr;		/* the LMR that the window is bound to, with a use of it; NULL:
					 * unbound */
	DAT_RMR_PARAM param;
};
DAPL_ENTER(rmr, dapl_rmr, DAPL_RMR)

/* Ends an RMR that was killed before. */
void dapl_rmr_destroy(struct dapl_rmr *rmr);

/* Enters the LMR of an RMR that is bound to a range around this one, with remote write. Returns NULL if
 * there is none. */
struct dapl_lmr *dapl_rmr_target(struct dapl_ia *ia, const DAT_RMR_TRIPLET *range);
/* Notes that the window is not bound any more. Called with rmr->lock held, or when no call is inside. */
void dapl_rmr_unbound(struct dapl_rmr *rmr);
/* Notes that the peer has invalidated the window with this context. Called with no lock held. */
void dapl_rmr_invalidated(struct dapl_ia *ia, DAT_RMR_CONTEXT context);
/* Notes that the window is bound to the LMR, and takes over the caller's use of it; NULL: unbound. Called
 * with rmr->lock held. */
void dapl_rmr_bound(struct dapl_rmr *rmr, struct dapl_lmr *lmr, const DAT_LMR_TRIPLET *range,
		    DAT_MEM_PRIV_FLAGS priv, DAT_VA_TYPE va_type, DAT_RMR_CONTEXT context);

DAT_RETURN dapl_rmr_create(DAT_PZ_HANDLE pz, DAT_RMR_HANDLE *handle);
DAT_RETURN dapl_rmr_create_for_ep(DAT_PZ_HANDLE pz, DAT_RMR_HANDLE *handle);
DAT_RETURN dapl_rmr_query(DAT_RMR_HANDLE handle, DAT_RMR_PARAM_MASK mask, DAT_RMR_PARAM *param);
DAT_RETURN dapl_rmr_free(DAT_RMR_HANDLE handle);

#endif
