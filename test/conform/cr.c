/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cr.c - connection requests: querying, accepting, rejecting, handing off, and requests that no call can
 * answer any more. Service points are in sp.c. */
#include "actors.h"
#include "pair.h"

#define GREETING 48

static void leave_request_in_queue(struct listener *listener, const struct end *a)
{
	DAT_EVENT event;
	DAT_COUNT more;

	/* A wait for two events leaves the one that came on the EVD. */
	dial(a->ep, listener->qual);
	for (struct patience p = { 0 };;) {
		DAT_RETURN ret = dat_evd_wait(listener->evd, 1000, 2, &event, &more);
		FAILS(ret, DAT_TIMEOUT_EXPIRED);
		if (more == 1)
			return;
		if (!waiting(&p))
			fail("expected a request to be queued, waited %.0f s without it", patience());
	}
}

TEST("SP-8", a_request_outlives_its_psp)
{
	struct listener listener = a_listener();
	struct end a = AN_END(), b = AN_END();

	leave_request_in_queue(&listener, &a);
	OK(dat_psp_free(listener.psp));
	OK(dat_cr_accept(request_on(listener.evd), b.ep, 0, NULL));
	EVENT(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
	EVENT(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
	WORKS(a, b);
}

/* A caller, and its request. */
static DAT_CR_HANDLE a_request(struct end *a, struct listener *listener)
{
	*a = AN_END();
	*listener = a_listener();
	dial(a->ep, listener->qual);
	return request_on(listener->evd);
}

TEST("SP-19", a_request_has_five_fields)
{
	struct listener listener;
	struct end a;
	DAT_CR_HANDLE cr = a_request(&a, &listener);
	DAT_CR_PARAM param;

	for (int mask = 0; mask <= DAT_CR_FIELD_ALL; mask++)
		OK(dat_cr_query(cr, (DAT_CR_PARAM_MASK)mask, &param));
	FAILS(dat_cr_query(cr, (DAT_CR_PARAM_MASK)0x20, &param), DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
	FAILS(dat_cr_query(cr, DAT_CR_FIELD_ALL, NULL), DAT_INVALID_PARAMETER | DAT_INVALID_ARG3);
}

TEST("SP-20", a_request_is_asked_with_the_mask_of_a_csp)
{
	struct listener listener;
	struct end a;
	DAT_CR_HANDLE cr = a_request(&a, &listener);
	DAT_CR_PARAM param = { 0 };

	OK(dat_cr_query(cr, (DAT_CR_PARAM_MASK)DAT_CSP_FIELD_ALL, &param));
	HOLDS(param.remote_ia_address_ptr != NULL);
}

TEST("SP-21", a_request_at_a_psp_has_a_caller_and_no_ep)
{
	struct listener listener;
	struct end a;
	DAT_CR_PARAM param = cr_param(a_request(&a, &listener));

	EQUAL(param.local_ep_handle, DAT_HANDLE_NULL);
	HOLDS(param.remote_ia_address_ptr != NULL);
	EQUAL(param.remote_ia_address_ptr->sa_family, address()->sa_family);
	EQUAL(param.private_data_size, 0);
}

/* The failed calls have not changed the request. */
static void expect_usable(DAT_CR_HANDLE cr, const struct end *a)
{
	struct end b = AN_END();

	OK(dat_cr_accept(cr, b.ep, 0, NULL));
	EVENT(a->conn, DAT_CONNECTION_EVENT_ESTABLISHED);
	EVENT(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
}

TEST("SP-22", a_connected_ep_does_not_accept)
{
	struct pair p = CONNECTED_PAIR();
	struct listener listener;
	struct end a;
	DAT_CR_HANDLE cr = a_request(&a, &listener);

	FAILS(dat_cr_accept(cr, p.b.ep, 0, NULL), DAT_INVALID_STATE | DAT_INVALID_STATE_EP_CONNECTED);
	expect_usable(cr, &a);
	WORKS(p.a, p.b);
}

TEST("SP-23", a_request_at_a_psp_is_accepted_on_an_ep)
{
	struct listener listener;
	struct end a;
	DAT_CR_HANDLE cr = a_request(&a, &listener);

	FAILS(dat_cr_accept(cr, DAT_HANDLE_NULL, 0, NULL), DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_EP);
	expect_usable(cr, &a);
}

TEST("SP-24", a_request_that_has_an_ep_takes_no_other)
{
	struct end a = AN_END(), b = AN_END(), other = AN_END();
	struct reservation r = a_reservation(b.ep);

	dial(a.ep, r.qual);
	DAT_CR_HANDLE cr = request_on(r.evd);
	FAILS(dat_cr_accept(cr, other.ep, 0, NULL), DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_EP);
	OK(dat_cr_accept(cr, DAT_HANDLE_NULL, 0, NULL));
	EVENT(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
}

TEST("SP-25", an_ep_without_pz_does_not_accept)
{
	struct listener listener;
	struct end a;
	DAT_CR_HANDLE cr = a_request(&a, &listener);
	DAT_EP_ATTR attr = ep_attr();
	DAT_EP_HANDLE ep;

	OK(dat_ep_create(ia(), DAT_HANDLE_NULL, an_evd(DAT_EVD_DTO_FLAG), an_evd(DAT_EVD_DTO_FLAG),
			 an_evd(DAT_EVD_CONNECTION_FLAG), &attr, &ep));
	FAILS(dat_cr_accept(cr, ep, 0, NULL), DAT_INVALID_HANDLE, DAT_INVALID_STATE);
	STATE(ep, DAT_EP_STATE_UNCONNECTED);
	expect_usable(cr, &a);
}

TEST("SP-26", private_data_of_an_acceptance_has_a_size)
{
	struct listener listener;
	struct end a, b = AN_END();
	DAT_CR_HANDLE cr = a_request(&a, &listener);
	char data[8] = { 0 };

	FAILS(dat_cr_accept(cr, b.ep, -1, data), DAT_INVALID_PARAMETER | DAT_INVALID_ARG3);
	STATE(b.ep, DAT_EP_STATE_UNCONNECTED);
	expect_usable(cr, &a);
}

TEST("SP-27", private_data_of_an_acceptance_is_somewhere)
{
	struct listener listener;
	struct end a, b = AN_END();
	DAT_CR_HANDLE cr = a_request(&a, &listener);

	FAILS(dat_cr_accept(cr, b.ep, 8, NULL), DAT_INVALID_PARAMETER | DAT_INVALID_ARG4);
	expect_usable(cr, &a);
}

TEST("SP-28", a_request_is_accepted_once)
{
	struct listener listener;
	struct end a, b = AN_END();
	DAT_CR_HANDLE cr = a_request(&a, &listener);
	DAT_CR_PARAM param;

	OK(dat_cr_accept(cr, b.ep, 0, NULL));
	FAILS(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param), DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_CR);
	FAILS(dat_cr_accept(cr, AN_END().ep, 0, NULL), DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_CR);
	FAILS(dat_cr_reject(cr, 0, NULL), DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_CR);
	EVENT(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
}

TEST("SP-29", accepting_after_the_initiator_gave_up_fails)
{
	struct listener listener;
	struct end a, b = AN_END();
	DAT_CR_HANDLE cr = a_request(&a, &listener);

	post_recv(&b, 0, 64, 1);
	hang_up(&a);
	EVENT(a.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
	if (dat_cr_accept(cr, b.ep, 0, NULL) != DAT_SUCCESS) {
		STATE(b.ep, DAT_EP_STATE_UNCONNECTED);
		return;
	}
	EVENT(b.conn, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
	STATE(b.ep, DAT_EP_STATE_DISCONNECTED);
	COMPLETES(b.recv, 1, DAT_DTO_ERR_FLUSHED);
	NO_EVENT(b.conn);
}

TEST("SP-30", a_request_is_answered_with_its_own_private_data)
{
	struct listener listener = a_listener();
	struct end a = AN_END(), b = AN_END();
	char data[GREETING];

	fill(data, GREETING, 5);
	OK(dat_ep_connect(a.ep, address(), listener.qual, AMPLE_TIME, GREETING, data, DAT_QOS_BEST_EFFORT,
			  DAT_CONNECT_DEFAULT_FLAG));
	DAT_CR_HANDLE cr = request_on(listener.evd);
	OK(dat_cr_accept(cr, b.ep, GREETING, cr_param(cr).private_data));
	DAT_EVENT event = EVENT(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
	HOLDS(is_filled(event.event_data.connect_event_data.private_data, GREETING, 5));
}

TEST("SP-31", the_acceptor_is_told_no_private_data)
{
	struct listener listener = a_listener();
	struct end a = AN_END(), b = AN_END();
	char data[GREETING] = "greetings";

	OK(dat_ep_connect(a.ep, address(), listener.qual, AMPLE_TIME, GREETING, data, DAT_QOS_BEST_EFFORT,
			  DAT_CONNECT_DEFAULT_FLAG));
	OK(dat_cr_accept(request_on(listener.evd), b.ep, GREETING, data));
	DAT_EVENT event = EVENT(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
	EQUAL(event.event_data.connect_event_data.private_data_size, 0);
}

TEST("SP-32", rejecting_a_request_gives_the_reserved_ep_back)
{
	struct end a = AN_END(), b = AN_END();
	struct reservation r = a_reservation(b.ep);

	dial(a.ep, r.qual);
	OK(dat_cr_reject(request_on(r.evd), 0, NULL));
	STATE(b.ep, DAT_EP_STATE_UNCONNECTED);
	EVENT(a.conn, DAT_CONNECTION_EVENT_PEER_REJECTED);
	OK(dat_ep_reset(a.ep));
	connect_ends(&a, &b);
	WORKS(a, b);
}

TEST("SP-33", a_request_is_rejected_once)
{
	struct listener listener;
	struct end a;
	DAT_CR_HANDLE cr = a_request(&a, &listener);

	OK(dat_cr_reject(cr, 0, NULL));
	FAILS(dat_cr_reject(cr, 0, NULL), DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_CR);
	EVENT(a.conn, DAT_CONNECTION_EVENT_PEER_REJECTED);
}

TEST("SP-34", a_request_is_handed_to_another_psp)
{
	struct listener listener, other = a_listener();
	struct end a;
	DAT_CR_HANDLE cr = a_request(&a, &listener);

	OPTIONAL(dat_cr_handoff(cr, other.qual));
	DAT_EVENT event = EVENT(other.evd, DAT_CONNECTION_REQUEST_EVENT);
	EQUAL(event.event_data.cr_arrival_event_data.sp_handle.psp_handle, other.psp);
	EQUAL(event.event_data.cr_arrival_event_data.conn_qual, other.qual);
	expect_usable(event.event_data.cr_arrival_event_data.cr_handle, &a);
}

TEST("SP-35", requests_that_cannot_be_handed_on_stay)
{
	struct listener listener, other = a_listener();
	struct end a;
	DAT_CR_HANDLE cr = a_request(&a, &listener);
	DAT_RETURN ret = dat_cr_handoff(cr, other.qual);

	if (ret == DAT_SUCCESS)
		skip("dat_cr_handoff is supported");
	FAILS(ret, DAT_NOT_IMPLEMENTED);
	expect_usable(cr, &a);
}

TEST("SP-36", a_full_queue_refuses_requests_and_loses_none)
{
	struct listener listener = a_listener_on(ia(), an_evd_of(2, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG),
						 DAT_PSP_CONSUMER_FLAG);
	DAT_COUNT room = evd_param(listener.evd).evd_qlen;
	DAT_EVD_HANDLE conn = an_evd_of(room + 8, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG);
	struct end ends[70];

	if (room > 64)
		skip("the shortest queue has room for %d", room);
	for (int i = 0; i < room + 3; i++) {
		ends[i] = AN_END(.conn = conn);
		dial(ends[i].ep, listener.qual);
	}
	for (int i = 0; i < 3; i++)
		EVENT(conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	for (int i = 0; i < room; i++)
		OK(dat_cr_accept(request_on(listener.evd), AN_END().ep, 0, NULL));
	for (int i = 0; i < room; i++)
		EVENT(conn, DAT_CONNECTION_EVENT_ESTABLISHED);
	NO_EVENT(listener.evd);
}

TEST("SP-41", a_request_is_handed_to_a_qualifier_of_64_bits)
{
	struct listener listener, other = a_large_listener(an_evd(DAT_EVD_CR_FLAG));
	struct end a;
	DAT_CR_HANDLE cr = a_request(&a, &listener);

	OPTIONAL(dat_cr_handoff(cr, other.qual));
	DAT_EVENT event = EVENT(other.evd, DAT_CONNECTION_REQUEST_EVENT);
	EQUAL(event.event_data.cr_arrival_event_data.conn_qual, other.qual);
	expect_usable(event.event_data.cr_arrival_event_data.cr_handle, &a);
}

/* Returns a listener with a request on its EVD that no call has dequeued. */
static struct listener a_queued_request(const struct end *a, DAT_PSP_FLAGS flags)
{
	struct listener listener = a_listener_on(ia(), an_evd(DAT_EVD_CR_FLAG), flags);

	leave_request_in_queue(&listener, a);
	OK(dat_psp_free(listener.psp));
	return listener;
}

TEST("EVD-51 SP-42", freeing_an_evd_refuses_its_requests)
{
	static const DAT_PSP_FLAGS flags[] = { DAT_PSP_CONSUMER_FLAG, DAT_PSP_PROVIDER_FLAG };
	bool provider = provider_attr()->ep_creator != DAT_PSP_CREATES_EP_NEVER;
	DAT_IA_HANDLE callers = ia(), answerers;

	for (int i = 0; i < 1 + provider; i++) {
		DAT_EVD_HANDLE async = DAT_HANDLE_NULL;

		work_on(callers);
		struct end a = AN_END();
		answerers = open_ia(&async);
		work_on(answerers);
		struct listener listener = a_queued_request(&a, flags[i]);
		OK(dat_evd_free(listener.evd));
		EVENT(a.conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		/* no object is left of which the consumer has no handle */
		OK(dat_ia_close(answerers, DAT_CLOSE_GRACEFUL_FLAG));
	}
	work_on(callers);
}

TEST("EVD-51 SP-43", freeing_an_evd_gives_the_reserved_ep_back)
{
	struct end a = AN_END(), b = AN_END();
	struct reservation r = a_reservation(b.ep);
	struct listener listener = { .evd = r.evd, .qual = r.qual };

	leave_request_in_queue(&listener, &a);
	STATE(b.ep, DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
	/* the reserved service point releases its EVD by itself */
	UNTIL(dat_evd_free(r.evd) == DAT_SUCCESS, "the EVD to be free");
	EVENT(a.conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	STATE(b.ep, DAT_EP_STATE_UNCONNECTED);
	OK(dat_ep_reset(a.ep));
	connect_ends(&a, &b);
	WORKS(a, b);
}

TEST("IA-10 SP-44", closing_an_ia_refuses_its_requests)
{
	struct end a = AN_END();
	DAT_IA_HANDLE callers = ia(), answerers;
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	struct listener listener;

	answerers = open_ia(&async);
	work_on(answerers);
	listener = a_listener();
	leave_request_in_queue(&listener, &a);
	OK(dat_ia_close(answerers, DAT_CLOSE_ABRUPT_FLAG));
	work_on(callers);
	EVENT(a.conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
}

TEST("SP-36 SP-45", a_reservation_with_a_full_evd_stays_reserved)
{
	struct end a = AN_END(), b = AN_END();
	DAT_EVD_HANDLE evd = an_evd_of(1, DAT_HANDLE_NULL,
				       (DAT_EVD_FLAGS)(DAT_EVD_CR_FLAG | DAT_EVD_SOFTWARE_FLAG));
	DAT_COUNT room = evd_param(evd).evd_qlen;
	struct reservation r = { .evd = evd, .qual = new_qual() };
	DAT_RSP_PARAM param;

	OK(dat_rsp_create(ia(), r.qual, b.ep, evd, &r.rsp));
	for (int i = 0; i < room; i++)
		OK(post_number(evd, i));
	dial(a.ep, r.qual);
	EVENT(a.conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	STATE(b.ep, DAT_EP_STATE_RESERVED);
	OK(dat_rsp_query(r.rsp, DAT_RSP_FIELD_ALL, &param));
	EQUAL(param.ep_handle, b.ep);
	NO_EVENT(async_evd());
	for (int i = 0; i < room; i++)
		EVENT(evd, DAT_SOFTWARE_EVENT);
	OK(dat_ep_reset(a.ep));
	dial(a.ep, r.qual);
	OK(dat_cr_accept(request_on(evd), DAT_HANDLE_NULL, 0, NULL));
	EVENT(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
	EVENT(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
	WORKS(a, b);
}
