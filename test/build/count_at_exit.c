/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* count_at_exit.c - writes the counters of --enable-coverage when a process ends by _exit(), which that option makes a
 * quick_exit(). Without, what ran in forked processes of tests is not counted. Linked into each library and program
 * that has libcommon, since each has counters of its own. No destructor runs, as with _exit(). */
#include <stdlib.h>

void __gcov_dump(void);
void count_at_exit(void);

__attribute__((constructor)) void count_at_exit(void)
{
	at_quick_exit(__gcov_dump);
}
