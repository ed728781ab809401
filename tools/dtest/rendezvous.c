/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rendezvous.c - see rendezvous.h. The text: LID:QP:GID:ADDRESS:NAME, where the first three are 0 on
 * adapters with IP addresses, and ADDRESS is an IPv4 address as a number in the order of the host. */
#include "rendezvous.h"
#include "../cli.h"
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { CONNECT_TIMEOUT = 20, ANSWER_TIMEOUT = 60 };	/* seconds, to reach the server, and for its text */

int rendezvous_listen(void)
{
	struct sockaddr_in6 any = { .sin6_family = AF_INET6, .sin6_port = htons(RENDEZVOUS_PORT) };
	struct sockaddr_in any4 = { .sin_family = AF_INET, .sin_port = htons(RENDEZVOUS_PORT) };
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1, no = 0, rc;

	if (fd >= 0) {
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
	} else {
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		any.sin6_family = AF_UNSPEC;
	}
	if (fd < 0)
		fail("no socket for TCP port %d: %s", RENDEZVOUS_PORT, strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
	rc = any.sin6_family == AF_INET6 ? bind(fd, (struct sockaddr *)&any, sizeof any) :
					   bind(fd, (struct sockaddr *)&any4, sizeof any4);
	if (rc || listen(fd, 1))
		fail("TCP port %d: %s", RENDEZVOUS_PORT, strerror(errno));
	return fd;
}

static void hand_out(int listener, const char *ia, const struct sockaddr *address)
{
	char text[RENDEZVOUS_TEXT] = "";
	unsigned number = 0;
	int fd;

	if (address->sa_family == AF_INET)
		number = ((const struct sockaddr_in *)address)->sin_addr.s_addr;
	snprintf(text, sizeof text, "0000:00000000:00000000:%08x:%s", number, ia);
	fd = accept(listener, NULL, NULL);
	if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
		return;		/* the server looks again soon */
	if (fd < 0)
		fail("handing out the address: %s", strerror(errno));
	/* the client may have ended, and not read the text */
	if (send(fd, text, sizeof text, MSG_NOSIGNAL) != (ssize_t)sizeof text && errno != EPIPE && errno != ECONNRESET)
		fail("handing out the address: %s", strerror(errno));
	close(fd);
}

void rendezvous_serve(int listener, int timeout, const char *ia, const struct sockaddr *address)
{
	struct pollfd waiting = { .fd = listener, .events = POLLIN };
	int n = poll(&waiting, 1, timeout);

	if (n > 0)
		hand_out(listener, ia, address);
	else if (n < 0 && errno != EINTR)
		fail("waiting for a client: %s", strerror(errno));
}

static void receive_text(int fd, const char *host, char text[RENDEZVOUS_TEXT])
{
	size_t got = 0;
	ssize_t n;

	while (got < RENDEZVOUS_TEXT) {
		n = recv(fd, text + got, RENDEZVOUS_TEXT - got, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			fail("%s, TCP port %d: %zu bytes found, the %d of a dtest server expected within %d s", host,
			     RENDEZVOUS_PORT, got, RENDEZVOUS_TEXT, ANSWER_TIMEOUT);
		if (n <= 0)
			fail("%s, TCP port %d: %zu bytes found, the %d of a dtest server expected%s%s", host,
			     RENDEZVOUS_PORT, got, RENDEZVOUS_TEXT, n ? ": " : "", n ? strerror(errno) : "");
		got += (size_t)n;
	}
	text[RENDEZVOUS_TEXT - 1] = '\0';
}

/* Returns a socket, or ends the program. */
static int connect_to(const struct sockaddr *address, const char *host)
{
	struct sockaddr_storage to = { 0 };
	socklen_t length = address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
	int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct timeval limit = { .tv_sec = ANSWER_TIMEOUT }, connect_limit = { .tv_sec = CONNECT_TIMEOUT };

	if (fd < 0)
		fail("no socket for %s: %s", host, strerror(errno));
	memcpy(&to, address, length);
	if (to.ss_family == AF_INET6)
		((struct sockaddr_in6 *)&to)->sin6_port = htons(RENDEZVOUS_PORT);
	else
		((struct sockaddr_in *)&to)->sin_port = htons(RENDEZVOUS_PORT);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &connect_limit, sizeof connect_limit);
	if (!connect(fd, (struct sockaddr *)&to, length))
		return fd;
	if (errno == EINPROGRESS)	/* the time limit */
		fail("%s, TCP port %d: no answer within %d s; is the host up, does a firewall drop the port?", host,
		     RENDEZVOUS_PORT, CONNECT_TIMEOUT);
	fail("%s, TCP port %d: %s%s", host, RENDEZVOUS_PORT, strerror(errno),
	     errno == ECONNREFUSED ? "; is a dtest server running there?" : "");
}

void rendezvous_ask(const struct sockaddr *address, const char *host, char ia[RENDEZVOUS_TEXT])
{
	char text[RENDEZVOUS_TEXT], *name = text;
	int fd = connect_to(address, host);

	receive_text(fd, host, text);
	close(fd);
	for (int colons = 0; colons < 4; colons++) {
		name = strchr(name, ':');
		if (!name)
			fail("%s, TCP port %d: \"%s\" found, the text of a dtest server expected", host,
			     RENDEZVOUS_PORT, text);
		name++;
	}
	strcpy(ia, name);
}
