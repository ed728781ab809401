/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* whole_file.h - a file that readers see whole, or as it was before: it is written beside its place, and renamed at the
 * end. What is in it is the caller's. */
#ifndef DATPERF_WHOLE_FILE_H
#define DATPERF_WHOLE_FILE_H
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

struct whole_file {
	const char *name;	/* as the user gave it; it stays valid */
	FILE *file;		/* between whole_file_begin() and _end() or _drop(); else NULL */
	char path[PATH_MAX], beside[PATH_MAX + 8];
	mode_t mode;
};

/* Finds the place of the file, and tries whether it can be written. A link stays a link: the file that it names is
 * replaced. Calls fail() with the name of the option if it cannot be written. */
void whole_file_find(struct whole_file *f, const char *option, const char *name);
/* Opens a new file beside the place, and sets errno to 0, which the first write that fails changes. After a failure
 * returns false with errno, and leaves no file. */
bool whole_file_begin(struct whole_file *f);
/* Closes the file and puts it into its place. If that, or a write before, has failed, removes it, and returns false
 * with errno. */
bool whole_file_end(struct whole_file *f);
/* Removes the file that was begun. Keeps errno. */
void whole_file_drop(struct whole_file *f);

#endif
