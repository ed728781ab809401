/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* call.c - see call.h. */
#include "call.h"
#include "cli.h"
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
	fail("%s: %s %s", call, major, minor);
}

void open_ia(const char *name, DAT_EVD_HANDLE *async, DAT_IA_HANDLE *ia)
{
	DAT_RETURN rc = dat_ia_open((char *)name, 8, async, ia);
	char call[DAT_NAME_MAX_LENGTH + 32];

	snprintf(call, sizeof call, "dat_ia_open of %s", name);
	good(rc, call);
}

void resolve(const char *name, struct sockaddr_storage *address)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found;
	int rc = getaddrinfo(name, NULL, &hints, &found);

	if (rc)
		fail("%s: %s", name, gai_strerror(rc));
	memset(address, 0, sizeof *address);
	memcpy(address, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
}

double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}
