/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ep_state.c - the endpoint state table (doc/spec/states.md 1.1). The only code that writes ep->state.
 * conn/terminate.c posts events to EVDs; the device sends messages. CONN-8, 11, 12, 26, 27, 28, 33. */
#include "common/clock.h"
#include "dapl/core/base/cause.h"
#include "dapl/core/ep/ep_state.h"
#include "dapl/core/ep/recv_repost.h"

/* Each state is a bit. */
#define UNCONN	(1u << DAT_EP_STATE_UNCONNECTED)
#define RESV	(1u << DAT_EP_STATE_RESERVED)
#define PASS	(1u << DAT_EP_STATE_PASSIVE_CONNECTION_PENDING)
#define TENT	(1u << DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING)
#define ACT	(1u << DAT_EP_STATE_ACTIVE_CONNECTION_PENDING)
#define COMP	(1u << DAT_EP_STATE_COMPLETION_PENDING)
#define CONN	(1u << DAT_EP_STATE_CONNECTED)
#define DISCP	(1u << DAT_EP_STATE_DISCONNECT_PENDING)
#define DISC	(1u << DAT_EP_STATE_DISCONNECTED)

enum { NOTHING = 0, SAME = -1 };

static const struct row {
	enum dapl_ep_event event;
	unsigned from;
	int next;
	int due;
} table[] = {
/* clang-format off */
/* what happened              legal from             next                                       due on the connect EVD */
{ EP_DO_CONNECT,              UNCONN,                DAT_EP_STATE_ACTIVE_CONNECTION_PENDING,    NOTHING },
{ EP_DO_RESERVE,              UNCONN,                DAT_EP_STATE_RESERVED,                     NOTHING },
{ EP_DO_RELEASE,              RESV,                  DAT_EP_STATE_UNCONNECTED,                  NOTHING },
{ EP_REQUEST_ARRIVED,         RESV,                  DAT_EP_STATE_PASSIVE_CONNECTION_PENDING,   NOTHING },
{ EP_DO_ACCEPT,               UNCONN | PASS | TENT,  DAT_EP_STATE_COMPLETION_PENDING,           NOTHING },
{ EP_DO_ACCEPT_UD,            UNCONN | CONN,         SAME,                                      NOTHING },
{ EP_DO_ACCEPT_UD,            PASS | TENT,           DAT_EP_STATE_UNCONNECTED,                  NOTHING },
{ EP_DO_REJECT,               PASS,                  DAT_EP_STATE_UNCONNECTED,                  NOTHING },
{ EP_ESTABLISHED,             ACT | COMP,            DAT_EP_STATE_CONNECTED,                    DAT_CONNECTION_EVENT_ESTABLISHED },
{ EP_REJECTED,                ACT,                   DAT_EP_STATE_DISCONNECTED,                 DAT_CONNECTION_EVENT_PEER_REJECTED },
{ EP_REFUSED,                 ACT,                   DAT_EP_STATE_DISCONNECTED,                 DAT_CONNECTION_EVENT_NON_PEER_REJECTED },
{ EP_UNREACHABLE,             ACT,                   DAT_EP_STATE_DISCONNECTED,                 DAT_CONNECTION_EVENT_UNREACHABLE },
{ EP_TIMED_OUT,               ACT,                   DAT_EP_STATE_DISCONNECTED,                 DAT_CONNECTION_EVENT_TIMED_OUT },
{ EP_REJECTED,                COMP,                  DAT_EP_STATE_DISCONNECTED,                 DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR },
{ EP_REFUSED,                 COMP,                  DAT_EP_STATE_DISCONNECTED,                 DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR },
{ EP_UNREACHABLE,             COMP,                  DAT_EP_STATE_DISCONNECTED,                 DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR },
{ EP_TIMED_OUT,               COMP,                  DAT_EP_STATE_DISCONNECTED,                 DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR },
{ EP_PEER_CLOSED,             COMP,                  DAT_EP_STATE_DISCONNECTED,                 DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR },
{ EP_BROKEN,                  COMP,                  DAT_EP_STATE_DISCONNECTED,                 DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR },
{ EP_PEER_CLOSED,             ACT,                   DAT_EP_STATE_DISCONNECTED,                 DAT_CONNECTION_EVENT_NON_PEER_REJECTED },
{ EP_BROKEN,                  ACT,                   DAT_EP_STATE_DISCONNECTED,                 DAT_CONNECTION_EVENT_NON_PEER_REJECTED },
{ EP_DO_DISCONNECT,           ACT | COMP,            DAT_EP_STATE_DISCONNECTED,                 DAT_CONNECTION_EVENT_DISCONNECTED },
{ EP_DO_DISCONNECT,           CONN | DISCP,          DAT_EP_STATE_DISCONNECTED,                 DAT_CONNECTION_EVENT_DISCONNECTED },
{ EP_DO_DISCONNECT,           DISC,                  SAME,                                      NOTHING },
{ EP_DO_DISCONNECT_GRACEFUL,  ACT | COMP,            DAT_EP_STATE_DISCONNECTED,                 DAT_CONNECTION_EVENT_DISCONNECTED },
{ EP_DO_DISCONNECT_GRACEFUL,  CONN,                  DAT_EP_STATE_DISCONNECT_PENDING,           NOTHING },
{ EP_DO_DISCONNECT_GRACEFUL,  DISCP | DISC,          SAME,                                      NOTHING },
{ EP_DRAINED,                 DISCP,                 DAT_EP_STATE_DISCONNECTED,                 DAT_CONNECTION_EVENT_DISCONNECTED },
{ EP_PEER_CLOSED,             CONN | DISCP,          DAT_EP_STATE_DISCONNECTED,                 DAT_CONNECTION_EVENT_DISCONNECTED },
{ EP_BROKEN,                  CONN | DISCP,          DAT_EP_STATE_DISCONNECTED,                 DAT_CONNECTION_EVENT_BROKEN },
{ EP_DO_RESET,                DISC,                  DAT_EP_STATE_UNCONNECTED,                  NOTHING },
{ EP_DO_RESET,                UNCONN,                SAME,                                      NOTHING },
{ EP_BEGIN_RAW,               UNCONN,                DAT_EP_STATE_CONNECTED,                    NOTHING },
{ EP_DO_FREE,                 UNCONN | ACT | COMP,   SAME,                                      NOTHING },
{ EP_DO_FREE,                 CONN | DISCP | DISC,   SAME,                                      NOTHING },
/* clang-format on */
};

static const struct row *find(const struct dapl_ep *ep, enum dapl_ep_event event)
{
	for (const struct row *row = table; row < table + sizeof table / sizeof *table; row++)
		if (row->event == event && (row->from & (1u << ep->state)))
			return row;
	return NULL;
}

static const char *const names[EP_EVENTS] = {
	[EP_DO_CONNECT] = "connect", [EP_DO_RESERVE] = "reserve", [EP_DO_RELEASE] = "release",
	[EP_DO_ACCEPT] = "accept", [EP_DO_REJECT] = "reject",
	[EP_DO_ACCEPT_UD] = "accept datagrams",
	[EP_DO_DISCONNECT] = "disconnect", [EP_DO_DISCONNECT_GRACEFUL] = "disconnect gracefully",
	[EP_BEGIN_RAW] = "begin raw frames", [EP_DO_RESET] = "reset", [EP_DO_FREE] = "free",
	[EP_REQUEST_ARRIVED] = "request arrived",
	[EP_ESTABLISHED] = "established", [EP_REJECTED] = "rejected", [EP_REFUSED] = "refused",
	[EP_UNREACHABLE] = "unreachable", [EP_TIMED_OUT] = "timed out",
	[EP_PEER_CLOSED] = "peer closed", [EP_BROKEN] = "broken", [EP_DRAINED] = "drained",
};

static void set_state(struct dapl_ep *ep, DAT_EP_STATE next, const char *why)
{
	char local[DIAG_ADDRESS], remote[DIAG_ADDRESS];

	trace(TRC_LVL_NORMAL, TRC_DAPL_EVENT, "ep", ep, dapl_status_ep_state_name(next),
	      "was %s (%s), local %s, remote %s", dapl_status_ep_state_name(ep->state), why,
	      dapl_cause_address(ep->local.ss_family ? &ep->local : &ep->obj.ia->attr.address,
				 local), dapl_cause_address(&ep->remote, remote));
	if (next == DAT_EP_STATE_ACTIVE_CONNECTION_PENDING ||
	    next == DAT_EP_STATE_COMPLETION_PENDING || next == DAT_EP_STATE_CONNECTED)
		ep->began_ns = clock_now_ns();
	__atomic_store_n(&ep->state, next, __ATOMIC_RELEASE);
	if (next != DAT_EP_STATE_CONNECTED)
		__atomic_store_n(&ep->up, false, __ATOMIC_RELEASE);
	dapl_ep_set_room(ep);
}

/* Requests posted to a disconnected endpoint complete as flushed, if the device does that.
 * DTO-7, 8, 10. */
bool dapl_ep_may_request(const struct dapl_ep *ep)
{
	DAT_EP_STATE state = __atomic_load_n(&ep->state, __ATOMIC_RELAXED);

	assert_held(&ep->sq.lock);
	return ep->qp && !ep->is_ud && /* without a QP, ep may have been freed, so its IA is not read */
	       (state == DAT_EP_STATE_CONNECTED ||
		(state == DAT_EP_STATE_DISCONNECTED && !ep->obj.ia->attr.no_late_flush));
}

bool dapl_ep_is_modifiable(const struct dapl_ep *ep)
{
	switch (__atomic_load_n(&ep->state, __ATOMIC_RELAXED)) {
	case DAT_EP_STATE_UNCONNECTED:
	case DAT_EP_STATE_RESERVED:
	case DAT_EP_STATE_PASSIVE_CONNECTION_PENDING:
	case DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING:
		return true;
	default:
		return false;
	}
}

void dapl_ep_set_room(struct dapl_ep *ep)
{
	bool modifiable = dapl_ep_is_modifiable(ep);
	struct dapl_saved_recv *needless;

	assert_held(&ep->lock);
	dapl_post_lock(&ep->sq.lock);
	ep->sq.room = dapl_ep_may_request(ep) && !ep->sq.fenced ? ep->sq.limit : 0;
	dapl_post_unlock(&ep->sq.lock);
	dapl_post_lock(&ep->rq.lock);
	ep->rq.room = ep->qp && !ep->srq && !ep->is_ud && !ep->rq.in_error && !modifiable ?
		ep->rq.limit : 0;
	needless = modifiable ? NULL : dapl_saved_recv_detach(ep);
	dapl_post_unlock(&ep->rq.lock);
	dapl_saved_recv_free(needless);
}

bool dapl_ep_step(struct dapl_ep *ep, enum dapl_ep_event event, DAT_EVENT_NUMBER *due)
{
	const struct row *row = find(ep, event);

	assert_held(&ep->lock);
	if (due)
		*due = (DAT_EVENT_NUMBER)(row ? row->due : NOTHING);
	if (!row) {
		trace(TRC_LVL_DETAIL, TRC_DAPL_EVENT, "ep", ep, dapl_status_ep_state_name(ep->state),
		      "%s: not in this state", names[event]);
		return false;
	}
	if (row->next != SAME)
		set_state(ep, (DAT_EP_STATE)row->next, names[event]);
	return true;
}

bool dapl_ep_may(const struct dapl_ep *ep, enum dapl_ep_event event)
{
	return find(ep, event) != NULL;
}

void dapl_ep_begin_tentative(struct dapl_ep *ep)
{
	assert_held(&ep->lock);
	set_state(ep, DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING, "made for a request");
}

void dapl_ep_begin_raw(struct dapl_ep *ep)
{
	assert_held(&ep->lock);
	if (dapl_ep_step(ep, EP_BEGIN_RAW, NULL))
		__atomic_store_n(&ep->up, true, __ATOMIC_RELEASE);
}
