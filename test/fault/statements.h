/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* statements.h - one run of a test for statements.c, and how it is judged. */
#ifndef FAULT_STATEMENTS_H
#define FAULT_STATEMENTS_H
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>
#include "fault.h"

struct kind {
	const char *name;
	enum fault_kind kind;
	bool lasting;
};

/* One run, in memory shared with its process. */
struct run {
	const struct kind *kind;
	struct fault_page page;
	_Atomic bool told;		/* an event reported an error */
	_Atomic bool crowd;		/* the test started other processes, which may get the error */
	bool tidied;			/* all IAs were closed; the next two fields are what was left then */
	int descriptors, threads;
	char untidy[100];
};
extern struct run *run;
extern int output;		/* a file with what the process prints */

/* --- statements_events.c, in the process of the test ---------------------------------------- */

extern _Atomic int helpers;	/* threads that the test has started and not joined */
/* Takes the events of all event dispatchers. Returns whether one of them reports an error. An unclaimed
 * connection request counts: the caller has tried again. */
bool something_tells(void);
/* fork() of the C library. A call of fork() is wrapped, and counts as one of the test. */
extern __typeof__(fork) __real_fork;

/* --- statements_verdict.c ------------------------------------------------------------------- */

/* Whether the test waited for what did not come. */
bool timed_out_waiting(void);
/* Whether what a failed test says is what a caller may expect of the fault. */
bool is_excused(const char *text);
/* What is wrong with a run that ended with that wait status, or -1 if it did not end; NULL if nothing is.
 * `clean` is the run without a fault, NULL for that one itself. */
const char *wrong(int status, const struct run *clean);

#endif
