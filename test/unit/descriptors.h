/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* descriptors.h - counts the open file descriptors of a unit program, so that a case finds one that was left open. */
#ifndef TEST_UNIT_DESCRIPTORS_H
#define TEST_UNIT_DESCRIPTORS_H
#include <dirent.h>
#include <stdlib.h>

/* The count includes constant extra entries: compare it with an earlier one. */
static inline unsigned open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned count = 0;

	if (!dir)
		abort();
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

#endif
