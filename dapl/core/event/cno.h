/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cno.h - consumer notification objects (cno.c). */
#ifndef DAPL_CNO_H
#define DAPL_CNO_H
#include "dapl/core/dapl.h"

/* Killed before: threads in dat_cno_wait leave with a NULL EVD, and none stays. */
void dapl_cno_send_waiters_away(struct dapl_cno *cno);
/* The IA closes: every waiter returns with a NULL EVD, the agent is told the same. Waits
 * for the waiters. */
void dapl_cno_close(struct dapl_cno *cno);

#endif
