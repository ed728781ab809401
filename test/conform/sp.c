/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sp.c - service points: persistent, reserved and common. Requests that arrive at them are in cr.c. */
#include "actors.h"
#include "pair.h"
#include <string.h>

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
	/* Another instance of the IA cannot use the qualifier either. */
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
