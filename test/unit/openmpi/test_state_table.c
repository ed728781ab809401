/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_state_table.c - the states of the BTL component: which may follow which, of connections and of
 * endpoints. */
#include "contrib/openmpi/state_table.h"
#include "test/unit/unit.h"

enum { no, YES };

static const int conn_follows[UDAPL_CONN_STATES][UDAPL_CONN_STATES] = {
	/*			      CONN ACC  EST  CLSG DISC CLSD */
	[UDAPL_CONN_CONNECTING] =   { YES, YES, no,  YES, no,  YES },
	[UDAPL_CONN_ACCEPTED] =	    { no,  YES, YES, YES, YES, no },
	[UDAPL_CONN_ESTABLISHED] =  { no,  no,  YES, YES, YES, no },
	[UDAPL_CONN_CLOSING] =	    { no,  no,  no,  YES, no,  YES },
	[UDAPL_CONN_DISCONNECTED] = { no,  no,  no,  no,  YES, YES },
	[UDAPL_CONN_CLOSED] =	    { no,  no,  no,  no,  no,  YES },
};

static const int endpoint_follows[UDAPL_ENDPOINT_STATES][UDAPL_ENDPOINT_STATES] = {
	/*		       IDLE CONG WAIT CONN FAIL */
	[UDAPL_IDLE] =	     { YES, YES, YES, no,  YES },
	[UDAPL_CONNECTING] = { YES, YES, no,  YES, YES },
	[UDAPL_RETRY_WAIT] = { YES, YES, YES, no,  YES },
	[UDAPL_CONNECTED] =  { YES, no,  no,  YES, YES },
	[UDAPL_FAILED] =     { no,  no,  no,  no,  YES },
};

UNIT_TEST(only_the_states_of_the_table_follow)
{
	for (int from = 0; from < UDAPL_CONN_STATES; from++)
		for (int to = 0; to < UDAPL_CONN_STATES; to++)
			if (udapl_conn_may_become((enum udapl_conn_state)from,
						  (enum udapl_conn_state)to) !=
			    conn_follows[from][to])
				fail_msg("connection: %s to %s",
					 udapl_conn_state_name((enum udapl_conn_state)from),
					 udapl_conn_state_name((enum udapl_conn_state)to));
	for (int from = 0; from < UDAPL_ENDPOINT_STATES; from++)
		for (int to = 0; to < UDAPL_ENDPOINT_STATES; to++)
			if (udapl_endpoint_may_become((enum udapl_endpoint_state)from,
						      (enum udapl_endpoint_state)to) !=
			    endpoint_follows[from][to])
				fail_msg("endpoint: %s to %s",
					 udapl_endpoint_state_name((enum udapl_endpoint_state)from),
					 udapl_endpoint_state_name((enum udapl_endpoint_state)to));
}

/* An established connection was accepted before: its peer's first message decides. */
UNIT_TEST(nothing_is_established_that_was_not_accepted)
{
	for (int from = 0; from < UDAPL_CONN_STATES; from++)
		if (from != UDAPL_CONN_ACCEPTED && from != UDAPL_CONN_ESTABLISHED)
			assert_false(udapl_conn_may_become((enum udapl_conn_state)from,
							   UDAPL_CONN_ESTABLISHED));
}

UNIT_TEST(every_state_has_a_name)
{
	for (int i = 0; i < UDAPL_CONN_STATES; i++)
		assert_non_null(udapl_conn_state_name((enum udapl_conn_state)i));
	for (int i = 0; i < UDAPL_ENDPOINT_STATES; i++)
		assert_non_null(udapl_endpoint_state_name((enum udapl_endpoint_state)i));
}

UNIT_MAIN(NULL, NULL)
