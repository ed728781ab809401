/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_conn.c - the life of a connection: what is made for it, what is asked of the device, which state it and its
 * endpoint have after each step, and what remains after a step that failed. */
#include "test/unit/openmpi/eps.h"
#include "contrib/openmpi/clock.h"
#include "contrib/openmpi/conn.h"
#include "contrib/openmpi/frag.h"
#include "contrib/openmpi/help.h"
#include "contrib/openmpi/recv_post.h"
#include "contrib/openmpi/ring_setup.h"
#include "test/unit/unit.h"

#define FAILURE UDAPL_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_NO_SUBTYPE)

enum { RECEIVES = 8 + UDAPL_CONTROL_RECEIVES, REQUESTS = 16 + UDAPL_CONTROL_REQUESTS };	/* parameters: see btl.c */

static opal_proc_t proc;
static int helps;			/* calls of udapl_show_help() */
static const char *help[5];		/* arguments of the last one */
static char help_numbers[2][16];

REPLACE(udapl_show_help)
void __wrap_udapl_show_help(const char *topic, ...)
{
	va_list args;

	helps++;
	help[0] = topic;
	va_start(args, topic);
	for (int i = 1; i < 5; i++)
		help[i] = va_arg(args, const char *);
	va_end(args);
	for (int i = 0; i < 2; i++)
		help[3 + i] = strcpy(help_numbers[i], help[3 + i]);
}

UNIT_FIXTURE(begin)
{
	btl_begin(state);
	helps = 0;
	opal_process_info.my_local_rank = 0;
	module.attr.max_evd_qlen = 10000;
	module.attr.max_rdma_read_per_ep_in = module.attr.max_rdma_read_per_ep_out = 4;
	module.dto_length = 1000;
	peer->proc = &proc;
}

/* `peer` has no connection. */
UNIT_FIXTURE(begin_idle)
{
	begin(state);
	peer->conn = NULL;
	peer->state = UDAPL_IDLE;
}

static int posts_of(enum post_kind kind)
{
	int n = 0;

	for (int i = 0; i < num_posts; i++)
		n += posts[i].kind == kind;
	return n;
}

static udapl_conn_t *last_conn(void) { return (udapl_conn_t *)opal_list_get_last(&module.conns); }

static void send_waits(void)
{
	udapl_frag_t *f = (udapl_frag_t *)udapl_alloc(&module.super, peer, MCA_BTL_NO_ORDER, 10, 0);

	opal_list_append(&peer->sends, &f->base.super.super);
}

static void rdma_waits(void)
{
	udapl_rdma_t *r = (udapl_rdma_t *)opal_free_list_get(&module.rdmas);

	opal_list_append(&peer->rdmas, &r->super.super);
}

#define CASE(name) UNIT_TEST_WITH(name, begin, btl_end)
#define IDLE_CASE(name) UNIT_TEST_WITH(name, begin_idle, btl_end)

/* --- making ------------------------------------------------------------------------------------ */

CASE(new_connection_is_not_connected)
{
	udapl_conn_t *c;

	c = udapl_conn_new(peer, true);
	assert_non_null(c);
	assert_int_equal(c->state, UDAPL_CONN_CONNECTING);
	assert_true(c->active);
	assert_ptr_equal(c->module, &module);
	assert_ptr_equal(c->endpoint, peer);
	assert_int_equal(c->sq_free, 16);
	assert_int_equal(c->control_free, UDAPL_CONTROL_REQUESTS);
	assert_int_equal(c->credits, 0);
	assert_ptr_equal(c, last_conn());
	assert_null(ep_of(c->ep)->to);
	assert_ptr_equal(peer->conn, conn);	/* the caller decides */
	assert_false(udapl_conn_new(peer, false)->active);
}

CASE(device_endpoint_has_room_for_data_and_control_messages)
{
	const DAT_EP_ATTR *attr;

	module.attr.max_rdma_size = 123456;
	attr = &ep_of(udapl_conn_new(peer, true)->ep)->attr;
	assert_int_equal(attr->max_recv_dtos, RECEIVES);
	assert_int_equal(attr->max_request_dtos, REQUESTS);
	assert_int_equal(attr->max_message_size, module.message_size);
	assert_int_equal(attr->max_rdma_size, 123456);
}

CASE(rdma_reads_are_as_many_as_the_device_allows_up_to_a_limit)
{
	static const struct { DAT_COUNT in, out, expected_in, expected_out; } table[] = {
		{ 1, 3, 1, 3 },
		{ 0, 0, 0, 0 },
		{ UDAPL_MAX_READS, UDAPL_MAX_READS - 1, UDAPL_MAX_READS, UDAPL_MAX_READS - 1 },
		{ UDAPL_MAX_READS + 1, 128, UDAPL_MAX_READS, UDAPL_MAX_READS },
	};
	const DAT_EP_ATTR *attr;

	for (unsigned i = 0; i < sizeof table / sizeof *table; i++) {
		module.attr.max_rdma_read_per_ep_in = table[i].in;
		module.attr.max_rdma_read_per_ep_out = table[i].out;
		attr = &ep_of(udapl_conn_new(peer, true)->ep)->attr;
		assert_int_equal(attr->max_rdma_read_in, table[i].expected_in);
		assert_int_equal(attr->max_rdma_read_out, table[i].expected_out);
	}
}

/* --- receives ---------------------------------------------------------------------------------- */

CASE(receives_come_from_the_shared_queue)
{
	udapl_conn_t *c;

	c = udapl_conn_new(peer, true);
	assert_true(c->srq);
	assert_ptr_equal(ep_of(c->ep)->srq, module.srq);
	assert_int_equal(module.srq_wanted, RECEIVES);
	assert_int_equal(posts_of(POSTED_SRQ_RECV), RECEIVES);
	assert_int_equal(posts_of(POSTED_RECV), 0);
	assert_int_equal(c->receives, 0);
}

static void has_own_receives(const udapl_conn_t *c)
{
	assert_false(c->srq);
	assert_null(ep_of(c->ep)->srq);
	assert_int_equal(c->receives, RECEIVES);
	assert_int_equal(posts_of(POSTED_RECV), RECEIVES);
	assert_ptr_equal(posts[num_posts - 1].ep, c->ep);
}

CASE(device_without_a_shared_queue_gets_own_receives)
{
	module.srq = DAT_HANDLE_NULL;
	has_own_receives(udapl_conn_new(peer, true));
	assert_int_equal(module.srq_wanted, 0);
}

CASE(full_shared_queue_leaves_own_receives)
{
	srq_room = 2 * RECEIVES;
	assert_true(udapl_conn_new(peer, true)->srq);
	assert_true(udapl_conn_new(peer, true)->srq);
	has_own_receives(udapl_conn_new(peer, true));
	assert_int_equal(module.srq_wanted, 2 * RECEIVES);
}

CASE(shared_queue_that_is_too_small_is_not_used)
{
	srq_room = RECEIVES - 1;
	has_own_receives(udapl_conn_new(peer, true));
}

CASE(shared_queue_of_unknown_size_is_not_used)
{
	ep_results.srq_query = FAILURE;
	has_own_receives(udapl_conn_new(peer, true));
}

/* --- length of the CQ -------------------------------------------------------------------------- */

CASE(cq_grows_when_the_completions_need_it)
{
	module.dto_length = RECEIVES + REQUESTS;
	udapl_conn_new(peer, true);
	assert_int_equal(evd_resizes, 0);
	udapl_conn_new(peer, true);
	assert_int_equal(evd_resizes, 1);
	assert_int_equal(evd_lengths[0], 4 * (RECEIVES + REQUESTS));
	assert_int_equal(module.dto_length, evd_lengths[0]);
	udapl_conn_new(peer, true);	/* it has grown ahead */
	assert_int_equal(evd_resizes, 1);
}

CASE(cq_grows_up_to_the_limit_of_the_device)
{
	module.dto_length = 1;
	module.attr.max_evd_qlen = RECEIVES + REQUESTS + 5;
	assert_non_null(udapl_conn_new(peer, true));
	assert_int_equal(evd_lengths[0], RECEIVES + REQUESTS + 5);
	assert_int_equal(module.dto_length, RECEIVES + REQUESTS + 5);
	assert_int_equal(helps, 0);
}

CASE(cq_of_largest_length_that_is_too_short_is_reported_once)
{
	char length[16], needed[16];

	module.dto_length = 1;
	module.attr.max_evd_qlen = 2 * (RECEIVES + REQUESTS) - 1;
	udapl_conn_new(peer, true);
	assert_int_equal(helps, 0);
	assert_non_null(udapl_conn_new(peer, true));
	assert_int_equal(helps, 1);
	snprintf(length, sizeof length, "%d", module.attr.max_evd_qlen);
	snprintf(needed, sizeof needed, "%d", 2 * (RECEIVES + REQUESTS));
	assert_string_equal(help[0], "too few events");
	assert_ptr_equal(help[2], module.name);
	assert_string_equal(help[3], length);
	assert_string_equal(help[4], needed);
	assert_non_null(udapl_conn_new(peer, true));
	assert_int_equal(helps, 1);
	assert_int_equal(evd_resizes, 1);
}

CASE(other_processes_of_the_node_do_not_report_it)
{
	opal_process_info.my_local_rank = 1;
	module.dto_length = module.attr.max_evd_qlen = 1;
	assert_non_null(udapl_conn_new(peer, true));
	assert_int_equal(helps, 0);
}

/* --- failures and release ---------------------------------------------------------------------- */

/* What was taken for the connection is given back by the release of it. */
CASE(failed_step_makes_no_connection)
{
	DAT_RETURN *const steps[] = { &ep_results.resize, &ep_results.create, &ep_results.set_context,
				      &post_results[POSTED_SRQ_RECV] };

	for (unsigned i = 0; i < sizeof steps / sizeof *steps; i++) {
		module.dto_length = 1;
		*steps[i] = FAILURE;
		if (udapl_conn_new(peer, true))
			fail_msg("step %u does not fail", i);
		*steps[i] = DAT_SUCCESS;
		assert_int_equal(opal_list_get_size(&module.conns), 2);
		assert_int_equal(last_conn()->state, UDAPL_CONN_CLOSED);
		udapl_conn_release(last_conn());
		assert_int_equal(module.dto_needed, 0);
		assert_int_equal(module.srq_wanted, 0);
		assert_int_equal(eps_existing(), 1);
	}
}

CASE(released_connection_gives_back_what_it_took)
{
	udapl_conn_t *c, *other;

	other = udapl_conn_new(peer, true);
	c = udapl_conn_new(peer, true);
	assert_int_equal(module.dto_needed, 2 * (RECEIVES + REQUESTS));
	c->state = UDAPL_CONN_ESTABLISHED;
	LOCKED(udapl_ring_offer(c));
	assert_ptr_equal(module.rings[0], c);
	udapl_conn_release(c);
	assert_int_equal(module.dto_needed, RECEIVES + REQUESTS);
	assert_int_equal(module.srq_wanted, RECEIVES);
	assert_ptr_equal(last_conn(), other);
	assert_int_equal(eps_existing(), 2);
	assert_null(module.rings[0]);
}

CASE(connection_with_own_receives_leaves_the_shared_queue_alone)
{
	udapl_conn_t *c;

	srq_room = RECEIVES;
	udapl_conn_new(peer, true);
	c = udapl_conn_new(peer, true);
	assert_false(c->srq);
	udapl_conn_release(c);
	assert_int_equal(module.srq_wanted, RECEIVES);
}

/* --- closing ----------------------------------------------------------------------------------- */

CASE(close_announces_itself_on_an_established_connection)
{
	static const enum udapl_conn_state states[] = { UDAPL_CONN_ESTABLISHED, UDAPL_CONN_ACCEPTED };

	for (int i = 0; i < 2; i++) {
		conn->state = states[i];
		LOCKED(udapl_conn_close(conn));
		assert_int_equal(conn->state, UDAPL_CONN_CLOSING);
		assert_int_equal(num_posts, i + 1);
		assert_int_equal(sent_header(&posts[i])->kind, UDAPL_CLOSE);
		assert_int_equal(ep_of(conn->ep)->disconnects, i + 1);
		assert_int_equal(ep_of(conn->ep)->close_flags, DAT_CLOSE_GRACEFUL_FLAG);
	}
}

CASE(close_ends_an_attempt_without_a_message)
{
	conn->state = UDAPL_CONN_CONNECTING;
	LOCKED(udapl_conn_close(conn));
	assert_int_equal(conn->state, UDAPL_CONN_CLOSING);
	assert_int_equal(num_posts, 0);
	assert_int_equal(ep_of(conn->ep)->close_flags, DAT_CLOSE_ABRUPT_FLAG);
	assert_int_equal(disconnects, 1);
}

/* No event comes then. */
CASE(attempt_that_cannot_be_ended_is_closed)
{
	conn->state = UDAPL_CONN_CONNECTING;
	ep_results.disconnect = UDAPL_ERROR(DAT_INVALID_STATE, DAT_NO_SUBTYPE);
	LOCKED(udapl_conn_close(conn));
	assert_int_equal(conn->state, UDAPL_CONN_CLOSED);
}

CASE(ended_connection_is_not_closed_again)
{
	static const enum udapl_conn_state states[] = { UDAPL_CONN_CLOSING, UDAPL_CONN_DISCONNECTED,
		UDAPL_CONN_CLOSED };

	for (int i = 0; i < 3; i++) {
		conn->state = states[i];
		LOCKED(udapl_conn_close(conn));
		assert_int_equal(conn->state, states[i]);
	}
	assert_int_equal(num_posts, 0);
	assert_int_equal(disconnects, 0);
}

/* --- connecting -------------------------------------------------------------------------------- */

IDLE_CASE(request_goes_to_the_address_of_the_peer)
{
	const struct test_ep *ep;

	peer->address.qualifier = 4711;
	module.address.qualifier = 815;
	mca_btl_udapl_component.connect_timeout = 2000;	/* s; the most */
	LOCKED(udapl_connect(peer));
	assert_int_equal(peer->state, UDAPL_CONNECTING);
	assert_ptr_equal(peer->conn, last_conn());
	assert_true(peer->conn->active);
	assert_int_equal(peer->conn->state, UDAPL_CONN_CONNECTING);
	ep = ep_of(peer->conn->ep);
	assert_ptr_equal(ep->to, &peer->address.at);
	assert_int_equal(ep->qualifier, 4711);
	assert_int_equal(ep->timeout, 2000000000);
	assert_int_equal(ep->hello.qualifier, 815);
	assert_int_equal(ep->hello.credits, 8);
}

/* It is known from a request of its own alone. */
IDLE_CASE(process_of_unknown_address_is_not_connected_to)
{
	peer->proc = NULL;
	LOCKED(udapl_connect(peer));
	assert_int_equal(peer->state, UDAPL_IDLE);
	assert_int_equal(num_eps, 1);
}

IDLE_CASE(peer_fails_without_resources_for_a_connection)
{
	ep_results.create = FAILURE;
	LOCKED(udapl_connect(peer));
	assert_int_equal(peer->state, UDAPL_FAILED);
	assert_null(peer->conn);
	assert_string_equal(peer->failure, "no resources for another connection");
}

IDLE_CASE(refused_request_fails_the_peer)
{
	ep_results.connect = FAILURE;
	LOCKED(udapl_connect(peer));
	assert_int_equal(peer->state, UDAPL_FAILED);
	assert_null(peer->conn);
	assert_string_equal(peer->failure, "dat_ep_connect failed");
	assert_int_equal(last_conn()->state, UDAPL_CONN_CLOSED);
}

CASE(attempt_is_repeated_while_requests_wait)
{
	static void (*const waits[])(void) = { send_waits, rdma_waits };

	mca_btl_udapl_component.connect_retries = 2;
	for (int i = 0; i < 2; i++) {
		double now = udapl_now();

		waits[i]();
		peer->state = UDAPL_CONNECTING;
		peer->conn = conn;
		peer->deadline = 0;
		LOCKED(udapl_endpoint_retry_or_fail(peer, "reason"));
		assert_int_equal(peer->state, UDAPL_RETRY_WAIT);
		assert_null(peer->conn);
		assert_null(peer->failure);
		assert_int_equal(peer->attempts, i + 1);
		assert_true(peer->deadline > now);
		opal_list_remove_first(&peer->sends);
	}
}

/* A removed process has no proc. */
CASE(attempt_for_nothing_or_to_a_removed_process_is_not_repeated)
{
	for (int removed = 0; removed < 2; removed++) {
		peer->state = UDAPL_CONNECTING;
		peer->conn = conn;
		LOCKED(udapl_endpoint_retry_or_fail(peer, "reason"));
		assert_int_equal(peer->state, UDAPL_IDLE);
		assert_null(peer->conn);
		assert_null(peer->failure);
		assert_int_equal(peer->attempts, 0);
		send_waits();
		peer->proc = NULL;
	}
}

/* --- failures ---------------------------------------------------------------------------------- */

CASE(first_reason_of_a_failure_is_kept)
{
	LOCKED(udapl_endpoint_fail(peer, "first"));
	assert_int_equal(peer->state, UDAPL_FAILED);
	assert_null(peer->conn);
	peer->conn = conn;
	LOCKED(udapl_endpoint_fail(peer, "second"));
	assert_string_equal(peer->failure, "first");
	assert_null(peer->conn);
	peer->failure = NULL;		/* it was reported */
	LOCKED(udapl_endpoint_fail(peer, "second"));
	assert_null(peer->failure);
}

/* A second connection: the peer sends on it. */
CASE(failure_counts_if_the_connection_is_in_use)
{
	static const struct { enum udapl_conn_state state; bool first, fails; } table[] = {
		{ UDAPL_CONN_CONNECTING, false, false },
		{ UDAPL_CONN_ACCEPTED, false, false },
		{ UDAPL_CONN_ESTABLISHED, false, true },
		{ UDAPL_CONN_CLOSING, false, false },
		{ UDAPL_CONN_DISCONNECTED, false, true },
		{ UDAPL_CONN_CLOSED, false, false },
		{ UDAPL_CONN_CONNECTING, true, true },
		{ UDAPL_CONN_CLOSING, true, true },
	};

	for (unsigned i = 0; i < sizeof table / sizeof *table; i++) {
		peer->state = UDAPL_CONNECTED;
		peer->conn = table[i].first ? conn : NULL;
		conn->state = table[i].state;
		LOCKED(udapl_conn_fail_if_in_use(conn, "reason"));
		if ((peer->state == UDAPL_FAILED) != table[i].fails)
			fail_msg("row %u: endpoint state %d", i, peer->state);
	}
}

CASE(break_after_another_failure_does_not_matter)
{
	LOCKED(udapl_endpoint_fail(peer, "first"));
	udapl_conn_broken(conn, "second");
	assert_false(peer->lost);
	assert_string_equal(peer->failure, "first");
}

CASE(end_that_was_intended_is_no_break)
{
	for (int i = 0; i < 3; i++) {
		conn->close_received = i == 0;
		module.closing = i == 1;
		conn->state = i == 2 ? UDAPL_CONN_CLOSING : UDAPL_CONN_ESTABLISHED;
		udapl_conn_broken(conn, "reason");
		assert_int_equal(peer->state, UDAPL_CONNECTED);
	}
}

CASE(failed_post_fails_the_peer)
{
	LOCKED(udapl_conn_post_failed(conn, FAILURE));
	assert_int_equal(peer->state, UDAPL_FAILED);
	assert_string_equal(peer->failure, "a request could not be posted");
}

/* An event tells why. */
CASE(post_to_an_ended_connection_does_not_fail_the_peer)
{
	LOCKED(udapl_conn_post_failed(conn, UDAPL_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_DISCONNECTED)));
	assert_int_equal(peer->state, UDAPL_CONNECTED);
}

/* --- establishing ------------------------------------------------------------------------------ */

CASE(second_connection_does_not_make_its_peer_connected)
{
	conn->state = UDAPL_CONN_ACCEPTED;
	peer->conn = NULL;
	peer->state = UDAPL_IDLE;
	peer->attempts = 1;
	LOCKED(udapl_conn_set_established(conn));
	assert_int_equal(conn->state, UDAPL_CONN_ESTABLISHED);
	assert_int_equal(peer->state, UDAPL_IDLE);
	assert_int_equal(peer->attempts, 1);
}

CASE(first_message_establishes_an_accepted_connection)
{
	conn->state = UDAPL_CONN_ACCEPTED;
	conn->received_any = false;
	peer->state = UDAPL_CONNECTING;
	assert_true(LOCKED(udapl_conn_first_message(conn)));
	assert_true(conn->received_any);
	assert_int_equal(conn->state, UDAPL_CONN_ESTABLISHED);
	assert_int_equal(peer->state, UDAPL_CONNECTED);
}

/* The event of the connection may come after its first message. */
CASE(first_message_before_the_event_is_remembered)
{
	static const enum udapl_conn_state states[] = { UDAPL_CONN_CONNECTING, UDAPL_CONN_ESTABLISHED,
							UDAPL_CONN_CLOSING };

	for (int i = 0; i < 3; i++) {
		conn->state = states[i];
		conn->received_any = false;
		assert_false(LOCKED(udapl_conn_first_message(conn)));
		assert_true(conn->received_any);
		assert_int_equal(conn->state, states[i]);
	}
}

UNIT_MAIN(NULL, NULL)
