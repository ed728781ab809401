/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_state.c - changes of the state of connections and endpoints: which are made, and which lines are written. */
#include "test/unit/openmpi/btl.h"
#include "contrib/openmpi/state.h"
#include "opal/util/output.h"
#include "test/unit/unit.h"

enum { STREAM = 7 };		/* of the framework; 0: of lines for users */

static char line[256];		/* the last one */
static int traces, refusals;

bool __wrap_opal_output_check_verbosity(int level, int id);
REPLACE(opal_output)

/* In Open MPI 5, opal_output_verbose() is a macro that asks this and calls opal_output(); 4.1 does not have it. */
bool __wrap_opal_output_check_verbosity(int level, int id)
{
	assert_int_equal(level, 40);
	assert_int_equal(id, STREAM);
	return true;
}

__attribute__((format(printf, 2, 3)))
void __wrap_opal_output(int id, const char *format, ...)
{
	va_list args;

	assert_true(id == 0 || id == STREAM);
	*(id == 0 ? &refusals : &traces) += 1;
	va_start(args, format);
	vsnprintf(line, sizeof line, format, args);
	va_end(args);
}

#ifndef opal_output_verbose
REPLACE(opal_output_verbose)

__attribute__((format(printf, 3, 4)))
void __wrap_opal_output_verbose(int level, int id, const char *format, ...)
{
	va_list args;

	assert_int_equal(level, 40);
	assert_int_equal(id, STREAM);
	traces++;
	va_start(args, format);
	vsnprintf(line, sizeof line, format, args);
	va_end(args);
}
#endif

static int begin(void **state)
{
	traces = refusals = 0;
	line[0] = 0;
	opal_btl_base_framework.framework_output = STREAM;
	return btl_begin(state);
}

static void line_has(const char *text)
{
	if (!strstr(line, text))
		fail_msg("\"%s\" is not in: %s", text, line);
}

#define CASE(name) UNIT_TEST_WITH(name, begin, btl_end)

CASE(change_is_made_and_traced)
{
	assert_true(udapl_conn_set_state(conn, UDAPL_CONN_CLOSING));
	assert_int_equal(conn->state, UDAPL_CONN_CLOSING);
	assert_int_equal(traces, 1);
	line_has("ia0: accepted connection to ");
	line_has(": established -> closing");
	assert_true(udapl_endpoint_set_state(peer, UDAPL_IDLE));
	assert_int_equal(peer->state, UDAPL_IDLE);
	assert_int_equal(traces, 2);
	line_has("ia0: endpoint to ");
	line_has(": connected -> idle");
	assert_int_equal(refusals, 0);
}

CASE(requested_connection_is_named_so)
{
	conn->active = true;
	udapl_conn_set_state(conn, UDAPL_CONN_CLOSING);
	line_has("requested connection to ");
}

CASE(same_state_is_no_change)
{
	assert_true(udapl_conn_set_state(conn, conn->state));
	assert_true(udapl_endpoint_set_state(peer, peer->state));
	assert_int_equal(traces + refusals, 0);
}

CASE(state_that_may_not_follow_is_refused)
{
	assert_false(udapl_conn_set_state(conn, UDAPL_CONN_CONNECTING));
	assert_int_equal(conn->state, UDAPL_CONN_ESTABLISHED);
	line_has("established does not become connecting");
	assert_false(udapl_endpoint_set_state(peer, UDAPL_RETRY_WAIT));
	assert_int_equal(peer->state, UDAPL_CONNECTED);
	line_has("connected does not become retry wait");
	assert_int_equal(refusals, 2);
	assert_int_equal(traces, 0);
}

UNIT_MAIN(NULL, NULL)
