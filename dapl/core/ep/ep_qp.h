/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ep_qp.h - the queue pair of an endpoint (ep_qp.c). */
#ifndef DAPL_EP_QP_H
#define DAPL_EP_QP_H
#include "dapl/core/dapl.h"

/* Takes ep->lock when no other call is in the middle of a change of the endpoint's
 * configuration. Calls that make a QP or change the configuration begin with it. */
void dapl_ep_lock_settled(struct dapl_ep *ep);
/* ep->lock held, settled: a change begins. Receives that are posted are in the queue, and later ones
 * wait for its end. */
void dapl_ep_begin_change(struct dapl_ep *ep);
void dapl_ep_end_change(struct dapl_ep *ep);
/* ep->lock held, settled: makes the QP if there is none yet. */
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
/* Takes the QP away from posts and makes it empty, as after its creation; *qp: the QP, or NULL if the
 * endpoint has none. The caller gives it back, after an error too. A receive that came between, before the
 * ring of requests is empty and the state is the next, would be in one of them only. ep->lock is held on
 * entry and return, and released in between: the device may wait for a peer. So ep->changing is set. */
DAT_RETURN dapl_ep_take_emptied_qp(struct dapl_ep *ep, struct ibv_qp **qp);
/* ep->lock held. From now on posts use this QP. */
void dapl_ep_give_qp(struct dapl_ep *ep, struct ibv_qp *qp);
/* Replaces the QP by one of the endpoint's present configuration, and posts the posted receives
 * to it again. After an error the old QP is in place. ep->lock is held on entry and return, and
 * released in between. Not for UD, whose receives may complete at any time. */
DAT_RETURN dapl_ep_exchange_qp(struct dapl_ep *ep);

#endif
