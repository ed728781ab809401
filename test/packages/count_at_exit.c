/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* count_at_exit.c - writes the counters of --enable-coverage when a process ends by _exit(), which that option makes a
 * quick_exit(). Without, what ran in forked processes of tests is not counted. Linked into each library and program
 * that has libcommon, since each has counters of its own. No destructor runs, as with _exit(). */
#include <stdlib.h>
#include <unistd.h>

void __gcov_dump(void);
void count_at_exit(void);

static uid_t user;

/* A process that has become another user cannot write the files, and would print that. */
static void write_counters(void)
{
	if (geteuid() == user)
		__gcov_dump();
}

__attribute__((constructor)) void count_at_exit(void)
{
	user = geteuid();
	at_quick_exit(write_counters);
}
