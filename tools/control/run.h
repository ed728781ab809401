/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* run.h - runs a program of the system by its own path, without a shell, and reads what it prints. */
#ifndef TOOLS_CONTROL_RUN_H
#define TOOLS_CONTROL_RUN_H
#include <stdbool.h>
#include <stddef.h>

struct run_output {
	char *text;		/* stdout; NULL if the program was not run. The caller frees it */
	char error[512];	/* the first line of stderr, or why the program was not run */
};

/* Looks for `name` only in the directories of system programs, whatever PATH is. `arguments` begins with
 * the first argument and ends with NULL. Returns the exit status, or -1 if the program was not run or a
 * signal ended it. */
int run_program(const char *name, const char *const *arguments, struct run_output *output);

#endif
