/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* run.h - what a runner (main.c, or test/fault/statements.c) and the expectations (expect.c)
 * share: the tests, the options, and the page through which a test's process tells its
 * verdict. Tests do not include it. */
#ifndef CONFORM_RUN_H
#define CONFORM_RUN_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

extern struct test **tests;
extern int n_tests;

/* Which: "EVD-7" is a statement, "EVD" an area; shell patterns match ids and names; by
 * commas, in a list that is changed and must last. */
void choose(char *list);
void except(char *list);
bool is_chosen(const char *id, const char *name);

struct options {
	char *ia;
	const char *address;	/* NULL: what the IA says */
	double limit;		/* seconds for a statement */
	bool types_only;	/* compare neither subtypes nor the error class */
	bool verbose;
	uint32_t seed;
};
extern struct options options;

enum verdict { UNDECIDED, PASSED, FAILED, SKIPPED };

/* One page, shared with the process of the running test and with the processes that it
 * starts itself. The pointers are to string literals: the same in all of them. */
struct report {
	_Atomic enum verdict verdict;
	_Atomic bool complete;		/* so is the text */
	char text[800];
	_Atomic(const char *) file, what;	/* the last place passed */
	_Atomic int line;
	_Atomic bool by_chance;
	bool closing;			/* the test is through, its IA is being closed */
	int index;			/* of the test, in the list */
	int process;			/* the test's own process */
};
extern struct report *report;

/* Closes what ia() opened; part of every test. */
void close_ia(void);

/* --- what the runner adds ---------------------------------------------------------------- */

/* Ends the process, that of the test or one that it started, once it has decided. */
_Noreturn void end_test(enum verdict verdict);
/* Asked again and again while a test waits: is there no hope left? */
bool wait_is_hopeless(void);

#endif
