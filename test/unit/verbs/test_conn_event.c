/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_conn_event.c - what each event of the connection manager leads to in each state of a connection. The sides
 * of a connection, its upcalls and its life are replaced here by records of their calls. */
#include "dapl/verbs/conn.h"
#include "dapl/verbs/conn_event.h"
#include "dapl/verbs/conn_report.h"
#include "dapl/verbs/conn_state.h"
#include "dapl/verbs/hw.h"
#include "dapl/verbs/initiator.h"
#include "test/unit/unit.h"

enum call { NOTHING, ADDRESS_OK, ADDRESS_BAD, ROUTE_OK, ROUTE_BAD, RESPONSE, UD_UP, IWARP_UP, UP, FAILED, DOWN,
	DESTROYED };

enum { IB_NO_LISTENER = 8, IB_BY_CONSUMER = 28, IB_ECE = 35, SIDR_NO_LISTENER = 1, SIDR_BY_CONSUMER = 2 };

static struct dapl_conn conn;
static enum call last;			/* the last call */
static int calls, status_told;
static enum dapl_conn_failure why_told;
static char data_told[8];
static bool orderly_told, ends_when_up;
static int requests, looks, fails_at;	/* posted; at the queue pair's state; the look that finds it failed, or 0 */
static struct dapl_device device;
static struct ibv_qp qp;
static enum { STAYS, CLOSES, IS_RELEASED } while_asked;	/* what core does with the connection meanwhile */

/* --- in place of the other files: each gets the lock and returns without it ------------------------- */

static void called(enum call call)
{
	assert_int_not_equal(conn.lock.state, MUTEX_FREE);
	calls++;
	last = call;
}

static void called_last(enum call call)
{
	called(call);
	dapl_mutex_unlock(&conn.lock);
}

static void keep(const void *data, size_t len)
{
	assert_true(len < sizeof data_told);
	memset(data_told, 0, sizeof data_told);
	if (len)
		memcpy(data_told, data, len);
}

void hw_initiator_address_resolved(struct dapl_conn *c) { (void)c; called_last(ADDRESS_OK); }
void hw_initiator_route_resolved(struct dapl_conn *c) { (void)c; called_last(ROUTE_OK); }

void hw_initiator_address_failed(struct dapl_conn *c, int status)
{
	status_told = status;
	called_last(ADDRESS_BAD);
}

void hw_initiator_route_failed(struct dapl_conn *c, int status)
{
	status_told = status;
	called_last(ROUTE_BAD);
}

void hw_initiator_response(struct dapl_conn *c, const struct hw_pdata *pdata)
{
	keep(pdata->data, pdata->len);
	called_last(RESPONSE);
}

void hw_initiator_ud_established(struct dapl_conn *c, const struct rdma_cm_event *event, const struct hw_pdata *pdata)
{
	keep(pdata->data, pdata->len);
	called_last(UD_UP);
}

void hw_initiator_iwarp_established(struct dapl_conn *c, const struct rdma_cm_event *event,
				    const struct hw_pdata *pdata)
{
	keep(pdata->data, pdata->len);
	called_last(IWARP_UP);
}

void hw_report_established(struct dapl_conn *c, const void *pdata, size_t len, const struct dapl_ud_peer *peer)
{
	assert_null(pdata);
	assert_int_equal(len, 0);
	assert_null(peer);
	called(UP);
	hw_conn_set_state(c, CONN_ESTABLISHED);
	if (ends_when_up)		/* core disconnects in the upcall */
		hw_conn_set_state(c, CONN_DISCONNECTING);
	dapl_mutex_unlock(&c->lock);
}

void hw_report_failed(struct dapl_conn *c, enum dapl_conn_failure why, const void *pdata, size_t len)
{
	why_told = why;
	keep(pdata, len);
	hw_conn_set_state(c, CONN_CLOSED);
	called_last(FAILED);
}

void hw_report_disconnected(struct dapl_conn *c, enum conn_state next, bool orderly)
{
	orderly_told = orderly;
	hw_conn_set_state(c, next);
	called_last(DOWN);
}

void hw_conn_destroy(struct dapl_conn *c)
{
	assert_int_equal(conn.lock.state, MUTEX_FREE);
	calls++;
	last = DESTROYED;
}

bool dapl_up_has_requests(void *owner, const struct dapl_conn *c)
{
	assert_ptr_equal(owner, &device);
	assert_int_equal(conn.lock.state, MUTEX_FREE);
	if (while_asked == CLOSES) {
		dapl_mutex_lock(&conn.lock);
		hw_conn_set_state(&conn, CONN_DISCONNECTING);
		dapl_mutex_unlock(&conn.lock);
	} else if (while_asked == IS_RELEASED) {
		conn.released = true;
		conn.qp = NULL;
	}
	return c == &conn && requests;
}

int ibv_query_qp(struct ibv_qp *asked, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
	assert_ptr_equal(asked, &qp);
	assert_int_equal(mask, IBV_QP_STATE);
	memset(init, 0, sizeof *init);
	attr->qp_state = ++looks == fails_at ? IBV_QPS_ERR : IBV_QPS_RTS;
	return 0;
}

enum dapl_conn_failure hw_conn_failure_of(int err)
{
	return err == ETIMEDOUT ? DAPL_CONN_TIMED_OUT : DAPL_CONN_UNREACHABLE;
}

/* --- events ------------------------------------------------------------------------------------------- */

UNIT_FIXTURE(begin)
{
	memset(&conn, 0, sizeof conn);
	conn.wire = HW_WIRE_IB;
	dapl_mutex_init(&conn.lock, RANK_VERBS_CONN);
	calls = status_told = 0;
	last = NOTHING;
	ends_when_up = orderly_told = false;
	memset(&device, 0, sizeof device);
	requests = looks = fails_at = 0;
	while_asked = STAYS;
	conn.dev = &device;
	conn.owner = &device;
	conn.qp = &qp;
}

static void on_wire(enum hw_wire wire)
{
	begin(NULL);
	conn.wire = wire;
	conn.ud = wire == HW_WIRE_UD;
}

static void event_with(enum conn_state state, enum rdma_cm_event_type type, int status, const void *bytes, size_t len)
{
	struct rdma_cm_event event = { .event = type, .status = status };

	conn.state = state;
	calls = 0;
	last = NOTHING;
	hw_conn_event(&conn, &event, bytes, len);
	assert_int_equal(conn.lock.state, MUTEX_FREE);
}

static void event(enum conn_state state, enum rdma_cm_event_type type, int status)
{
	event_with(state, type, status, NULL, 0);
}

/* The call is made in these states, and nothing happens in all others. */
static void only_in(unsigned states, enum rdma_cm_event_type type, enum call call)
{
	for (int state = 0; state < CONN_STATES; state++) {
		bool expected = states >> state & 1;

		event((enum conn_state)state, type, -EHOSTUNREACH);
		assert_int_equal(calls, expected);
		assert_int_equal(last, expected ? call : NOTHING);
		if (!expected)
			assert_int_equal(conn.state, state);
	}
}
#define BIT(state) (1u << (state))
#define PENDING (BIT(CONN_RESOLVING_ADDRESS) | BIT(CONN_RESOLVING_ROUTE) | BIT(CONN_CONNECTING) | BIT(CONN_ACCEPTING))

#define TEST(name) UNIT_TEST_WITH(name, begin, NULL)

TEST(answers_count_only_in_the_step_that_asked)
{
	only_in(BIT(CONN_RESOLVING_ADDRESS), RDMA_CM_EVENT_ADDR_RESOLVED, ADDRESS_OK);
	only_in(BIT(CONN_RESOLVING_ROUTE), RDMA_CM_EVENT_ROUTE_RESOLVED, ROUTE_OK);
	only_in(BIT(CONN_CONNECTING), RDMA_CM_EVENT_CONNECT_RESPONSE, RESPONSE);
	only_in(PENDING, RDMA_CM_EVENT_ADDR_ERROR, ADDRESS_BAD);
	assert_int_equal(status_told, -EHOSTUNREACH);
	status_told = 0;
	only_in(PENDING, RDMA_CM_EVENT_ROUTE_ERROR, ROUTE_BAD);
	assert_int_equal(status_told, -EHOSTUNREACH);
	only_in(0, RDMA_CM_EVENT_TIMEWAIT_EXIT, NOTHING);
	only_in(0, RDMA_CM_EVENT_ADDR_CHANGE, NOTHING);
}

TEST(established_is_handled_by_the_side_and_its_wire)
{
	conn.wire = HW_WIRE_IWARP;
	event_with(CONN_CONNECTING, RDMA_CM_EVENT_ESTABLISHED, 0, "abc", 3);
	assert_int_equal(last, IWARP_UP);
	assert_string_equal(data_told, "abc");
	on_wire(HW_WIRE_UD);
	event_with(CONN_CONNECTING, RDMA_CM_EVENT_ESTABLISHED, 0, "abc", 3);
	assert_int_equal(last, UD_UP);
	assert_string_equal(data_told, "abc");
	for (int s = 0; s < CONN_STATES; s++) {
		if (s == CONN_CONNECTING)
			continue;
		begin(state);
		event((enum conn_state)s, RDMA_CM_EVENT_ESTABLISHED, 0);
		assert_int_equal(last, s == CONN_ACCEPTING ? UP : NOTHING);
	}
}

TEST(response_has_the_data_of_the_accept)
{
	event_with(CONN_CONNECTING, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, "xyz", 3);
	assert_int_equal(last, RESPONSE);
	assert_string_equal(data_told, "xyz");
}

/* --- rejections ----------------------------------------------------------------------------------------- */

static void reject(enum hw_wire wire, enum rdma_cm_event_type type, int status, bool by_provider)
{
	uint8_t bytes[256];
	int len = hw_pdata_pack(bytes, wire, HW_REJECT, "no", by_provider ? 0 : 2, 0, by_provider, NULL);

	on_wire(wire);
	event_with(CONN_CONNECTING, type, status, bytes, len);
	assert_int_equal(calls, 1);
	assert_int_equal(last, FAILED);
	assert_int_equal(conn.state, CONN_CLOSED);
}

/* The provider's refusal has no data. */
TEST(rejection_is_of_the_program_or_its_provider)
{
	static const struct { enum hw_wire wire; enum rdma_cm_event_type type; int status; bool provider; } cases[] = {
		{ HW_WIRE_IB, RDMA_CM_EVENT_REJECTED, IB_BY_CONSUMER, false },
		{ HW_WIRE_IWARP, RDMA_CM_EVENT_REJECTED, -ECONNRESET, false },
		{ HW_WIRE_UD, RDMA_CM_EVENT_UNREACHABLE, SIDR_BY_CONSUMER, false },
		{ HW_WIRE_UD, RDMA_CM_EVENT_CONNECT_ERROR, SIDR_BY_CONSUMER, false },
		{ HW_WIRE_IB, RDMA_CM_EVENT_REJECTED, IB_BY_CONSUMER, true },
		{ HW_WIRE_IB, RDMA_CM_EVENT_REJECTED, IB_ECE, true },
		{ HW_WIRE_IWARP, RDMA_CM_EVENT_REJECTED, -ECONNRESET, true },
		{ HW_WIRE_UD, RDMA_CM_EVENT_UNREACHABLE, SIDR_BY_CONSUMER, true },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		bool provider = cases[i].provider;

		reject(cases[i].wire, cases[i].type, cases[i].status, provider);
		assert_int_equal(why_told, provider ? DAPL_CONN_REFUSED : DAPL_CONN_REJECTED);
		assert_string_equal(data_told, provider ? "" : "no");
		assert_int_equal(conn.cause.step, DAPL_STEP_REPLY);
		assert_int_equal(conn.cause.code_kind, DAPL_CODE_MPA);
		assert_int_equal(conn.cause.err, 0);
		assert_int_equal(conn.cause.code, 0);
		assert_string_equal(conn.cause.text, provider ? "refused by the peer's provider" :
								"rejected by the peer's program");
	}
}

TEST(other_rejections_refuse_with_their_code)
{
	static const struct { enum hw_wire wire; int status; enum dapl_code_kind kind; } cases[] = {
		{ HW_WIRE_IB, IB_NO_LISTENER, DAPL_CODE_IB_REJECT },
		{ HW_WIRE_IWARP, -ECONNREFUSED, DAPL_CODE_CM_STATUS },
		{ HW_WIRE_UD, SIDR_NO_LISTENER, DAPL_CODE_SIDR },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		reject(cases[i].wire, RDMA_CM_EVENT_REJECTED, cases[i].status, false);
		assert_int_equal(why_told, DAPL_CONN_REFUSED);
		assert_string_equal(data_told, "");
		assert_int_equal(conn.cause.code_kind, cases[i].kind);
		assert_int_equal((int)conn.cause.code, cases[i].status);
	}
}

/* --- failures ----------------------------------------------------------------------------------------------- */

TEST(iwarp_answer_that_is_none_refuses)
{
	on_wire(HW_WIRE_IWARP);
	event(CONN_CONNECTING, RDMA_CM_EVENT_CONNECT_ERROR, -EPROTO);
	assert_int_equal(last, FAILED);
	assert_int_equal(why_told, DAPL_CONN_REFUSED);
	assert_int_equal(conn.cause.step, DAPL_STEP_REPLY);
	assert_int_equal(conn.cause.err, EPROTO);
	assert_int_equal((int)conn.cause.code, -EPROTO);
	on_wire(HW_WIRE_IWARP);
	event(CONN_CONNECTING, RDMA_CM_EVENT_CONNECT_ERROR, -ETIMEDOUT);
	assert_int_equal(why_told, DAPL_CONN_TIMED_OUT);
}

TEST(pending_connection_fails)
{
	for (int s = 0; s < CONN_STATES; s++) {
		if (!(PENDING >> s & 1))
			continue;
		begin(state);
		event((enum conn_state)s, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
		assert_int_equal(last, FAILED);
		assert_int_equal(why_told, DAPL_CONN_TIMED_OUT);
		assert_int_equal(conn.cause.err, ETIMEDOUT);
		begin(state);
		event((enum conn_state)s, RDMA_CM_EVENT_CONNECT_ERROR, -EHOSTUNREACH);
		assert_int_equal(why_told, DAPL_CONN_UNREACHABLE);
		assert_int_equal(conn.cause.err, EHOSTUNREACH);
	}
	begin(state);
	event(CONN_ACCEPTING, RDMA_CM_EVENT_REJECTED, IB_BY_CONSUMER);
	assert_int_equal(last, FAILED);
	assert_int_equal(why_told, DAPL_CONN_REFUSED);
}

/* A positive status of SIDR is the peer's answer. */
TEST(only_datagrams_are_refused_by_a_status)
{
	on_wire(HW_WIRE_UD);
	event(CONN_CONNECTING, RDMA_CM_EVENT_UNREACHABLE, SIDR_NO_LISTENER);
	assert_int_equal(why_told, DAPL_CONN_REFUSED);
	on_wire(HW_WIRE_UD);
	event(CONN_CONNECTING, RDMA_CM_EVENT_UNREACHABLE, 0);
	assert_int_equal(why_told, DAPL_CONN_UNREACHABLE);
	on_wire(HW_WIRE_IB);
	event(CONN_CONNECTING, RDMA_CM_EVENT_UNREACHABLE, 3);
	assert_int_equal(why_told, DAPL_CONN_UNREACHABLE);
}

TEST(established_connection_breaks)
{
	orderly_told = true;
	event(CONN_ESTABLISHED, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	assert_int_equal(last, DOWN);
	assert_false(orderly_told);
	assert_int_equal(conn.state, CONN_CLOSED);
	assert_string_equal(conn.cause.text, "the device was removed");
}

TEST(connection_that_core_does_not_await_ends_silently)
{
	static const enum conn_state states[] = { CONN_REQUESTED, CONN_PEER_CLOSED, CONN_DISCONNECTING, CONN_CLOSED };

	for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
		begin(state);
		event(states[i], RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
		assert_int_equal(calls, 0);
		assert_int_equal(conn.state, CONN_CLOSED);
		assert_string_equal(conn.cause.text, "the device was removed");
	}
}

/* --- disconnects ---------------------------------------------------------------------------------------------- */

/* A connection that was accepted comes up before it goes down, unless core ends it meanwhile. */
TEST(disconnect_is_reported_by_the_state_of_the_connection)
{
	static const struct {
		enum conn_state before;
		int status, calls;
		enum call last;
		enum conn_state after;
		bool ends, released;
	} cases[] = {
		{ CONN_ESTABLISHED, 0, 1, DOWN, CONN_PEER_CLOSED, false, false },
		{ CONN_DISCONNECTING, -ECONNRESET, 1, DOWN, CONN_CLOSED, false, false },
		{ CONN_ACCEPTING, 0, 2, DOWN, CONN_PEER_CLOSED, false, false },
		{ CONN_ACCEPTING, 0, 1, UP, CONN_DISCONNECTING, true, false },
		{ CONN_REQUESTED, 0, 0, NOTHING, CONN_CLOSED, false, false },
		{ CONN_ESTABLISHED, 0, 0, NOTHING, CONN_CLOSED, false, true },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		begin(state);
		ends_when_up = cases[i].ends;
		conn.released = cases[i].released;
		event(cases[i].before, RDMA_CM_EVENT_DISCONNECTED, cases[i].status);
		assert_int_equal(calls, cases[i].calls);
		assert_int_equal(last, cases[i].last);
		assert_int_equal(conn.state, cases[i].after);
		assert_int_equal(orderly_told, cases[i].last == DOWN);
		if (cases[i].last == DOWN)
			assert_false(conn.caused);
		if (cases[i].before == CONN_REQUESTED)
			assert_string_equal(conn.cause.text, "the peer disconnected");
	}
}

static void disconnect_overtakes(int posted, int failing_look)
{
	begin(NULL);
	device.late_refusals = true;
	requests = posted;
	fails_at = failing_look;
	event(CONN_ESTABLISHED, RDMA_CM_EVENT_DISCONNECTED, 0);
	assert_int_equal(last, DOWN);
	assert_int_equal(conn.state, CONN_PEER_CLOSED);
}

TEST(disconnect_that_overtakes_a_refusal_waits_for_it)
{
	disconnect_overtakes(1, 3);
	assert_int_equal(looks, 3);
	assert_false(orderly_told);
	assert_string_equal(conn.cause.text, "a request failed");
	assert_int_equal(conn.cause.step, DAPL_STEP_TRANSFER);
	disconnect_overtakes(1, 0);	/* nothing was refused: not for ever */
	assert_in_range(looks, 2, 100);
	assert_true(orderly_told);
	assert_false(conn.caused);
	disconnect_overtakes(0, 1);	/* there is nothing to refuse */
	assert_int_equal(looks, 0);
	assert_true(orderly_told);
}

TEST(only_such_a_device_waits)
{
	requests = fails_at = 1;
	event(CONN_ESTABLISHED, RDMA_CM_EVENT_DISCONNECTED, 0);
	assert_int_equal(looks, 0);
	assert_true(orderly_told);
}

TEST(connection_may_end_while_a_disconnect_waits)
{
	device.late_refusals = true;
	requests = 1;
	while_asked = CLOSES;
	event(CONN_ESTABLISHED, RDMA_CM_EVENT_DISCONNECTED, 0);
	assert_int_equal(last, DOWN);
	assert_true(orderly_told);
	assert_int_equal(conn.state, CONN_CLOSED);
	while_asked = IS_RELEASED;
	event(CONN_ESTABLISHED, RDMA_CM_EVENT_DISCONNECTED, 0);
	assert_int_equal(calls, 0);
	assert_int_equal(conn.state, CONN_CLOSED);
	assert_int_equal(looks, 0);
}

TEST(disconnect_with_a_status_is_no_orderly_one)
{
	orderly_told = true;
	event(CONN_ESTABLISHED, RDMA_CM_EVENT_DISCONNECTED, -ECONNRESET);
	assert_int_equal(last, DOWN);
	assert_false(orderly_told);
	assert_int_equal(conn.state, CONN_PEER_CLOSED);
	assert_int_equal(conn.cause.err, ECONNRESET);
	assert_int_equal((int)conn.cause.code, -ECONNRESET);
}

TEST(disconnect_before_the_reply_refuses)
{
	event(CONN_CONNECTING, RDMA_CM_EVENT_DISCONNECTED, 0);
	assert_int_equal(last, FAILED);
	assert_int_equal(why_told, DAPL_CONN_REFUSED);
	assert_string_equal(conn.cause.text, "the peer disconnected");
}

TEST(second_disconnect_means_nothing)
{
	static const enum conn_state states[] = { CONN_PEER_CLOSED, CONN_CLOSED, CONN_RESOLVING_ROUTE };

	for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
		event(states[i], RDMA_CM_EVENT_DISCONNECTED, 0);
		assert_int_equal(calls, 0);
		assert_int_equal(conn.state, states[i]);
		assert_false(conn.caused);
	}
}

/* A newer librdmacm may have more events than this file knows. */
TEST(unknown_event_changes_nothing)
{
	for (int s = CONN_RESOLVING_ADDRESS; s <= CONN_CLOSED; s++)
		for (int type = RDMA_CM_EVENT_TIMEWAIT_EXIT; type < 64; type++) {
			event((enum conn_state)s, (enum rdma_cm_event_type)type, -EHOSTUNREACH);
			assert_int_equal(calls, 0);
			assert_int_equal(conn.state, s);
			assert_false(conn.caused);
		}
}

TEST(lingering_connection_goes_with_its_last_event)
{
	conn.released = conn.lingering = true;
	event(CONN_DISCONNECTING, RDMA_CM_EVENT_ADDR_CHANGE, 0);
	assert_int_equal(calls, 0);
	assert_int_equal(conn.state, CONN_DISCONNECTING);
	event(CONN_DISCONNECTING, RDMA_CM_EVENT_DISCONNECTED, 0);
	assert_int_equal(calls, 1);
	assert_int_equal(last, DESTROYED);
	assert_int_equal(conn.state, CONN_CLOSED);
}

UNIT_MAIN(NULL, NULL)
