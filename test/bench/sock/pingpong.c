/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pingpong.c - half a round trip, and the speed of a stream, over one connection: for sock-pairs.
 *
 *	pingpong KIND serve ADDRESS PORT		one client
 *	pingpong KIND block|poll|stream BYTES SECONDS ADDRESS PORT
 *
 * KIND is tcp, smc (the kernel's AF_SMC), unix (ADDRESS is a path) or rsocket (the calls of rsocket(3)). block: both
 * ends block in their calls. poll: both read without waiting until there is something. The client prints
 * microseconds, or MB/s. First it warms up for a while, in which libdatsock moves the connection. The last byte of
 * each message is checked. */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
	LARGEST = 1 << 20,  /* bytes of a message */
	LEAST_WARM_UP = 100, /* messages; the clock alone would warm a slow carrier up with too few */
	BURST = 16,         /* messages of a stream between two looks at the clock */
	CONNECT_TRIES = 100,
};

enum test { BLOCK, POLL, STREAM, END };

/* What the client tells first, and before the end of the connection. */
struct order {
	uint32_t test, bytes;
};

static struct calls {
	int (*socket)(int, int, int);
	int (*bind)(int, const struct sockaddr *, socklen_t);
	int (*listen)(int, int);
	int (*accept)(int, struct sockaddr *, socklen_t *);
	int (*connect)(int, const struct sockaddr *, socklen_t);
	ssize_t (*recv)(int, void *, size_t, int);
	ssize_t (*send)(int, const void *, size_t, int);
	int (*setsockopt)(int, int, int, const void *, socklen_t);
	int (*close)(int);
} call;

static char *buffer;

static void fail(const char *what)
{
	fprintf(stderr, "pingpong: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void use_rsockets(void)
{
	void *library = dlopen("librdmacm.so.1", RTLD_NOW);

	if (!library) {
		fprintf(stderr, "pingpong: %s\n", dlerror());
		exit(1);
	}
#define TAKE(name) \
	*(void **)&call.name = dlsym(library, "r" #name); \
	if (!call.name) \
		fail("r" #name);
	TAKE(socket) TAKE(bind) TAKE(listen) TAKE(accept) TAKE(connect)
	TAKE(recv) TAKE(send) TAKE(setsockopt) TAKE(close)
#undef TAKE
}

/* Reads or writes all of it. With `poll` the call is repeated until it moves bytes. */
static void get(int fd, char *p, size_t length, bool poll)
{
	while (length) {
		ssize_t n = call.recv(fd, p, length, poll ? MSG_DONTWAIT : 0);

		if (n < 0 && poll && errno == EAGAIN)
			continue;
		if (n <= 0)
			fail(n ? "recv" : "recv: early end");
		p += n, length -= n;
	}
}

static void put(int fd, const char *p, size_t length, bool poll)
{
	while (length) {
		ssize_t n = call.send(fd, p, length, poll ? MSG_DONTWAIT : 0);

		if (n < 0 && poll && errno == EAGAIN)
			continue;
		if (n <= 0)
			fail("send");
		p += n, length -= n;
	}
}

static void turn(int fd, size_t bytes, bool poll)
{
	static unsigned char number;

	buffer[bytes - 1] = ++number;
	put(fd, buffer, bytes, poll);
	buffer[bytes - 1] = 0;
	get(fd, buffer, bytes, poll);
	if ((unsigned char)buffer[bytes - 1] != number) {
		fprintf(stderr, "pingpong: wrong bytes\n");
		exit(1);
	}
}

/* Answers the orders of one client until END. The last byte of a message is 0 when another order follows. */
static void serve(int fd)
{
	struct order order;

	for (;;) {
		get(fd, (char *)&order, sizeof order, false);
		if (order.test == END || order.bytes < 1 || order.bytes > LARGEST)
			return;
		do {
			get(fd, buffer, order.bytes, order.test == POLL);
			if (order.test != STREAM || !buffer[0])
				put(fd, buffer, order.test == STREAM ? 1 : order.bytes, order.test == POLL);
		} while (buffer[0]);
	}
}

/* For that time: returns how often. */
static uint64_t run(int fd, enum test test, size_t bytes, double seconds, uint64_t least)
{
	double end = now() + seconds;
	uint64_t count = 0;

	buffer[0] = 1;
	if (test == STREAM) {
		do
			for (int i = 0; i < BURST; i++, count++)
				put(fd, buffer, bytes, false);
		while (now() < end || count < least);
		buffer[0] = 0;
		put(fd, buffer, bytes, false);
		get(fd, buffer, 1, false);
		return count + 1;
	}
	do {
		turn(fd, bytes, test == POLL);
		count++;
	} while (now() < end || count < least);
	buffer[0] = 0;
	turn(fd, bytes, test == POLL);
	return count + 1;
}

static void order(int fd, enum test test, size_t bytes)
{
	struct order o = { test, bytes };

	put(fd, (char *)&o, sizeof o, false);
}

int main(int argc, char **argv)
{
	static const char *const tests[] = { "block", "poll", "stream" };
	const char *kind = argc > 1 ? argv[1] : "", *address, *port;
	struct sockaddr_storage at = { 0 };
	bool server = argc == 5 && !strcmp(argv[2], "serve");
	int family = AF_INET, fd, one = 1, test = 0;
	size_t bytes = 0;
	double seconds, begin;
	socklen_t size;
	uint64_t count;

	if (!server && argc != 7) {
		fprintf(stderr, "usage: pingpong tcp|smc|unix|rsocket serve ADDRESS PORT\n"
				"       pingpong tcp|smc|unix|rsocket block|poll|stream BYTES SECONDS ADDRESS PORT\n");
		return 2;
	}
	address = argv[argc - 2], port = argv[argc - 1];
	call = (struct calls){ socket, bind, listen, accept, connect, recv, send, setsockopt, close };
	if (!strcmp(kind, "rsocket"))
		use_rsockets();
	if (!strcmp(kind, "unix")) {
		struct sockaddr_un *sun = (struct sockaddr_un *)&at;

		family = sun->sun_family = AF_UNIX;
		snprintf(sun->sun_path, sizeof sun->sun_path, "%s", address);
		size = sizeof *sun;
	} else {
		struct sockaddr_in *sin = (struct sockaddr_in *)&at;

		sin->sin_family = AF_INET;
		sin->sin_port = htons(atoi(port));
		if (inet_pton(AF_INET, address, &sin->sin_addr) != 1)
			fail(address);
		size = sizeof *sin;
		if (!strcmp(kind, "smc"))
			family = AF_SMC; /* addresses are those of AF_INET */
	}
	buffer = calloc(1, LARGEST);
	if (!buffer)
		fail("calloc");
	for (int try = 0;; try++) {
		fd = call.socket(family, SOCK_STREAM, 0);
		if (fd < 0)
			fail("socket");
		if (server) {
			int listener = fd;

			call.setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
			if (call.bind(fd, (struct sockaddr *)&at, size) || call.listen(fd, 1))
				fail("bind");
			fd = call.accept(listener, NULL, NULL);
			if (fd < 0)
				fail("accept");
			break;
		}
		if (!call.connect(fd, (struct sockaddr *)&at, size))
			break;
		if (try == CONNECT_TRIES)
			fail("connect");
		call.close(fd);
		usleep(100000);
	}
	if (family == AF_INET || family == AF_SMC)
		call.setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	if (server) {
		serve(fd);
		call.close(fd);
		return 0;
	}
	while (test < END && strcmp(argv[2], tests[test]))
		if (++test == END)
			fail("no such test");
	bytes = atol(argv[3]), seconds = atof(argv[4]);
	if (bytes < 1 || bytes > LARGEST)
		fail("bytes");
	order(fd, BLOCK, 64);
	run(fd, BLOCK, 64, seconds / 2, LEAST_WARM_UP);
	order(fd, test, bytes);
	run(fd, test, bytes, seconds / 4, 1);
	order(fd, test, bytes);
	begin = now();
	count = run(fd, test, bytes, seconds, 1);
	seconds = now() - begin;
	printf("%.3f\n", test == STREAM ? count * bytes / seconds / 1e6 : seconds / count / 2 * 1e6);
	order(fd, END, 0);
	call.close(fd);
	return 0;
}
