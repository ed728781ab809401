/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* call.h - calls of DAT that a tool can't go on without, and the clock. Endpoints and memory
 * are link.h's and the testers' job. */
#ifndef TOOLS_CALL_H
#define TOOLS_CALL_H
#include <dat/udat.h>
#include <sys/socket.h>

/* Calls fail() (cli.h) when rc is not DAT_SUCCESS, naming the call and the code. */
void good(DAT_RETURN rc, const char *call);
/* good() of a call after messages_hold() (messages.h): the line has the cause that was kept instead of the
 * code. */
void good_held(DAT_RETURN rc, const char *call);
/* Calls fail() when the result of dat_psp_create() is not DAT_SUCCESS, naming the qualifier, and the cause that was
 * kept since messages_hold(). */
void good_listener(DAT_RETURN rc, DAT_CONN_QUAL qualifier);
/* dat_ia_open, with the name of the adapter in the line of a failure. */
void open_ia(const char *name, DAT_EVD_HANDLE *async, DAT_IA_HANDLE *ia);
/* The first address of a host name or of a number; fail() when there is none. */
void resolve(const char *name, struct sockaddr_storage *address);
/* resolve(), but an address in the family of the adapter's own, which is the one that it can connect to; the first
 * one of localhost is often ::1. */
void resolve_for(DAT_IA_HANDLE ia, const char *name, struct sockaddr_storage *address);
double now(void);	/* seconds, monotonic */

#endif
