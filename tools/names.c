/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* names.c - see names.h. */
#include "names.h"
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

struct name {
	unsigned number;
	const char *text;
};
#define NAME(prefix, name) { prefix##name, #name }

static const struct name events[] = {
	NAME(DAT_, DTO_COMPLETION_EVENT),
	NAME(DAT_, RMR_BIND_COMPLETION_EVENT),
	NAME(DAT_, CONNECTION_REQUEST_EVENT),
	NAME(DAT_, CONNECTION_EVENT_ESTABLISHED),
	NAME(DAT_, CONNECTION_EVENT_PEER_REJECTED),
	NAME(DAT_, CONNECTION_EVENT_NON_PEER_REJECTED),
	NAME(DAT_, CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR),
	NAME(DAT_, CONNECTION_EVENT_DISCONNECTED),
	NAME(DAT_, CONNECTION_EVENT_BROKEN),
	NAME(DAT_, CONNECTION_EVENT_TIMED_OUT),
	NAME(DAT_, CONNECTION_EVENT_UNREACHABLE),
	NAME(DAT_, ASYNC_ERROR_EVD_OVERFLOW),
	NAME(DAT_, ASYNC_ERROR_IA_CATASTROPHIC),
	NAME(DAT_, ASYNC_ERROR_EP_BROKEN),
	NAME(DAT_, ASYNC_ERROR_TIMED_OUT),
	NAME(DAT_, ASYNC_ERROR_PROVIDER_INTERNAL_ERROR),
	NAME(DAT_, HA_DOWN_TO_1),
	NAME(DAT_, HA_UP_TO_MULTI_PATH),
	NAME(DAT_, SOFTWARE_EVENT),
	NAME(DAT_, EXTENSION_EVENT),
};

static const struct name statuses[] = {
	NAME(DAT_DTO_, SUCCESS),
	NAME(DAT_DTO_, ERR_FLUSHED),
	NAME(DAT_DTO_, ERR_LOCAL_LENGTH),
	NAME(DAT_DTO_, ERR_LOCAL_EP),
	NAME(DAT_DTO_, ERR_LOCAL_PROTECTION),
	NAME(DAT_DTO_, ERR_BAD_RESPONSE),
	NAME(DAT_DTO_, ERR_REMOTE_ACCESS),
	NAME(DAT_DTO_, ERR_REMOTE_RESPONDER),
	NAME(DAT_DTO_, ERR_TRANSPORT),
	NAME(DAT_DTO_, ERR_RECEIVER_NOT_READY),
	NAME(DAT_DTO_, ERR_PARTIAL_PACKET),
	NAME(DAT_, RMR_OPERATION_FAILED),
	NAME(DAT_DTO_, ERR_LOCAL_MM_ERROR),
};

static const char *find(const struct name *names, size_t count, unsigned number)
{
	for (size_t i = 0; i < count; i++)
		if (names[i].number == number)
			return names[i].text;
	return NULL;
}

const char *event_name(DAT_EVENT_NUMBER number)
{
	static char unknown[32];
	const char *name = find(events, sizeof events / sizeof *events, number);

	if (name)
		return name;
	snprintf(unknown, sizeof unknown, "event 0x%x", (unsigned)number);
	return unknown;
}

const char *dto_status_name(DAT_DTO_COMPLETION_STATUS status)
{
	static char unknown[32];
	const char *name = find(statuses, sizeof statuses / sizeof *statuses, status);

	if (name)
		return name;
	snprintf(unknown, sizeof unknown, "status %u", (unsigned)status);
	return unknown;
}

const char *address_text(const struct sockaddr *address, char text[ADDRESS_TEXT])
{
	socklen_t length = address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
							    sizeof(struct sockaddr_in);

	if ((address->sa_family != AF_INET && address->sa_family != AF_INET6) ||
	    getnameinfo(address, length, text, ADDRESS_TEXT, NULL, 0, NI_NUMERICHOST))
		strcpy(text, "?");
	return text;
}

const char *connection_hint(DAT_EVENT_NUMBER number)
{
	switch (number) {
	case DAT_CONNECTION_EVENT_NON_PEER_REJECTED: return "refused: is a server running there, on this port?";
	case DAT_CONNECTION_EVENT_PEER_REJECTED: return "the server rejected the connection";
	case DAT_CONNECTION_EVENT_UNREACHABLE: return "there is no route to this address";
	case DAT_CONNECTION_EVENT_TIMED_OUT: return "no answer: is the host up, does a firewall drop the port?";
	case DAT_CONNECTION_EVENT_BROKEN: return "the connection broke: has the peer ended?";
	case DAT_CONNECTION_EVENT_DISCONNECTED: return "the peer disconnected";
	case DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR: return "the handshake broke off: has the peer ended?";
	default: return "";
	}
}
