/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* life.h - what the life tests share: cases, each in a process of its own that must print nothing and end
 * within a time limit; children of a case, whose exit status and output the case checks; and a session,
 * which is an IA with two endpoints connected to each other. */
#ifndef LIFE_H
#define LIFE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "test/ends.h"

/* --- cases ------------------------------------------------------------------------- */

struct life_case {
	const char *name;
	void (*run)(void);
};
#define CASE(function) { #function, function }
/* Runs the cases that argv names, or all, and prints a line for each. Returns the exit status for main(). */
int life_main(int argc, char **argv, const struct life_case *cases, int n);

/* Ends the process. Its case has failed; the line of the case says why. */
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Ends the process. Its case cannot be tested on this host; the line of the case says why. */
_Noreturn void skip(const char *why);
#define EXPECT(condition) do { if (!(condition)) \
		fail("line %d: %s does not hold", __LINE__, #condition); } while (0)
#define OK(call) life_ok(__LINE__, #call, (call))
void life_ok(int line, const char *call, DAT_RETURN ret);
const char *life_return(DAT_RETURN ret);	/* name and number; valid until the thread's next call */

double life_now(void);		/* seconds */
/* How many times slower a build with a sanitizer may be. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SLOWER 10
#define SANITIZED 1
#else
#define SLOWER 1
#define SANITIZED 0
#endif

/* --- processes ----------------------------------------------------------------------- */

/* How a child ended: its wait status, and what it wrote to standard output and standard error. */
struct child_result {
	int status, lines;
	double seconds;		/* from fork() to its end */
	char text[60000];
};
/* Forks, calls what(arg) in the child, and waits for the child's end. The child exits with 0 when `what`
 * returns. If the child calls skip(), the whole case is skipped. */
struct child_result run(void (*what)(const void *), const void *arg);
/* The leak sanitizer does not run when this process exits. */
void end_without_leak_check(void);
/* Fails unless the child exited with this status and wrote nothing. */
void expect_quiet(const struct child_result *result, int status);
int open_descriptors(void);
const char *what_is_open(void);	/* the open descriptors as text, for a message */
int count_threads(const char *name);	/* threads of this name; NULL: all threads of the process */

/* --- the registry ----------------------------------------------------------------------- */

/* The path of a library of the build tree. Returns NULL if it was not built. */
const char *life_library(const char *name);
/* Makes these the lines of dat.conf, for this process and its children. */
void life_conf(const char *text);
/* Makes dat.conf one entry with this name, library and ia_params. */
void life_entry(const char *name, const char *library, const char *params);
/* The entry that dat.conf has when a case begins: the software device on lo, or the library and the
 * ia_params that the environment's LIFE_DEVICE names, such as "libdaplofa.so.2 rxe0 1". */
#define LIFE_IA "ofa-v2-life"
bool life_on_soft(void);

/* --- a session ----------------------------------------------------------------------------- */

#define SIDE_MEMORY 4096
struct session {
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async, cr;
	DAT_PSP_HANDLE psp;
	DAT_CONN_QUAL qual;
	struct end a, b;
	_Alignas(64) char memory[2][SIDE_MEMORY];	/* of a and b */
	const char *step;	/* the call that failed, of those below */
};
/* Opens LIFE_IA, makes two endpoints, and connects them. Returns the first failure; session_close() frees
 * what was made before it. */
DAT_RETURN session_open(struct session *s, DAT_TIMEOUT timeout);
/* Opens a session in memory that it allocates. A failure ends the case. */
struct session *session_opened(void);
DAT_RETURN session_connect(struct session *s, DAT_TIMEOUT timeout);
/* Sends a message each way, and an RDMA write. Returns false after a failure; `step` is then the call that
 * failed. */
bool session_exchange(struct session *s, unsigned seed);
DAT_RETURN session_close(struct session *s);	/* abruptly */
/* Opens a session, exchanges messages, and closes it. A failure ends the case. */
void whole_session(void);
void in_session(const void *none);	/* whole_session(), for run() */

/* Takes the next event. Another number than `number` is returned as DAT_ABORT. `event` may be NULL. */
DAT_RETURN await(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number, DAT_TIMEOUT timeout, DAT_EVENT *event);
#define MOMENT 10000000		/* us: more than anything here takes */

#endif
