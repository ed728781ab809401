/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* client.h - the tools' side of the control sockets: which programs have one, and requests to them. The
 * callers (views of the tools) choose the requests. If memory lacks, the program fails with one line. */
#ifndef TOOLS_CONTROL_CLIENT_H
#define TOOLS_CONTROL_CLIENT_H
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include "common/control.h"

struct control_socket {
	char name[108];		/* without the zero byte in front */
	pid_t pid;		/* by the name; control_ask() checks it */
};

/* Returns the *count control sockets in this network namespace, in the order of their PIDs, of one program
 * or (pid 0) of all programs, also those of other users. The caller frees the array. */
struct control_socket *control_find(pid_t pid, size_t *count);

struct control_result {
	json_t *answer;		/* NULL: there is none */
	bool absent;		/* this user has no such program with an IA open */
	char why[512];		/* a clause that says why there is no answer */
};
/* Sends a request to each of `count` sockets, all at once, and stores the results in their order. `request` may
 * be NULL; drops the reference to it. A program that does not answer within 3 seconds counts as failed. Any
 * thread may call it. */
void control_ask_each(const struct control_socket *sockets, size_t count, enum control_verb verb,
		      json_t *request, struct control_result *results);
/* control_ask_each() for one socket. Returns the answer; or NULL, and the clause in `why`. */
json_t *control_ask(const struct control_socket *socket, enum control_verb verb, json_t *request,
		    char *why, size_t size);
/* Returns whether the socket belongs to a program that answers this user. Requests to all programs leave
 * out the others without a message. */
bool control_is_ours(const struct control_socket *socket);

enum { CONTROL_PROGRAM = 64 };	/* bytes */
/* Stores the name of a process, or "?" if it has ended. Returns `name`. */
const char *control_program(char name[CONTROL_PROGRAM], pid_t pid);

/* Ends the tool with a line that says why control_find() finds no control socket of the program. */
void control_fail_absent(pid_t pid) __attribute__((noreturn));

/* Sends a request to each library of a program, or (pid 0) of all programs of this user. Returns an array
 * of the answers, each with the members "pid", "program" and "socket", the name of the library's control
 * socket. With a pid, a failure or a program without a socket ends the tool with a line that says why. With
 * pid 0, programs that do not answer are left out, with one line for each program, and later calls wait for
 * them only briefly; other users' programs, and those that have just ended, are left out without a line.
 * `request` may be NULL; drops the reference to it. Only the main thread may call it. */
json_t *control_ask_all(pid_t pid, enum control_verb verb, json_t *request);
/* Returns CLI_FAILURE if control_ask_all() left programs out and no program answered; otherwise 0. */
int control_status(void);

#endif
