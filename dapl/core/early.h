/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* early.h - the segments of receives that are posted while the endpoint may still be
 * modified: a modification may need another QP, and they are posted to that again. Verbs
 * don't tell what was posted. Posting and QPs are their callers' job.
 *
 * The list is guarded by ep->rq.lock, in posting order, and gone when the endpoint leaves
 * those states: receives of a connection cost nothing here. */
#ifndef DAPL_EARLY_H
#define DAPL_EARLY_H
#include "dapl/core/dapl.h"

/* A receive's segments on their own; NULL without memory. */
struct dapl_early *dapl_early_new(const struct ibv_recv_wr *wr);
/* rq.lock held: puts it behind the others. */
void dapl_early_add(struct dapl_ep *ep, struct dapl_early *early);
/* rq.lock held: the list is the caller's now, to be freed without the lock. */
struct dapl_early *dapl_early_detach(struct dapl_ep *ep);
void dapl_early_free(struct dapl_early *list);
/* rq.lock held: posts those of all the receives from `tail` on to `qp`, for the same places in
 * the ring as before. 0 or an errno; E2BIG: one has more than max_sge segments. ENODATA: not
 * all of them are in the list. */
int dapl_early_repost(struct dapl_ep *ep, struct ibv_qp *qp, unsigned max_sge);

#endif
