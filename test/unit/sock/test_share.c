/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The count of processes that hold a connection, with real forks. */
#include "sock/share.h"
#include <sys/wait.h>
#include "test/unit/unit.h"

UNIT_TEST(connection_that_was_never_forked_is_alone)
{
	uint32_t *word = NULL;

	assert_true(share_is_sole(word));
	share_spoil(word);
	share_leave(&word);
	assert_null(word);
}

UNIT_TEST(last_holder_is_alone)
{
	uint32_t *parent = NULL, *child;

	assert_true(share_fork(&parent));
	child = parent;
	assert_false(share_is_sole(parent));
	assert_true(share_fork(&child));
	share_leave(&parent);
	assert_null(parent);
	assert_false(share_is_sole(child));
	parent = child;
	share_leave(&parent);
	assert_true(share_is_sole(child));
	share_leave(&child);
}

UNIT_TEST(spoiled_word_is_never_alone)
{
	uint32_t *parent = NULL, *child;

	assert_true(share_fork(&parent));
	child = parent;
	share_spoil(child);
	share_leave(&child);
	assert_false(share_is_sole(parent));
	share_leave(&parent);
}

UNIT_TEST(words_are_used_again)
{
	for (int i = 0; i < 200000; i++) {
		uint32_t *parent = NULL, *child;

		assert_true(share_fork(&parent));
		child = parent;
		if (i % 2)
			share_spoil(parent);
		share_leave(&parent);
		share_leave(&child);
	}
}

UNIT_TEST(child_is_seen_to_leave)
{
	uint32_t *word = NULL;
	int status;
	pid_t pid;

	assert_true(share_fork(&word));
	pid = fork();
	if (!pid) {
		int shared = !share_is_sole(word);

		share_leave(&word);
		_exit(shared);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 1);
	assert_true(share_is_sole(word));
	share_leave(&word);
}

UNIT_MAIN(NULL, NULL)
