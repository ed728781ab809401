/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_progress.c - when completions and connections are polled, and what a completion of each kind does. */
#include "test/unit/openmpi/btl.h"
#include "contrib/openmpi/posting.h"
#include "contrib/openmpi/progress.h"
#include "contrib/openmpi/ring_poll.h"
#include "test/unit/unit.h"

static struct udapl_work staged;

UNIT_FIXTURE(begin)
{
	btl_begin(state);
	module.empty_polls_limit = module.empty_polls_left = 1;
	staged = (struct udapl_work){ UDAPL_STAGED, conn };
}

static void completions_come(int n)
{
	for (int i = 0; i < n; i++)
		completion_comes(&staged, DAT_DTO_SUCCESS, 0);
}

/* A poll of the CQ after `used` ring messages, which finds n completions. */
static int poll_after(int used, int n)
{
	module.budget_left = module.budget - used;
	completions_come(n);
	return udapl_poll_completions(&module);
}

#define CASE(name) UNIT_TEST_WITH(name, begin, btl_end)

/* --- how often the CQ is polled ---------------------------------------------------------------- */

CASE(one_poll_takes_a_batch_of_completions)
{
	completions_come(UDAPL_CQ_BATCH + 3);
	assert_int_equal(udapl_poll_completions(&module), UDAPL_CQ_BATCH);
	assert_int_equal(udapl_poll_completions(&module), 3);
	assert_int_equal(udapl_poll_completions(&module), 0);
}

CASE(empty_polls_between_messages_double_the_budget)
{
	static const int budgets[] = { 1, 3, 7, 15, 31, 63, 127, 255, 256, 256 };

	module.budget = 1;
	for (unsigned i = 0; i < sizeof budgets / sizeof *budgets; i++) {
		poll_after(1, 0);
		assert_int_equal(module.max_budget, budgets[i]);
		assert_int_equal(module.budget, budgets[i]);
		assert_int_equal(module.budget_left, budgets[i]);
		assert_int_equal(module.empty_polls_limit, 1 + budgets[i]);
	}
}

CASE(completions_halve_the_budget)
{
	module.budget = module.max_budget = 100;
	poll_after(1, 1);
	assert_int_equal(module.max_budget, 50);
	poll_after(0, 1);
	assert_int_equal(module.max_budget, 25);
	for (int i = 0; i < 5; i++)
		poll_after(1, 1);
	assert_int_equal(module.max_budget, 0);
	assert_int_equal(module.empty_polls_limit, 1);
}

/* Without messages there is nothing that a poll could delay. */
CASE(idle_module_keeps_its_budget)
{
	module.budget = module.max_budget = 100;
	poll_after(0, 0);
	assert_int_equal(module.max_budget, 100);
	assert_int_equal(module.empty_polls_limit, 101);
	assert_int_equal(module.empty_polls_left, UDAPL_IDLE_EMPTY_POLLS);
	poll_after(1, 0);
	assert_int_equal(module.empty_polls_left, module.empty_polls_limit);
}

static void check_every_poll_reaches_the_cq(bool expected)
{
	module.budget = module.max_budget = 100;
	poll_after(0, 0);
	assert_int_equal(module.empty_polls_limit, expected ? 1 : 101);
	assert_int_equal(module.budget, expected ? 0 : 100);
}

CASE(outstanding_operations_are_polled_for_each_time)
{
	check_every_poll_reaches_the_cq(false);
	module.rdma_outstanding = 1;
	check_every_poll_reaches_the_cq(true);
	module.rdma_outstanding = 0;
	module.exposed = 1;
	check_every_poll_reaches_the_cq(true);
	module.exposed = 0;
	check_every_poll_reaches_the_cq(false);
}

CASE(request_makes_the_next_poll_reach_the_cq)
{
	check_every_poll_reaches_the_cq(false);
	module.empty_polls_left = 50;
	udapl_request_poll(&module);
	assert_int_equal(module.empty_polls_left, 1);
	assert_int_equal(module.budget_left, 0);
	cq_dequeues = 0;
	udapl_progress();
	assert_true(cq_dequeues > 0);
	assert_false(module.poll_requested);
	assert_int_equal(module.empty_polls_limit, 101);	/* and not the one after it */
}

/* A request is no sign that messages arrived. */
CASE(request_does_not_use_the_budget)
{
	module.budget = module.budget_left = module.max_budget = 10;
	udapl_request_poll(&module);
	udapl_poll_completions(&module);
	assert_int_equal(module.max_budget, 10);
	module.budget_left = 7;
	udapl_request_poll(&module);
	udapl_poll_completions(&module);
	assert_int_equal(module.max_budget, 21);	/* three were used */
}

/* --- connections ------------------------------------------------------------------------------- */

CASE(connections_are_polled_rarely)
{
	for (int i = 1; i < UDAPL_CONN_POLLS; i++)
		udapl_poll_completions(&module);
	assert_int_equal(conn_dequeues, 0);
	udapl_poll_completions(&module);
	assert_int_equal(conn_dequeues, 1);
	for (int i = 1; i < UDAPL_CONN_POLLS; i++)
		udapl_poll_completions(&module);
	assert_int_equal(conn_dequeues, 1);
}

/* The more polls of the rings precede a poll of the CQ, the fewer of those precede one of connections. */
CASE(idle_module_polls_connections_too)
{
	int n = 0;

	module.budget = module.max_budget = UDAPL_MAX_BUDGET;
	for (poll_after(0, 0); !conn_dequeues; n++)
		poll_after(0, 0);
	assert_in_range(n, UDAPL_CONN_POLLS / UDAPL_IDLE_EMPTY_POLLS - 1, UDAPL_CONN_POLLS / UDAPL_IDLE_EMPTY_POLLS);
}

/* Behind a disconnect event may be a close notification among the completions. */
CASE(completions_are_taken_before_disconnects_are_judged)
{
	completions_come(3 * UDAPL_CQ_BATCH);
	udapl_progress_module(&module, true);
	assert_int_equal(cq_dequeues, 3 * UDAPL_CQ_BATCH + 1);
	cq_dequeues = 0;
	completions_come(3 * UDAPL_CQ_BATCH);
	udapl_progress_module(&module, false);
	assert_int_equal(cq_dequeues, UDAPL_CQ_BATCH);
}

CASE(asynchronous_events_do_not_stay)
{
	DAT_EVENT event;

	event_comes(module.async_evd, DAT_ASYNC_ERROR_EVD_OVERFLOW);
	event_comes(module.async_evd, DAT_ASYNC_ERROR_EVD_OVERFLOW);
	udapl_progress_module(&module, true);
	assert_int_not_equal(dat_evd_dequeue(module.async_evd, &event), DAT_SUCCESS);
}

/* --- completions ------------------------------------------------------------------------------- */

CASE(signaled_write_frees_the_slots_of_its_interval)
{
	conn->sq_free = 0;
	conn->posted = 1;
	completions_come(1);
	udapl_poll_completions(&module);
	assert_int_equal(conn->sq_free, mca_btl_udapl_component.requests / UDAPL_SIGNALS_PER_QUEUE);
	assert_int_equal(conn->posted, 0);
}

/* Unsignaled writes complete only if they fail; their work has no connection. */
CASE(failed_unsignaled_write_breaks_its_connection)
{
	completion_comes(&module.unsignaled_work, DAT_DTO_ERR_FLUSHED, 0);
	udapl_poll_completions(&module);
	assert_int_equal(peer->state, UDAPL_CONNECTED);
	completion_comes(&module.unsignaled_work, DAT_DTO_ERR_REMOTE_ACCESS, 0);
	udapl_poll_completions(&module);
	assert_int_equal(peer->state, UDAPL_FAILED);
	assert_string_equal(peer->failure, "a request failed");
	assert_int_equal(conn->sq_free, mca_btl_udapl_component.requests);
}

/* The peer announced the disconnect: what fails after it does not matter. */
CASE(failure_after_the_close_notification_breaks_nothing)
{
	conn->close_received = true;
	completion_comes(&staged, DAT_DTO_ERR_REMOTE_ACCESS, 0);
	udapl_poll_completions(&module);
	assert_int_equal(peer->state, UDAPL_CONNECTED);
}

CASE(other_events_of_the_cq_are_ignored)
{
	event_comes(module.dto_evd, DAT_SOFTWARE_EVENT);
	assert_int_equal(udapl_poll_completions(&module), 1);
	assert_int_equal(conn->sq_free, mca_btl_udapl_component.requests);
}

CASE(reaping_stops_when_nothing_is_outstanding)
{
	completions_come(2);
	udapl_reap_rdma(&module);
	assert_int_equal(cq_dequeues, 0);
	module.rdma_outstanding = 1;
	udapl_reap_rdma(&module);
	assert_int_equal(cq_dequeues, 3);	/* until the CQ is empty */
}

CASE(nothing_is_reaped_within_completions_or_with_threads)
{
	module.rdma_outstanding = 1;
	module.in_completions = true;
	udapl_reap_rdma(&module);
	module.in_completions = false;
	opal_uses_threads = true;
	udapl_reap_rdma(&module);
	assert_int_equal(cq_dequeues, 0);
}

UNIT_MAIN(NULL, NULL)
