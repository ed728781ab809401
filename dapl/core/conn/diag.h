/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* diag.h - a failed or broken connection as one line of text: what was attempted, between
 * which addresses, the step, the cause, and a hint where one is known. Rate limited: the same
 * cause with the same peer gives one line in DIAG_WINDOW_S seconds, then "N more like this".
 * Devices find the cause (device.h), conn.c and ud.c say when it is worth a line. */
#ifndef DAPL_DIAG_H
#define DAPL_DIAG_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/log.h"
#include "dapl/core/device.h"

enum {
	DIAG_WINDOW_S = 5,		/* seconds; long enough for a person to read a line */
	DIAG_TEXT = 512,		/* bytes of a line */
	DIAG_ADDRESS = 64,		/* bytes of "address port number" */
};

enum dapl_diag_what {
	DIAG_CONNECT,			/* we connect, and it is not established */
	DIAG_ACCEPT,			/* a peer connects, and it is not established */
	DIAG_CONNECTION,		/* it was established */
};

struct dapl_diag {
	const char *ia;			/* the IA's name */
	enum dapl_diag_what what;
	bool ud;
	uint64_t elapsed_ns;		/* since connect, accept, or ESTABLISHED; 0: unknown */
	const void *ep;			/* the endpoint; NULL: none */
	const char *result;		/* the name of its event; NULL: none */
	struct dapl_conn_cause cause;
};

/* The message that a failure is, of message_ids.h. */
enum log_id dapl_diag_id(const struct dapl_diag *diag);
/* The whole line, without prefix and newline. Returns `text`. */
const char *dapl_diag_format(const struct dapl_diag *diag, char text[DIAG_TEXT]);
/* Prints the line, or counts it. Any lock of core may be held. */
void dapl_diag_say(const struct dapl_diag *diag);
/* Prints the counts that are not printed yet. */
void dapl_diag_flush(void);
/* Around a fork: the child finds the lock free, and nothing counted. */
void dapl_diag_fork_prepare(void);
void dapl_diag_fork_parent(void);
void dapl_diag_fork_child(void);

/* "192.0.2.1 port 7"; without a port only the address; "?" if it is unknown. */
const char *dapl_diag_address(const struct sockaddr_storage *address, char text[DIAG_ADDRESS]);
const char *dapl_diag_step(enum dapl_conn_step step);
/* Only the cause, without its step: "connection refused". */
const char *dapl_diag_reason(const struct dapl_conn_cause *cause, char text[DIAG_TEXT]);

#endif
