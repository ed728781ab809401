/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ep_state.h - the events in the life of an endpoint, and the steps between its states (table in
 * ep_state.c). */
#ifndef DAPL_EP_STATE_H
#define DAPL_EP_STATE_H
#include "dapl/core/dapl.h"

enum dapl_ep_event {
	/* calls of the consumer */
	EP_DO_CONNECT, EP_DO_RESERVE, EP_DO_RELEASE, EP_DO_ACCEPT, EP_DO_REJECT,
	EP_DO_ACCEPT_UD,
	EP_DO_DISCONNECT, EP_DO_DISCONNECT_GRACEFUL, EP_DO_RESET, EP_DO_FREE,
	/* reports of the network, the device and the provider */
	EP_REQUEST_ARRIVED, EP_ESTABLISHED, EP_REJECTED, EP_REFUSED, EP_UNREACHABLE,
	EP_TIMED_OUT, EP_PEER_CLOSED, EP_BROKEN, EP_DRAINED, EP_BEGIN_RAW,
	EP_EVENTS
};

/* Makes the step of the table for an event; the only writer of ep->state. Returns true if the event is
 * legal in the present state. Then ep->state is the next state, and *due the event that is due on the
 * connect EVD (0: none). After false nothing has changed, and a consumer's call returns
 * dapl_status_bad_ep_state(ep->state). Called with ep->lock held. */
bool dapl_ep_step(struct dapl_ep *ep, enum dapl_ep_event event, DAT_EVENT_NUMBER *due);
/* Returns true if the event is legal in the present state. */
bool dapl_ep_may(const struct dapl_ep *ep, enum dapl_ep_event event);
/* Returns true if attributes may be modified, except the PZ. Then rq.room is 0, and the segments of
 * receives are kept (recv_repost.h). */
bool dapl_ep_is_modifiable(const struct dapl_ep *ep);
/* Returns true if requests of a connected endpoint may be posted. Called with sq.lock held. */
bool dapl_ep_may_request(const struct dapl_ep *ep);
/* Recomputes `room` of both queues after a change of the state, the QP or a queue. */
void dapl_ep_set_room(struct dapl_ep *ep);
/* Connects a raw Ethernet endpoint, which has no peer, as soon as it exists. Called with ep->lock held. */
void dapl_ep_begin_raw(struct dapl_ep *ep);
/* Sets the first state of an endpoint that the provider makes for a request. Called with ep->lock held. */
void dapl_ep_begin_tentative(struct dapl_ep *ep);

#endif
