/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cno.h - what cno.c offers to ia.c beyond dapl.h. */
#ifndef DAPL_CNO_H
#define DAPL_CNO_H
#include "dapl/core/dapl.h"

/* The IA closes: every waiter returns with a NULL EVD, the agent is told the same. Waits
 * for the waiters. */
void dapl_cno_close(struct dapl_cno *cno);

#endif
