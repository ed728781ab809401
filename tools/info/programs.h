/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* programs.h - running programs, one at a time: sets the trace level, shows the trace records and
 * counters. top.h shows all programs. */
#ifndef TOOLS_INFO_PROGRAMS_H
#define TOOLS_INFO_PROGRAMS_H
#include <stdbool.h>
#include <sys/types.h>

/* Each returns the exit status. */
int programs_trace(pid_t pid, unsigned level, bool json);
int programs_dump(pid_t pid, bool json);

#endif
