/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_acceptor.c - requests and the answers to them: what the peer gets, which failures leave a request that may be
 * answered again, and which core is told later. */
#include "common/address.h"
#include "dapl/verbs/acceptor.h"
#include "test/unit/unit.h"
#include "test/unit/verbs/conn_sides.h"

enum { PEER_OUT = 3, PEER_IN = 2 };

/* A request that came over a wire. */
static int request(enum hw_wire wire)
{
	struct hw_pdata pdata = { .mtu = IBV_MTU_1024, .self = { .qpn = PEER_QP_NUMBER } };
	struct rdma_cm_event event = { .param.conn = { .initiator_depth = PEER_OUT, .responder_resources = PEER_IN } };

	dev.attr.iwarp = wire == HW_WIRE_IWARP;
	ids = 1;
	return hw_acceptor_from_request(&dev, &id, wire == HW_WIRE_UD, &pdata, &event, &conn);
}

static void begin_on(void **state, enum hw_wire wire)
{
	assert_int_equal(sides_end(state), 0);
	sides_begin(state);
	assert_int_equal(request(wire), 0);
}

static int accept_it(void)
{
	struct dapl_conn_params params = own_params();

	return hw_acceptor_accept(conn, &params);
}

/* The task reports to core that the connection has failed. */
static void fails_later(const char *all, int err, const char *text)
{
	left_is(all);
	run_task();
	steps_are("up:failed");
	assert_int_equal(why_told, DAPL_CONN_TIMED_OUT);
	assert_int_equal(conn->cause.step, DAPL_STEP_ACCEPT);
	assert_int_equal(conn->cause.err, err);
	if (text)
		assert_string_equal(conn->cause.text, text);
	else
		assert_null(conn->cause.text);
}

#define TEST(name) UNIT_TEST_WITH(name, sides_begin, sides_end)

TEST(request_without_memory_leaves_the_id)
{
	no_memory = true;
	assert_int_equal(request(HW_WIRE_IB), ENOMEM);
	left_is("id");
	assert_null(id.context);
	ids = 0;
}

/* --- accepting --------------------------------------------------------------------------------------------- */

TEST(queue_pair_moves_before_the_answer)
{
	static const struct { enum hw_wire wire; const char *all; } cases[] = {
		{ HW_WIRE_IB, "id tap accept:RTS" }, { HW_WIRE_IWARP, "id accept" },
		{ HW_WIRE_UD, "id handle accept:handle" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		begin_on(state, cases[i].wire);
		assert_int_equal(accept_it(), 0);
		left_is(cases[i].all);
		assert_int_equal(conn->state, CONN_ACCEPTING);
		assert_ptr_equal(conn->owner, &owner);
		assert_int_equal(task_is_queued(), cases[i].wire == HW_WIRE_UD);
		assert_int_equal(asked.qp_num, QP_NUMBER);
	}
}

TEST(answer_carries_data_and_mtu)
{
	struct hw_pdata answer;

	dapl_settings.ib_mtu = 2048;
	assert_int_equal(request(HW_WIRE_IB), 0);
	assert_int_equal(accept_it(), 0);
	hw_pdata_unpack(&answer, HW_WIRE_IB, HW_ACCEPT, asked_data, (size_t)asked_data_length);
	assert_true(answer.exact);
	assert_int_equal(answer.len, 5);
	assert_memory_equal(answer.data, "hello", 5);
	assert_int_equal(answer.mtu, IBV_MTU_1024);	/* the peer's is less than ours */
}

TEST(answer_names_queue_pair_and_retries)
{
	struct dapl_conn_params params = own_params();

	dapl_settings.rnr_retry = 6;
	params.srq = true;
	assert_int_equal(request(HW_WIRE_IB), 0);
	assert_int_equal(hw_acceptor_accept(conn, &params), 0);
	assert_int_equal(asked.rnr_retry_count, 6);
	assert_int_equal(asked.srq, 1);
	assert_int_equal(asked.flow_control, 0);
	begin_on(state, HW_WIRE_IB);
	assert_int_equal(accept_it(), 0);
	assert_int_equal(asked.srq, 0);
	assert_int_equal(asked.flow_control, 1);
}

TEST(reads_are_the_least_of_both_sides_and_the_device)
{
	static const struct { uint8_t own_out, own_in; int limit, out, in; } cases[] = {
		{ 16, 16, 16, PEER_OUT, PEER_IN }, { 1, 1, 16, 1, 1 }, { 16, 16, 1, 1, 1 }, { 0, 16, 16, 0, PEER_IN },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct dapl_conn_params params = own_params();

		begin_on(state, HW_WIRE_IB);
		params.reads_out = cases[i].own_out;
		params.reads_in = cases[i].own_in;
		dev.attr.limits.max_qp_rd_atom = dev.attr.limits.max_qp_init_rd_atom = cases[i].limit;
		assert_int_equal(hw_acceptor_accept(conn, &params), 0);
		assert_int_equal(asked.initiator_depth, cases[i].out);
		assert_int_equal(asked.responder_resources, cases[i].in);
		assert_int_equal(siw.max_reads, cases[i].out ? cases[i].out : MOST_READS);	/* 0: unknown */
	}
}

/* SIDR has no third message. */
TEST(accepted_datagrams_are_established_at_once)
{
	assert_int_equal(request(HW_WIRE_UD), 0);
	assert_int_equal(accept_it(), 0);
	*steps = 0;
	run_task();
	left_is("id up:established");
	assert_non_null(peer_told.ah);
	assert_int_equal(peer_told.qpn, PEER_QP_NUMBER);
}

TEST(accept_with_too_much_data_changes_nothing)
{
	static char data[256];
	struct dapl_conn_params params = own_params();

	assert_int_equal(request(HW_WIRE_IB), 0);
	params.pdata = data;
	params.pdata_len = hw_pdata_room(HW_WIRE_IB, HW_ACCEPT) + 1;
	assert_int_equal(hw_acceptor_accept(conn, &params), EMSGSIZE);
	left_is("id");
	assert_int_equal(conn->state, CONN_REQUESTED);
	assert_null(conn->owner);
	params.pdata_len--;
	assert_int_equal(hw_acceptor_accept(conn, &params), 0);
	assert_int_equal(conn->state, CONN_ACCEPTING);
}

TEST(only_requests_are_accepted)
{
	for (int s = 0; s < CONN_STATES; s++) {
		if (s == CONN_REQUESTED || s == CONN_CLOSED)
			continue;
		begin_on(state, HW_WIRE_IB);
		conn->state = (enum conn_state)s;
		assert_int_equal(accept_it(), EINVAL);
		assert_int_equal(conn->state, s);
		assert_null(conn->owner);
		left_is("id");
	}
}

/* --- failures of an accept --------------------------------------------------------------------------------- */

TEST(failed_accept_leaves_the_request)
{
	static const struct { enum hw_wire wire; const char *word, *again; int out, in; } cases[] = {
		{ HW_WIRE_IB, "rts", "id tap accept:RTS", PEER_OUT, PEER_IN },
		{ HW_WIRE_UD, "handle", "id handle accept:handle", 0, 0 },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct dapl_conn_params params = own_params();

		begin_on(state, cases[i].wire);
		params.reads_out = params.reads_in = 1;
		failing = cases[i].word;
		assert_int_equal(hw_acceptor_accept(conn, &params), ENOBUFS);
		left_is("id");
		assert_int_equal(conn->state, CONN_REQUESTED);
		assert_null(conn->owner);
		assert_null(conn->qp);
		assert_int_equal(conn->reads_out, cases[i].out);
		assert_int_equal(conn->reads_in, cases[i].in);
		assert_false(task_is_queued());
		failing = NULL;
		assert_int_equal(accept_it(), 0);
		left_is(cases[i].again);
	}
}

TEST(peer_that_goes_during_the_accept_fails_later)
{
	assert_int_equal(request(HW_WIRE_IB), 0);
	failing = "rts";
	refusal = EINVAL;
	peer_is_gone = true;
	assert_int_equal(accept_it(), 0);
	fails_later("id tap", EINVAL, "the peer is gone");
}

TEST(peer_that_went_before_the_accept_fails_later)
{
	static const enum hw_wire wires[] = { HW_WIRE_IB, HW_WIRE_IWARP, HW_WIRE_UD };

	for (size_t i = 0; i < sizeof wires / sizeof *wires; i++) {
		begin_on(state, wires[i]);
		conn->state = CONN_CLOSED;
		assert_int_equal(accept_it(), 0);
		fails_later(wires[i] == HW_WIRE_IB ? "id tap" : "id", 0, "the peer is gone");
	}
}

TEST(answer_that_is_not_sent_fails_later)
{
	static const enum hw_wire wires[] = { HW_WIRE_IB, HW_WIRE_IWARP, HW_WIRE_UD };
	static const char *const all[] = { "id tap accept:RTS", "id accept", "id handle accept:handle" };

	for (size_t i = 0; i < sizeof wires / sizeof *wires; i++) {
		begin_on(state, wires[i]);
		failing = "accept";
		refusal = ECONNRESET;
		assert_int_equal(accept_it(), 0);
		fails_later(all[i], ECONNRESET, NULL);
		assert_false(task_is_queued());
	}
}

/* --- rejecting ----------------------------------------------------------------------------------------------- */

static void is_rejection(enum hw_wire wire, bool by_provider, const char *data)
{
	struct hw_pdata rejection;

	hw_pdata_unpack(&rejection, wire, HW_REJECT, asked_data, (size_t)asked_data_length);
	assert_true(rejection.exact);
	assert_int_equal(rejection.refused, by_provider);
	assert_int_equal(rejection.len, strlen(data));
	if (*data)
		assert_memory_equal(rejection.data, data, strlen(data));
}

TEST(rejection_by_the_program_carries_its_data)
{
	static const enum hw_wire wires[] = { HW_WIRE_IB, HW_WIRE_IWARP, HW_WIRE_UD };

	for (size_t i = 0; i < sizeof wires / sizeof *wires; i++) {
		begin_on(state, wires[i]);
		assert_int_equal(hw_acceptor_reject(conn, true, "no", 2), 0);
		left_is("id reject");
		is_rejection(wires[i], false, "no");
	}
}

TEST(refusal_by_the_provider_carries_its_mark)
{
	static const struct { enum hw_wire wire; const char *word; } cases[] = {
		{ HW_WIRE_IB, "id refuse" }, { HW_WIRE_IWARP, "id reject" }, { HW_WIRE_UD, "id reject" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		begin_on(state, cases[i].wire);
		assert_int_equal(hw_acceptor_reject(conn, false, NULL, 0), 0);
		left_is(cases[i].word);
		is_rejection(cases[i].wire, true, "");
	}
}

TEST(request_that_is_over_is_released_without_an_answer)
{
	assert_int_equal(request(HW_WIRE_IB), 0);
	conn->state = CONN_CLOSED;
	assert_int_equal(hw_acceptor_reject(conn, true, "no", 2), 0);
	run_task();
	left_is("");
}

TEST(rejection_with_too_much_data_leaves_the_request)
{
	static char data[256];
	size_t room = hw_pdata_room(HW_WIRE_IB, HW_REJECT);

	assert_int_equal(request(HW_WIRE_IB), 0);
	assert_int_equal(hw_acceptor_reject(conn, true, data, room + 1), EMSGSIZE);
	left_is("id");
	assert_int_equal(conn->state, CONN_REQUESTED);
	assert_false(conn->released);
	assert_false(task_is_queued());
	assert_int_equal(hw_acceptor_reject(conn, true, data, room), 0);
	left_is("id reject");
}

UNIT_MAIN(NULL, NULL)
