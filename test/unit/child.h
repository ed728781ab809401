/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* child.h - children of fork() in unit tests: they do not outlive the test, and their exit status is
 * checked. */
#ifndef TEST_UNIT_CHILD_H
#define TEST_UNIT_CHILD_H
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "test/unit/unit.h"

/* Forks, or fails the test. The kernel kills the child when the test ends, and after two minutes: a test
 * waits for its child, even if that hangs. Returns 0 in the child, where nothing of cmocka may fail: it
 * would go on with the next test there. */
static inline pid_t fork_child(void)
{
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(120);	/* seconds */
	}
	return child;
}

/* Waits for the child, which must exit with status 0. */
static inline void expect_success(pid_t child)
{
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

#endif
