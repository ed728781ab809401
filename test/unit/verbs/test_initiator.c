/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_initiator.c - the active side of a connection, step by step: what is asked of the connection manager, what is
 * tried again, and what core is told when a step fails. */
#include "common/address.h"
#include "dapl/verbs/initiator.h"
#include "test/unit/unit.h"
#include "test/unit/verbs/conn_sides.h"

enum { RESTARTS = 8, ADDRESS_MS = 400, ROUTE_MS = 600 };

/* --- the steps of a connection ------------------------------------------------------------------------------ */

static void begin_on(void **state, enum hw_wire wire)
{
	assert_int_equal(sides_end(state), 0);
	sides_begin(state);
	dev.attr.iwarp = wire == HW_WIRE_IWARP;
	dapl_settings.arp_timeout_ms = ADDRESS_MS;
	dapl_settings.route_timeout_ms = ROUTE_MS;
}

static int connect_it(bool ud)
{
	struct dapl_conn_params params = own_params();

	params.ud = ud;
	return hw_initiator_connect(&dev, &params, &conn);
}

static void after(void (*handler)(struct dapl_conn *))
{
	dapl_mutex_lock(&conn->lock);
	handler(conn);
	assert_int_equal(conn->lock.state, MUTEX_FREE);
}

static void after_failure(void (*handler)(struct dapl_conn *, int), int status)
{
	dapl_mutex_lock(&conn->lock);
	handler(conn, status);
	assert_int_equal(conn->lock.state, MUTEX_FREE);
}

/* A new connection in this state, and none of its steps. */
static void begin_in(void **state, enum hw_wire wire, enum conn_state in)
{
	begin_on(state, wire);
	assert_int_equal(connect_it(wire == HW_WIRE_UD), 0);
	if (in != CONN_RESOLVING_ADDRESS)
		after(hw_initiator_address_resolved);
	if (in == CONN_CONNECTING)
		after(hw_initiator_route_resolved);
	assert_int_equal(conn->state, in);
	*steps = 0;
}

static void is_cause(enum dapl_conn_failure why, enum dapl_conn_step in, int err)
{
	assert_int_equal(why_told, why);
	assert_int_equal(conn->cause.step, in);
	assert_int_equal(conn->cause.err, err);
}

static void is_status(int status)
{
	assert_int_equal(conn->cause.code_kind, DAPL_CODE_CM_STATUS);
	assert_int_equal((int)conn->cause.code, status);
}

#define TEST(name) UNIT_TEST_WITH(name, sides_begin, sides_end)

/* --- the call --------------------------------------------------------------------------------------------------- */

TEST(connection_begins_with_the_address)
{
	begin_on(state, HW_WIRE_IB);
	assert_int_equal(connect_it(false), 0);
	left_is("id address");
	assert_int_equal(asked_space, RDMA_PS_TCP);
	assert_true(address_same_host((struct sockaddr *)&asked_remote, &id.route.addr.dst_addr));
	assert_int_equal(address_port((struct sockaddr *)&asked_remote), 2);
	assert_int_equal(asked_timeout, ADDRESS_MS);
	assert_ptr_equal(id.context, &conn->target);
	assert_int_equal(conn->target.kind, CM_CONN);
	assert_int_equal(conn->state, CONN_RESOLVING_ADDRESS);
	assert_ptr_equal(conn->owner, &owner);
	assert_true(conn->active);
	assert_false(task_is_queued());
	begin_on(state, HW_WIRE_IB);
	assert_int_equal(connect_it(true), 0);
	assert_int_equal(asked_space, RDMA_PS_UDP);
}

TEST(options_are_those_of_connection_and_environment)
{
	static const struct { enum hw_wire wire; uint16_t tos, ack; int env; int set_tos, set_ack; } cases[] = {
		{ HW_WIRE_IB, 0, 0, -1, -1, -1 },
		{ HW_WIRE_IB, 1 + 32, 1 + 14, 12, 32, 14 },
		{ HW_WIRE_IB, 0, 0, 12, -1, 12 },
		{ HW_WIRE_IB, 0, 1 + 0, -1, -1, 0 },
		{ HW_WIRE_IWARP, 1 + 32, 1 + 14, 12, 32, -1 },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct dapl_conn_params params = own_params();

		begin_on(state, cases[i].wire);
		dapl_settings.ack_timer = cases[i].env;
		params.tuning.traffic_class = cases[i].tos;
		params.tuning.ack_timeout = cases[i].ack;
		assert_int_equal(hw_initiator_connect(&dev, &params, &conn), 0);	/* the kernel knows no option */
		assert_int_equal(asked_tos, cases[i].set_tos);
		assert_int_equal(asked_ack_timeout, cases[i].set_ack);
	}
}

TEST(refused_arguments_leave_nothing)
{
	struct sockaddr other = { .sa_family = AF_UNIX };
	struct dapl_conn_params params = own_params();
	static char data[256];

	begin_on(state, HW_WIRE_IB);
	params.remote = &other;
	assert_int_equal(hw_initiator_connect(&dev, &params, &conn), EAFNOSUPPORT);
	dev.attr.ud = false;
	assert_int_equal(connect_it(true), EOPNOTSUPP);
	params = own_params();
	params.pdata = data;
	params.pdata_len = hw_pdata_room(HW_WIRE_IB, HW_REQUEST) + 1;
	assert_int_equal(hw_initiator_connect(&dev, &params, &conn), EMSGSIZE);
	no_memory = true;
	assert_int_equal(connect_it(false), ENOMEM);
	assert_null(dev.conns);
	left_is("");
	no_memory = false;
	params.pdata_len--;
	assert_int_equal(hw_initiator_connect(&dev, &params, &conn), 0);
}

TEST(connection_without_an_id_is_none)
{
	begin_on(state, HW_WIRE_IB);
	failing = "id";
	assert_int_equal(connect_it(false), ENOBUFS);
	left_is("");
	assert_null(dev.conns);
	assert_false(task_is_queued());
}

TEST(address_that_is_refused_fails_later)
{
	begin_on(state, HW_WIRE_IB);
	failing = "address";
	assert_int_equal(connect_it(false), 0);
	left_is("id address");
	run_task();
	left_is("id up:failed");
	is_cause(DAPL_CONN_UNREACHABLE, DAPL_STEP_RESOLVE_ADDRESS, ENOBUFS);
}

TEST(address_of_another_family_is_unreachable)
{
	struct dapl_conn_params params = own_params();
	struct sockaddr_storage six = { 0 };

	begin_on(state, HW_WIRE_IB);
	set_address((struct sockaddr *)&six, "2001:db8::2", 7);
	params.remote = (struct sockaddr *)&six;
	assert_int_equal(hw_initiator_connect(&dev, &params, &conn), 0);
	left_is("");
	run_task();
	left_is("up:failed");
	is_cause(DAPL_CONN_UNREACHABLE, DAPL_STEP_RESOLVE_ADDRESS, ENETUNREACH);
	assert_int_equal(address_port((struct sockaddr *)&conn->remote), 7);
}

TEST(link_local_address_gets_the_scope_of_the_device)
{
	struct dapl_conn_params params = own_params();
	struct sockaddr_storage six = { 0 };

	begin_on(state, HW_WIRE_IB);
	set_address((struct sockaddr *)&dev.attr.address, "fe80::1", 0);
	((struct sockaddr_in6 *)&dev.attr.address)->sin6_scope_id = 3;
	set_address((struct sockaddr *)&six, "fe80::2", 7);
	params.remote = (struct sockaddr *)&six;
	assert_int_equal(hw_initiator_connect(&dev, &params, &conn), 0);
	assert_int_equal(((struct sockaddr_in6 *)&asked_remote)->sin6_scope_id, 3);
}

/* --- address and route --------------------------------------------------------------------------------------- */

TEST(timeouts_are_repeated_as_often_as_the_environment_says)
{
	static const struct {
		enum conn_state in;
		void (*failed)(struct dapl_conn *, int);
		const char *again;
		enum dapl_conn_step step;
		int timeout;
	} cases[] = {
		{ CONN_RESOLVING_ADDRESS, hw_initiator_address_failed, "address", DAPL_STEP_RESOLVE_ADDRESS,
		  ADDRESS_MS },
		{ CONN_RESOLVING_ROUTE, hw_initiator_route_failed, "route", DAPL_STEP_RESOLVE_ROUTE, ROUTE_MS },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		begin_in(state, HW_WIRE_IB, cases[i].in);
		conn->retries = 2;
		for (int n = 0; n < 2; n++) {
			asked_timeout = 0;
			after_failure(cases[i].failed, -ETIMEDOUT);
			steps_are(cases[i].again);
			assert_int_equal(asked_timeout, cases[i].timeout);
			assert_int_equal(conn->state, cases[i].in);
		}
		after_failure(cases[i].failed, -ETIMEDOUT);
		left_is("id up:failed");
		is_cause(DAPL_CONN_UNREACHABLE, cases[i].step, ETIMEDOUT);
		is_status(-ETIMEDOUT);
		begin_in(state, HW_WIRE_IB, cases[i].in);
		conn->retries = 2;
		after_failure(cases[i].failed, -EHOSTUNREACH);
		left_is("id up:failed");
		is_cause(DAPL_CONN_UNREACHABLE, cases[i].step, EHOSTUNREACH);
		is_status(-EHOSTUNREACH);
		begin_in(state, HW_WIRE_IB, cases[i].in);
		conn->retries = 2;
		failing = cases[i].again;
		*steps = 0;
		after_failure(cases[i].failed, -ETIMEDOUT);
		is_cause(DAPL_CONN_UNREACHABLE, cases[i].step, ENOBUFS);
		is_status(-ETIMEDOUT);
	}
}

TEST(retries_of_address_and_route_are_counted_apart)
{
	begin_on(state, HW_WIRE_IB);
	dapl_settings.arp_retries = 5;
	dapl_settings.route_retries = 7;
	assert_int_equal(connect_it(false), 0);
	assert_int_equal(conn->retries, 5);
	after(hw_initiator_address_resolved);
	assert_int_equal(conn->retries, 7);
}

TEST(resolved_address_leads_to_the_route)
{
	begin_in(state, HW_WIRE_IB, CONN_RESOLVING_ADDRESS);
	after(hw_initiator_address_resolved);
	left_is("id route");
	assert_int_equal(asked_timeout, ROUTE_MS);
	assert_int_equal(conn->state, CONN_RESOLVING_ROUTE);
	assert_int_equal(address_port((struct sockaddr *)&conn->local), 1);	/* the id has one now */
	begin_in(state, HW_WIRE_IB, CONN_RESOLVING_ADDRESS);
	failing = "route";
	after(hw_initiator_address_resolved);
	left_is("id route up:failed");
	is_cause(DAPL_CONN_UNREACHABLE, DAPL_STEP_RESOLVE_ROUTE, ENOBUFS);
}

/* --- the request --------------------------------------------------------------------------------------------- */

TEST(request_carries_data_reads_and_retries)
{
	struct hw_pdata request;

	begin_in(state, HW_WIRE_IB, CONN_RESOLVING_ROUTE);
	dapl_settings.ack_retry = 5;
	dapl_settings.rnr_retry = 6;
	dev.attr.limits.max_qp_rd_atom = 3;
	after(hw_initiator_route_resolved);
	left_is("connect id");
	assert_int_equal(conn->state, CONN_CONNECTING);
	assert_true(conn->request_sent);
	assert_int_equal(asked.initiator_depth, 4);
	assert_int_equal(asked.responder_resources, 3);
	assert_int_equal(siw.max_reads, 4);
	assert_int_equal(asked.retry_count, 5);
	assert_int_equal(asked.rnr_retry_count, 6);
	assert_int_equal(asked.qp_num, QP_NUMBER);
	assert_int_equal(asked.srq, 0);
	assert_int_equal(asked.flow_control, 1);
	hw_pdata_unpack(&request, HW_WIRE_IB, HW_REQUEST, asked_data, (size_t)asked_data_length);
	assert_true(request.exact);
	assert_int_equal(request.len, 5);
	assert_memory_equal(request.data, "hello", 5);
}

TEST(request_of_datagrams_says_where_this_side_is)
{
	struct hw_pdata request;

	begin_in(state, HW_WIRE_UD, CONN_CONNECTING);
	hw_pdata_unpack(&request, HW_WIRE_UD, HW_REQUEST, asked_data, (size_t)asked_data_length);
	assert_true(request.has_self);
	assert_int_equal(request.self.qpn, QP_NUMBER);
}

TEST(request_that_is_not_sent_fails)
{
	static const struct { int err; enum dapl_conn_failure why; } cases[] = {
		{ ECONNREFUSED, DAPL_CONN_REFUSED }, { ETIMEDOUT, DAPL_CONN_TIMED_OUT },
		{ ENOBUFS, DAPL_CONN_UNREACHABLE },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		begin_in(state, HW_WIRE_IWARP, CONN_RESOLVING_ROUTE);
		failing = "connect";
		refusal = cases[i].err;
		after(hw_initiator_route_resolved);
		left_is("connect id up:failed");
		is_cause(cases[i].why, DAPL_STEP_CONNECT, cases[i].err);
		assert_false(conn->request_sent);
	}
}

TEST(taken_port_is_replaced_a_few_times)
{
	begin_in(state, HW_WIRE_IWARP, CONN_RESOLVING_ADDRESS);
	failing = "connect";
	refusal = EADDRINUSE;
	for (int i = 0; i < RESTARTS; i++) {
		after(hw_initiator_address_resolved);
		after(hw_initiator_route_resolved);
		left_is("address connect id route");
		assert_int_equal(conn->state, CONN_RESOLVING_ADDRESS);
	}
	after(hw_initiator_address_resolved);
	after(hw_initiator_route_resolved);
	left_is("connect id route up:failed");
	is_cause(DAPL_CONN_UNREACHABLE, DAPL_STEP_CONNECT, EADDRINUSE);
}

TEST(restart_that_fails_ends_the_connection)
{
	begin_in(state, HW_WIRE_IWARP, CONN_RESOLVING_ROUTE);
	failing = "connect";
	failing_too = "id";
	refusal = EADDRINUSE;
	after(hw_initiator_route_resolved);
	left_is("connect up:failed");
	is_cause(DAPL_CONN_UNREACHABLE, DAPL_STEP_RESOLVE_ADDRESS, EADDRINUSE);
	assert_null(conn->id);
}

TEST(connection_released_during_a_failing_request_reports_nothing)
{
	begin_in(state, HW_WIRE_IWARP, CONN_RESOLVING_ROUTE);
	failing = "connect";
	refusal = EADDRINUSE;
	releases_in_connect = true;
	after(hw_initiator_route_resolved);
	left_is("connect id");
	assert_int_equal(conn->state, CONN_CLOSED);
	run_task();
	left_is("up:released");
	assert_null(dev.conns);
}

/* rdma_destroy_id would wait for the end of an iWARP handshake. */
TEST(connection_released_during_a_request_keeps_its_id_on_iwarp)
{
	static const struct { enum hw_wire wire; const char *end; } cases[] = {
		{ HW_WIRE_IWARP, "id timer up:released" }, { HW_WIRE_IB, "up:released" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		begin_in(state, cases[i].wire, CONN_RESOLVING_ROUTE);
		releases_in_connect = true;
		after(hw_initiator_route_resolved);
		left_is("connect id");
		run_task();
		left_is(cases[i].end);
	}
}

/* --- the answer ---------------------------------------------------------------------------------------------- */

static void response(void)
{
	struct hw_pdata pdata = { .data = (const uint8_t *)"yes", .len = 3, .mtu = IBV_MTU_512 };

	dapl_mutex_lock(&conn->lock);
	hw_initiator_response(conn, &pdata);
	assert_int_equal(conn->lock.state, MUTEX_FREE);
}

TEST(queue_pair_moves_before_the_connection_is_established)
{
	begin_in(state, HW_WIRE_IB, CONN_CONNECTING);
	response();
	left_is("establish:RTS id tap up:established");
	assert_string_equal(data_told, "yes");
	assert_int_equal(conn->peer_mtu, IBV_MTU_512);
}

TEST(response_that_is_of_no_use_is_refused)
{
	static const struct { const char *word, *all, *text; bool gone; } cases[] = {
		{ "rts", "id refuse up:failed", "the queue pair does not go to RTS", false },
		{ "rts", "id refuse up:failed", NULL, true },
		{ "establish", "id establish:RTS refuse up:failed", NULL, false },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		begin_in(state, HW_WIRE_IB, CONN_CONNECTING);
		failing = cases[i].word;
		peer_is_gone = cases[i].gone;
		response();
		left_is(cases[i].all);
		is_cause(DAPL_CONN_REFUSED, DAPL_STEP_READY, ENOBUFS);
		if (cases[i].text)
			assert_string_equal(conn->cause.text, cases[i].text);
		else
			assert_null(conn->cause.text);
	}
}

static void established(void (*handler)(struct dapl_conn *, const struct rdma_cm_event *, const struct hw_pdata *),
			const struct rdma_cm_event *event)
{
	struct hw_pdata pdata = { .data = (const uint8_t *)"yes", .len = 3 };

	dapl_mutex_lock(&conn->lock);
	handler(conn, event, &pdata);
	assert_int_equal(conn->lock.state, MUTEX_FREE);
}

TEST(datagrams_are_established_with_their_peer)
{
	struct rdma_cm_event event = { .param.ud = { .qp_num = PEER_QP_NUMBER } };

	begin_in(state, HW_WIRE_UD, CONN_CONNECTING);
	established(hw_initiator_ud_established, &event);
	left_is("id up:established");
	assert_non_null(peer_told.ah);
	assert_int_equal(peer_told.qpn, PEER_QP_NUMBER);
	assert_string_equal(data_told, "yes");
	begin_in(state, HW_WIRE_UD, CONN_CONNECTING);
	failing = "handle";
	established(hw_initiator_ud_established, &event);
	left_is("id up:failed");
	is_cause(DAPL_CONN_UNREACHABLE, DAPL_STEP_READY, ENOBUFS);
	assert_string_equal(conn->cause.text, "address handle");
}

TEST(iwarp_side_reads_as_much_as_was_agreed_on)
{
	struct rdma_cm_event event = { .param.conn = { .initiator_depth = 7, .responder_resources = 3 } };

	begin_in(state, HW_WIRE_IWARP, CONN_CONNECTING);
	established(hw_initiator_iwarp_established, &event);
	left_is("id up:established");
	assert_int_equal(siw.max_reads, 3);
	assert_string_equal(data_told, "yes");
	begin_in(state, HW_WIRE_IWARP, CONN_CONNECTING);
	siw.max_reads = MOST_READS;
	event.param.conn.responder_resources = 9;
	established(hw_initiator_iwarp_established, &event);
	assert_int_equal(siw.max_reads, 7);
}

UNIT_MAIN(NULL, NULL)
