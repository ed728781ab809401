/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tcp.c - see tcp.h. */
#include "tcp.h"
#include "../call.h"
#include "../cli.h"
#include "stats.h"
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum {
	ROUNDS = 100000, WARM_UP = 100,
	STREAM_CHUNK = 64,	/* messages for each acknowledgement */
	CONNECT_SECONDS = 5,	/* a firewall may drop the port */
	ACCEPT_SECONDS = 6,	/* more than the client waits */
	STALL_SECONDS = 20,	/* as LINK_TIMEOUT: the peer sends or takes nothing */
};

/* --- both sides ---------------------------------------------------------------- */

static bool transfer(int fd, char *at, size_t size, ssize_t (*call)(int, char *, size_t))
{
	while (size) {
		ssize_t n = call(fd, at, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		at += n;
		size -= (size_t)n;
	}
	return true;
}

static ssize_t receive_some(int fd, char *at, size_t size)
{
	return recv(fd, at, size, 0);
}

static ssize_t send_some(int fd, char *at, size_t size)
{
	return send(fd, at, size, MSG_NOSIGNAL);
}

static void set_options(int fd)
{
	const struct timeval stall = { .tv_sec = STALL_SECONDS };
	int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &stall, sizeof stall);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &stall, sizeof stall);
}

static bool is_ready(int fd, short events, int seconds)
{
	struct pollfd one = { .fd = fd, .events = events };
	int n;

	do
		n = poll(&one, 1, seconds * 1000);
	while (n < 0 && errno == EINTR);
	return n > 0;
}

static void *buffer_of(size_t size)
{
	void *buffer = calloc(1, size);

	if (!buffer)
		fail("no memory for %zu bytes", size);
	return buffer;
}

/* Copies the address with the port, which the address has not. Returns its length. */
static socklen_t with_port(struct sockaddr_storage *to, const struct sockaddr *from, uint16_t port)
{
	socklen_t length = from->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);

	memset(to, 0, sizeof *to);
	memcpy(to, from, length);
	if (from->sa_family == AF_INET6)
		((struct sockaddr_in6 *)to)->sin6_port = htons(port);
	else
		((struct sockaddr_in *)to)->sin_port = htons(port);
	return length;
}

/* --- the server ---------------------------------------------------------------- */

int tcp_listen(const struct sockaddr *at, uint16_t *port)
{
	struct sockaddr_storage address;
	socklen_t length = with_port(&address, at, 0);
	int fd = socket(at->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	if (bind(fd, (struct sockaddr *)&address, length) || listen(fd, 1) ||
	    getsockname(fd, (struct sockaddr *)&address, &length)) {
		close(fd);
		return -1;
	}
	*port = ntohs(at->sa_family == AF_INET6 ? ((struct sockaddr_in6 *)&address)->sin6_port
						: ((struct sockaddr_in *)&address)->sin_port);
	return fd;
}

static void answer_peer(int fd, char *buffer, size_t size, bool echo)
{
	for (unsigned n = 1; transfer(fd, buffer, size, receive_some); n++)
		if (echo ? !transfer(fd, buffer, size, send_some)
			 : n % STREAM_CHUNK == 0 && !transfer(fd, buffer, 1, send_some))
			break;
}

void tcp_serve(int listener, size_t size, bool echo)
{
	int fd = is_ready(listener, POLLIN, ACCEPT_SECONDS) ? accept4(listener, NULL, NULL, SOCK_CLOEXEC) : -1;
	char *buffer;

	close(listener);
	if (fd < 0)
		return;
	set_options(fd);
	buffer = buffer_of(size);
	answer_peer(fd, buffer, size, echo);
	free(buffer);
	close(fd);
}

/* --- the client ---------------------------------------------------------------- */

/* Returns 0 or an errno value. */
static int connect_within(int fd, const struct sockaddr *to, socklen_t length)
{
	socklen_t size = sizeof(int);
	int err = 0;

	if (!connect(fd, to, length))
		return 0;
	if (errno != EINPROGRESS)
		return errno;
	if (!is_ready(fd, POLLOUT, CONNECT_SECONDS))
		return ETIMEDOUT;
	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &size) ? errno : err;
}

const char *tcp_connect(const struct sockaddr *to, uint16_t port, int *fd)
{
	struct sockaddr_storage address;
	socklen_t length = with_port(&address, to, port);
	int err;

	*fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (*fd < 0)
		return strerror(errno);
	err = connect_within(*fd, (struct sockaddr *)&address, length);
	if (err) {
		close(*fd);
		*fd = -1;
		return strerror(err);
	}
	fcntl(*fd, F_SETFL, 0);
	set_options(*fd);
	return NULL;
}

static void must(bool done)
{
	if (!done)
		fail("TCP to the server, for --compare: the connection broke");
}

double tcp_latency(int fd, size_t size, double seconds)
{
	double *took = calloc(ROUNDS, sizeof *took), end, median;
	char *buffer = buffer_of(size);
	uint32_t n = 0;

	if (!took)
		fail("no memory");
	end = now() + seconds;
	for (uint32_t i = 0; n < ROUNDS && (now() < end || !n); i++) {
		double start = now();

		must(transfer(fd, buffer, size, send_some) && transfer(fd, buffer, size, receive_some));
		if (i >= WARM_UP)
			took[n++] = (now() - start) * 1e6 / 2;
	}
	median = stats_of(took, n).median;
	close(fd);
	free(buffer);
	free(took);
	return median;
}

double tcp_bandwidth(int fd, size_t size, double seconds)
{
	double start = now(), sent = 0;
	char *buffer = buffer_of(size), taken;

	do {
		for (int i = 0; i < STREAM_CHUNK; i++)
			must(transfer(fd, buffer, size, send_some));
		must(transfer(fd, &taken, 1, receive_some));
		sent += (double)size * STREAM_CHUNK;
	} while (now() - start < seconds);
	sent /= now() - start;
	close(fd);
	free(buffer);
	return sent;
}
