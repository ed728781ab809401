/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* window.h - memory windows: allocating, binding to a region, invalidating. */
#ifndef SOFT_OBJ_WINDOW_H
#define SOFT_OBJ_WINDOW_H
#include "dapl/soft/obj/mem.h"

struct soft_mw {
	struct ibv_mw mw;
	struct soft_region region;
};

/* These return 0 or an errno. */
int soft_mw_alloc(struct ibv_pd *pd, enum ibv_mw_type type, struct ibv_mw **mw);
int soft_mw_dealloc(struct ibv_mw *mw);
/* The QP is destroyed: invalidates the windows of type 2 that are bound to it. Its lock is not held. */
void soft_mw_forget_qp(struct soft_qp *qp);
/* Called with the QP's lock held: execute a bind or a local invalidate. Return the completion status. */
enum ibv_wc_status soft_mw_bind(struct soft_qp *qp, const struct soft_swqe *wqe);
enum ibv_wc_status soft_mw_invalidate(struct soft_qp *qp, uint32_t stag);

#endif
