/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* plain.c - what the machine can do without the software device: hand-over of a cache line, memcpy,
 * plain TCP, a copy by the kernel. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include "plain.h"
#include "two.h"

static void hand_over(uint64_t n)
{
	uint64_t *mine = me ? &shared->pong : &shared->ping;
	uint64_t *other = me ? &shared->ping : &shared->pong;

	if (!me)
		__atomic_store_n(mine, n, __ATOMIC_RELEASE);
	for (unsigned i = 1; __atomic_load_n(other, __ATOMIC_ACQUIRE) != n; i++)
		if (i % 100000 == 0)
			sched_yield();
	if (me)
		__atomic_store_n(mine, n, __ATOMIC_RELEASE);
}

/* Both have seen the last round when the words are used anew. */
void hand_overs(void)
{
	ping_pong("cache line hand-over", hand_over, 1000);
	together();
	shared->ping = shared->pong = 0;
	together();
}

static void copy_speed(void)
{
	char *from = malloc(LARGE), *to = malloc(LARGE);
	double took[BATCHES];

	memset(from, 1, LARGE);
	memset(to, 2, LARGE);
	for (int i = 0; !me && i < BATCHES; i++) {
		took[i] = now();
		memcpy(to, from, LARGE);
		__asm__ volatile("" : : "r"(to) : "memory");
		took[i] = now() - took[i];
	}
	if (!me)
		report("memcpy of 1 MiB", LARGE / median(took, BATCHES) / 1e9, "GB/s");
	free(from);
	free(to);
}

static int sock;
static char *block;
size_t block_size;

static int tcp_listener(struct sockaddr_in *address)
{
	socklen_t length = sizeof *address;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	*address = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	if (bind(fd, (struct sockaddr *)address, sizeof *address) || listen(fd, CONNECTIONS_MAX))
		fail("listen", strerror(errno));
	getsockname(fd, (struct sockaddr *)address, &length);
	return fd;
}

void tcp_connections(int n)
{
	static struct sockaddr_in address;
	static int listener = -1, fds[2 * CONNECTIONS_MAX];

	if (listener < 0)
		listener = tcp_listener(&address);
	for (int i = 0; i < n; i++) {
		fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		if (connect(fds[i], (struct sockaddr *)&address, sizeof address) && errno != EINPROGRESS)
			fail("connect", strerror(errno));
	}
	for (int i = n; i < 2 * n; i++)
		if ((fds[i] = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) < 0)
			fail("accept", strerror(errno));
	for (int i = 0; i < 2 * n; i++)
		close(fds[i]);
}

void tcp_connect(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int on = 1, listener = -1;

	if (!me) {
		listener = tcp_listener(&a);
		shared->port = a.sin_port;
	}
	together();
	a.sin_port = shared->port;
	if (!me) {
		sock = accept(listener, NULL, NULL);
		close(listener);
	} else {
		sock = socket(AF_INET, SOCK_STREAM, 0);
		if (connect(sock, (struct sockaddr *)&a, sizeof a))
			fail("connect", strerror(errno));
	}
	setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	block = calloc(1, LARGE);
}

/* MSG_DONTWAIT: spinning. */
static void tcp_take(size_t size, int flags)
{
	unsigned empty = 0;

	for (size_t got = 0; got < size;) {
		ssize_t n = recv(sock, block + got, size - got, flags);

		if (n > 0)
			got += n;
		else if (!n || errno != EAGAIN)
			fail("recv", n ? strerror(errno) : "end");
		else if (++empty % 500 == 0)
			sched_yield();
	}
}

static void tcp_give(size_t size)
{
	for (size_t sent = 0; sent < size;) {
		ssize_t n = send(sock, block + sent, size - sent, 0);

		if (n < 0)
			fail("send", strerror(errno));
		sent += n;
	}
}

void tcp_round(uint64_t n)
{
	(void)n;
	if (!me)
		tcp_give(block_size);
	tcp_take(block_size, MSG_DONTWAIT);
	if (me)
		tcp_give(block_size);
}

const struct tcp_way tcp_way[TCP_WAYS] = {
	{ LARGE, 0 }, { LARGE, MSG_DONTWAIT }, { MIDDLE, 0 }, { MIDDLE, MSG_DONTWAIT },
};

double tcp_stream(const struct tcp_way *way, int batches)
{
	double took[STREAMS];

	together();
	for (int batch = 0; batch < batches; batch++) {
		took[batch] = now();
		for (int i = 0; !me && i < STREAM; i++)
			tcp_give(LARGE);
		for (size_t i = 0; me && i < STREAM * (size_t)LARGE; i += way->piece)
			tcp_take(way->piece, way->flags);
		if (me)
			tcp_give(1);
		else
			tcp_take(1, 0);
		took[batch] = now() - took[batch];
	}
	return STREAM * (double)LARGE / median(took, batches) / 1e9;
}

static void tcp_streams(void)
{
	double best = 0, speed;

	for (int i = 0; i < TCP_WAYS; i++) {
		speed = tcp_stream(&tcp_way[i], STREAMS);
		if (speed > best)
			best = speed;
	}
	report("plain TCP stream 1 MiB", best, "GB/s");
}

/* Into the other's memory, by the kernel. */
static void copy_over(size_t bytes)
{
	struct iovec from = { block, bytes }, to = { shared->block, bytes };

	if (process_vm_writev(shared->other, &from, 1, &to, 1, 0) != (ssize_t)bytes)
		fail("process_vm_writev", strerror(errno));
}

static void kernel_copy(void)
{
	double took;

	if (me) {
		shared->other = getpid();
		shared->block = block;
	}
	together();
	took = while_it_sleeps(copy_over, SMALL);
	together();
	report("process_vm_writev 8 B to a sleeping process", took, "us");
}

int limits(void)
{
	pid_t child = split();

	hand_overs();
	copy_speed();
	tcp_connect();
	block_size = SMALL;
	ping_pong("plain TCP 8 B", tcp_round, ROUNDS);
	block_size = MIDDLE;
	ping_pong("plain TCP 64 KiB", tcp_round, 20);
	tcp_streams();
	kernel_copy();
	return join(child);
}
