/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* messages.h - makes one line of a failure: the cause, which the libraries know, behind the name of the
 * tool. A line of the libraries that the tool does not take over is printed as in any other program. So are
 * all of a library whose DAPL_DBG_TYPE, DAPL_DBG_LEVEL or DAT_DBG_TYPE the user has set, and all with the registry
 * of another project. */
#ifndef TOOLS_MESSAGES_H
#define TOOLS_MESSAGES_H
#include <dat/udat.h>
#include <stdbool.h>
#include <stddef.h>

enum { CAUSE_TEXT = 1024 };	/* bytes of a cause, with its zero */

/* Call it before any DAT call. */
void messages_init(void);

/* Until messages_release() an error that the libraries report in this thread is kept. */
void messages_hold(void);
/* What was kept. After a failure it is the cause, for the caller's line; valid until the next messages_hold()
 * of this thread. NULL: nothing. After a success it is printed, and NULL is returned. */
const char *messages_release(bool failed);

/* Why the connection of `ep` failed or broke, as the provider would print it. Returns false if it knows no
 * failure, or if it has no such extension. */
bool connection_cause(DAT_EP_HANDLE ep, char text[CAUSE_TEXT]);
/* A line about a connection event that is a failure: `what`, the cause and the event; without a cause what the
 * event usually means. Returns `text`. */
const char *connection_failure(const DAT_EVENT *event, const char *what, char text[CAUSE_TEXT]);
/* The cause of a failed completion, with ": " in front; "" if none is known. Returns `text`. */
const char *completion_cause(const DAT_EVENT *event, char text[CAUSE_TEXT]);

#endif
