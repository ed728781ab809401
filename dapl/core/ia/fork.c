/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fork.c - counts the threads that are in fork handlers (fork.h). */
#include "dapl/core/ia/fork.h"
#include <unistd.h>

static int inside;

void dapl_fork_enter(void)
{
	__atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST);
}

void dapl_fork_leave(void)
{
	__atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
}

void dapl_fork_wait(void)
{
	for (int i = 0; i < 10000 && __atomic_load_n(&inside, __ATOMIC_SEQ_CST); i++)
		usleep(100);
}
