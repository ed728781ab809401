/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* recv_repost.h - the segments of receives that are posted while the endpoint may still be
 * modified: a modification may need another QP, and they are posted to that again. Verbs don't tell
 * what was posted. The callers post, and make the QPs.
 *
 * The list is guarded by ep->rq.lock, in posting order, and freed when the endpoint leaves those
 * states, so that receives of a connection cost nothing. */
#ifndef DAPL_RECV_REPOST_H
#define DAPL_RECV_REPOST_H
#include "dapl/core/dapl.h"

/* A receive's segments on their own; NULL without memory. */
struct dapl_saved_recv *dapl_saved_recv_new(const struct ibv_recv_wr *wr);
/* rq.lock held: puts it behind the others. */
void dapl_saved_recv_add(struct dapl_ep *ep, struct dapl_saved_recv *saved);
/* rq.lock held: the list is the caller's now, to be freed without the lock. */
struct dapl_saved_recv *dapl_saved_recv_detach(struct dapl_ep *ep);
void dapl_saved_recv_free(struct dapl_saved_recv *list);
/* rq.lock held: posts those of all the receives from `tail` on to `qp`, for the same places in
 * the ring as before. 0 or an errno; E2BIG: one has more than max_sge segments. ENODATA: not
 * all of them are in the list. */
int dapl_saved_recv_repost(struct dapl_ep *ep, struct ibv_qp *qp, unsigned max_sge);

#endif
