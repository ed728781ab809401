/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_fence.c - fences in other processes, on kernels with and without membarrier(2). */
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include "dapl/soft/shm/reach.h"
#include "test/unit/unit.h"

static int commands;		/* that membarrier knows; -1: it is not there */
static int registrations, barriers, register_error;

/* In place of syscall(), whose arguments here are of type int. */
long __wrap_syscall(int number, int command, int flags);

long __wrap_syscall(int number, int command, int flags)
{
	assert_int_equal(number, SYS_membarrier);
	assert_int_equal(flags, 0);
	switch (command) {
	case MEMBARRIER_CMD_QUERY:
		errno = ENOSYS;
		return commands;
	case MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED:
		registrations++;
		errno = register_error;
		return register_error ? -1 : 0;
	case MEMBARRIER_CMD_GLOBAL_EXPEDITED:
		barriers++;
		return 0;
	}
	fail_msg("command %d", command);
	return -1;
}

UNIT_FIXTURE(set_up)
{
	registrations = barriers = register_error = 0;
	commands = MEMBARRIER_CMD_GLOBAL | MEMBARRIER_CMD_GLOBAL_EXPEDITED | MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED;
	reach_fence_fork_child();
}

static int tear_down(void **state) { return set_up(state); }

UNIT_CASE(kernel_must_know_the_command)
{
	assert_true(reach_fence_is_possible());
	commands = MEMBARRIER_CMD_GLOBAL;	/* as Linux 4.3 does: a fence takes milliseconds */
	assert_false(reach_fence_is_possible());
	commands = 0;
	assert_false(reach_fence_is_possible());
	commands = -1;				/* all bits are set, and yet */
	assert_false(reach_fence_is_possible());
}

UNIT_CASE(process_registers_once)
{
	for (int i = 0; i < 3; i++)
		assert_true(reach_fence_joined());
	assert_int_equal(registrations, 1);
	reach_fence_peers();
	assert_int_equal(barriers, 1);
}

UNIT_CASE(failed_registration_is_not_repeated)
{
	register_error = EINVAL;
	assert_false(reach_fence_joined());
	register_error = 0;
	assert_false(reach_fence_joined());
	assert_int_equal(registrations, 1);
}

/* A child of fork() is not registered, whatever its parent was. */
UNIT_CASE(child_registers_itself)
{
	assert_true(reach_fence_joined());
	reach_fence_fork_child();
	register_error = EPERM;
	assert_false(reach_fence_joined());
	assert_int_equal(registrations, 2);
}

UNIT_MAIN(NULL, NULL)
