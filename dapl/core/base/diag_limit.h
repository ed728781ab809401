/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* diag_limit.h - prints lines about failed connections (diag_limit.c). The same cause with the same
 * peer gives one line in DIAG_WINDOW_S seconds, then "N more like this". */
#ifndef DAPL_DIAG_LIMIT_H
#define DAPL_DIAG_LIMIT_H
#include "dapl/core/base/diag.h"

enum { DIAG_WINDOW_S = 5 };	/* seconds; long enough for a person to read a line */

/* Prints the line, or counts it if it is a repetition. The caller may hold any lock of core. */
void dapl_diag_say(const struct dapl_diag *diag);
/* Prints the counts that were not printed yet. */
void dapl_diag_flush(void);
/* Called around a fork. The child finds the lock free and no failures counted. */
void dapl_diag_fork_prepare(void);
void dapl_diag_fork_parent(void);
void dapl_diag_fork_child(void);

#endif
