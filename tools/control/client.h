/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* client.h - the tools' side of the control sockets: which programs have one, and requests to them.
 * What is asked is the views' job. Without memory the program fails with one line. */
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

/* The sockets of this network namespace by PID, of one program or (pid 0) of all; *count of them. Other
 * users' are among them. The caller frees the array. */
struct control_socket *control_find(pid_t pid, size_t *count);
/* The answer to a request, which may be NULL; drops the reference to `request`. NULL: `why` says in a
 * clause what failed. Any thread may call it. */
json_t *control_ask(const struct control_socket *socket, enum control_verb verb, json_t *request,
		    char *why, size_t size);
/* Whether the socket belongs to a program that answers this user: without a message it can be left out
 * where all programs are meant. */
bool control_is_ours(const struct control_socket *socket);

enum { CONTROL_PROGRAM = 64 };	/* bytes */
/* The name of a process, "?" if it has ended. Returns `name`. */
const char *control_program(char name[CONTROL_PROGRAM], pid_t pid);

/* Ends the tool with a line that tells why the program has no control socket that control_find() finds. */
void control_fail_absent(pid_t pid) __attribute__((noreturn));

/* Asks each library of a program, or (pid 0) of all programs of this user, and puts the answers into an
 * array, each with the members "pid" and "program". With a pid a failure, or a program without a socket,
 * ends the tool with a line that tells why. Without one a program that does not answer is left out, with a
 * line the first time; other users' programs, and those that have just ended, without. `request` may be
 * NULL; drops the reference. */
json_t *control_ask_all(pid_t pid, enum control_verb verb, json_t *request);
/* CLI_FAILURE if control_ask_all() left programs out and none answered; else 0. */
int control_status(void);

#endif
