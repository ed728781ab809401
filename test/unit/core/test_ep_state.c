/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_ep_state.c - the endpoint state table: each event in each state, and what a state lets the
 * fast path do. test/conform/states.c tests the calls. */
#include "dapl/core/ep/ep_state.h"
#include "dapl/core/base/status.h"
#include "test/unit/unit.h"

/* The short names of doc/spec/states.md; NO: the event is not legal; same: the state stays. */
#define UNCONN	DAT_EP_STATE_UNCONNECTED
#define RESV	DAT_EP_STATE_RESERVED
#define PASS	DAT_EP_STATE_PASSIVE_CONNECTION_PENDING
#define TENT	DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING
#define ACT	DAT_EP_STATE_ACTIVE_CONNECTION_PENDING
#define COMP	DAT_EP_STATE_COMPLETION_PENDING
#define CONN	DAT_EP_STATE_CONNECTED
#define DISCP	DAT_EP_STATE_DISCONNECT_PENDING
#define DISC	DAT_EP_STATE_DISCONNECTED
enum { NO = -1 };

static const DAT_EP_STATE states[] = { UNCONN, RESV, PASS, TENT, ACT, COMP, CONN, DISCP, DISC };
enum { STATES = sizeof states / sizeof *states };

static const int next_state[EP_EVENTS][STATES] = {
	/*			      UNCONN  RESV    PASS    TENT    ACT   COMP  CONN   DISCP  DISC */
	[EP_DO_CONNECT] =	    { ACT,    NO,     NO,     NO,     NO,   NO,   NO,    NO,    NO },
	[EP_DO_RESERVE] =	    { RESV,   NO,     NO,     NO,     NO,   NO,   NO,    NO,    NO },
	[EP_DO_RELEASE] =	    { NO,     UNCONN, NO,     NO,     NO,   NO,   NO,    NO,    NO },
	[EP_DO_ACCEPT] =	    { COMP,   NO,     COMP,   COMP,   NO,   NO,   NO,    NO,    NO },
	[EP_DO_ACCEPT_UD] =	    { UNCONN, NO,     UNCONN, UNCONN, NO,   NO,   CONN,  NO,    NO },
	[EP_DO_REJECT] =	    { NO,     NO,     UNCONN, NO,     NO,   NO,   NO,    NO,    NO },
	[EP_DO_DISCONNECT] =	    { NO,     NO,     NO,     NO,     DISC, DISC, DISC,  DISC,  DISC },
	[EP_DO_DISCONNECT_GRACEFUL] = { NO,   NO,     NO,     NO,     DISC, DISC, DISCP, DISCP, DISC },
	[EP_DO_RESET] =		    { UNCONN, NO,     NO,     NO,     NO,   NO,   NO,    NO,    UNCONN },
	[EP_DO_FREE] =		    { UNCONN, NO,     NO,     NO,     ACT,  COMP, CONN,  DISCP, DISC },
	[EP_REQUEST_ARRIVED] =	    { NO,     PASS,   NO,     NO,     NO,   NO,   NO,    NO,    NO },
	[EP_ESTABLISHED] =	    { NO,     NO,     NO,     NO,     CONN, CONN, NO,    NO,    NO },
	[EP_REJECTED] =		    { NO,     NO,     NO,     NO,     DISC, DISC, NO,    NO,    NO },
	[EP_REFUSED] =		    { NO,     NO,     NO,     NO,     DISC, DISC, NO,    NO,    NO },
	[EP_UNREACHABLE] =	    { NO,     NO,     NO,     NO,     DISC, DISC, NO,    NO,    NO },
	[EP_TIMED_OUT] =	    { NO,     NO,     NO,     NO,     DISC, DISC, NO,    NO,    NO },
	[EP_PEER_CLOSED] =	    { NO,     NO,     NO,     NO,     DISC, DISC, DISC,  DISC,  NO },
	[EP_BROKEN] =		    { NO,     NO,     NO,     NO,     DISC, DISC, DISC,  DISC,  NO },
	[EP_DRAINED] =		    { NO,     NO,     NO,     NO,     NO,   NO,   NO,    DISC,  NO },
	[EP_BEGIN_RAW] =	    { CONN,   NO,     NO,     NO,     NO,   NO,   NO,    NO,    NO },
};

/* The steps that raise an event on the connect EVD; all others raise none. */
static const struct { enum dapl_ep_event event; DAT_EP_STATE from; DAT_EVENT_NUMBER raised; } raising[] = {
	{ EP_ESTABLISHED, ACT, DAT_CONNECTION_EVENT_ESTABLISHED },
	{ EP_ESTABLISHED, COMP, DAT_CONNECTION_EVENT_ESTABLISHED },
	{ EP_REJECTED, ACT, DAT_CONNECTION_EVENT_PEER_REJECTED },
	{ EP_REFUSED, ACT, DAT_CONNECTION_EVENT_NON_PEER_REJECTED },
	{ EP_UNREACHABLE, ACT, DAT_CONNECTION_EVENT_UNREACHABLE },
	{ EP_TIMED_OUT, ACT, DAT_CONNECTION_EVENT_TIMED_OUT },
	{ EP_PEER_CLOSED, ACT, DAT_CONNECTION_EVENT_NON_PEER_REJECTED },
	{ EP_BROKEN, ACT, DAT_CONNECTION_EVENT_NON_PEER_REJECTED },
	{ EP_REJECTED, COMP, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR },
	{ EP_REFUSED, COMP, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR },
	{ EP_UNREACHABLE, COMP, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR },
	{ EP_TIMED_OUT, COMP, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR },
	{ EP_PEER_CLOSED, COMP, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR },
	{ EP_BROKEN, COMP, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR },
	{ EP_DO_DISCONNECT, ACT, DAT_CONNECTION_EVENT_DISCONNECTED },
	{ EP_DO_DISCONNECT, COMP, DAT_CONNECTION_EVENT_DISCONNECTED },
	{ EP_DO_DISCONNECT, CONN, DAT_CONNECTION_EVENT_DISCONNECTED },
	{ EP_DO_DISCONNECT, DISCP, DAT_CONNECTION_EVENT_DISCONNECTED },
	{ EP_DO_DISCONNECT_GRACEFUL, ACT, DAT_CONNECTION_EVENT_DISCONNECTED },
	{ EP_DO_DISCONNECT_GRACEFUL, COMP, DAT_CONNECTION_EVENT_DISCONNECTED },
	{ EP_DRAINED, DISCP, DAT_CONNECTION_EVENT_DISCONNECTED },
	{ EP_PEER_CLOSED, CONN, DAT_CONNECTION_EVENT_DISCONNECTED },
	{ EP_PEER_CLOSED, DISCP, DAT_CONNECTION_EVENT_DISCONNECTED },
	{ EP_BROKEN, CONN, DAT_CONNECTION_EVENT_BROKEN },
	{ EP_BROKEN, DISCP, DAT_CONNECTION_EVENT_BROKEN },
};

static DAT_EVENT_NUMBER event_raised(enum dapl_ep_event event, DAT_EP_STATE from)
{
	for (size_t i = 0; i < sizeof raising / sizeof *raising; i++)
		if (raising[i].event == event && raising[i].from == from)
			return raising[i].raised;
	return 0;
}

static struct dapl_ia ia;
static struct ibv_qp qp;
static struct dapl_ep ep;

/* An endpoint with a QP and room for 3 requests and 5 receives. */
static void begin(DAT_EP_STATE in)
{
	memset(&ia, 0, sizeof ia);
	memset(&ep, 0, sizeof ep);
	ep.obj.ia = &ia;
	ep.qp = &qp;
	ep.state = in;
	ep.sq.limit = 3;
	ep.rq.limit = 5;
	dapl_mutex_init(&ep.lock, RANK_EP);
	dapl_post_lock_init(&ep.sq.lock, RANK_SQ, true);
	dapl_post_lock_init(&ep.rq.lock, RANK_RQ, true);
	dapl_mutex_lock(&ep.lock);
}

static void end(void) { dapl_mutex_unlock(&ep.lock); }

UNIT_TEST(each_event_has_its_effect_in_each_state)
{
	for (int event = 0; event < EP_EVENTS; event++)
		for (int i = 0; i < STATES; i++) {
			DAT_EP_STATE from = states[i];
			int next = next_state[event][i];
			DAT_EVENT_NUMBER raised = 99;
			bool legal;

			begin(from);
			assert_int_equal(dapl_ep_may(&ep, event), next != NO);
			legal = dapl_ep_step(&ep, event, &raised);
			if (legal != (next != NO) || ep.state != (next == NO ? from : (DAT_EP_STATE)next) ||
			    raised != event_raised(event, from))
				fail_msg("event %d in %s: %s, now %s, raises 0x%x", event,
					 dapl_status_ep_state_name(from), legal ? "legal" : "not legal",
					 dapl_status_ep_state_name(ep.state), raised);
			end();
		}
}

UNIT_TEST(step_works_without_a_place_for_the_event)
{
	begin(ACT);
	assert_true(dapl_ep_step(&ep, EP_ESTABLISHED, NULL));
	assert_false(dapl_ep_step(&ep, EP_ESTABLISHED, NULL));
	end();
}

UNIT_TEST(one_end_of_a_connection_is_reported)
{
	static const enum dapl_ep_event ends[] = { EP_PEER_CLOSED, EP_BROKEN, EP_DO_DISCONNECT,
						   EP_DO_DISCONNECT_GRACEFUL, EP_DRAINED };
	enum { ENDS = sizeof ends / sizeof *ends };

	for (int a = 0; a < ENDS; a++)
		for (int b = 0; b < ENDS; b++) {
			DAT_EVENT_NUMBER first = 0, second = 0;

			begin(CONN);
			dapl_ep_step(&ep, ends[a], &first);
			if (ep.state != DISC) {		/* graceful, or drained too early */
				end();
				continue;
			}
			assert_int_not_equal(first, 0);
			dapl_ep_step(&ep, ends[b], &second);
			assert_int_equal(second, 0);
			end();
		}
}

UNIT_TEST(posts_have_room_in_their_states_only)
{
	for (int i = 0; i < STATES; i++)
		for (int late = 0; late < 2; late++) {
			DAT_EP_STATE in = states[i];
			bool requests = in == CONN || (in == DISC && !late);
			bool modifiable = in == UNCONN || in == RESV || in == PASS || in == TENT;

			begin(in);
			ia.attr.no_late_flush = late;
			dapl_ep_set_room(&ep);
			assert_int_equal(ep.sq.room, requests ? 3 : 0);
			assert_int_equal(ep.rq.room, modifiable ? 0 : 5);
			assert_int_equal(dapl_ep_is_modifiable(&ep), modifiable);
			end();
		}
}

UNIT_TEST(endpoint_without_a_qp_has_no_room)
{
	begin(CONN);
	ep.qp = NULL;
	dapl_ep_set_room(&ep);
	assert_int_equal(ep.sq.room, 0);
	assert_int_equal(ep.rq.room, 0);
	end();
}

UNIT_TEST(leaving_connected_ends_the_fast_path)
{
	begin(CONN);
	ep.up = true;
	assert_true(dapl_ep_step(&ep, EP_BROKEN, NULL));
	assert_false(ep.up);
	end();
}

UNIT_MAIN(NULL, NULL)
