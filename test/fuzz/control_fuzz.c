/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* control_fuzz.c - any packets to the control socket of a provider library with an IA, an EVD and an
 * endpoint: a packet that is malformed ends the connection; every other one is answered with one
 * object, in pieces, or with the reason why not. request_fuzz.c has the JSON alone.
 *
 * An input is records of a verb, two bytes and a body. The first of the two bytes says what is wrong with the
 * packet, the second is the length of the body, 16 times that if the first has the bit LONG. */
#include "common/clock.h"
#include "common/control.h"
#include "common/json_read.h"
#include "common/log.h"
#include "common/trace.h"
#include "dapl/core/base/control.h"
#include "dapl/core/base/service.h"
#include "dapl/core/base/settings.h"
#include "dapl/core/ia/control_verbs.h"
#include "test/unit/core/core_device.h"
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LONG = 1, WRONG_LENGTH = 2, WRONG_FLAGS = 4, SHORT = 8, HUGE_BODY = 16 };
enum { MOMENT_MS = 20000, PACKET = sizeof(struct control_header) + CONTROL_BODY + 64 };

static struct sockaddr_un name;
static socklen_t name_length;

static void demand(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "control_fuzz: %s\n", what);
	abort();
}

/* --- the socket ---------------------------------------------------------------------------- */

/* The socket of this process that listens. */
static void find_socket(void)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;

	demand(dir, "no /proc");
	while (!name_length && (entry = readdir(dir))) {
		socklen_t size = sizeof name, length = sizeof(int);
		int fd = atoi(entry->d_name), listens = 0;

		if (!getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) && listens &&
		    !getsockname(fd, (struct sockaddr *)&name, &size) && name.sun_family == AF_UNIX)
			name_length = size;
	}
	closedir(dir);
	demand(name_length, "no control socket");
}

static uint64_t heard;		/* when the last packet came, ns */

/* On a machine that runs this thread too seldom it is rightly cut off. */
static bool was_silent(void)
{
	return clock_now_ns() - heard >= CONTROL_STALL_MS * UINT64_C(1000000);
}

/* Returns the number of bytes; 0: the program has closed the connection. */
static size_t read_packet(int fd, uint8_t *packet)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	ssize_t n;
	int came;

	do	/* the fuzzer has a timer */
		came = poll(&ready, 1, MOMENT_MS);
	while (came < 0 && errno == EINTR);
	demand(came == 1, "no answer");
	n = recv(fd, packet, PACKET, 0);
	demand(n >= 0 || errno == ECONNRESET, "the answer cannot be read");
	if (n > 0)
		heard = clock_now_ns();
	return n > 0 ? (size_t)n : 0;
}

static int open_client(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	static uint8_t packet[PACKET];

	demand(fd >= 0 && !connect(fd, (struct sockaddr *)&name, name_length), "no connection");
	demand(read_packet(fd, packet) == sizeof(struct control_header) + 2, "no welcome");
	return fd;
}

/* --- answers ------------------------------------------------------------------------------- */

/* Reads a piece of the answer to `verb`; true: there are more. */
static bool read_piece(const uint8_t *packet, size_t n, unsigned verb, bool first)
{
	struct control_header header;

	demand(n > sizeof header, "an answer without body");
	memcpy(&header, packet, sizeof header);
	demand(header.length == n - sizeof header && header.length <= CONTROL_BODY, "a wrong length");
	demand(header.verb == verb, "the answer to another verb");
	demand(!(header.flags & ~(CONTROL_MORE | CONTROL_FAILED)), "unknown flags");
	demand(!first || packet[sizeof header] == '{', "no object");
	demand(header.flags & CONTROL_MORE || packet[n - 1] == '}', "an object that does not end");
	for (size_t i = sizeof header; i < n; i++)
		demand(packet[i] >= ' ', "a control character");
	return header.flags & CONTROL_MORE;
}

static bool send_packet(int fd, const struct control_header *header, const void *body, size_t size,
			size_t cut)
{
	struct iovec parts[] = { { (void *)(uintptr_t)header, sizeof *header - cut },
		{ (void *)(uintptr_t)body, size } };
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = cut ? 1 : 2 };

	return sendmsg(fd, &message, MSG_NOSIGNAL) >= 0;
}

/* Reads the whole answer. False: the connection is closed. */
static bool read_answer(int fd, unsigned verb)
{
	static const struct control_header next = { .verb = CONTROL_NEXT };
	static uint8_t packet[PACKET];
	bool first = true;
	size_t n;

	for (;;) {
		n = read_packet(fd, packet);
		if (!n)
			return false;
		if (!read_piece(packet, n, verb, first))
			return true;
		first = false;
		demand(send_packet(fd, &next, NULL, 0, 0), "the next piece cannot be asked for");
	}
}

/* --- inputs -------------------------------------------------------------------------------- */

/* Where messages and records go is the program's again: a value for the system's log must not stay. */
static void calm(void)
{
	char why[160];

	dapl_settings_set("DAPL_DBG_DEST", "default", why, sizeof why);
	dapl_settings_set("DAPL_DBG_TYPE", "default", why, sizeof why);
	trace_set_level(TRC_LVL_OFF);
}

static uint64_t captor;		/* the client of the capture that the input began; 0: none */

static void note_captor(const uint8_t *body, size_t size)
{
	const struct json_member *client;
	struct json_object object;
	size_t at;

	if (json_read((const char *)body, size, &object, &at))
		return;
	client = json_member(&object, "client");
	if (client && client->is_number && !captor)
		captor = client->number;
}

/* A capture of one input must not change what the next one sees. */
static void end_capture(int fd)
{
	char json[64];
	struct control_header header = { .verb = CONTROL_TAP };

	if (!captor)
		return;
	header.length = (uint32_t)snprintf(json, sizeof json, "{\"client\":%llu,\"end\":1}",
					   (unsigned long long)captor);
	demand(send_packet(fd, &header, json, header.length, 0) && read_answer(fd, CONTROL_TAP),
	       "a capture cannot be ended");
	captor = 0;
}

/* Returns false if the connection has ended, which it must if and only if the packet is malformed. */
static bool request(int fd, unsigned verb, unsigned wrong, const uint8_t *body, size_t size)
{
	static uint8_t large[CONTROL_BODY + 1];
	struct control_header header = { .length = (uint32_t)size, .verb = (uint16_t)verb,
		.flags = wrong & WRONG_FLAGS ? 1 : 0 };
	bool closed;

	if (wrong & HUGE_BODY) {
		memset(large, ' ', sizeof large);
		memcpy(large, body, size);
		body = large;
		size = header.length = sizeof large;
	}
	header.length += wrong & WRONG_LENGTH ? 1 : 0;
	if (!send_packet(fd, &header, body, size, wrong & SHORT ? 1 : 0)) {
		demand(was_silent(), "a packet cannot be sent");
		return false;
	}
	closed = !read_answer(fd, verb);
	if (closed && was_silent())
		return false;
	demand(closed == (wrong & (WRONG_LENGTH | WRONG_FLAGS | SHORT | HUGE_BODY) || verb == CONTROL_NEXT),
	       "a good packet ends the connection, or a wrong one does not");
	calm();
	if (verb == CONTROL_TAP && !closed)
		note_captor(body, size);
	return !closed;
}

/* The registry reads it again when it is asked. */
static void make_conf(void)
{
	static const char line[] = "some u2.0 threadsafe default /nowhere/libnone.so dapl.2.0 \"lo 0\" \"\"\n";
	int fd = memfd_create("dat.conf", MFD_CLOEXEC);
	char path[32];

	demand(fd >= 0 && write(fd, line, sizeof line - 1) == sizeof line - 1, "no dat.conf");
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	setenv("DAT_OVERRIDE", path, 1);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static struct dapl_evd *evd;	/* static: they are no leaks */
	static struct dapl_ep *ep;
	static struct dapl_ia *ia;

	(void)argc, (void)argv;
	make_conf();
	unsetenv("DAPL_CONTROL");
	demand(!dapl_service_get(), "no service thread");
	ia = core_ia_new();
	evd = core_evd_new(ia, 8, DAT_EVD_DTO_FLAG);
	ep = core_ep_new(ia, evd, 4);
	demand(ia && evd && ep, "no objects");
	dapl_settings_read();
	dapl_control_verbs_init();
	dapl_control_get();
	find_socket();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = open_client();

	while (size >= 3) {
		size_t length = data[2] * (data[1] & LONG ? 16u : 1u);
		const uint8_t *body = data + 3;

		length = length < size - 3 ? length : size - 3;
		if (!request(fd, data[0], data[1], body, length))
			break;
		data = body + length;
		size -= 3 + length;
	}
	close(fd);
	fd = captor ? open_client() : -1;
	end_capture(fd);
	if (fd >= 0)
		close(fd);
	return 0;
}
