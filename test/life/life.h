/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* life.h - what the life tests share: cases, each in a process of its own under a time
 * limit, which must be silent; programs within a case whose output is looked at; and a
 * session, an IA with two endpoints connected to each other. What is expected of each is
 * the business of the files next to this one. */
#ifndef LIFE_H
#define LIFE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <dat/udat.h>

/* --- cases ------------------------------------------------------------------------- */

struct life_case {
	const char *name;
	void (*run)(void);
};
#define CASE(function) { #function, function }
/* Runs all, or those that argv names; a line each. Returns main's status. */
int life_main(int argc, char **argv, const struct life_case *cases, int n);

/* Ends the process: its case has failed, and why. */
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Ends the process: the case cannot be told here, and why. */
_Noreturn void skip(const char *why);
#define EXPECT(condition) do { if (!(condition)) \
		fail("line %d: %s does not hold", __LINE__, #condition); } while (0)
#define OK(call) life_ok(__LINE__, #call, (call))
void life_ok(int line, const char *call, DAT_RETURN ret);
const char *life_return(DAT_RETURN ret);	/* its name, and the number */

double life_now(void);		/* seconds */
/* 1, or how much slower the build with a sanitizer may be. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SLOWER 10
#define SANITIZED 1
#else
#define SLOWER 1
#define SANITIZED 0
#endif

/* --- processes ----------------------------------------------------------------------- */

/* A child's end: what it wrote to standard output and error, and its wait status. */
struct told {
	int status, lines;
	double seconds;
	char text[60000];
};
/* Forks, and runs `what` there: returning is exit(0). If it calls skip(), the whole case is skipped. */
struct told run(void (*what)(const void *), const void *arg);
/* The leak sanitizer does not run when this process exits. */
void end_without_leak_check(void);
/* It ended with this status, and said nothing. */
void expect_quiet(const struct told *told, int status);
int open_descriptors(void);
const char *what_is_open(void);	/* to say it when they are too many */
int count_threads(const char *name);	/* NULL: all */

/* --- the registry ----------------------------------------------------------------------- */

/* One of our libraries, where the build left it. */
const char *life_library(const char *name);
/* From now on, in this process and its children, these are dat.conf's lines. */
void life_conf(const char *text);
/* dat.conf has an entry, of this name, of that library, with these ia_params. */
void life_entry(const char *name, const char *library, const char *params);
/* There from the beginning: the software device on lo, or the library and ia_params that
 * the environment's LIFE_DEVICE names: "libdaplofa.so.2 rxe0 1". */
#define LIFE_IA "ofa-v2-life"
bool life_on_soft(void);

/* --- a session ----------------------------------------------------------------------------- */

#define SIDE_MEMORY 4096
struct side {
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE recv, request, conn;
	DAT_EP_HANDLE ep;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT local;
	DAT_RMR_CONTEXT remote;
	_Alignas(64) char memory[SIDE_MEMORY];
};
struct session {
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async, cr;
	DAT_PSP_HANDLE psp;
	DAT_CONN_QUAL qual;
	struct side a, b;
	const char *step;	/* the call that failed, of those below */
};
/* Opens LIFE_IA, makes two endpoints, connects them. The first failure is returned; what was
 * made until then goes with session_close. */
DAT_RETURN session_open(struct session *s, DAT_TIMEOUT timeout);
/* The same, in memory of its own, where it is expected to work: a failure ends the case. */
struct session *session_opened(void);
DAT_RETURN session_connect(struct session *s, DAT_TIMEOUT timeout);
/* A message each way, and an RDMA write. False: `step` says where it ended. */
bool session_exchange(struct session *s, unsigned seed);
DAT_RETURN session_close(struct session *s);	/* abruptly */
/* All of it, which is expected to work. */
void whole_session(void);
void in_session(const void *none);	/* the same, for run() */

DAT_RETURN await(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number, DAT_TIMEOUT timeout, DAT_EVENT *event);
#define MOMENT 10000000		/* us: more than anything here takes */

#endif
