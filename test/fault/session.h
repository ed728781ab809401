/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* session.h - the interface between faults.c, which arms a fault, and the program in which a call then
 * fails. */
#ifndef FAULT_SESSION_H
#define FAULT_SESSION_H
#include <stdbool.h>
#include <dat/udat.h>

/* How the work of the program ended, and whether it could free its objects. */
struct outcome {
	enum { COMPLETE, CALL_FAILED, EVENT_FAILED, NO_EVENT, LOST, WRONG_DATA } end;
	char step[160];		/* the call at which it ended */
	DAT_RETURN ret;		/* CALL_FAILED: what it returned */
	int event, status;	/* EVENT_FAILED: the event that came instead, the status of a completion */
	char untidy[200];	/* the call that did not free an object, and its error; "" if there is none */
};

/* A program that uses all kinds of objects and stops at the first error. It frees what it made until then.
 * */
typedef void session_function(struct outcome *outcome);
session_function fault_session;

#endif
