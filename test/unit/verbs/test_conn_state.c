/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_conn_state.c - the states of a connection of the verbs device: which may follow which, and that
 * nothing else is ever set. */
#include "dapl/verbs/conn_state.h"
#include "test/unit/unit.h"

enum { no, YES };

static const int follows[CONN_STATES][CONN_STATES] = {
	/*			      REQ  ADDR ROUTE CONN ACC  EST  PEER DISC OVER */
	[CONN_REQUESTED] =	    { no,  no,  no,  no,  YES, no,  no,  no,  YES },
	[CONN_RESOLVING_ADDRESS] =  { no,  no,  YES, no,  no,  no,  no,  no,  YES },
	[CONN_RESOLVING_ROUTE] =    { no,  no,  no,  YES, no,  no,  no,  no,  YES },
	[CONN_CONNECTING] =	    { no,  YES, no,  no,  no,  YES, no,  no,  YES },
	[CONN_ACCEPTING] =	    { no,  no,  no,  no,  no,  YES, no,  no,  YES },
	[CONN_ESTABLISHED] =	    { no,  no,  no,  no,  no,  no,  YES, YES, YES },
	[CONN_PEER_CLOSED] =	    { no,  no,  no,  no,  no,  no,  no,  no,  YES },
	[CONN_DISCONNECTING] =	    { no,  no,  no,  no,  no,  no,  no,  no,  YES },
	[CONN_CLOSED] =		    { no,  no,  no,  no,  YES, no,  no,  no,  no },
};

UNIT_TEST(only_the_states_of_the_table_follow)
{
	for (int from = 0; from < CONN_STATES; from++)
		for (int to = 0; to < CONN_STATES; to++) {
			struct dapl_conn conn = { .state = (enum conn_state)from };
			bool good = from == to || follows[from][to];

			dapl_mutex_init(&conn.lock, RANK_VERBS_CONN);
			dapl_mutex_lock(&conn.lock);
			if (hw_conn_set_state(&conn, (enum conn_state)to) != good)
				fail_msg("%s to %s", hw_conn_state_name((enum conn_state)from),
					 hw_conn_state_name((enum conn_state)to));
			assert_int_equal(conn.state, good ? to : from);
			dapl_mutex_unlock(&conn.lock);
		}
}

/* A connection that is neither over nor a new start can always end. */
UNIT_TEST(each_state_leads_to_over)
{
	for (int from = 0; from < CONN_CLOSED; from++)
		assert_true(hw_conn_may_follow((enum conn_state)from, CONN_CLOSED));
}

UNIT_TEST(each_state_has_a_name_of_its_own)
{
	for (int a = 0; a < CONN_STATES; a++)
		for (int b = 0; b < a; b++)
			assert_string_not_equal(hw_conn_state_name((enum conn_state)a),
						hw_conn_state_name((enum conn_state)b));
	assert_string_equal(hw_conn_state_name(CONN_STATES), "?");
}

UNIT_TEST(a_failure_is_reported_with_the_step_of_its_state)
{
	static const struct {
		enum conn_state state;
		bool request_sent;
		enum dapl_conn_step step;
	} cases[] = {
		{ CONN_REQUESTED, false, DAPL_STEP_REQUEST },
		{ CONN_RESOLVING_ADDRESS, false, DAPL_STEP_RESOLVE_ADDRESS },
		{ CONN_RESOLVING_ROUTE, false, DAPL_STEP_RESOLVE_ROUTE },
		{ CONN_CONNECTING, false, DAPL_STEP_CONNECT },
		{ CONN_CONNECTING, true, DAPL_STEP_REPLY },
		{ CONN_ACCEPTING, false, DAPL_STEP_READY },
		{ CONN_ESTABLISHED, true, DAPL_STEP_TRANSFER },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct dapl_conn conn = { .state = cases[i].state,
			.request_sent = cases[i].request_sent };

		assert_int_equal(hw_conn_step(&conn), cases[i].step);
	}
}

UNIT_MAIN(NULL, NULL)
