/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* load.c - requests over many TCP connections, for sock-run.
 *
 *	load echo PORT				answers each byte, until it is killed
 *	load client PORT CONNECTIONS BUSY SECONDS	64 bytes there and back on BUSY of the connections
 *	load memcached PORT CONNECTIONS SECONDS	gets of a value of 100 bytes from memcached
 *
 * First each connection does 16 requests. Then the clients have one request under way on each busy connection, and
 * print the requests a second. All sockets are on the loopback interface. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS = 256, VALUE = 100, WARM_UP_MS = 300, FIRST = 16 };

static void fail(const char *what)
{
	fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static struct sockaddr_in loopback(int port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)
	};
}

static void allow_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		fail("getrlimit");
	limit.rlim_cur = limit.rlim_max < 65536 ? limit.rlim_max : 65536;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		fail("setrlimit");
}

static void watch(int epoll, int fd)
{
	struct epoll_event event = { EPOLLIN, { .fd = fd } };

	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event))
		fail("epoll_ctl");
}

static void echo(int port)
{
	int listener = socket(AF_INET, SOCK_STREAM, 0), epoll = epoll_create1(0), one = 1;
	struct sockaddr_in sa = loopback(port);
	struct epoll_event events[EVENTS];
	char buffer[4096];

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (bind(listener, (void *)&sa, sizeof sa) || listen(listener, 4096))
		fail("listen");
	watch(epoll, listener);
	for (;;) {
		int n = epoll_wait(epoll, events, EVENTS, -1);

		for (int i = 0; i < n; i++) {
			int fd = events[i].data.fd;

			if (fd == listener) {
				fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
				if (fd < 0)
					fail("accept");
				setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
				watch(epoll, fd);
				continue;
			}
			ssize_t got = read(fd, buffer, sizeof buffer);

			if (got <= 0 ? got == 0 || errno != EAGAIN : write(fd, buffer, got) != got)
				close(fd);
		}
	}
}

static int connect_to(int port)
{
	struct sockaddr_in sa = loopback(port);
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	if (fd < 0 || connect(fd, (void *)&sa, sizeof sa))
		fail("connect");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	return fd;
}

/* Requests and answers have fixed lengths. */
static void run(int port, int connections, int busy, double seconds, const char *request, size_t length, size_t answer)
{
	struct {
		size_t missing;
		unsigned left; /* of the first requests */
		bool busy;
	} *state = calloc(65536, sizeof *state);
	int epoll = epoll_create1(0), warming = connections;
	struct epoll_event events[EVENTS];
	char buffer[4096];
	unsigned long done = 0;
	double begin = 1e99, end = 1e99, t;

	if (!state)
		fail("calloc");
	for (int i = 0; i < connections; i++) {
		int fd = connect_to(port);

		watch(epoll, fd);
		fcntl(fd, F_SETFL, O_NONBLOCK);
		/* The busy ones are spread over all. */
		state[fd].missing = answer, state[fd].left = FIRST, state[fd].busy = i % (connections / busy) == 0;
		if (write(fd, request, length) != (ssize_t)length)
			fail("write");
	}
	for (t = now(); t < end; t = now()) {
		int n = epoll_wait(epoll, events, EVENTS, 1000);

		if (t < begin)
			done = 0;
		for (int i = 0; i < n; i++) {
			int fd = events[i].data.fd;
			ssize_t got = read(fd, buffer, sizeof buffer);

			if (got < 0 && errno == EAGAIN)
				continue;
			if (got <= 0 || (size_t)got > state[fd].missing) {
				fprintf(stderr, "load: the answer is not what was expected\n");
				exit(1);
			}
			state[fd].missing -= got;
			if (state[fd].missing)
				continue;
			state[fd].missing = answer, done++;
			if (state[fd].left && !--state[fd].left && !--warming)
				begin = now() + WARM_UP_MS / 1e3, end = begin + seconds;
			if (!state[fd].left && !state[fd].busy)
				continue;
			if (write(fd, request, length) != (ssize_t)length)
				fail("write");
		}
	}
	printf("%.0f\n", done / (t - begin));
}

static void memcached(int port, int connections, double seconds)
{
	char value[VALUE + 1], text[256];
	int fd = connect_to(port);
	int length;

	memset(value, 'v', VALUE), value[VALUE] = 0;
	length = snprintf(text, sizeof text, "set k 0 0 %d\r\n%s\r\n", VALUE, value);
	if (write(fd, text, length) != length || read(fd, text, sizeof text) != 8 || memcmp(text, "STORED\r\n", 8))
		fail("set");
	close(fd);
	length = snprintf(text, sizeof text, "VALUE k 0 %d\r\n%s\r\nEND\r\n", VALUE, value);
	run(port, connections, connections, seconds, "get k\r\n", 7, length);
}

int main(int argc, char **argv)
{
	static const char bytes[64];
	int port = argc > 2 ? atoi(argv[2]) : 0;

	allow_descriptors();
	if (argc == 3 && !strcmp(argv[1], "echo"))
		echo(port);
	else if (argc == 6 && !strcmp(argv[1], "client") && atoi(argv[4]) > 0 && atoi(argv[3]) >= atoi(argv[4]))
		run(port, atoi(argv[3]), atoi(argv[4]), atof(argv[5]), bytes, sizeof bytes, sizeof bytes);
	else if (argc == 5 && !strcmp(argv[1], "memcached") && atoi(argv[3]) > 0)
		memcached(port, atoi(argv[3]), atof(argv[4]));
	else
		return 2;
	return 0;
}
