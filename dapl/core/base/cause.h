/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cause.h - the cause of a failed connection in words (cause.c). What a user can do about it is
 * in diag.h. */
#ifndef DAPL_CAUSE_H
#define DAPL_CAUSE_H
#include "dapl/core/base/text.h"
#include "dapl/core/device.h"

enum {
	DIAG_TEXT = 512,		/* bytes of a line */
	DIAG_ADDRESS = 64,		/* bytes of "address port number" */
};

/* "192.0.2.1 port 7"; without a port only the address; "?" if it is unknown. */
const char *dapl_cause_address(const struct sockaddr_storage *address, char text[DIAG_ADDRESS]);
const char *dapl_cause_step(enum dapl_conn_step step);
/* Writes the cause without its step: "connection refused". */
const char *dapl_cause_reason(const struct dapl_conn_cause *cause, char text[DIAG_TEXT]);

/* These append to a text. */
void dapl_cause_add_host(struct dapl_text *t, const struct sockaddr_storage *address);
void dapl_cause_add_address(struct dapl_text *t, const struct sockaddr_storage *address);
void dapl_cause_add_reason(struct dapl_text *t, const struct dapl_conn_cause *cause);
/* Returns 0 if the address is unknown. */
unsigned dapl_cause_port(const struct sockaddr_storage *address);

#endif
