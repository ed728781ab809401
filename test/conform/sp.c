/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sp.c - service points and the connection requests that arrive at them. */
#include "actors.h"
#include "pair.h"
#include <string.h>

#define GREETING 48

static DAT_RETURN listen_on(DAT_CONN_QUAL qual, DAT_EVD_HANDLE evd, DAT_PSP_HANDLE *psp)
{
	return dat_psp_create(ia(), qual, evd, DAT_PSP_CONSUMER_FLAG, psp);
}

TEST("SP-1", a_psp_delivers_requests)
{
	struct listener listener = a_listener();
	struct end a = AN_END(), b = AN_END();

	dial(a.ep, listener.qual);
	dial(b.ep, listener.qual);
	DAT_CR_HANDLE first = request_on(listener.evd), second = request_on(listener.evd);
	HOLDS(first != second);
}

TEST("SP-2", a_qualifier_in_use_is_not_taken_again)
{
	struct listener listener = a_listener();
	DAT_PSP_HANDLE psp;

	FAILS(listen_on(listener.qual, listener.evd, &psp), DAT_CONN_QUAL_IN_USE);
	struct end end = AN_END();
	FAILS(dat_rsp_create(ia(), listener.qual, end.ep, listener.evd, &psp), DAT_CONN_QUAL_IN_USE);
	STATE(end.ep, DAT_EP_STATE_UNCONNECTED);
	/* Nor by another instance of the IA. */
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	work_on(open_ia(&async));
	FAILS(listen_on(listener.qual, an_evd(DAT_EVD_CR_FLAG), &psp), DAT_CONN_QUAL_IN_USE);
}

TEST("SP-3", requests_come_on_a_cr_evd)
{
	DAT_PSP_HANDLE psp;

	FAILS(listen_on(new_qual(), an_evd(DAT_EVD_DTO_FLAG), &psp),
	      DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_EVD_CR);
	FAILS(listen_on(new_qual(), DAT_HANDLE_NULL, &psp), DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_EVD_CR);
}

TEST("SP-4", a_psp_has_flags_that_exist)
{
	DAT_PSP_HANDLE psp;

	FAILS(dat_psp_create(ia(), new_qual(), an_evd(DAT_EVD_CR_FLAG), (DAT_PSP_FLAGS)5, &psp),
	      DAT_INVALID_PARAMETER | DAT_INVALID_ARG4);
}

TEST("SP-5", psp_create_any_wants_room_for_the_qualifier)
{
	DAT_PSP_HANDLE psp;

	FAILS(dat_psp_create_any(ia(), NULL, an_evd(DAT_EVD_CR_FLAG), DAT_PSP_CONSUMER_FLAG, &psp),
	      DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
}

TEST("SP-6", psp_create_any_finds_qualifiers)
{
	DAT_EVD_HANDLE evd = an_evd(DAT_EVD_CR_FLAG);
	DAT_CONN_QUAL qual[2] = { 0 };
	DAT_PSP_HANDLE psp[2];
	struct end a = AN_END();

	for (int i = 0; i < 2; i++) {
		OK(dat_psp_create_any(ia(), &qual[i], evd, DAT_PSP_CONSUMER_FLAG, &psp[i]));
		HOLDS(qual[i] >= 1024);
	}
	HOLDS(qual[0] != qual[1]);
	dial(a.ep, qual[1]);
	DAT_EVENT event = EVENT(evd, DAT_CONNECTION_REQUEST_EVENT);
	EQUAL(event.event_data.cr_arrival_event_data.sp_handle.psp_handle, psp[1]);
	EQUAL(event.event_data.cr_arrival_event_data.conn_qual, qual[1]);
}

TEST("SP-7", a_psp_tells_how_it_was_created)
{
	struct listener listener = a_listener();
	DAT_PSP_PARAM param;

	memset(&param, 0xee, sizeof(param));
	OK(dat_psp_query(listener.psp, DAT_PSP_FIELD_ALL, &param));
	EQUAL(param.ia_handle, ia());
	EQUAL(param.conn_qual, listener.qual);
	EQUAL(param.evd_handle, listener.evd);
	EQUAL(param.psp_flags, DAT_PSP_CONSUMER_FLAG);
	FAILS(dat_psp_query(listener.psp, (DAT_PSP_PARAM_MASK)0x10, &param),
	      DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
	FAILS(dat_psp_query(listener.psp, DAT_PSP_FIELD_ALL, NULL), DAT_INVALID_PARAMETER | DAT_INVALID_ARG3);
}

static void leave_request_in_queue(struct listener *listener, const struct end *a)
{
	DAT_EVENT event;
	DAT_COUNT more;

	/* A wait for two events does not take the one that came. */
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

TEST("SP-9", a_freed_psp_listens_no_more)
{
	struct listener listener = a_listener();
	struct end a = AN_END();

	OK(dat_psp_free(listener.psp));
	dial(a.ep, listener.qual);
	EVENT(a.conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	NO_EVENT(listener.evd);
}

TEST("SP-10", a_connection_outlives_its_psp)
{
	struct pair p = CONNECTED_PAIR();	/* whose PSP is freed by now */

	WORKS(p.a, p.b);
	NO_EVENT(p.a.conn);
	NO_EVENT(p.b.conn);
}

TEST("SP-11", the_qualifier_of_a_freed_psp_is_free)
{
	struct listener listener = a_listener();
	struct end a = AN_END(), b = AN_END();

	for (int i = 0; i < 3; i++) {
		OK(dat_psp_free(listener.psp));
		OK(listen_on(listener.qual, listener.evd, &listener.psp));
	}
	dial(a.ep, listener.qual);
	OK(dat_cr_accept(request_on(listener.evd), b.ep, 0, NULL));
	EVENT(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
}

TEST("SP-12", a_psp_makes_endpoints_for_its_requests)
{
	if (provider_attr()->ep_creator == DAT_PSP_CREATES_EP_NEVER)
		skip("ep_creator is DAT_PSP_CREATES_EP_NEVER");
	struct listener listener = a_listener_on(ia(), an_evd(DAT_EVD_CR_FLAG), DAT_PSP_PROVIDER_FLAG);
	struct end a = AN_END(), b = { .pz = a_pz(), .recv = an_evd(DAT_EVD_DTO_FLAG),
				       .request = an_evd(DAT_EVD_DTO_FLAG),
				       .conn = an_evd(DAT_EVD_CONNECTION_FLAG) };

	dial(a.ep, listener.qual);
	DAT_CR_HANDLE cr = request_on(listener.evd);
	b.ep = cr_param(cr).local_ep_handle;
	HOLDS(b.ep != DAT_HANDLE_NULL);
	STATE(b.ep, DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
	DAT_EP_PARAM param = { .pz_handle = b.pz, .recv_evd_handle = b.recv,
			       .request_evd_handle = b.request, .connect_evd_handle = b.conn };
	OK(dat_ep_modify(b.ep, DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE |
			 DAT_EP_FIELD_REQUEST_EVD_HANDLE | DAT_EP_FIELD_CONNECT_EVD_HANDLE, &param));
	OK(dat_cr_accept(cr, DAT_HANDLE_NULL, 0, NULL));
	EVENT(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
	EVENT(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
	STATE(b.ep, DAT_EP_STATE_CONNECTED);
	b.mem = a_region(b.pz, END_MEMORY, ALL_RIGHTS);
	WORKS(a, b);
	OK(dat_ep_free(b.ep));
}

TEST("SP-13", a_request_tells_where_it_arrived)
{
	struct listener listener = a_listener();
	struct end a = AN_END();

	dial(a.ep, listener.qual);
	DAT_EVENT event = EVENT(listener.evd, DAT_CONNECTION_REQUEST_EVENT);
	DAT_CR_ARRIVAL_EVENT_DATA *data = &event.event_data.cr_arrival_event_data;
	DAT_HANDLE_TYPE type;
	EQUAL(data->sp_handle.psp_handle, listener.psp);
	EQUAL(data->conn_qual, listener.qual);
	HOLDS(data->local_ia_address_ptr != NULL);
	EQUAL(data->truncate_flag, DAT_FALSE);
	OK(dat_get_handle_type(data->cr_handle, &type));
	EQUAL(type, DAT_HANDLE_TYPE_CR);
}

TEST("SP-14", a_reservation_reserves_its_ep)
{
	struct end b = AN_END();

	a_reservation(b.ep);
	STATE(b.ep, DAT_EP_STATE_RESERVED);
}

TEST("SP-15", a_connected_ep_is_not_reserved)
{
	struct pair p = CONNECTED_PAIR();
	DAT_RSP_HANDLE rsp;

	FAILS(dat_rsp_create(ia(), new_qual(), p.a.ep, an_evd(DAT_EVD_CR_FLAG), &rsp),
	      DAT_INVALID_STATE | DAT_INVALID_STATE_EP_CONNECTED);
	WORKS(p.a, p.b);
}

TEST("SP-16", a_reservation_takes_one_request)
{
	struct end a = AN_END(), b = AN_END(), late = AN_END();
	struct reservation r = a_reservation(b.ep);

	dial(a.ep, r.qual);
	DAT_EVENT event = EVENT(r.evd, DAT_CONNECTION_REQUEST_EVENT);
	/* dapltest compares the handle and frees it: see DOUBTS.md */
	EQUAL(event.event_data.cr_arrival_event_data.sp_handle.rsp_handle, r.rsp);
	EQUAL(event.event_data.cr_arrival_event_data.conn_qual, r.qual);
	STATE(b.ep, DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
	EQUAL(cr_param(event.event_data.cr_arrival_event_data.cr_handle).local_ep_handle, b.ep);
	dial(late.ep, r.qual);
	EVENT(late.conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, DAT_HANDLE_NULL, 0, NULL));
	EVENT(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
	EVENT(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
	WORKS(a, b);
}

TEST("SP-17", freeing_a_reservation_gives_its_ep_back)
{
	struct end a = AN_END(), b = AN_END();
	struct reservation r = a_reservation(b.ep);

	OK(dat_rsp_free(r.rsp));
	STATE(b.ep, DAT_EP_STATE_UNCONNECTED);
	dial(a.ep, r.qual);
	EVENT(a.conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	OK(dat_ep_reset(a.ep));
	connect_ends(&a, &b);
	WORKS(a, b);
}

TEST("SP-18", a_reservation_tells_how_it_was_created)
{
	struct end b = AN_END();
	struct reservation r = a_reservation(b.ep);
	DAT_RSP_PARAM param;

	memset(&param, 0xee, sizeof(param));
	OK(dat_rsp_query(r.rsp, DAT_RSP_FIELD_ALL, &param));
	EQUAL(param.ia_handle, ia());
	EQUAL(param.conn_qual, r.qual);
	EQUAL(param.evd_handle, r.evd);
	EQUAL(param.ep_handle, b.ep);
	FAILS(dat_rsp_query(r.rsp, (DAT_RSP_PARAM_MASK)0x10, &param), DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
	FAILS(dat_rsp_query(r.rsp, DAT_RSP_FIELD_ALL, NULL), DAT_INVALID_PARAMETER | DAT_INVALID_ARG3);
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

/* The request was not harmed by what failed. */
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

TEST("SP-37", a_common_service_point_delivers_requests)
{
	DAT_EVD_HANDLE evd = an_evd(DAT_EVD_CR_FLAG);
	DAT_CSP_HANDLE csp = DAT_HANDLE_NULL;
	struct end a = AN_END(), b = AN_END();
	struct sockaddr_storage where;
	DAT_CONN_QUAL port = new_qual();
	DAT_CSP_PARAM param;
	DAT_COMM comm;

	OPTIONAL(LATE(dat_csp_create)(ia(), csp_comm(&comm), csp_address(&where, port), evd, &csp));
	OK(LATE(dat_csp_query)(csp, DAT_CSP_FIELD_ALL, &param));
	EQUAL(param.evd_handle, evd);
	EQUAL(param.comm->domain, comm.domain);
	OPTIONAL(LATE(dat_ep_common_connect)(a.ep, csp_address(&where, port), AMPLE_TIME, 0, NULL));
	DAT_EVENT event = EVENT(evd, DAT_CONNECTION_REQUEST_EVENT);
	EQUAL(event.event_data.cr_arrival_event_data.sp_handle.csp_handle, csp);
	OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, b.ep, 0, NULL));
	EVENT(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
	EVENT(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
	WORKS(a, b);
	OK(LATE(dat_csp_free)(csp));
}

TEST("SP-38", a_qualifier_of_64_bits_names_a_psp)
{
	struct end a = AN_END(), b = AN_END(), second_a = AN_END(), second_b = AN_END();
	struct listener listener = a_large_listener(an_evd(DAT_EVD_CR_FLAG));
	DAT_PSP_PARAM param;

	OK(dat_psp_query(listener.psp, DAT_PSP_FIELD_ALL, &param));
	EQUAL(param.conn_qual, listener.qual);
	dial(a.ep, listener.qual);
	DAT_EVENT event = EVENT(listener.evd, DAT_CONNECTION_REQUEST_EVENT);
	EQUAL(event.event_data.cr_arrival_event_data.sp_handle.psp_handle, listener.psp);
	EQUAL(event.event_data.cr_arrival_event_data.conn_qual, listener.qual);
	OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, b.ep, 0, NULL));
	EVENT(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
	EVENT(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
	EQUAL(ep_param(a.ep).remote_port_qual, listener.qual);
	WORKS(a, b);
	OK(dat_ep_dup_connect(second_a.ep, a.ep, AMPLE_TIME, 0, NULL, DAT_QOS_BEST_EFFORT));
	event = EVENT(listener.evd, DAT_CONNECTION_REQUEST_EVENT);
	EQUAL(event.event_data.cr_arrival_event_data.conn_qual, listener.qual);
	OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, second_b.ep, 0, NULL));
	EVENT(second_a.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
	EVENT(second_b.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
	EQUAL(ep_param(second_a.ep).remote_port_qual, listener.qual);
	WORKS(second_a, second_b);
}

TEST("SP-39", a_qualifier_of_64_bits_names_an_rsp)
{
	struct end a = AN_END(), b = AN_END();
	struct reservation r = a_large_reservation(b.ep);
	DAT_RSP_PARAM param;

	OK(dat_rsp_query(r.rsp, DAT_RSP_FIELD_ALL, &param));
	EQUAL(param.conn_qual, r.qual);
	dial(a.ep, r.qual);
	DAT_EVENT event = EVENT(r.evd, DAT_CONNECTION_REQUEST_EVENT);
	EQUAL(event.event_data.cr_arrival_event_data.conn_qual, r.qual);
	OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, DAT_HANDLE_NULL, 0, NULL));
	EVENT(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
	EVENT(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
	WORKS(a, b);
}

TEST("SP-40", two_qualifiers_with_one_port_are_one_in_use)
{
	struct listener listener = a_large_listener(an_evd(DAT_EVD_CR_FLAG));
	DAT_CONN_QUAL other = listener.qual - 32001;	/* the next one with the same port */
	DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
	struct end end = AN_END();

	FAILS(listen_on(other, listener.evd, &psp), DAT_CONN_QUAL_IN_USE);
	FAILS(dat_rsp_create(ia(), other, end.ep, listener.evd, &psp), DAT_CONN_QUAL_IN_USE);
	STATE(end.ep, DAT_EP_STATE_UNCONNECTED);
	OK(dat_psp_free(listener.psp));
	OK(listen_on(other, listener.evd, &psp));
	dial(end.ep, other);
	DAT_EVENT event = EVENT(listener.evd, DAT_CONNECTION_REQUEST_EVENT);
	EQUAL(event.event_data.cr_arrival_event_data.conn_qual, other);
	OK(dat_psp_free(psp));
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

/* A listener with a request on its EVD that no call has dequeued. */
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
		/* nothing is left that the consumer has no handle of */
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
	/* the reserved service point lets go of its EVD by itself */
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
