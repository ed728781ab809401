/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* messages.h - makes one line of a failure: the name of the tool, and the cause that the libraries report.
 * Lines of the libraries that the tool does not take over are printed as in any other program. The tool
 * takes over none from a library whose DAPL_DBG_TYPE, DAPL_DBG_LEVEL or DAT_DBG_TYPE the user has set, and
 * none with the registry of another project. */
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
/* Ends messages_hold(). If the call failed, returns the kept error, for the caller's line, or NULL if there
 * is none; it is valid until the next messages_hold() of this thread. Otherwise prints the kept error and
 * returns NULL. */
const char *messages_release(bool failed);

/* Writes why the connection of `ep` failed or broke, as the provider would print it. Returns false if the
 * provider has no record of a failure, or lacks this extension. */
bool connection_cause(DAT_EP_HANDLE ep, char text[CAUSE_TEXT]);
/* Writes a line about a connection event that reports a failure: `what`, the cause and the event. If no
 * cause is known, the line has what the event usually means. Returns `text`. */
const char *connection_failure(const DAT_EVENT *event, const char *what, char text[CAUSE_TEXT]);
/* Writes the cause of a failed completion, with ": " in front, or "" if none is known. Returns `text`. */
const char *completion_cause(const DAT_EVENT *event, char text[CAUSE_TEXT]);

#endif
