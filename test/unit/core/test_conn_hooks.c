/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_conn_hooks.c - what the dequeuing side reports of an endpoint's connection (the hooks of event.h, which
 * conn.c fills): a failed completion, the first receive, the last completion. Reports of the device: test_conn.c. */
#include "dapl/core/conn/cr.h"
#include "dapl/core/conn/terminate.h"
#include "dapl/core/event/event.h"
#include "test/unit/core/core_conn.h"
#include "test/unit/unit.h"

enum { CODE = 12 };

/* --- failed completions ---------------------------------------------------------------------------------------- */

static void break_it(void) { dapl_conn_hooks.broken(ep, DAPL_CODE_COMPLETION, CODE, "a send failed"); }

#define TEST(name) UNIT_TEST_WITH(name, core_conn_open, core_conn_close)
#define DATAGRAMS(name) UNIT_TEST_WITH(name, core_conn_open_datagrams, core_conn_close)

TEST(failed_completion_breaks_the_connection)
{
	core_conn_begin_connected();
	break_it();
	core_conn_is_dropped();
	core_conn_event_is(DAT_CONNECTION_EVENT_BROKEN, NULL, 0);
	assert_int_equal(ep->failure.event, DAT_CONNECTION_EVENT_BROKEN);
	assert_int_equal(ep->failure.diag.cause.code_kind, DAPL_CODE_COMPLETION);
	assert_int_equal(ep->failure.diag.cause.code, CODE);
	assert_string_equal(ep->failure.diag.cause.text, "a send failed");
	break_it();		/* other requests fail after it */
}

TEST(cause_that_the_device_knows_comes_before_a_failed_completion)
{
	core_conn_begin_connected();
	core_conn.known_error = ECONNRESET;
	break_it();
	core_conn_event_is(DAT_CONNECTION_EVENT_BROKEN, NULL, 0);
	assert_int_equal(ep->failure.diag.cause.err, ECONNRESET);
	assert_int_equal(ep->failure.diag.cause.step, DAPL_STEP_REPLY);
	assert_int_equal(ep->failure.diag.cause.code_kind, DAPL_CODE_NONE);
	assert_null(ep->failure.diag.cause.text);
}

/* One of many peers is no connection that could end. */
DATAGRAMS(datagram_endpoint_does_not_break)
{
	dapl_mutex_lock(&ep->lock);
	assert_true(dapl_ep_step(ep, EP_DO_CONNECT, NULL) && dapl_ep_step(ep, EP_ESTABLISHED, NULL));
	dapl_mutex_unlock(&ep->lock);
	break_it();
	core_conn_is_unchanged(DAT_EP_STATE_CONNECTED);
}

/* --- the first receive ------------------------------------------------------------------------------------------- */

TEST(first_receive_establishes_an_accepted_connection)
{
	core_conn_begin(EP_DO_ACCEPT);
	assert_true(dapl_conn_hooks.comm_established(ep));
	assert_int_equal(ep->state, DAT_EP_STATE_CONNECTED);
	core_conn_event_is(DAT_CONNECTION_EVENT_ESTABLISHED, NULL, 0);
	assert_false(dapl_conn_hooks.comm_established(ep));
	core_conn_counted(CORE_NO_COUNTER);
	core_conn_establish();		/* the device reports it, too */
	assert_int_equal(ep->state, DAT_EP_STATE_CONNECTED);
	core_conn_counted(DCNT_IA_CM_PASSIVE_EST);
}

/* An initiator learns the peer's data and addresses from the device. */
TEST(receive_does_not_establish_what_was_not_accepted)
{
	core_conn_begin(EP_DO_CONNECT);
	for (int s = 0; s <= DAT_EP_STATE_CONNECTED_MULTI_PATH; s++)
		if (s != DAT_EP_STATE_COMPLETION_PENDING) {
			ep->state = (DAT_EP_STATE)s;
			assert_false(dapl_conn_hooks.comm_established(ep));
			core_conn_is_unchanged((DAT_EP_STATE)s);
		}
	ep->state = DAT_EP_STATE_ACTIVE_CONNECTION_PENDING;
}

TEST(freed_endpoint_is_not_established_by_a_receive)
{
	uint32_t magic = ep->obj.magic;

	core_conn_begin(EP_DO_ACCEPT);
	ep->obj.magic = 0;
	assert_false(dapl_conn_hooks.comm_established(ep));
	core_conn_is_unchanged(DAT_EP_STATE_COMPLETION_PENDING);
	ep->obj.magic = magic;
}

/* --- the last completion ----------------------------------------------------------------------------------------- */

static void disconnect_gracefully(void)
{
	core_conn_begin_connected();
	dapl_mutex_lock(&ep->lock);
	assert_true(dapl_ep_step(ep, EP_DO_DISCONNECT_GRACEFUL, NULL));
	dapl_ep_defer_event(ep);
	dapl_mutex_unlock(&ep->lock);
}

TEST(last_completion_ends_a_graceful_disconnect)
{
	disconnect_gracefully();
	dapl_conn_hooks.completed(ep);
	core_conn_is_dropped();
	core_conn_event_is(DAT_CONNECTION_EVENT_DISCONNECTED, NULL, 0);
	assert_int_equal(ep->failure.event, 0);
	dapl_conn_hooks.completed(ep);
}

TEST(graceful_disconnect_waits_for_open_requests)
{
	disconnect_gracefully();
	core_post(ep, DAT_DTO_SEND, 0, 1);
	dapl_conn_hooks.completed(ep);
	core_conn_is_unchanged(DAT_EP_STATE_DISCONNECT_PENDING);
	assert_true(ep->deferred);
	ep->sq.tail = ep->sq.head;
	dapl_conn_hooks.completed(ep);
	core_conn_event_is(DAT_CONNECTION_EVENT_DISCONNECTED, NULL, 0);
}

/* A terminal event waits for the completions of its EVD. */
static void defer_an_event(void)
{
	core_conn_begin_connected();
	break_it();
	core_conn_event_is(DAT_CONNECTION_EVENT_BROKEN, NULL, 0);
	ep->deferred = true;
	ep->terminal = DAT_CONNECTION_EVENT_DISCONNECTED;
}

/* dat_ep_free discards the event. */
TEST(completion_of_a_freed_endpoint_delivers_nothing)
{
	uint32_t magic = ep->obj.magic;

	defer_an_event();
	ep->obj.magic = 0;
	dapl_conn_hooks.completed(ep);
	assert_true(ep->deferred);
	assert_int_equal(ep->terminal, DAT_CONNECTION_EVENT_DISCONNECTED);
	ep->obj.magic = magic;
}

TEST(discarded_request_is_refused)
{
	assert_ptr_equal(dapl_conn_hooks.refuse_request, dapl_cr_refuse);	/* test_cr.c */
}

UNIT_MAIN(NULL, NULL)
