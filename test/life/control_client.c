/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* control_client.c - see control_client.h. */
#include "control_client.h"
#include "life.h"
#include "common/control.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int find_names(pid_t pid, char names[][108], int room)
{
	FILE *file = fopen("/proc/net/unix", "re");
	char line[512], want[32];
	int found = 0;

	if (!file)
		fail("/proc/net/unix: %s", strerror(errno));
	snprintf(want, sizeof want, " @" CONTROL_PREFIX "%d-", (int)pid);
	while (fgets(line, sizeof line, file)) {
		char *at = strstr(line, want);

		if (!at || !strstr(line, " 00010000 "))	/* a listener, no connection */
			continue;
		at[strcspn(at, "\n")] = '\0';
		if (found < room)
			snprintf(names[found], 108, "%s", at + 2);
		found++;
	}
	fclose(file);
	return found;
}

ssize_t get_packet(int fd, void *packet, size_t size)
{
	struct pollfd readable = { .fd = fd, .events = POLLIN };

	if (poll(&readable, 1, CONTROL_CLIENT_MS) != 1)
		return -1;
	return recv(fd, packet, size, 0);
}

int connect_raw(const char *name)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	size_t length = strlen(name);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	EXPECT(fd >= 0);
	memcpy(to.sun_path + 1, name, length);
	if (connect(fd, (struct sockaddr *)&to, offsetof(struct sockaddr_un, sun_path) + 1 + length))
		fail("connect to %s: %s", name, strerror(errno));
	return fd;
}

int connect_to(const char *name)
{
	struct {
		struct control_header header;
		char body[256];
	} packet;
	int fd = connect_raw(name);

	if (get_packet(fd, &packet, sizeof packet) != sizeof packet.header + 2 || packet.header.flags)
		fail("no greeting");
	return fd;
}

const char *name_here(void)
{
	static char names[4][108];
	int n = find_names(getpid(), names, 4);

	if (n != 1)
		fail("%d control sockets", n);
	return names[0];
}

int connect_here(void)
{
	return connect_to(name_here());
}

void expect_refusal(const char *name, const char *why)
{
	char text[256] = "";
	int fd = connect_raw(name);

	EXPECT(get_packet(fd, text, sizeof text - 1) > 8);
	if (!strstr(text + 8, why))
		fail("\"%s\" is not in %s", why, text + 8);
	EXPECT(get_packet(fd, text, sizeof text) <= 0);
	close(fd);
}

bool send_request(int fd, unsigned verb, const char *body)
{
	struct {
		struct control_header header;
		char body[CONTROL_BODY];
	} packet = { { strlen(body), verb, 0 }, "" };

	memcpy(packet.body, body, strlen(body));
	return send(fd, &packet, sizeof packet.header + strlen(body), MSG_NOSIGNAL) > 0;
}

struct answer answer;

bool ask_on(int fd, unsigned verb, const char *body)
{
	static struct {
		struct control_header header;
		char body[CONTROL_BODY + 1];
	} packet;
	size_t length = 0;

	answer.pieces = 0;
	do {
		ssize_t n;

		if (!send_request(fd, answer.pieces ? CONTROL_NEXT : verb, answer.pieces ? "" : body))
			return false;
		n = get_packet(fd, &packet, sizeof packet);
		if (n < (ssize_t)sizeof packet.header)
			return false;
		if (packet.header.length != n - sizeof packet.header ||
		    packet.header.length > CONTROL_BODY)
			fail("a piece of %zd bytes says that it has %u", n, packet.header.length);
		EXPECT(length + packet.header.length < sizeof answer.text);
		memcpy(answer.text + length, packet.body, packet.header.length);
		length += packet.header.length;
		answer.pieces++;
	} while (packet.header.flags & CONTROL_MORE);
	answer.text[length] = '\0';
	answer.failed = packet.header.flags & CONTROL_FAILED;
	return true;
}

void ask(unsigned verb, const char *body)
{
	int fd = connect_here();

	if (!ask_on(fd, verb, body))
		fail("no answer to verb %u \"%s\"", verb, body);
	close(fd);
}

void expect_text(const char *part)
{
	if (!strstr(answer.text, part))
		fail("\"%s\" is not in %.2000s", part, answer.text);
}

void expect_cut_off(int fd)
{
	char packet[64];
	ssize_t n = get_packet(fd, packet, sizeof packet);

	if (n > 0 || (n < 0 && errno != ECONNRESET))
		fail("a client that is to be cut off gets %zd bytes", n);
	close(fd);
}
