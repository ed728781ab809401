/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* call.h - calls of DAT that a tool can't go on without, and the clock. Endpoints and memory
 * are link.h's and the testers' job. */
#ifndef TOOLS_CALL_H
#define TOOLS_CALL_H
#include "messages.h"
#include <dat/udat.h>
#include <sys/socket.h>

/* Calls fail() (cli.h) when rc is not DAT_SUCCESS, naming the call and the code. */
void good(DAT_RETURN rc, const char *call);
/* good() of a call whose errors are kept meanwhile (messages.h): the line has the cause that the libraries told instead
 * of the code. */
#define good_call(call, name) (messages_hold(), good_held((call), (name)))
/* The same of a call that came after messages_hold(). */
void good_held(DAT_RETURN rc, const char *call);
/* The same of dat_psp_create(): the line names the qualifier. */
#define good_listener(call, qualifier) (messages_hold(), good_listener_held((call), (qualifier)))
void good_listener_held(DAT_RETURN rc, DAT_CONN_QUAL qualifier);
/* dat_ia_open, with the name of the adapter in the line of a failure. */
void open_ia(const char *name, DAT_EVD_HANDLE *async, DAT_IA_HANDLE *ia);
/* The first address of a host name or of a number; fail() when there is none. */
void resolve(const char *name, struct sockaddr_storage *address);
/* resolve(), but an address in the family of the adapter's own, which is the one that it can connect to; the first
 * one of localhost is often ::1. */
void resolve_for(DAT_IA_HANDLE ia, const char *name, struct sockaddr_storage *address);
double now(void);	/* seconds, monotonic */

#endif
