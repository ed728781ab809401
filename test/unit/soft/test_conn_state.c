/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_conn_state.c - the states of a software connection: each after each, and what becomes of a change
 * that is not allowed. */
#include "config.h"
#include "dapl/soft/cm/conn_state.h"
#include "dapl/soft/obj/rnic.h"
#include <signal.h>
#include "test/unit/child.h"
#include "test/unit/unit.h"

enum { STATES = SOFT_CLOSED + 1 };

/* Rows are states before a change, columns the states after it, in the same order. */
static const char *const allowed[STATES] = {
	/*			N C R A W Q F O L X */
	[SOFT_NEW] =		". y . . y . . . . y",
	[SOFT_CONNECTING] =	". . y . . . . . . y",
	[SOFT_WAIT_REPLY] =	". y . y . . . y . y",
	[SOFT_ATTACHING] =	". . . . . . . y . y",
	[SOFT_WAIT_REQUEST] =	". . . . . y . . . y",
	[SOFT_REQUESTED] =	". . . . . . y y . y",
	[SOFT_WAIT_FIRST] =	". . . . . . . y . y",
	[SOFT_OPEN] =		". . . . . . . . y y",
	[SOFT_CLOSING] =	". . . . . . . . . y",
	[SOFT_CLOSED] =		". . . . . . . . . .",
};

static bool is_allowed(int from, int to) { return allowed[from][2 * to] == 'y'; }

UNIT_TEST(each_change_is_allowed_or_not)
{
	for (int from = 0; from < STATES; from++)
		for (int to = 0; to < STATES; to++)
			if (cm_may_follow(from, to) != is_allowed(from, to))
				fail_msg("%s -> %s", cm_state_name(from), cm_state_name(to));
}

UNIT_TEST(states_have_different_names)
{
	for (int a = 0; a < STATES; a++)
		for (int b = 0; b < a; b++)
			assert_string_not_equal(cm_state_name(a), cm_state_name(b));
}

/* In a child: a build that checks locks aborts. Returns the state afterwards, or -1 after an abort. */
static int state_after(int from, int to)
{
	static struct dapl_device dev;
	struct dapl_conn conn = { .dev = &dev, .state = from };
	int status;
	pid_t child = fork_child();

	if (!child) {
		if (!freopen("/dev/null", "w", stderr))
			_exit(255);	/* no state has this number */
		cm_set_state(&conn, to, "test");
		_exit(conn.state);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFSIGNALED(status)) {
		assert_int_equal(WTERMSIG(status), SIGABRT);
		return -1;
	}
	return WEXITSTATUS(status);
}

UNIT_TEST(forbidden_change_is_refused)
{
#ifdef DAPL_LOCK_CHECK
	const bool aborts = true;
#else
	const bool aborts = false;
#endif

	for (int from = 0; from < STATES; from++)
		for (int to = 0; to < STATES; to++)
			assert_int_equal(state_after(from, to), is_allowed(from, to) ? to :
					 aborts ? -1 : from);
}

UNIT_MAIN(NULL, NULL)
