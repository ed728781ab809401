/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ep_qp.h - the queue pair of an endpoint (ep_qp.c). */
#ifndef DAPL_EP_QP_H
#define DAPL_EP_QP_H
#include "dapl/core/dapl.h"

/* Takes ep->lock when no other call is changing the endpoint's configuration. Calls that make a QP or
 * change the configuration begin with it. */
void dapl_ep_lock_settled(struct dapl_ep *ep);
/* A change begins. Receives that were posted are in the queue, and later ones wait for the end of the
 * change. Called with ep->lock held by dapl_ep_lock_settled. */
void dapl_ep_begin_change(struct dapl_ep *ep);
void dapl_ep_end_change(struct dapl_ep *ep);
/* Makes the QP if there is none yet. Called with ep->lock held by dapl_ep_lock_settled. */
DAT_RETURN dapl_ep_need_qp(struct dapl_ep *ep);
/* Destroys the QP and removes every trace of its requests. ep->lock is not held. */
void dapl_ep_end_qp(struct dapl_ep *ep);
/* Does the same with ep->lock held on entry and return, and released in between. */
void dapl_ep_end_qp_unlocked(struct dapl_ep *ep);
/* Destroys both discard EVDs. ep->lock is not held. */
void dapl_ep_end_discards(struct dapl_ep *ep);
/* Destroys the discard EVDs that an EVD of the consumer has replaced. ep->lock is held on entry
 * and return, and released in between. */
void dapl_ep_end_discards_unlocked(struct dapl_ep *ep);
/* Takes the QP away from posts and empties it. *qp is the QP, or NULL if the endpoint has none. The caller
 * gives *qp back when it has set the next state, after an error, too: a receive that was posted before
 * would be in the QP and not in the ring of records. ep->lock is held on entry and return, and released in
 * between, because the device may wait for a peer. The caller has begun a change. */
DAT_RETURN dapl_ep_take_emptied_qp(struct dapl_ep *ep, struct ibv_qp **qp);
/* From now on posts use this QP. Called with ep->lock held. */
void dapl_ep_give_qp(struct dapl_ep *ep, struct ibv_qp *qp);
/* Replaces the QP by one of the endpoint's present configuration, and posts the posted receives
 * to it again. After an error the old QP is in place. ep->lock is held on entry and return, and
 * released in between. Not for UD, whose receives may complete at any time. */
DAT_RETURN dapl_ep_exchange_qp(struct dapl_ep *ep);

#endif
