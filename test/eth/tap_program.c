/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tap_program.c - a program without IA that shows messages to `datcap rdma`: those that the lines of its standard
 * input tell. So each kind of message, and of device, can be shown. It prints its process number when `datcap` may
 * ask, and ends with a signal, or after a minute.
 *
 * A line has the numbers: time kind op flags length captured word stag remote sink_stag sink compare_add swap qpn
 * remote_qpn mtu; then local address, port, remote address, port. Byte i of a message of n bytes is 7 * i + n. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "common/control.h"
#include "tools/datcap/tap_record.h"

enum { LIFE_S = 60, OF_CONNECTION = TAP_MEMORY | TAP_ACTIVE | TAP_ROCE };

static int ring_fd;
static struct tap_ring *ring;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void make_ring(void)
{
	ring_fd = memfd_create("tap", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (ring_fd < 0 || ftruncate(ring_fd, TAP_HEAD + TAP_SIZE) ||
	    fcntl(ring_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
		die("memfd");
	ring = mmap(NULL, TAP_HEAD + TAP_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, ring_fd, 0);
	if (ring == MAP_FAILED)
		die("mmap");
	ring->magic = TAP_MAGIC;
	ring->version = TAP_VERSION;
	ring->size = TAP_SIZE;
	ring->began = 1;
}

static struct tap_entry *take_lines(uint32_t size)
{
	struct tap_entry *e = (struct tap_entry *)((char *)ring + TAP_HEAD + ring->head);

	if (ring->head + size > TAP_SIZE) {
		fprintf(stderr, "the ring is too small\n");
		exit(1);
	}
	ring->head += size;
	return e;
}

static void put_entry(const struct tap_record *r)
{
	const uint32_t behind = tap_payload_size(r->op, r->captured);
	struct tap_entry *e = take_lines(TAP_LINE);
	uint8_t *at;

	*e = (struct tap_entry){ .qpn = r->qpn, .state = TAP_VALID, .kind = TAP_ENDS,
		.flags = r->flags & OF_CONNECTION, .ends = r->ends };
	e = take_lines(TAP_LINE + behind);
	*e = (struct tap_entry){ .time = r->time, .qpn = r->qpn, .state = TAP_VALID, .kind = r->kind, .op = r->op,
		.flags = r->flags & ~OF_CONNECTION };
	e->message = (struct tap_message){ .length = r->length, .captured = r->captured, .word = r->word,
		.stag = r->memory.stag, .remote = r->memory.remote };
	if (tap_fetches(r->op)) {
		e->message.word = r->memory.sink_stag;
		e->message.sink = r->memory.sink;
		e->message.compare_add = r->atomic.compare_add;
		e->message.swap = r->atomic.swap;
	}
	at = behind ? (uint8_t *)(e + 1) : e->message.payload;
	for (uint32_t i = 0; i < r->captured; i++)
		at[i] = (uint8_t)(7 * i + r->length);
}

static void set_address(struct tap_address *to, const char *text, unsigned port)
{
	to->family = strchr(text, ':') ? 6 : 4;
	to->port = (uint16_t)port;
	if (inet_pton(to->family == 6 ? AF_INET6 : AF_INET, text, to->ip) != 1)
		die(text);
}

static struct tap_record record_of(const char *line)
{
	enum { NUMBERS = 16 };
	uint64_t n[NUMBERS];
	char local[64], remote[64], *at = (char *)line;
	unsigned local_port, remote_port;
	struct tap_record r;

	for (int i = 0; i < NUMBERS; i++)
		n[i] = strtoull(at, &at, 10);
	if (sscanf(at, "%63s %u %63s %u", local, &local_port, remote, &remote_port) != 4)
		die(line);
	r = (struct tap_record){ .time = n[0], .kind = (uint8_t)n[1], .op = (uint8_t)n[2], .flags = (uint8_t)n[3],
		.length = (uint32_t)n[4], .captured = (uint32_t)n[5], .word = (uint32_t)n[6],
		.memory = { .stag = (uint32_t)n[7], .remote = n[8], .sink_stag = (uint32_t)n[9], .sink = n[10] },
		.atomic = { n[11], n[12] }, .qpn = (uint32_t)n[13],
		.ends = { .remote_qpn = (uint32_t)n[14], .mtu = (uint32_t)n[15] } };
	set_address(&r.ends.local, local, local_port);
	set_address(&r.ends.remote, remote, remote_port);
	return r;
}

static void read_messages(void)
{
	char line[512];

	while (fgets(line, sizeof line, stdin)) {
		struct tap_record r = record_of(line);

		put_entry(&r);
	}
}

static int listen_on_socket(void)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int n = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, CONTROL_PREFIX "%ld-0-verbs", (long)getpid());
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&name, size) || listen(fd, 8))
		die("socket");
	return fd;
}

static void answer(int client, uint16_t verb, const char *body)
{
	struct { struct control_header header; char body[256]; } packet = { .header = { .verb = verb } };

	packet.header.length = (uint32_t)strlen(body);
	memcpy(packet.body, body, packet.header.length);
	send(client, &packet, sizeof packet.header + packet.header.length, MSG_NOSIGNAL);
}

static void serve(int client)
{
	struct { struct control_header header; char body[CONTROL_BODY]; } request;
	char body[128];

	snprintf(body, sizeof body, "{\"descriptor\":%d,\"began\":%" PRIu64 "}", ring_fd, ring->began);
	answer(client, CONTROL_NEXT, "{}");
	while (recv(client, &request, sizeof request, 0) >= (ssize_t)sizeof request.header)
		answer(client, request.header.verb, request.header.verb == CONTROL_TAP ? body : "{}");
	close(client);
}

int main(void)
{
	int fd;

	alarm(LIFE_S);
	make_ring();
	read_messages();
	fd = listen_on_socket();
	printf("%ld\n", (long)getpid());
	fclose(stdout);
	for (;;) {
		int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

		if (client < 0)
			die("accept");
		serve(client);
	}
}
