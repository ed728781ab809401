/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mapping.c - reads the mappings of this process from /proc/self/maps. */
#include "common/mapping.h"
#include <sys/sysmacros.h>

FILE *mapping_open(void)
{
	return fopen("/proc/self/maps", "re");
}

/* The path at the end of a line has no limit, so it is read by characters. */
static void skip_line(FILE *list)
{
	int c;

	do
		c = getc(list);
	while (c != EOF && c != '\n');
}

bool mapping_next(FILE *list, struct mapping *m)
{
	unsigned long from, to, inode;
	unsigned major, minor;
	unsigned long long offset;
	char readable, writable, shared;

	if (fscanf(list, "%lx-%lx %c%c%*c%c %llx %x:%x %lu", &from, &to, &readable, &writable,
		   &shared, &offset, &major, &minor, &inode) != 9)
		return false;
	skip_line(list);
	*m = (struct mapping){
		.from = from, .to = to, .shared = shared == 's', .offset = offset,
		.readable = readable == 'r', .writable = writable == 'w',
		.device = makedev(major, minor), .inode = inode,
	};
	return true;
}
