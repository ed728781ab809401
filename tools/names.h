/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* names.h - text for events, completion statuses and addresses of DAT. */
#ifndef TOOLS_NAMES_H
#define TOOLS_NAMES_H
#include <dat/udat.h>
#include <sys/socket.h>

enum { ADDRESS_TEXT = 80 };	/* bytes of address_text()'s buffer */

/* Returns the name without DAT_, such as "CONNECTION_EVENT_UNREACHABLE", or "event 0x..." if the number has
 * no name. The text is valid until the next call. */
const char *event_name(DAT_EVENT_NUMBER number);
/* Returns the name without DAT_DTO_, such as "ERR_FLUSHED", or "status N" if the number has no name. The
 * text is valid until the next call. */
const char *dto_status_name(DAT_DTO_COMPLETION_STATUS status);
/* Writes the IP address without a port, or "?" for other families. Returns `text`. */
const char *address_text(const struct sockaddr *address, char text[ADDRESS_TEXT]);
/* Returns the usual cause of a connection event, as a question or a statement for the user; "" if there is
 * none. */
const char *connection_hint(DAT_EVENT_NUMBER number);

#endif
