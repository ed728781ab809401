/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* answers.h - answers requests of datsock. A request is one packet of text on the abstract Unix socket
 * "datsock1-control-PID" of the process: "list", "stat", "reset", "config", "drain", or NAME=VALUE. The answer is one
 * object of JSON in packets, up to the end of the connection. Only the process's own user and root are answered. */
#ifndef SOCK_ANSWERS_H
#define SOCK_ANSWERS_H
#include <stdbool.h>

/* Returns the listening descriptor, -1: none. */
int answers_open(void);
/* Answers one that has connected. Called by the service thread. Returns false if that belongs to another user. */
bool answers_serve(void);

#endif
