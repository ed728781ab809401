/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* recv_repost.h - keeps the segments of receives that are posted while the endpoint may still be modified.
 * A modification may need another QP, to which they are posted again. Verbs cannot list posted receives.
 *
 * The list is in posting order, and is guarded by ep->rq.lock. It is freed when the endpoint may no
 * longer be modified, so that receives of a connection cost nothing. */
#ifndef DAPL_RECV_REPOST_H
#define DAPL_RECV_REPOST_H
#include "dapl/core/dapl.h"

/* Returns a copy of the segments of a receive, or NULL if there is no memory. */
struct dapl_saved_recv *dapl_saved_recv_new(const struct ibv_recv_wr *wr);
/* Appends it to the list. Called with rq.lock held. */
void dapl_saved_recv_add(struct dapl_ep *ep, struct dapl_saved_recv *saved);
/* Returns the list, which the caller frees without the lock. Called with rq.lock held. */
struct dapl_saved_recv *dapl_saved_recv_detach(struct dapl_ep *ep);
void dapl_saved_recv_free(struct dapl_saved_recv *list);
/* Posts all receives from `tail` on to `qp`, with the same places in the ring as before. Returns 0 or an
 * errno. E2BIG: a receive has more than max_sge segments. ENODATA: a receive is not in the list. Called
 * with rq.lock held. */
int dapl_saved_recv_repost(struct dapl_ep *ep, struct ibv_qp *qp, unsigned max_sge);

#endif
