/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* diag.h - a failed or broken connection as one line of text: what was attempted, between
 * which addresses, the step, the cause, and a hint where one is known (diag.c). Rate limits are
 * in diag_limit.h. Devices find the cause (device.h), conn/failure.c says when it is worth a line. */
#ifndef DAPL_DIAG_H
#define DAPL_DIAG_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/log.h"
#include "dapl/core/base/cause.h"

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
/* What repetitions of the same failure have in common. A peer that connects chooses its port anew
 * each time, so that the port is left out. */
const char *dapl_diag_key(const struct dapl_diag *diag, char text[DIAG_TEXT]);

#endif
