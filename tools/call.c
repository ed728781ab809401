/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* call.c - see call.h. */
#include "call.h"
#include "cli.h"
#include "messages.h"
#include "names.h"
#include <inttypes.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

void good(DAT_RETURN rc, const char *call)
{
	const char *major = "?", *minor = "";

	if (rc == DAT_SUCCESS)
		return;
	dat_strerror(rc, &major, &minor);
	fail("%s: %s%s%s", call, major, *minor ? " " : "", minor);
}

void good_held(DAT_RETURN rc, const char *call)
{
	const char *cause = messages_release(rc != DAT_SUCCESS);

	if (cause)
		fail("%s: %s", call, cause);
	good(rc, call);
}

void good_listener_held(DAT_RETURN rc, DAT_CONN_QUAL qualifier, const char *option)
{
	char call[64];

	if (DAT_GET_TYPE(rc) == DAT_CONN_QUAL_IN_USE)
		fail("connection qualifier %" PRIu64 " is in use: another server? "
		     "\"datinfo --ports\" shows the program%s%s%s", qualifier, option ? "; " : "",
		     option ? option : "", option ? " takes another qualifier" : "");
	snprintf(call, sizeof call, "listening at connection qualifier %" PRIu64, qualifier);
	good_held(rc, call);
}

void open_ia(const char *name, DAT_EVD_HANDLE *async, DAT_IA_HANDLE *ia)
{
	char call[DAT_NAME_MAX_LENGTH + 32];
	DAT_RETURN rc;

	messages_hold();
	rc = dat_ia_open((char *)name, 8, async, ia);
	snprintf(call, sizeof call, "dat_ia_open of %s", *name ? name : "\"\"");
	good_held(rc, call);
}

/* Stores the first address of this family, or the first address of all if the family has none. */
static void resolve_in(int family, const char *name, struct sockaddr_storage *address)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found, *chosen;
	int rc = getaddrinfo(name, NULL, &hints, &found);

	if (rc)
		fail("%s: %s", *name ? name : "\"\"", gai_strerror(rc));
	chosen = found;
	while (chosen && family != AF_UNSPEC && chosen->ai_family != family)
		chosen = chosen->ai_next;
	if (!chosen)
		chosen = found;
	memset(address, 0, sizeof *address);
	memcpy(address, chosen->ai_addr, chosen->ai_addrlen);
	freeaddrinfo(found);
}

void resolve(const char *name, struct sockaddr_storage *address)
{
	resolve_in(AF_UNSPEC, name, address);
}

void resolve_for(DAT_IA_HANDLE ia, const char *name, struct sockaddr_storage *address)
{
	char text[ADDRESS_TEXT];
	const struct sockaddr *own;
	DAT_IA_ATTR attr;

	good(dat_ia_query(ia, NULL, DAT_IA_FIELD_IA_ADDRESS_PTR, &attr, 0, NULL), "dat_ia_query");
	own = (const struct sockaddr *)attr.ia_address_ptr;
	resolve_in(own->sa_family, name, address);
	if (address->ss_family != own->sa_family)
		fail("%s has no %s address, which the adapter with the address %s needs", name,
		     own->sa_family == AF_INET6 ? "IPv6" : "IPv4", address_text(own, text));
}

double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}
