/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fence.c - see fence.h. By membarrier(2). */
#include "dapl/soft/shm/fence.h"
#include "common/once.h"
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

static int barrier(int command)
{
	return syscall(SYS_membarrier, command, 0);
}

bool fence_is_possible(void)
{
	int commands = barrier(MEMBARRIER_CMD_QUERY);

	return commands > 0 && (commands & MEMBARRIER_CMD_GLOBAL_EXPEDITED);
}

void fence_peers(void)
{
	barrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
}

/* 0: not tried yet; 1: registered; -1: not possible */
static int registered;

bool fence_joined(void)
{
	if (!READ_ONCE(registered))
		WRITE_ONCE(registered, barrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) ? -1 : 1);
	return READ_ONCE(registered) > 0;
}

void fence_fork_child(void)
{
	registered = 0;
}
