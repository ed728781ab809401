/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* run.h - runs a program of the system by its own path, without a shell, and reads what it prints. */
#ifndef TOOLS_CONTROL_RUN_H
#define TOOLS_CONTROL_RUN_H
#include <stdbool.h>
#include <stddef.h>

struct run_output {
	char *text;		/* stdout; NULL: it was not run. The caller frees it */
	char error[512];	/* the first line of stderr, or why it was not run */
};

/* `name` is searched in the directories of the system's administration only, whatever PATH is. Returns
 * the exit status; -1: not there, or ended by a signal. The array ends with NULL, without `name`. */
int run_program(const char *name, const char *const *arguments, struct run_output *output);

#endif
