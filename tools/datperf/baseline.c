/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* baseline.c - TCP and memcpy() on this host (baseline.h). The other end of the TCP connection is
 * a child process. */
#include "baseline.h"
#include "../call.h"
#include "../cli.h"
#include "stats.h"
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 100000, WARM_UP = 100, STREAM_CHUNK = 64 };

struct tcp {
	int fd;
	pid_t peer;
	char *buffer;
};

static int listen_on_loopback(struct sockaddr_in *address)
{
	socklen_t length = sizeof *address;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*address = (struct sockaddr_in){ .sin_family = AF_INET,
					 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	if (fd < 0 || bind(fd, (struct sockaddr *)address, sizeof *address) || listen(fd, 1) ||
	    getsockname(fd, (struct sockaddr *)address, &length))
		fail("a TCP socket on the loopback interface: %m");
	return fd;
}

static bool transfer(int fd, char *at, size_t size, ssize_t (*call)(int, char *, size_t))
{
	while (size) {
		ssize_t n = call(fd, at, size);

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

/* Runs in the child. Echoes each message; or receives all messages, and answers one byte for each
 * STREAM_CHUNK of them. Ends when the parent closes the connection. */
static void answer_peer(int fd, char *buffer, size_t size, bool echo)
{
	for (unsigned n = 1; transfer(fd, buffer, size, receive_some); n++)
		if (echo ? !transfer(fd, buffer, size, send_some)
			 : n % STREAM_CHUNK == 0 && !transfer(fd, buffer, 1, send_some))
			break;
	_exit(0);
}

static struct tcp open_tcp(size_t size, bool echo)
{
	struct tcp tcp = { .buffer = calloc(1, size), .fd = -1 };
	struct sockaddr_in address;
	int listener = listen_on_loopback(&address), on = 1;

	if (!tcp.buffer)
		fail("no memory for %zu bytes", size);
	tcp.peer = fork();
	if (tcp.peer < 0)
		fail("fork: %m");
	tcp.fd = tcp.peer ? accept4(listener, NULL, NULL, SOCK_CLOEXEC)
			  : socket(AF_INET, SOCK_STREAM, 0);
	if (!tcp.peer && connect(tcp.fd, (struct sockaddr *)&address, sizeof address))
		_exit(1);
	close(listener);
	setsockopt(tcp.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	if (!tcp.peer)
		answer_peer(tcp.fd, tcp.buffer, size, echo);
	if (tcp.fd < 0)
		fail("accept on the loopback interface: %m");
	return tcp;
}

static void close_tcp(struct tcp *tcp)
{
	close(tcp->fd);
	while (waitpid(tcp->peer, NULL, 0) < 0)
		;
	free(tcp->buffer);
}

static void must(bool done)
{
	if (!done)
		fail("TCP on the loopback interface: the connection broke");
}

double baseline_tcp_latency(size_t size, double seconds)
{
	double *took = calloc(ROUNDS, sizeof *took), end, median;
	struct tcp tcp = open_tcp(size, true);
	uint32_t n = 0;

	if (!took)
		fail("no memory");
	end = now() + seconds;
	for (uint32_t i = 0; n < ROUNDS && (now() < end || !n); i++) {
		double start = now();

		must(transfer(tcp.fd, tcp.buffer, size, send_some) &&
		     transfer(tcp.fd, tcp.buffer, size, receive_some));
		if (i >= WARM_UP)
			took[n++] = (now() - start) * 1e6 / 2;
	}
	median = stats_of(took, n).median;
	close_tcp(&tcp);
	free(took);
	return median;
}

double baseline_tcp_bandwidth(size_t size, double seconds)
{
	struct tcp tcp = open_tcp(size, false);
	double start = now(), sent = 0;
	char taken;

	do {
		for (int i = 0; i < STREAM_CHUNK; i++)
			must(transfer(tcp.fd, tcp.buffer, size, send_some));
		must(transfer(tcp.fd, &taken, 1, receive_some));
		sent += (double)size * STREAM_CHUNK;
	} while (now() - start < seconds);
	sent /= now() - start;
	close_tcp(&tcp);
	return sent;
}

double baseline_memcpy_bandwidth(size_t size, double seconds)
{
	char *from = calloc(1, size), *to = calloc(1, size);
	double start, copied = 0;

	if (!from || !to)
		fail("no memory for %zu bytes", size);
	memcpy(to, from, size);
	start = now();
	do {
		for (int i = 0; i < STREAM_CHUNK; i++) {
			memcpy(to, from, size);
			__asm__ volatile("" : : "r"(to) : "memory"); /* no copy is optimised out */
		}
		copied += (double)size * STREAM_CHUNK;
	} while (now() - start < seconds);
	copied /= now() - start;
	free(from);
	free(to);
	return copied;
}
