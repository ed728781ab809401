/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ep_state.h - what can happen to an endpoint. The table is in ep_state.c. */
#ifndef DAPL_EP_STATE_H
#define DAPL_EP_STATE_H
#include "dapl/core/dapl.h"

enum dapl_ep_event {
	/* the consumer calls */
	EP_DO_CONNECT, EP_DO_RESERVE, EP_DO_RELEASE, EP_DO_ACCEPT, EP_DO_REJECT,
	EP_DO_ACCEPT_UD,
	EP_DO_DISCONNECT, EP_DO_DISCONNECT_GRACEFUL, EP_DO_RESET, EP_DO_FREE,
	/* the network, the device, the provider */
	EP_REQUEST_ARRIVED, EP_ESTABLISHED, EP_REJECTED, EP_REFUSED, EP_UNREACHABLE,
	EP_TIMED_OUT, EP_PEER_CLOSED, EP_BROKEN, EP_DRAINED, EP_BEGIN_RAW,
	EP_EVENTS
};

/* The only writer of ep->state; ep->lock held. True: the event is legal, the state is
 * what follows, *tell is the event owed to the connect EVD (0: none). False: nothing
 * changed; for a consumer's call the answer is dapl_bad_ep_state(ep->state). */
bool dapl_ep_step(struct dapl_ep *ep, enum dapl_ep_event event, DAT_EVENT_NUMBER *tell);
/* True if the event is legal in the present state. */
bool dapl_ep_may(const struct dapl_ep *ep, enum dapl_ep_event event);
/* May attributes be modified (all but the PZ)? Then rq.room is 0, and what is received into is
 * kept (recv_repost.h). */
bool dapl_ep_is_modifiable(const struct dapl_ep *ep);
/* May connected requests be posted? sq.lock held. */
bool dapl_ep_may_request(const struct dapl_ep *ep);
/* Recomputes how many posts the fast path may make, after a change of the state, the QP or a
 * queue. */
void dapl_ep_set_room(struct dapl_ep *ep);
/* ep->lock held: a raw Ethernet endpoint, which has no peer, is connected as soon as it is there. */
void dapl_ep_begin_raw(struct dapl_ep *ep);
/* A provider-made endpoint begins here instead of in UNCONNECTED. ep->lock held. */
void dapl_ep_begin_tentative(struct dapl_ep *ep);

#endif
