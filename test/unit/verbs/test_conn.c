/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_conn.c - the life of a connection over verbs: where it is listed, what core gives for it, upcalls that are made
 * later, its disconnect, and how it ends after its release. */
#include "common/address.h"
#include "dapl/verbs/acceptor.h"
#include "dapl/verbs/conn.h"
#include "test/unit/unit.h"
#include "test/unit/verbs/conn_sides.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

enum { SECOND = 1000000 };		/* us */

/* The lock keeps release, and with it the end of the id, away. */
int rdma_disconnect(struct rdma_cm_id *of)
{
	assert_int_equal(conn->lock.state, conn->released ? MUTEX_FREE : MUTEX_HELD);
	return try_on(of, "disconnect");
}

/* --- connections in a state ------------------------------------------------------------------------------------ */

static void adopt(struct dapl_conn_params params)
{
	dapl_mutex_lock(&conn->lock);
	hw_conn_adopt(conn, &params);
	dapl_mutex_unlock(&conn->lock);
}

/* A connection with an id. Core has accepted or connected it, unless it is a request. */
static void begin_in(void **state, enum hw_wire wire, enum conn_state in)
{
	assert_int_equal(sides_end(state), 0);
	sides_begin(state);
	dev.attr.iwarp = wire == HW_WIRE_IWARP;
	conn = hw_conn_new(&dev, wire == HW_WIRE_UD, in);
	assert_non_null(conn);
	conn->id = &id;
	ids = 1;
	if (in != CONN_REQUESTED)
		adopt(own_params());
}

/* A datagram peer that was accepted. Core gets the upcall later, with an address handle. */
static void begin_accepted_datagrams(void **state)
{
	struct dapl_conn_params params = own_params();

	begin_in(state, HW_WIRE_UD, CONN_REQUESTED);
	assert_int_equal(hw_acceptor_accept(conn, &params), 0);
	left_is("accept:handle handle id");
}

static void fail_later(enum dapl_conn_failure why, int err, const char *text)
{
	dapl_mutex_lock(&conn->lock);
	hw_conn_fail_later(conn, why, err, text);
	dapl_mutex_unlock(&conn->lock);
}

/* Release only queues the task that ends it. */
static void release(void)
{
	hw_conn_release(conn);
	assert_int_equal(conn->lock.state, MUTEX_FREE);
	steps_are("");
	assert_ptr_equal(dev.conns, conn);
	assert_true(task_is_queued());
	run_task();
}

/* --- new connections -------------------------------------------------------------------------------------------- */

/* The list of the device is this one, in both directions. */
static void list_is(struct dapl_conn *const *expected, int n)
{
	struct dapl_conn **prev = &dev.conns;

	for (int i = 0; i < n; i++, prev = &(*prev)->next) {
		assert_ptr_equal(*prev, expected[i]);
		assert_ptr_equal(expected[i]->prev, prev);
	}
	assert_null(*prev);
	assert_int_equal(dev.lock.state, MUTEX_FREE);
}

#define TEST(name) UNIT_TEST_WITH(name, sides_begin, sides_end)

TEST(connection_is_listed_until_it_is_destroyed)
{
	enum { N = 3 };

	for (int gone = 0; gone < N; gone++) {
		struct dapl_conn *list[N];

		for (int i = N - 1; i >= 0; i--) {
			list[i] = hw_conn_new(&dev, false, CONN_REQUESTED);
			list_is(list + i, N - i);
		}
		hw_conn_destroy(list[gone]);
		memmove(list + gone, list + gone + 1, (size_t)(N - 1 - gone) * sizeof *list);
		list_is(list, N - 1);
		hw_conn_destroy(list[0]);
		hw_conn_destroy(list[1]);
		list_is(NULL, 0);
	}
	left_is("");
}

TEST(wire_follows_from_the_device_unless_there_are_datagrams)
{
	static const struct { bool iwarp, ud; enum hw_wire wire; } cases[] = {
		{ false, false, HW_WIRE_IB }, { true, false, HW_WIRE_IWARP }, { false, true, HW_WIRE_UD },
		{ true, true, HW_WIRE_UD },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		dev.attr.iwarp = cases[i].iwarp;
		conn = hw_conn_new(&dev, cases[i].ud, CONN_RESOLVING_ADDRESS);
		assert_int_equal(conn->wire, cases[i].wire);
		assert_int_equal(conn->ud, cases[i].ud);
	}
}

/* --- what core gives ------------------------------------------------------------------------------------------- */

TEST(parameters_of_core_are_taken_over)
{
	struct dapl_conn_params params = own_params();

	begin_in(state, HW_WIRE_IB, CONN_REQUESTED);
	params.tuning.ack_retry = 8;
	adopt(params);
	assert_ptr_equal(conn->owner, &owner);
	assert_ptr_equal(conn->qp, &qp);
	assert_false(conn->srq);
	assert_int_equal(conn->reads_out, 4);
	assert_int_equal(conn->reads_in, 5);
	assert_int_equal(conn->tuning.ack_retry, 8);
	params.srq = true;
	adopt(params);
	assert_true(conn->srq);
}

static const struct { int qos, tos; } qualities[] = {
	{ DAPL_QOS_DEFAULT, -1 }, { DAPL_QOS_THROUGHPUT, 0x28 }, { DAPL_QOS_LATENCY, 0xb8 },
	{ DAPL_QOS_ECONOMY, 0x20 }, { DAPL_QOS_PREMIUM, 0x88 }, { DAPL_QOS_PREMIUM + 1, -1 },
};

static int tos_of(int qos, int traffic_class)
{
	struct dapl_conn_params params = own_params();

	params.qos = (enum dapl_qos)qos;
	params.tuning.traffic_class = (uint16_t)traffic_class;
	adopt(params);
	return conn->tos;
}

TEST(quality_of_service_is_a_code_point)
{
	begin_in(state, HW_WIRE_IB, CONN_REQUESTED);
	for (size_t i = 0; i < COUNT(qualities); i++)
		assert_int_equal(tos_of(qualities[i].qos, 0), qualities[i].tos);
}

TEST(settings_say_which_code_point_a_quality_of_service_is)
{
	begin_in(state, HW_WIRE_IB, CONN_REQUESTED);
	dapl_settings.dscp_low_latency = 40;
	dapl_settings.dscp_economy = 0;
	assert_int_equal(tos_of(DAPL_QOS_LATENCY, 0), 40 << 2);
	assert_int_equal(tos_of(DAPL_QOS_ECONOMY, 0), 0);
	assert_int_equal(tos_of(DAPL_QOS_PREMIUM, 0), 0x88);
}

TEST(environment_comes_before_the_quality_of_service)
{
	static const int values[] = { 0, 1, 0xff };

	begin_in(state, HW_WIRE_IB, CONN_REQUESTED);
	for (size_t v = 0; v < COUNT(values); v++)
		for (size_t i = 0; i < COUNT(qualities); i++) {
			dapl_settings.tos = values[v];
			assert_int_equal(tos_of(qualities[i].qos, 0), values[v]);
		}
}

/* A tuning of 0 leaves it to the environment: what is wanted is one less. */
TEST(limit_of_the_connection_comes_before_the_environment)
{
	begin_in(state, HW_WIRE_IB, CONN_REQUESTED);
	dapl_settings.tos = 3;
	assert_int_equal(tos_of(DAPL_QOS_LATENCY, 0), 3);
	assert_int_equal(tos_of(DAPL_QOS_LATENCY, 1), 0);
	assert_int_equal(tos_of(DAPL_QOS_LATENCY, 0x100), 0xff);
}

/* CONN-11, 12 */
TEST(failure_follows_from_the_errno)
{
	static const struct { int err; enum dapl_conn_failure why; } cases[] = {
		{ ETIMEDOUT, DAPL_CONN_TIMED_OUT }, { ECONNREFUSED, DAPL_CONN_REFUSED },
		{ ECONNRESET, DAPL_CONN_REFUSED }, { EHOSTUNREACH, DAPL_CONN_UNREACHABLE },
		{ ENETUNREACH, DAPL_CONN_UNREACHABLE }, { EINVAL, DAPL_CONN_UNREACHABLE },
		{ 0, DAPL_CONN_UNREACHABLE },
	};

	for (size_t i = 0; i < COUNT(cases); i++)
		assert_int_equal(hw_conn_failure_of(cases[i].err), cases[i].why);
}

/* --- upcalls that are made later --------------------------------------------------------------------------------- */

TEST(late_failure_is_told_by_the_task)
{
	static const enum dapl_conn_failure whys[] = { DAPL_CONN_TIMED_OUT, DAPL_CONN_UNREACHABLE };

	for (size_t i = 0; i < COUNT(whys); i++) {
		begin_in(state, HW_WIRE_IB, CONN_ACCEPTING);
		strcpy(data_told, "nothing");
		fail_later(whys[i], ECONNRESET, "lost");
		left_is("id");
		assert_int_equal(conn->state, CONN_ACCEPTING);
		run_task();
		left_is("id up:failed");
		assert_int_equal(why_told, whys[i]);
		assert_string_equal(data_told, "");
		assert_int_equal(conn->cause.step, DAPL_STEP_READY);
		assert_int_equal(conn->cause.err, ECONNRESET);
		assert_int_equal(conn->cause.code_kind, DAPL_CODE_NONE);
		assert_string_equal(conn->cause.text, "lost");
		hw_conn_queue_task(conn);	/* once only */
		run_task();
		left_is("id");
	}
}

TEST(late_establishment_hands_the_address_handle_to_core)
{
	begin_accepted_datagrams(state);
	run_task();
	left_is("id up:established");
	assert_non_null(peer_told.ah);
	assert_string_equal(data_told, "");
	hw_conn_queue_task(conn);		/* once only */
	run_task();
	left_is("id");
	release();				/* the handle stays */
	left_is("up:released");
}

TEST(address_handle_of_a_disconnected_peer_goes_with_the_connection)
{
	begin_accepted_datagrams(state);
	assert_int_equal(hw_conn_disconnect(conn), 0);
	run_task();
	left_is("handle id");
	release();
	left_is("up:released");
}

TEST(released_connection_makes_no_late_upcall)
{
	begin_in(state, HW_WIRE_IB, CONN_ACCEPTING);
	fail_later(DAPL_CONN_TIMED_OUT, ETIMEDOUT, NULL);
	release();
	left_is("up:released");
	begin_accepted_datagrams(state);
	release();				/* with the address handle */
	left_is("up:released");
	list_is(NULL, 0);
}

TEST(task_without_work_does_nothing)
{
	for (int s = 0; s < CONN_STATES; s++) {
		begin_in(state, HW_WIRE_IB, (enum conn_state)s);
		hw_conn_queue_task(conn);
		run_task();
		left_is("id");
		assert_int_equal(conn->state, s);
		assert_int_equal(conn->lock.state, MUTEX_FREE);
		list_is(&conn, 1);
	}
}

TEST(disconnect_tells_a_peer_that_is_connected)
{
	static const bool fails[] = { false, true };	/* the peer is gone */

	for (int s = 0; s < CONN_STATES; s++)
		for (size_t i = 0; i < COUNT(fails); i++) {
			begin_in(state, HW_WIRE_IB, (enum conn_state)s);
			failing = fails[i] ? "disconnect" : NULL;
			assert_int_equal(hw_conn_disconnect(conn), 0);
			left_is(s == CONN_ESTABLISHED || s == CONN_PEER_CLOSED ? "id disconnect" : "id");
			assert_int_equal(conn->state, s == CONN_ESTABLISHED ? CONN_DISCONNECTING :
					 s == CONN_PEER_CLOSED ? CONN_CLOSED : s);
			assert_int_equal(conn->lock.state, MUTEX_FREE);
			assert_false(task_is_queued());
		}
}

TEST(disconnect_of_datagrams_tells_no_peer)
{
	static const enum conn_state states[] = { CONN_CONNECTING, CONN_ACCEPTING, CONN_ESTABLISHED };

	for (size_t i = 0; i < COUNT(states); i++) {
		begin_in(state, HW_WIRE_UD, states[i]);
		assert_int_equal(hw_conn_disconnect(conn), 0);
		left_is("id");
		assert_int_equal(conn->state, CONN_CLOSED);
		assert_int_equal(conn->lock.state, MUTEX_FREE);
	}
}

/* --- explaining --------------------------------------------------------------------------------------------------- */

static struct dapl_conn_cause explained(void)
{
	struct dapl_conn_cause cause;

	memset(&cause, 0xee, sizeof cause);
	hw_conn_explain(conn, &cause);
	assert_int_equal(conn->lock.state, MUTEX_FREE);
	assert_memory_equal(&cause.local, &conn->local, sizeof cause.local);
	assert_int_equal(address_port((struct sockaddr *)&cause.remote), 9);
	return cause;
}

TEST(connection_that_has_not_failed_is_in_a_step)
{
	static const struct { enum conn_state in; enum dapl_conn_step step; } cases[] = {
		{ CONN_REQUESTED, DAPL_STEP_REQUEST }, { CONN_RESOLVING_ROUTE, DAPL_STEP_RESOLVE_ROUTE },
		{ CONN_ACCEPTING, DAPL_STEP_READY }, { CONN_ESTABLISHED, DAPL_STEP_TRANSFER },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct dapl_conn_cause cause;

		begin_in(state, HW_WIRE_IB, cases[i].in);
		set_address((struct sockaddr *)&conn->remote, "10.0.0.2", 9);
		cause = explained();
		assert_int_equal(cause.step, cases[i].step);
		assert_int_equal(cause.err, 0);
		assert_int_equal(cause.code_kind, DAPL_CODE_NONE);
		assert_null(cause.text);
	}
}

TEST(cause_of_a_failure_is_constant)
{
	struct dapl_conn_cause cause;

	begin_in(state, HW_WIRE_IB, CONN_ACCEPTING);
	set_address((struct sockaddr *)&conn->remote, "10.0.0.2", 9);
	fail_later(DAPL_CONN_TIMED_OUT, ECONNRESET, "lost");
	for (int closed = 0; closed < 2; closed++) {
		cause = explained();
		assert_int_equal(cause.step, DAPL_STEP_READY);
		assert_int_equal(cause.err, ECONNRESET);
		assert_string_equal(cause.text, "lost");
		if (!closed)
			run_task();
	}
	assert_int_equal(conn->state, CONN_CLOSED);
}

/* --- the end ------------------------------------------------------------------------------------------------------ */

/* A connection that lingers keeps its id. */
static const struct {
	enum conn_state in;
	const char *over[3];		/* over each wire; NULL: there is none in this state */
} ends[] = {
	{ CONN_REQUESTED, { "refuse", "reject", "reject" } },
	{ CONN_RESOLVING_ADDRESS, { "up:released", "up:released", "up:released" } },
	{ CONN_RESOLVING_ROUTE, { "up:released", "up:released", "up:released" } },
	{ CONN_CONNECTING, { "up:released", "id timer up:released", "up:released" } },
	{ CONN_ACCEPTING, { "up:released", "up:released", "up:released" } },
	{ CONN_ESTABLISHED, { "id timer disconnect up:released", "disconnect up:released", "up:released" } },
	{ CONN_PEER_CLOSED, { "up:released", "up:released", NULL } },
	{ CONN_DISCONNECTING, { "id timer up:released", "up:released", NULL } },
	{ CONN_CLOSED, { "up:released", "up:released", "up:released" } },
};

TEST(release_ends_a_connection_in_any_state)
{
	static const enum hw_wire wires[] = { HW_WIRE_IB, HW_WIRE_IWARP, HW_WIRE_UD };

	assert_int_equal(COUNT(ends), CONN_STATES);
	for (size_t i = 0; i < COUNT(ends) * COUNT(wires); i++) {
		const char *expected = ends[i / COUNT(wires)].over[i % COUNT(wires)];

		if (!expected)
			continue;
		begin_in(state, wires[i % COUNT(wires)], ends[i / COUNT(wires)].in);
		release();
		left_is(expected);
		list_is(&conn, strstr(expected, "timer") != NULL);
	}
}

/* Events of its id are those of a lingering connection. */
static void lingers(uint64_t least_us, uint64_t most_us)
{
	assert_in_range(lingers_us, least_us, most_us);
	assert_true(conn->lingering);
	end_linger();
	left_is("");
	list_is(NULL, 0);
}

TEST(id_lingers_for_the_answer_to_a_disconnect)
{
	static const enum conn_state states[] = { CONN_ESTABLISHED, CONN_DISCONNECTING };

	for (size_t i = 0; i < COUNT(states); i++) {
		begin_in(state, HW_WIRE_IB, states[i]);
		release();
		forget_steps();
		lingers(SECOND, 10 * SECOND);
	}
}

/* siw gives up a handshake after 10 s, and rdma_destroy_id would wait for that. */
TEST(id_lingers_for_the_end_of_an_iwarp_handshake)
{
	begin_in(state, HW_WIRE_IWARP, CONN_CONNECTING);
	release();
	forget_steps();
	lingers(11 * SECOND, 60 * SECOND);
}

TEST(peer_that_is_gone_is_not_waited_for)
{
	begin_in(state, HW_WIRE_IB, CONN_ESTABLISHED);
	failing = "disconnect";
	release();
	left_is("disconnect up:released");
	list_is(NULL, 0);
}

TEST(lingering_connection_can_be_destroyed)
{
	begin_in(state, HW_WIRE_IB, CONN_DISCONNECTING);
	release();
	forget_steps();
	hw_conn_destroy(conn);
	left_is("");
	assert_int_equal(lingers_us, 0);
	list_is(NULL, 0);
}

UNIT_MAIN(NULL, NULL)
