/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ep.c - endpoints as objects: creating, asking, changing, resetting, freeing. Connecting
 * them is in conn.c; every call in every state in states.c. */
#include "pair.h"
#include <string.h>

/* Creates the usual endpoint with other attributes. Returns the result of dat_ep_create(). */
static DAT_RETURN create(const DAT_EP_ATTR *attr, DAT_EP_HANDLE *ep)
{
	return dat_ep_create(ia(), a_pz(), an_evd(DAT_EVD_DTO_FLAG), an_evd(DAT_EVD_DTO_FLAG),
			     an_evd(DAT_EVD_CONNECTION_FLAG), attr, ep);
}

TEST("EP-1", an_ep_is_created_with_default_attributes)
{
	DAT_EP_HANDLE ep;

	OK(create(NULL, &ep));
	STATE(ep, DAT_EP_STATE_UNCONNECTED);
}

TEST("EP-2", ep_create_wants_room_for_the_handle)
{
	DAT_EP_ATTR attr = ep_attr();

	FAILS(create(&attr, NULL), DAT_INVALID_PARAMETER | DAT_INVALID_ARG7);
}

TEST("EP-3", receives_complete_on_a_dto_evd)
{
	DAT_EP_ATTR attr = ep_attr();
	DAT_EP_HANDLE ep;

	FAILS(dat_ep_create(ia(), a_pz(), an_evd(DAT_EVD_CR_FLAG), an_evd(DAT_EVD_DTO_FLAG),
			    an_evd(DAT_EVD_CONNECTION_FLAG), &attr, &ep),
	      DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_EVD_RECV);
}

TEST("EP-4", an_ep_connects_on_a_connection_evd)
{
	DAT_EP_ATTR attr = ep_attr();
	DAT_EP_HANDLE ep;

	FAILS(dat_ep_create(ia(), a_pz(), an_evd(DAT_EVD_DTO_FLAG), an_evd(DAT_EVD_DTO_FLAG),
			    an_evd(DAT_EVD_CR_FLAG), &attr, &ep),
	      DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_EVD_CONN);
}

TEST("EP-5", zeroed_attributes_are_no_requirements)
{
	DAT_EP_ATTR attr = { .max_rdma_size = 4096, .max_recv_dtos = 8, .max_request_dtos = 8,
			     .max_recv_iov = 1, .max_request_iov = 1 };
	struct end a = AN_END(.attr = &attr), b = AN_END(.attr = &attr);

	connect_ends(&a, &b);
	WORKS(a, b);
	memset(&attr, 0, sizeof(attr));
	attr.max_rdma_size = 4096;
	OK(create(&attr, &a.ep));
}

TEST("EP-6", a_service_type_that_does_not_exist_is_refused)
{
	DAT_EP_ATTR attr = ep_attr();
	DAT_EP_HANDLE ep;

	attr.service_type = (DAT_SERVICE_TYPE)99;
	FAILS(create(&attr, &ep), DAT_INVALID_PARAMETER | DAT_INVALID_ARG6);
}

TEST("EP-7", receive_completions_are_not_suppressed)
{
	DAT_EP_ATTR attr = ep_attr();
	DAT_EP_HANDLE ep;

	attr.recv_completion_flags = DAT_COMPLETION_SUPPRESS_FLAG;
	FAILS(create(&attr, &ep), DAT_INVALID_PARAMETER | DAT_INVALID_ARG6);
}

TEST("EP-8", an_ep_has_no_more_receives_than_the_ia_allows)
{
	DAT_EP_ATTR attr = ep_attr();
	DAT_EP_HANDLE ep;

	attr.max_recv_dtos = ia_attr()->max_dto_per_ep + 1;
	FAILS(create(&attr, &ep), DAT_INVALID_PARAMETER, DAT_INSUFFICIENT_RESOURCES);
}

static DAT_RETURN create_on(const struct end *end, DAT_COMPLETION_FLAGS recv,
			    DAT_COMPLETION_FLAGS request)
{
	DAT_EP_ATTR attr = ep_attr();
	DAT_EP_HANDLE ep;

	attr.recv_completion_flags = recv;
	attr.request_completion_flags = request;
	return dat_ep_create(ia(), end->pz, end->recv, end->request, end->conn, &attr, &ep);
}

TEST("EP-9", eps_share_an_evd_whatever_their_completion_flags)
{
	needs_completion_flag(DAT_COMPLETION_UNSIGNALLED_FLAG);
	static const DAT_COMPLETION_FLAGS flags[] = { DAT_COMPLETION_DEFAULT_FLAG,
		DAT_COMPLETION_EVD_THRESHOLD_FLAG, DAT_COMPLETION_UNSIGNALLED_FLAG };
	struct end end = AN_END();

	end.request = end.recv;
	for (int recv = 0; recv < 3; recv++)
		for (int request = 0; request < 3; request++)
			OK(create_on(&end, flags[recv], flags[request]));
	needs_completion_flag(DAT_COMPLETION_SOLICITED_WAIT_FLAG);
	FAILS(create_on(&end, DAT_COMPLETION_SOLICITED_WAIT_FLAG, DAT_COMPLETION_DEFAULT_FLAG),
	      DAT_INVALID_PARAMETER);
	/* The flag of the requests alone is refused, too. The refused calls have changed nothing. */
	end.recv = end.request = an_evd(DAT_EVD_DTO_FLAG);
	FAILS(create_on(&end, DAT_COMPLETION_SOLICITED_WAIT_FLAG, DAT_COMPLETION_DEFAULT_FLAG),
	      DAT_INVALID_PARAMETER);
	OK(create_on(&end, DAT_COMPLETION_UNSIGNALLED_FLAG, DAT_COMPLETION_DEFAULT_FLAG));
	end.recv = an_evd(DAT_EVD_DTO_FLAG);
	OK(create_on(&end, DAT_COMPLETION_SOLICITED_WAIT_FLAG, DAT_COMPLETION_DEFAULT_FLAG));
	end.request = end.recv;
	FAILS(create_on(&end, DAT_COMPLETION_UNSIGNALLED_FLAG, DAT_COMPLETION_DEFAULT_FLAG),
	      DAT_INVALID_PARAMETER);
}

TEST("EP-10", an_ep_tells_how_it_was_created)
{
	DAT_EP_ATTR attr = ep_attr();
	struct end end = AN_END(.attr = &attr);
	DAT_EP_PARAM param = ep_param(end.ep);

	EQUAL(param.ia_handle, ia());
	EQUAL(param.ep_state, DAT_EP_STATE_UNCONNECTED);
	EQUAL(param.pz_handle, end.pz);
	EQUAL(param.recv_evd_handle, end.recv);
	EQUAL(param.request_evd_handle, end.request);
	EQUAL(param.connect_evd_handle, end.conn);
	EQUAL(param.srq_handle, DAT_HANDLE_NULL);
	EQUAL(param.ep_attr.service_type, attr.service_type);
	HOLDS(param.ep_attr.max_message_size >= attr.max_message_size);
	HOLDS(param.ep_attr.max_rdma_size >= attr.max_rdma_size);
	EQUAL(param.ep_attr.qos, attr.qos);
	EQUAL(param.ep_attr.recv_completion_flags, attr.recv_completion_flags);
	EQUAL(param.ep_attr.request_completion_flags, attr.request_completion_flags);
	HOLDS(param.ep_attr.max_recv_dtos >= attr.max_recv_dtos);
	HOLDS(param.ep_attr.max_request_dtos >= attr.max_request_dtos);
	HOLDS(param.ep_attr.max_recv_iov >= attr.max_recv_iov);
	HOLDS(param.ep_attr.max_request_iov >= attr.max_request_iov);
	HOLDS(param.ep_attr.max_rdma_read_in >= attr.max_rdma_read_in);
	HOLDS(param.ep_attr.max_rdma_read_out >= attr.max_rdma_read_out);
}

TEST("EP-11", an_ep_has_31_fields)
{
	struct end end = AN_END();
	DAT_EP_PARAM param;

	FAILS(dat_ep_query(end.ep, DAT_EP_FIELD_ALL + 1, &param), DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
}

TEST("EP-12", ep_query_wants_room)
{
	struct end end = AN_END();

	FAILS(dat_ep_query(end.ep, DAT_EP_FIELD_ALL, NULL), DAT_INVALID_PARAMETER | DAT_INVALID_ARG3);
}

TEST("EP-13", a_new_ep_is_idle)
{
	struct end end = AN_END();
	DAT_EP_STATE state;
	DAT_BOOLEAN recv_idle = (DAT_BOOLEAN)77, request_idle = (DAT_BOOLEAN)77;

	OK(dat_ep_get_status(end.ep, &state, &recv_idle, &request_idle));
	EQUAL(state, DAT_EP_STATE_UNCONNECTED);
	EQUAL(recv_idle, DAT_TRUE);
	EQUAL(request_idle, DAT_TRUE);
}

TEST("EP-14", the_status_of_an_ep_may_be_asked_in_part)
{
	struct end end = AN_END();
	DAT_BOOLEAN idle;

	OK(dat_ep_get_status(end.ep, NULL, NULL, NULL));
	OK(dat_ep_get_status(end.ep, NULL, &idle, NULL));
	OK(dat_ep_get_status(end.ep, NULL, NULL, &idle));
}

TEST("EP-15", an_ep_with_a_receive_posted_is_not_idle)
{
	struct end end = AN_END();
	DAT_BOOLEAN recv_idle = (DAT_BOOLEAN)77, request_idle = (DAT_BOOLEAN)77;

	post_recv(&end, 0, 64, 1);
	OK(dat_ep_get_status(end.ep, NULL, &recv_idle, &request_idle));
	EQUAL(recv_idle, DAT_FALSE);
	EQUAL(request_idle, DAT_TRUE);
}

TEST("EP-16", an_unconnected_ep_is_modified_in_everything)
{
	struct end end = AN_END(), peer = AN_END();
	DAT_EP_PARAM param, after;

	memset(&param, 0, sizeof(param));
	param.pz_handle = a_pz();
	param.recv_evd_handle = an_evd(DAT_EVD_DTO_FLAG);
	param.request_evd_handle = an_evd(DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG);
	param.connect_evd_handle = an_evd(DAT_EVD_CONNECTION_FLAG);
	param.ep_attr = ep_attr();
	param.ep_attr.max_recv_dtos = 24;
	param.ep_attr.max_request_dtos = 23;
	param.ep_attr.max_message_size = 8192;
	param.ep_attr.max_rdma_read_in = 1;
	param.ep_attr.max_rdma_read_out = 1;
	OK(dat_ep_modify(end.ep, DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE |
			 DAT_EP_FIELD_REQUEST_EVD_HANDLE | DAT_EP_FIELD_CONNECT_EVD_HANDLE |
			 DAT_EP_FIELD_EP_ATTR_SERVICE_TYPE | DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE |
			 DAT_EP_FIELD_EP_ATTR_MAX_RDMA_SIZE | DAT_EP_FIELD_EP_ATTR_QOS |
			 DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS |
			 DAT_EP_FIELD_EP_ATTR_REQUEST_COMPLETION_FLAGS |
			 DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS | DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS |
			 DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV | DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_IOV |
			 DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IN | DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_OUT,
			 &param));
	after = ep_param(end.ep);
	EQUAL(after.pz_handle, param.pz_handle);
	EQUAL(after.recv_evd_handle, param.recv_evd_handle);
	EQUAL(after.request_evd_handle, param.request_evd_handle);
	EQUAL(after.connect_evd_handle, param.connect_evd_handle);
	HOLDS(after.ep_attr.max_recv_dtos >= 24);
	HOLDS(after.ep_attr.max_request_dtos >= 23);
	HOLDS(after.ep_attr.max_message_size >= 8192);
	/* The EVDs that the endpoint had can be freed, and those that it has work. */
	OK(dat_evd_free(end.recv));
	OK(dat_evd_free(end.request));
	OK(dat_evd_free(end.conn));
	OK(dat_lmr_free(end.mem.lmr));
	OK(dat_pz_free(end.pz));
	struct end changed = { .pz = param.pz_handle, .recv = param.recv_evd_handle,
			       .request = param.request_evd_handle, .conn = param.connect_evd_handle,
			       .ep = end.ep, .mem = a_region(param.pz_handle, END_MEMORY, ALL_RIGHTS) };
	for (int i = 0; i < 24; i++)
		post_recv(&changed, i * 64, 64, i);
	connect_ends(&peer, &changed);
	post_send(&peer, 0, 64, 100);
	COMPLETES(changed.recv, 0, DAT_DTO_SUCCESS);
}

TEST("EP-17", the_ia_and_the_state_of_an_ep_are_not_modified)
{
	struct end end = AN_END();
	DAT_EP_PARAM param = ep_param(end.ep);

	FAILS(dat_ep_modify(end.ep, DAT_EP_FIELD_IA_HANDLE, &param), DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
	FAILS(dat_ep_modify(end.ep, DAT_EP_FIELD_EP_STATE, &param), DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
	FAILS(dat_ep_modify(end.ep, DAT_EP_FIELD_SRQ_HANDLE, &param), DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
	FAILS(dat_ep_modify(end.ep, DAT_EP_FIELD_ALL + 1, &param), DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);

	struct pair p = CONNECTED_PAIR();
	FAILS(dat_ep_modify(p.a.ep, DAT_EP_FIELD_IA_HANDLE, &param), DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
}

TEST("EP-18", a_connected_ep_keeps_its_evds)
{
	struct pair p = CONNECTED_PAIR();
	DAT_EP_PARAM param = { .recv_evd_handle = an_evd(DAT_EVD_DTO_FLAG) };

	FAILS(dat_ep_modify(p.a.ep, DAT_EP_FIELD_RECV_EVD_HANDLE, &param),
	      DAT_INVALID_STATE | DAT_INVALID_STATE_EP_CONNECTED);
	WORKS(p.a, p.b);
}

TEST("EP-19", a_reserved_ep_keeps_its_pz)
{
	struct end end = AN_END();
	DAT_EP_PARAM param = { .pz_handle = a_pz() };

	a_reservation(end.ep);
	FAILS(dat_ep_modify(end.ep, DAT_EP_FIELD_PZ_HANDLE, &param),
	      DAT_INVALID_STATE | DAT_INVALID_STATE_EP_RESERVED);
	EQUAL(ep_param(end.ep).pz_handle, end.pz);
}

TEST("EP-20", with_receives_posted_their_completion_flags_stay)
{
	needs_completion_flag(DAT_COMPLETION_EVD_THRESHOLD_FLAG);
	struct end end = AN_END();
	DAT_EP_PARAM param = { .ep_attr.recv_completion_flags = DAT_COMPLETION_EVD_THRESHOLD_FLAG };

	post_recv(&end, 0, 64, 1);
	FAILS(dat_ep_modify(end.ep, DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS, &param),
	      DAT_INVALID_STATE, DAT_INVALID_PARAMETER);
	EQUAL(ep_param(end.ep).ep_attr.recv_completion_flags, DAT_COMPLETION_DEFAULT_FLAG);
}

TEST("EP-21", a_modification_is_made_whole_or_not_at_all)
{
	struct end end = AN_END();
	DAT_EP_PARAM param = { .pz_handle = a_pz(), .connect_evd_handle = an_evd(DAT_EVD_CR_FLAG) };

	FAILS(dat_ep_modify(end.ep, DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_CONNECT_EVD_HANDLE, &param),
	      DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_EVD_CONN, DAT_INVALID_PARAMETER | DAT_INVALID_ARG3);
	EQUAL(ep_param(end.ep).pz_handle, end.pz);
	EQUAL(ep_param(end.ep).connect_evd_handle, end.conn);
	OK(dat_pz_free(param.pz_handle));
	OK(dat_evd_free(param.connect_evd_handle));
}

TEST("EP-21", evds_of_a_refused_modification_can_be_freed)
{
	needs_completion_flag(DAT_COMPLETION_SOLICITED_WAIT_FLAG);
	struct end end = AN_END();
	DAT_EP_PARAM param = { .request_evd_handle = end.recv,
			       .ep_attr.recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG };

	FAILS(dat_ep_modify(end.ep, DAT_EP_FIELD_REQUEST_EVD_HANDLE | DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS,
			    &param), DAT_INVALID_PARAMETER);
	EQUAL(ep_param(end.ep).request_evd_handle, end.request);
	FAILS(dat_evd_free(end.recv), DAT_INVALID_STATE);	/* the endpoint still uses it */
	OK(dat_ep_free(end.ep));
	OK(dat_evd_free(end.recv));
	OK(dat_evd_free(end.request));
	OK(dat_evd_free(end.conn));
}

TEST("EP-22", a_modification_without_parameters_fails)
{
	struct end end = AN_END();

	FAILS(dat_ep_modify(end.ep, DAT_EP_FIELD_PZ_HANDLE, NULL), DAT_INVALID_PARAMETER);
}

TEST("EP-23", an_unconnected_ep_is_freed)
{
	OK(dat_ep_free(AN_END().ep));
}

TEST("EP-24", a_reserved_ep_is_not_freed)
{
	struct end end = AN_END();

	a_reservation(end.ep);
	FAILS(dat_ep_free(end.ep), DAT_INVALID_STATE | DAT_INVALID_STATE_EP_RESERVED);
	STATE(end.ep, DAT_EP_STATE_RESERVED);
}

TEST("EP-25", freeing_a_connected_ep_disconnects_the_peer)
{
	struct pair p = CONNECTED_PAIR();

	OK(dat_ep_free(p.a.ep));
	ENDS(p.b.conn);
	STATE(p.b.ep, DAT_EP_STATE_DISCONNECTED);
}

TEST("EP-26", resetting_an_unconnected_ep_keeps_its_receives)
{
	struct end a = AN_END(), b = AN_END();

	post_recv(&b, 0, 64, 1);
	OK(dat_ep_reset(b.ep));
	STATE(b.ep, DAT_EP_STATE_UNCONNECTED);
	connect_ends(&a, &b);
	post_send(&a, 0, 64, 2);
	COMPLETES(b.recv, 1, DAT_DTO_SUCCESS);
}

TEST("EP-27", a_disconnected_ep_is_reset_and_connected_again)
{
	struct pair p = CONNECTED_PAIR();

	for (int i = 0; i < 3; i++) {
		WORKS(p.a, p.b);
		hang_up(&p.a);
		ENDS(p.a.conn);
		ENDS(p.b.conn);
		OK(dat_ep_reset(p.a.ep));
		OK(dat_ep_reset(p.b.ep));
		STATE(p.a.ep, DAT_EP_STATE_UNCONNECTED);
		if (i % 2)
			connect_ends(&p.a, &p.b);
		else
			connect_ends(&p.b, &p.a);
	}
	WORKS(p.a, p.b);
}

TEST("EP-28", a_connected_ep_is_not_reset)
{
	struct pair p = CONNECTED_PAIR();

	FAILS(dat_ep_reset(p.a.ep), DAT_INVALID_STATE | DAT_INVALID_STATE_EP_CONNECTED);
	WORKS(p.a, p.b);
}

TEST("EP-29", watermarks_of_an_ep_can_be_infinite)
{
	needs_srq();
	if (!provider_attr()->srq_watermarks_supported)
		skip("srq_watermarks_supported is 0");
	DAT_PZ_HANDLE pz = a_pz();
	DAT_SRQ_ATTR attr = { .max_recv_dtos = 8, .max_recv_iov = 1 };
	DAT_SRQ_HANDLE srq;

	OK(dat_srq_create(ia(), pz, &attr, &srq));
	struct end end = AN_END(.pz = pz, .srq = srq);
	OPTIONAL(dat_ep_set_watermark(end.ep, DAT_WATERMARK_INFINITE, DAT_WATERMARK_INFINITE));
}

TEST("EP-30", the_receives_of_an_ep_are_counted)
{
	if (!provider_attr()->ep_recv_info_supported)
		skip("ep_recv_info_supported is 0");
	struct end end = AN_END();
	DAT_COUNT n = 77, span = 77;

	for (int i = 0; i < 3; i++)
		post_recv(&end, i * 64, 64, i);
	OPTIONAL(dat_ep_recv_query(end.ep, &n, &span));
	HOLDS(n == 3 || n == DAT_VALUE_UNKNOWN);
	HOLDS(span >= n || span == DAT_VALUE_UNKNOWN);
	OK(dat_ep_recv_query(end.ep, NULL, &span));
	OK(dat_ep_recv_query(end.ep, &n, NULL));
}

/* --- modifying with receives posted ------------------------------------------------------- */

/* The first n receives, posted with cookies 0, 1 and so on for 64 bytes each, must take what the peer sends.
 * */
static void expect_receives(const struct end *end, const struct end *peer, int n)
{
	for (int i = 0; i < n; i++) {
		fill(peer->mem.at, 64, i);
		post_send(peer, 0, 64, 100 + i);
		COMPLETES(peer->request, 100 + i, DAT_DTO_SUCCESS);
		COMPLETES(end->recv, i, DAT_DTO_SUCCESS);
		HOLDS(is_filled(end->mem.at + i * 64, 64, i));
	}
}

TEST("EP-R1", receives_that_are_posted_stay_when_queues_grow_and_shrink)
{
	struct end end = AN_END(), peer = AN_END();
	DAT_EP_PARAM param = { .ep_attr = ep_attr() };
	DAT_EP_PARAM_MASK mask = DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS | DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS |
				 DAT_EP_FIELD_REQUEST_EVD_HANDLE;

	for (int i = 0; i < 3; i++)
		post_recv(&end, i * 64, 64, i);
	/* A list, and an empty segment in it. */
	DAT_LMR_TRIPLET list[] = { segment(&end.mem, 3 * 64, 16), segment(&end.mem, 0, 0),
				   segment(&end.mem, 3 * 64 + 16, 48) };
	OK(dat_ep_post_recv(end.ep, 3, list, COOKIE(3), DAT_COMPLETION_DEFAULT_FLAG));
	for (int round = 0; round < 2; round++) {
		param.request_evd_handle = an_evd(DAT_EVD_DTO_FLAG);
		param.ep_attr.max_recv_dtos = round ? 8 : 40;
		param.ep_attr.max_request_dtos = round ? 4 : 40;
		OK(dat_ep_modify(end.ep, mask, &param));
		OK(dat_evd_free(end.request));
		end.request = param.request_evd_handle;
		post_recv(&end, (4 + round) * 64, 64, 4 + round);
	}
	EQUAL(ep_param(end.ep).request_evd_handle, end.request);
	NO_EVENT(end.recv);
	connect_ends(&peer, &end);
	expect_receives(&end, &peer, 6);
	WORKS(end, peer);
}

TEST("EP-R2", receives_that_are_posted_go_with_the_ep_to_another_pz)
{
	struct end end = AN_END(), peer = AN_END();
	DAT_EP_PARAM param = { .pz_handle = a_pz() };

	/* Receives must have memory of the PZ that the endpoint has when a message fills them. */
	struct region mine = a_region(param.pz_handle, END_MEMORY, ALL_RIGHTS), old = end.mem;
	end.mem = mine;
	for (int i = 0; i < 3; i++)
		post_recv(&end, i * 64, 64, i);
	end.mem = old;
	post_recv(&end, 0, 64, 3);
	end.mem = mine;
	OK(dat_ep_modify(end.ep, DAT_EP_FIELD_PZ_HANDLE, &param));
	EQUAL(ep_param(end.ep).pz_handle, param.pz_handle);
	connect_ends(&peer, &end);
	expect_receives(&end, &peer, 3);
	post_send(&peer, 0, 64, 103);
	COMPLETES(end.recv, 3, device_is("rxe") ? DAT_DTO_ERR_LOCAL_EP :
		  device_is("siw") ? DAT_DTO_ERR_TRANSPORT : DAT_DTO_ERR_LOCAL_PROTECTION);
}

TEST("EP-R3", a_modification_that_posted_receives_forbid_changes_nothing)
{
	struct end end = AN_END(), peer = AN_END();
	DAT_EP_PARAM param = { .ep_attr = ep_attr(), .recv_evd_handle = an_evd(DAT_EVD_DTO_FLAG) };
	DAT_LMR_TRIPLET list[] = { segment(&end.mem, 0, 32), segment(&end.mem, 32, 32) };

	OK(dat_ep_post_recv(end.ep, 2, list, COOKIE(0), DAT_COMPLETION_DEFAULT_FLAG));
	for (int i = 1; i < 5; i++)
		post_recv(&end, i * 64, 64, i);
	param.ep_attr.max_recv_dtos = 4;
	FAILS(dat_ep_modify(end.ep, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, &param),
	      DAT_INVALID_STATE | DAT_INVALID_STATE_EP_UNCONNECTED, DAT_INVALID_PARAMETER | DAT_INVALID_ARG3);
	param.ep_attr.max_recv_iov = 1;
	FAILS(dat_ep_modify(end.ep, DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV, &param),
	      DAT_INVALID_STATE | DAT_INVALID_STATE_EP_UNCONNECTED, DAT_INVALID_PARAMETER | DAT_INVALID_ARG3);
	FAILS(dat_ep_modify(end.ep, DAT_EP_FIELD_RECV_EVD_HANDLE, &param),
	      DAT_INVALID_STATE | DAT_INVALID_STATE_EP_UNCONNECTED, DAT_INVALID_PARAMETER | DAT_INVALID_ARG3);
	EQUAL(ep_param(end.ep).recv_evd_handle, end.recv);
	EQUAL(ep_param(end.ep).ep_attr.max_recv_dtos, ep_attr().max_recv_dtos);
	EQUAL(ep_param(end.ep).ep_attr.max_recv_iov, ep_attr().max_recv_iov);
	OK(dat_evd_free(param.recv_evd_handle));
	connect_ends(&peer, &end);
	expect_receives(&end, &peer, 5);
	WORKS(end, peer);
}

TEST("EP-R4", an_ep_that_was_connected_before_is_modified_with_receives_posted)
{
	struct pair p = CONNECTED_PAIR();
	DAT_EP_PARAM param = { .ep_attr = ep_attr() };

	post_recv(&p.a, 0, 64, 7);
	hang_up(&p.b);
	ENDS(p.a.conn);
	ENDS(p.b.conn);
	COMPLETES(p.a.recv, 7, DAT_DTO_ERR_FLUSHED);
	OK(dat_ep_reset(p.a.ep));
	OK(dat_ep_reset(p.b.ep));
	for (int i = 0; i < 2; i++)
		post_recv(&p.a, i * 64, 64, i);
	param.ep_attr.max_request_dtos = 40;
	OK(dat_ep_modify(p.a.ep, DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS, &param));
	connect_ends(&p.a, &p.b);
	/* The new request queue has the length that was requested. */
	for (int i = 0; i < 40; i++)
		post_write(&p.a, 1024, 64, &p.b.mem, 1024, i);
	for (int i = 0; i < 40; i++)
		COMPLETES(p.a.request, i, DAT_DTO_SUCCESS);
	expect_receives(&p.a, &p.b, 2);
}
