/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* call.h - DAT calls whose failure ends a tool, addresses of hosts, and the clock. The tools' own files
 * handle endpoints and memory. */
#ifndef TOOLS_CALL_H
#define TOOLS_CALL_H
#include "messages.h"
#include <dat/udat.h>
#include <sys/socket.h>

/* Calls fail() (cli.h) when rc is not DAT_SUCCESS, naming the call and the code. */
void good(DAT_RETURN rc, const char *call);
/* good() of a call during which errors are kept (messages.h): if the libraries reported a cause, the line
 * has it instead of the code. */
#define good_call(call, name) (messages_hold(), good_held((call), (name)))
/* good_call() without messages_hold(), which the caller has called before `call`. */
void good_held(DAT_RETURN rc, const char *call);
/* good_call() of dat_psp_create(); the line names the qualifier, and `option`, which sets it, or NULL. */
#define good_listener(call, qualifier, option) (messages_hold(), good_listener_held((call), (qualifier), (option)))
void good_listener_held(DAT_RETURN rc, DAT_CONN_QUAL qualifier, const char *option);
/* dat_ia_open, with the name of the adapter in the line of a failure. */
void open_ia(const char *name, DAT_EVD_HANDLE *async, DAT_IA_HANDLE *ia);
/* Finds the first address of a host name or of a numeric address. Calls fail() if there is none. */
void resolve(const char *name, struct sockaddr_storage *address);
/* Like resolve(), but finds an address of the adapter's own family, since the adapter connects to no other.
 * The first address of localhost is often ::1. */
void resolve_for(DAT_IA_HANDLE ia, const char *name, struct sockaddr_storage *address);
double now(void);	/* seconds, monotonic */

#endif
