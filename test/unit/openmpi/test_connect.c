/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_connect.c - decisions about connections: which requests of a peer are accepted, what each connection event
 * does, what a disconnect means, when an attempt is repeated, and what is reported to Open MPI. */
#include "test/unit/openmpi/eps.h"
#include "contrib/openmpi/conn.h"
#include "contrib/openmpi/connect.h"
#include "contrib/openmpi/frag.h"
#include "contrib/openmpi/help.h"
#include "test/unit/unit.h"

enum { PEER = 7, THEIR_CREDITS = 5, THEIR_QUALIFIER = 4711 };

static opal_proc_t proc;
static struct udapl_hello theirs;	/* in network order */
static double now;

static int sends_done, rdmas_done, send_status, rdma_status;
static int reports, errors;
static char topic[64], reason[128];

REPLACE(clock_gettime, udapl_show_help)

int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
	t->tv_sec = (time_t)now;
	t->tv_nsec = (long)((now - (double)t->tv_sec) * 1e9);
	return 0;
}

void __wrap_udapl_show_help(const char *which, ...)
{
	const char *text = NULL;
	va_list args;

	reports++;
	snprintf(topic, sizeof topic, "%s", which);
	va_start(args, which);
	for (int i = 0; i < 4; i++)	/* host, adapter, peer, reason */
		text = va_arg(args, const char *);
	snprintf(reason, sizeof reason, "%s", text);
	va_end(args);
}

static void on_error(mca_btl_base_module_t *btl, int32_t flags, opal_proc_t *of, char *why)
{
	assert_ptr_equal(btl, &module.super);
	assert_int_equal(flags, MCA_BTL_ERROR_FLAGS_FATAL);
	assert_ptr_equal(of, &proc);
	assert_string_equal(why, reason);
	errors++;
}

/* A request of `conn` is outstanding, so that it is not freed. */
UNIT_FIXTURE(begin)
{
	btl_begin(state);
	now = 1000;
	sends_done = rdmas_done = reports = errors = 0;
	send_status = rdma_status = 1;
	topic[0] = reason[0] = 0;
	OPAL_PROC_MY_NAME = (opal_process_name_t){ .vpid = 1 };
	opal_hash_table_set_value_uint64(&module.by_name, PEER, peer);
	module.attr.max_evd_qlen = module.dto_length = 1000;
	module.error_cb = on_error;
	peer->proc = &proc;
	peer->address.qualifier = THEIR_QUALIFIER;
	conn->posted = 1;
	theirs = (struct udapl_hello){ .magic = htonl(UDAPL_MAGIC), .vpid = htonl(PEER),
				       .qualifier = htonl(THEIR_QUALIFIER), .credits = htonl(THEIR_CREDITS),
				       .message_size = htonl((uint32_t)module.message_size) };
}

static udapl_conn_t *last_conn(void) { return (udapl_conn_t *)opal_list_get_last(&module.conns); }
static int conns(void) { return (int)opal_list_get_size(&module.conns); }

static void conn_is(bool active, enum udapl_conn_state conn_state, enum udapl_endpoint_state peer_state)
{
	conn->active = active;
	conn->state = conn_state;
	peer->state = peer_state;
	if (peer_state == UDAPL_IDLE || peer_state == UDAPL_RETRY_WAIT || peer_state == UDAPL_FAILED)
		peer->conn = NULL;
	else
		peer->conn = conn;
}

/* --- waiting requests -------------------------------------------------------------------------- */

static void on_sent(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *e, mca_btl_base_descriptor_t *des, int status)
{
	assert_ptr_equal(e, peer);
	sends_done++;
	send_status = status;
	udapl_free(btl, des);
}

static void add_send(opal_list_t *list)
{
	udapl_frag_t *f = (udapl_frag_t *)udapl_alloc(&module.super, peer, MCA_BTL_NO_ORDER, 10, 0);

	f->base.des_cbfunc = on_sent;
	f->callback = true;
	opal_list_append(list, &f->base.super.super);
}

static void on_rdma(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *e, void *local,
		    mca_btl_base_registration_handle_t *handle, void *context, void *data, int status)
{
	rdmas_done++;
	rdma_status = status;
}

static void add_rdma(opal_list_t *list)
{
	udapl_rdma_t *r = (udapl_rdma_t *)opal_free_list_get(&module.rdmas);

	r->endpoint = peer;
	r->op = UDAPL_PUT;
	r->cbfunc = on_rdma;
	opal_list_append(list, &r->super.super);
}

static void requests_were_flushed(void)
{
	add_send(&peer->flushed_sends);
	add_rdma(&peer->flushed_rdmas);
}

static void check_completed(int status)
{
	assert_int_equal(sends_done, 1);
	assert_int_equal(rdmas_done, 1);
	assert_int_equal(send_status, status);
	assert_int_equal(rdma_status, status);
}

static void conn_event(DAT_EP_HANDLE ep, DAT_EVENT_NUMBER number, const void *data, DAT_COUNT size)
{
	DAT_EVENT event = { .event_number = number, .evd_handle = module.conn_evd };

	event.event_data.connect_event_data = (DAT_CONNECTION_EVENT_DATA){
		.ep_handle = ep, .private_data = (DAT_PVOID)(uintptr_t)data, .private_data_size = size,
	};
	udapl_conn_event(&module, &event);
}

static void established(udapl_conn_t *c)
{
	conn_event(c->ep, DAT_CONNECTION_EVENT_ESTABLISHED, &theirs, sizeof theirs);
}

static void disconnected(udapl_conn_t *c, DAT_EVENT_NUMBER number) { conn_event(c->ep, number, NULL, 0); }

static void request_comes(void)
{
	DAT_EVENT event = { .event_number = DAT_CONNECTION_REQUEST_EVENT, .evd_handle = module.conn_evd };

	event.event_data.cr_arrival_event_data.cr_handle = (DAT_CR_HANDLE)&theirs;
	cr_hello = theirs;
	udapl_conn_event(&module, &event);
}

/* --- requests of peers ------------------------------------------------------------------------- */

enum answer { REFUSED, ACCEPTED, SECOND };
enum { LOWER = 1, SAME = PEER, HIGHER = 9 };	/* names of this process */

static enum answer answer_to_request(void)
{
	enum answer answer;

	request_comes();
	if (rejects) {
		assert_int_equal(conns(), 1);
		return REFUSED;
	}
	assert_int_equal(conns(), 2);
	answer = peer->conn == last_conn() ? ACCEPTED : SECOND;
	udapl_conn_release(last_conn());
	return answer;
}

#define CASE(name) UNIT_TEST_WITH(name, begin, btl_end)

CASE(request_is_answered_by_names_and_states)
{
	static const struct {
		uint32_t own;
		enum udapl_endpoint_state state;
		bool active, received_any, other_adapter, unknown, closing;
		enum answer answer;
	} table[] = {
		{ .own = LOWER, .state = UDAPL_IDLE, .answer = ACCEPTED },
		{ .own = HIGHER, .state = UDAPL_IDLE, .answer = ACCEPTED },
		{ .own = SAME, .state = UDAPL_IDLE, .answer = SECOND },
		{ .own = LOWER, .state = UDAPL_IDLE, .unknown = true, .answer = ACCEPTED },
		{ .own = LOWER, .state = UDAPL_IDLE, .other_adapter = true, .answer = ACCEPTED },
		{ .own = LOWER, .state = UDAPL_RETRY_WAIT, .answer = ACCEPTED },
		{ .own = LOWER, .state = UDAPL_FAILED, .answer = REFUSED },
		{ .own = LOWER, .state = UDAPL_IDLE, .closing = true, .answer = REFUSED },
		/* both requested */
		{ .own = LOWER, .state = UDAPL_CONNECTING, .active = true, .answer = ACCEPTED },
		{ .own = HIGHER, .state = UDAPL_CONNECTING, .active = true, .answer = REFUSED },
		{ .own = SAME, .state = UDAPL_CONNECTING, .active = true, .answer = SECOND },
		{ .own = HIGHER, .state = UDAPL_CONNECTING, .active = true, .other_adapter = true, .answer = SECOND },
		/* the peer did not get the connection that was accepted */
		{ .own = HIGHER, .state = UDAPL_CONNECTING, .answer = ACCEPTED },
		{ .own = LOWER, .state = UDAPL_CONNECTING, .answer = ACCEPTED },
		{ .own = LOWER, .state = UDAPL_CONNECTING, .received_any = true, .answer = REFUSED },
		{ .own = LOWER, .state = UDAPL_CONNECTING, .unknown = true, .answer = SECOND },
		/* there is a connection */
		{ .own = LOWER, .state = UDAPL_CONNECTED, .received_any = true, .answer = REFUSED },
		{ .own = LOWER, .state = UDAPL_CONNECTED, .active = true, .answer = REFUSED },
		{ .own = LOWER, .state = UDAPL_CONNECTED, .active = true, .other_adapter = true, .answer = SECOND },
	};

	for (unsigned i = 0; i < sizeof table / sizeof *table; i++) {
		enum answer answer;

		OPAL_PROC_MY_NAME.vpid = table[i].own;
		conn_is(table[i].active, UDAPL_CONN_CONNECTING, table[i].state);
		conn->received_any = table[i].received_any;
		peer->proc = table[i].unknown ? NULL : &proc;
		theirs.qualifier = htonl(THEIR_QUALIFIER + table[i].other_adapter);
		module.closing = table[i].closing;
		rejects = 0;
		answer = answer_to_request();
		if (answer != table[i].answer)
			fail_msg("row %u: answer %d", i, answer);
	}
}

/* The job is more significant. */
CASE(names_are_compared_by_job_and_process)
{
	static const struct { uint32_t own_job, job, own; enum answer answer; } table[] = {
		{ 1, 2, HIGHER, ACCEPTED },
		{ 2, 1, LOWER, REFUSED },
		{ 0x80000000, 1, LOWER, REFUSED },
	};

	for (unsigned i = 0; i < sizeof table / sizeof *table; i++) {
		OPAL_PROC_MY_NAME = (opal_process_name_t){ .jobid = table[i].own_job, .vpid = table[i].own };
		conn_is(true, UDAPL_CONN_CONNECTING, UDAPL_CONNECTING);
		peer->name.jobid = table[i].job;
		theirs.jobid = htonl(table[i].job);
		opal_hash_table_set_value_uint64(&module.by_name, (uint64_t)table[i].job << 32 | PEER, peer);
		rejects = 0;
		assert_int_equal(answer_to_request(), table[i].answer);
	}
	OPAL_PROC_MY_NAME.jobid = 0;
}

CASE(accepted_connection_knows_its_requester)
{
	conn_is(true, UDAPL_CONN_CLOSED, UDAPL_IDLE);
	request_comes();
	assert_int_equal(peer->state, UDAPL_CONNECTING);
	assert_ptr_equal(peer->conn, last_conn());
	assert_false(peer->conn->active);
	assert_int_equal(peer->conn->state, UDAPL_CONN_CONNECTING);
	assert_int_equal(peer->conn->credits, THEIR_CREDITS);
	assert_ptr_equal(ep_of(peer->conn->ep)->cr, &theirs);
	assert_int_equal(ep_of(peer->conn->ep)->hello.vpid, 1);
}

CASE(second_connection_changes_nothing_for_the_peer)
{
	theirs.qualifier = 0;
	request_comes();
	assert_ptr_equal(peer->conn, conn);
	assert_int_equal(peer->state, UDAPL_CONNECTED);
	assert_int_equal(last_conn()->credits, THEIR_CREDITS);
}

CASE(request_may_come_before_add_procs)
{
	const mca_btl_base_endpoint_t *e;

	theirs.vpid = htonl(99);
	request_comes();
	assert_int_equal(opal_list_get_size(&module.endpoints), 2);
	e = (mca_btl_base_endpoint_t *)opal_list_get_last(&module.endpoints);
	assert_int_equal(e->name.vpid, 99);
	assert_null(e->proc);
	assert_ptr_equal(e->conn, last_conn());
	assert_int_equal(e->state, UDAPL_CONNECTING);
}

CASE(request_of_another_program_is_refused)
{
	theirs.vpid = htonl(99);
	theirs.magic++;
	request_comes();
	theirs.magic--;
	cr_hello_size = sizeof theirs - 1;
	request_comes();
	cr_hello_size = sizeof theirs;
	ep_results.cr_query = UDAPL_ERROR(DAT_INVALID_HANDLE, DAT_NO_SUBTYPE);
	request_comes();
	assert_int_equal(rejects, 3);
	assert_int_equal(opal_list_get_size(&module.endpoints), 1);
	assert_int_equal(conns(), 1);
}

CASE(request_that_cannot_be_accepted_is_refused)
{
	DAT_RETURN *const steps[] = { &ep_results.create, &ep_results.accept };

	for (int i = 0; i < 2; i++) {
		conn_is(true, UDAPL_CONN_CLOSED, UDAPL_IDLE);
		*steps[i] = UDAPL_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_NO_SUBTYPE);
		request_comes();
		*steps[i] = DAT_SUCCESS;
		assert_int_equal(rejects, i + 1);
		assert_int_equal(last_conn()->state, UDAPL_CONN_CLOSED);
		assert_int_equal(peer->state, UDAPL_IDLE);
		assert_null(peer->conn);
	}
}

/* --- established ------------------------------------------------------------------------------- */

CASE(requester_sends_the_first_message)
{
	conn_is(true, UDAPL_CONN_CONNECTING, UDAPL_CONNECTING);
	peer->attempts = 1;
	add_send(&peer->sends);
	established(conn);
	assert_int_equal(conn->state, UDAPL_CONN_ESTABLISHED);
	assert_int_equal(peer->state, UDAPL_CONNECTED);
	assert_int_equal(peer->attempts, 0);
	assert_int_equal(num_posts, 2);
	assert_int_equal(sent_header(&posts[0])->kind, UDAPL_CREDITS);
	assert_int_equal(posts[1].work->kind, UDAPL_SEND);
	assert_int_equal(conn->credits, THEIR_CREDITS - 1);
}

CASE(acceptor_sends_nothing_before_a_message)
{
	conn_is(false, UDAPL_CONN_CONNECTING, UDAPL_CONNECTING);
	conn->received_any = false;
	conn->credits = THEIR_CREDITS;
	conn->credits_to_return = mca_btl_udapl_component.credits;
	add_send(&peer->sends);
	established(conn);
	assert_int_equal(conn->state, UDAPL_CONN_ACCEPTED);
	assert_int_equal(peer->state, UDAPL_CONNECTING);
	assert_int_equal(conn->credits, THEIR_CREDITS);
	assert_int_equal(num_posts, 0);
}

CASE(message_may_come_before_the_event)
{
	conn_is(false, UDAPL_CONN_CONNECTING, UDAPL_CONNECTING);
	conn->credits = THEIR_CREDITS;
	conn->credits_to_return = mca_btl_udapl_component.credits / 2;
	add_send(&peer->sends);
	established(conn);
	assert_int_equal(conn->state, UDAPL_CONN_ESTABLISHED);
	assert_int_equal(peer->state, UDAPL_CONNECTED);
	assert_int_equal(num_posts, 2);
	assert_int_equal(sent_header(&posts[0])->kind, UDAPL_CREDITS);
	assert_int_equal(sent_header(&posts[0])->credits, mca_btl_udapl_component.credits / 2);
}

CASE(peer_with_another_version_fails)
{
	conn_is(true, UDAPL_CONN_CONNECTING, UDAPL_CONNECTING);
	theirs.message_size++;
	established(conn);
	assert_int_equal(peer->state, UDAPL_FAILED);
	assert_string_equal(peer->failure, "the peer has other sizes or another version");
	assert_int_equal(conn->state, UDAPL_CONN_CLOSING);
	assert_int_equal(disconnects, 1);
	assert_int_equal(conn->credits, 0);
	udapl_conn_housekeep(&module);
	assert_string_equal(topic, "cannot connect");
	assert_string_equal(reason, "the peer has other sizes or another version");
}

/* The peer's request was accepted meanwhile. */
CASE(request_that_is_not_needed_is_closed)
{
	udapl_conn_t *used;

	used = udapl_conn_new(peer, false);
	num_posts = 0;
	conn_is(true, UDAPL_CONN_CONNECTING, UDAPL_CONNECTING);
	peer->conn = used;
	established(conn);
	assert_int_equal(conn->state, UDAPL_CONN_CLOSING);
	assert_int_equal(num_posts, 1);
	assert_int_equal(sent_header(&posts[0])->kind, UDAPL_CLOSE);
	assert_ptr_equal(peer->conn, used);
	assert_int_equal(peer->state, UDAPL_CONNECTING);
}

CASE(second_connection_is_kept)
{
	conn_is(false, UDAPL_CONN_CONNECTING, UDAPL_CONNECTED);
	conn->received_any = false;
	peer->conn = NULL;
	established(conn);
	assert_int_equal(conn->state, UDAPL_CONN_ACCEPTED);
	assert_int_equal(disconnects, 0);
}

CASE(connection_that_is_closed_meanwhile_is_not_established)
{
	conn_is(true, UDAPL_CONN_CLOSING, UDAPL_IDLE);
	established(conn);
	assert_int_equal(conn->state, UDAPL_CONN_CLOSING);
	assert_int_equal(conn->credits, 0);
	assert_int_equal(num_posts, 0);
}

CASE(event_of_an_unknown_endpoint_is_ignored)
{
	conn_event((DAT_EP_HANDLE)&proc, DAT_CONNECTION_EVENT_ESTABLISHED, NULL, 0);
	conn_event((DAT_EP_HANDLE)&proc, DAT_CONNECTION_EVENT_BROKEN, NULL, 0);
	assert_int_equal(conn->state, UDAPL_CONN_ESTABLISHED);
}

/* --- failed attempts and disconnects ----------------------------------------------------------- */

CASE(cause_of_a_failed_attempt_is_named)
{
	static const struct { DAT_EVENT_NUMBER event; const char *why; } table[] = {
		{ DAT_CONNECTION_EVENT_PEER_REJECTED, "the peer refuses the connection" },
		{ DAT_CONNECTION_EVENT_TIMED_OUT, "it does not answer in time" },
		{ DAT_CONNECTION_EVENT_UNREACHABLE, "its address is unreachable" },
		{ DAT_CONNECTION_EVENT_NON_PEER_REJECTED, "nothing listens there" },
		{ DAT_CONNECTION_EVENT_DISCONNECTED, "nothing listens there" },
	};

	mca_btl_udapl_component.connect_retries = 0;
	add_send(&peer->sends);
	for (unsigned i = 0; i < sizeof table / sizeof *table; i++) {
		conn_is(true, UDAPL_CONN_CONNECTING, UDAPL_CONNECTING);
		disconnected(conn, table[i].event);
		assert_int_equal(conn->state, UDAPL_CONN_CLOSED);
		assert_int_equal(peer->state, UDAPL_FAILED);
		assert_string_equal(peer->failure, table[i].why);
	}
	udapl_conn_housekeep(&module);
	assert_string_equal(topic, "cannot connect");
}

CASE(failed_attempt_is_repeated_later)
{
	add_send(&peer->sends);
	conn_is(true, UDAPL_CONN_CONNECTING, UDAPL_CONNECTING);
	disconnected(conn, DAT_CONNECTION_EVENT_PEER_REJECTED);
	assert_int_equal(peer->state, UDAPL_RETRY_WAIT);
	now += UDAPL_RETRY_AFTER / 2;
	udapl_conn_housekeep(&module);
	assert_int_equal(peer->state, UDAPL_RETRY_WAIT);
	assert_int_equal(conns(), 1);
	now += UDAPL_RETRY_AFTER;
	udapl_conn_housekeep(&module);
	assert_int_equal(peer->state, UDAPL_CONNECTING);
	assert_ptr_equal(peer->conn, last_conn());
	assert_ptr_equal(ep_of(peer->conn->ep)->to, &peer->address.at);
	assert_int_equal(reports + errors, 0);
}

CASE(failed_attempt_that_was_replaced_does_not_matter)
{
	udapl_conn_t *used;

	add_send(&peer->sends);
	used = udapl_conn_new(peer, false);
	conn_is(true, UDAPL_CONN_CONNECTING, UDAPL_CONNECTING);
	peer->conn = used;
	disconnected(conn, DAT_CONNECTION_EVENT_PEER_REJECTED);
	assert_int_equal(conn->state, UDAPL_CONN_CLOSED);
	assert_ptr_equal(peer->conn, used);
	assert_int_equal(peer->state, UDAPL_CONNECTING);
}

CASE(closed_second_connection_leaves_the_first_alone)
{
	udapl_conn_t *used;

	used = udapl_conn_new(peer, false);
	conn_is(true, UDAPL_CONN_CLOSING, UDAPL_CONNECTED);
	peer->conn = used;
	disconnected(conn, DAT_CONNECTION_EVENT_DISCONNECTED);
	assert_int_equal(conn->state, UDAPL_CONN_CLOSED);
	assert_int_equal(peer->state, UDAPL_CONNECTED);
	assert_ptr_equal(peer->conn, used);
}

/* The close notification may still come; after a break it comes soon or never. */
CASE(disconnect_is_not_judged_before_its_deadline)
{
	static const struct {
		DAT_EVENT_NUMBER event;
		bool active;
		enum udapl_conn_state state;
		double after;
	} table[] = {
		{ DAT_CONNECTION_EVENT_DISCONNECTED, true, UDAPL_CONN_ESTABLISHED, UDAPL_DISCONNECTED_AFTER },
		{ DAT_CONNECTION_EVENT_BROKEN, true, UDAPL_CONN_ESTABLISHED, UDAPL_BROKEN_AFTER },
		{ DAT_CONNECTION_EVENT_BROKEN, false, UDAPL_CONN_ESTABLISHED, UDAPL_BROKEN_AFTER },
		{ DAT_CONNECTION_EVENT_BROKEN, true, UDAPL_CONN_ACCEPTED, UDAPL_BROKEN_AFTER },
	};

	for (unsigned i = 0; i < sizeof table / sizeof *table; i++) {
		conn_is(table[i].active, table[i].state, UDAPL_CONNECTED);
		disconnected(conn, table[i].event);
		now += table[i].after - 0.01;
		udapl_conn_housekeep(&module);
		assert_int_equal(conn->state, UDAPL_CONN_DISCONNECTED);
		assert_int_equal(peer->state, UDAPL_CONNECTED);
		now += 0.02;
		udapl_conn_housekeep(&module);
		assert_int_equal(conn->state, UDAPL_CONN_CLOSED);
		assert_int_equal(peer->state, UDAPL_FAILED);
		assert_string_equal(reason, "the connection broke");
		assert_int_equal(reports, i + 1);
	}
}

CASE(disconnect_after_the_close_notification_was_intended)
{
	conn_is(true, UDAPL_CONN_DISCONNECTED, UDAPL_CONNECTED);
	conn->close_received = true;
	requests_were_flushed();
	udapl_conn_housekeep(&module);
	assert_int_equal(conn->state, UDAPL_CONN_CLOSED);
	assert_int_equal(peer->state, UDAPL_IDLE);
	assert_null(peer->conn);
	check_completed(OPAL_SUCCESS);
	assert_int_equal(reports + errors, 0);
}

CASE(disconnect_is_no_failure_during_finalize)
{
	conn_is(true, UDAPL_CONN_DISCONNECTED, UDAPL_CONNECTED);
	module.closing = true;
	add_send(&peer->sends);
	udapl_conn_housekeep(&module);
	assert_int_equal(conn->state, UDAPL_CONN_CLOSED);
	assert_int_equal(peer->state, UDAPL_IDLE);
	assert_int_equal(conns(), 1);
}

CASE(waiting_requests_get_another_connection)
{
	static void (*const adds[])(opal_list_t *) = { add_send, add_rdma };

	for (int i = 0; i < 2; i++) {
		conn_is(true, UDAPL_CONN_DISCONNECTED, UDAPL_CONNECTED);
		conn->close_received = true;
		adds[i](i ? &peer->rdmas : &peer->sends);
		udapl_conn_housekeep(&module);
		assert_int_equal(peer->state, UDAPL_CONNECTING);
		assert_ptr_equal(peer->conn, last_conn());
		assert_int_equal(conns(), 2 + i);
		opal_list_remove_first(&peer->sends);
	}
}

CASE(removed_process_gets_no_other_connection)
{
	conn_is(true, UDAPL_CONN_DISCONNECTED, UDAPL_CONNECTED);
	conn->close_received = true;
	peer->removed = true;
	add_send(&peer->sends);
	udapl_conn_housekeep(&module);
	assert_int_equal(peer->state, UDAPL_IDLE);
	assert_int_equal(conns(), 1);
}

/* The peer never got the connection, and nothing was sent on it. */
CASE(accepted_connection_without_a_message_is_not_lost)
{
	conn_is(false, UDAPL_CONN_DISCONNECTED, UDAPL_CONNECTING);
	conn->received_any = false;
	conn->break_deadline = now + 1;
	add_send(&peer->sends);
	udapl_conn_housekeep(&module);
	assert_int_equal(conn->state, UDAPL_CONN_CLOSED);
	assert_int_equal(peer->state, UDAPL_RETRY_WAIT);
	assert_int_equal(reports + errors, 0);
}

CASE(accepted_second_connection_without_a_message_changes_nothing)
{
	udapl_conn_t *used;

	used = udapl_conn_new(peer, false);
	conn_is(false, UDAPL_CONN_DISCONNECTED, UDAPL_CONNECTED);
	conn->received_any = false;
	peer->conn = used;
	udapl_conn_housekeep(&module);
	assert_int_equal(conn->state, UDAPL_CONN_CLOSED);
	assert_int_equal(peer->state, UDAPL_CONNECTED);
	assert_ptr_equal(peer->conn, used);
}

/* --- reports ----------------------------------------------------------------------------------- */

CASE(broken_connection_is_reported_once)
{
	udapl_conn_broken(conn, "a request failed");
	requests_were_flushed();
	udapl_conn_housekeep(&module);
	assert_int_equal(reports, 1);
	assert_int_equal(errors, 1);
	assert_string_equal(topic, "connection lost");
	assert_string_equal(reason, "a request failed");
	check_completed(OPAL_ERR_UNREACH);
	udapl_conn_housekeep(&module);
	assert_int_equal(reports, 1);
	assert_int_equal(errors, 1);
}

CASE(failure_is_reported_without_a_callback_too)
{
	module.error_cb = NULL;
	udapl_conn_broken(conn, "a request failed");
	udapl_conn_housekeep(&module);
	assert_int_equal(reports, 1);
}

/* Even those that are flushed after the report. */
CASE(requests_of_a_failed_peer_complete_as_unreachable)
{
	conn_is(true, UDAPL_CONN_CLOSED, UDAPL_FAILED);
	add_send(&peer->sends);
	add_rdma(&peer->rdmas);
	udapl_conn_housekeep(&module);
	check_completed(OPAL_ERR_UNREACH);
	sends_done = rdmas_done = 0;
	requests_were_flushed();
	udapl_conn_housekeep(&module);
	check_completed(OPAL_ERR_UNREACH);
	assert_int_equal(reports, 0);
}

/* While this process repeats its own attempt. */
CASE(break_of_a_second_connection_is_a_lost_connection)
{
	conn_is(false, UDAPL_CONN_ESTABLISHED, UDAPL_RETRY_WAIT);
	peer->attempts = 1;
	peer->deadline = now + 1;
	udapl_conn_broken(conn, "a request failed");
	udapl_conn_housekeep(&module);
	assert_string_equal(topic, "connection lost");
}

CASE(nothing_is_reported_during_finalize)
{
	udapl_conn_broken(conn, "a request failed");
	module.closing = true;
	udapl_conn_housekeep(&module);
	assert_int_equal(reports + errors, 0);
}

CASE(finished_connection_is_freed)
{
	udapl_conn_new(peer, true)->state = UDAPL_CONN_CLOSED;
	udapl_conn_housekeep(&module);
	assert_int_equal(conns(), 1);
	assert_int_equal(eps_existing(), 1);
}

CASE(connection_is_kept_while_anything_may_name_it)
{
	udapl_conn_t *c;

	c = udapl_conn_new(peer, true);
	for (int i = 0; i < 5; i++) {
		c->state = i == 0 ? UDAPL_CONN_CLOSING : UDAPL_CONN_CLOSED;
		c->posted = i == 1;
		c->receives = i == 2;
		opal_uses_threads = i == 3;
		module.closing = i == 4;
		udapl_conn_housekeep(&module);
		assert_int_equal(conns(), 2);
	}
}

UNIT_MAIN(NULL, NULL)
