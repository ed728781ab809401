/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* names.h - text for events, completion statuses and addresses of DAT. */
#ifndef TOOLS_NAMES_H
#define TOOLS_NAMES_H
#include <dat/udat.h>
#include <sys/socket.h>

enum { ADDRESS_TEXT = 80 };	/* bytes of address_text()'s buffer */

/* "CONNECTION_EVENT_UNREACHABLE", without DAT_; "event 0x..." for numbers that have no name. The text
 * is valid until the next call. */
const char *event_name(DAT_EVENT_NUMBER number);
/* "ERR_FLUSHED", without DAT_DTO_; "status N" for numbers that have no name. The text is valid until the
 * next call. */
const char *dto_status_name(DAT_DTO_COMPLETION_STATUS status);
/* The IP address without a port, "?" for other families. Returns `text`. */
const char *address_text(const struct sockaddr *address, char text[ADDRESS_TEXT]);
/* What usually leads to a connection event, as a question or a statement for the user; "" if nothing is
 * known. */
const char *connection_hint(DAT_EVENT_NUMBER number);

#endif
