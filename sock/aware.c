/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* aware.c - see aware.h. */
#include "sock/aware.h"
#include <errno.h>
#include <netinet/in.h>
#include "common/sock_mark.h"
#include "sock/real.h"
#include "sock/settings.h"

static void mark(int fd)
{
	int one = 1, saved = errno;

	/* A second mark changes nothing, so no note is kept of a mark; programs may be attached later. */
	REAL(setsockopt)(fd, SOCK_MARK_LEVEL, SOCK_MARK_OPTION, &one, sizeof one);
	errno = saved;
}

void aware_before_connect(int fd, const struct sockaddr *peer, socklen_t length)
{
	if (settings_have_networks() && peer &&
	    ((peer->sa_family == AF_INET && length >= sizeof(struct sockaddr_in)) ||
	     (peer->sa_family == AF_INET6 && length >= sizeof(struct sockaddr_in6))) &&
	    settings_allow_network(peer, peer))
		mark(fd);
}

/* Its port may not be known yet, and its peers are not. */
void aware_before_listen(int fd)
{
	if (settings_have_networks())
		mark(fd);
}
