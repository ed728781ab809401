/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* session.h - between faults.c, which arms a fault, and the program that it befalls. */
#ifndef FAULT_SESSION_H
#define FAULT_SESSION_H
#include <stdbool.h>
#include <dat/udat.h>

/* How the program's work ended, and how its tidying up. */
struct outcome {
	enum { COMPLETE, CALL_FAILED, EVENT_FAILED, NO_EVENT, LOST, WRONG_DATA } end;
	char step[160];		/* where */
	DAT_RETURN ret;		/* CALL_FAILED: what it returned */
	int event, status;	/* EVENT_FAILED: what came instead, a completion's status */
	char untidy[200];	/* what could not be freed, and why; "" */
};

/* A program that uses all kinds of objects, and stops at the first error it is told of. It
 * frees what it made until then. */
typedef void session_function(struct outcome *outcome);
session_function fault_session;

#endif
