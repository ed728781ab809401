/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* diag.h - a failed or broken connection as one line of text: what was attempted, between which addresses,
 * the step, the cause, and a hint where one is known (diag.c); and the line about a number that this provider does
 * not know. Rate limits are in diag_limit.h. Devices find the cause (device.h), conn/failure.c decides which failures
 * get a line. */
#ifndef DAPL_DIAG_H
#define DAPL_DIAG_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/log.h"
#include "dapl/core/base/cause.h"

enum dapl_diag_what {
	DIAG_CONNECT,			/* an outgoing connection that was not established */
	DIAG_ACCEPT,			/* an incoming connection that was not established */
	DIAG_CONNECTION,		/* a connection that was established */
};

struct dapl_diag {
	const char *ia;			/* the IA's name */
	enum dapl_diag_what what;
	bool ud;
	uint64_t elapsed_ns;		/* since connect, accept, or ESTABLISHED; 0: unknown */
	const void *ep;			/* the endpoint; NULL: there is none */
	const char *result;		/* the name of the event that the program gets; NULL: there is
					 * none */
	struct dapl_conn_cause cause;
};

/* Returns the message of message_ids.h under which a failure is reported. */
enum log_id dapl_diag_id(const struct dapl_diag *diag);
/* Writes the whole line, without prefix and newline. Returns `text`. */
const char *dapl_diag_format(const struct dapl_diag *diag, char text[DIAG_TEXT]);
/* Writes the text that repetitions of the same failure have in common. It lacks the port of a peer that
 * connects, because the peer chooses another port each time. */
const char *dapl_diag_key(const struct dapl_diag *diag, char text[DIAG_TEXT]);
/* Reports a number of an event or a status that this provider does not know: the kernel or rdma-core is newer than it.
 * `device` is its name, or NULL where it is not known; `what` is "asynchronous event" and the like; `done` says what
 * the provider makes of it. May be called with locks held. */
void dapl_diag_unknown(const char *device, const char *what, int number, const char *done);

#endif
