/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* client.c - see client.h. Any user may bind any abstract name, so the peer's credentials decide: an
 * answer counts only if it comes from this user, or if this user is root. */
#include "tools/control/client.h"
#include "tools/cli.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum {
	PATIENCE_S = 3,		/* for a packet; a program under load answers within milliseconds */
	ANSWER_MAX = 64 << 20,	/* bytes */
};

static void *checked(void *memory)
{
	if (!memory)
		fail("there is no memory left");
	return memory;
}

/* --- finding ---------------------------------------------------------------------- */

/* A line of /proc/net/unix that is a listening control socket, of `pid` if that is not 0. */
static bool parse_line(char *line, pid_t pid, struct control_socket *socket)
{
	char *at = strstr(line, " @" CONTROL_PREFIX), *end;
	long number;

	if (!at || !strstr(line, " 00010000 "))	/* __SO_ACCEPTCON */
		return false;
	at += 2;
	at[strcspn(at, "\n")] = '\0';
	number = strtol(at + strlen(CONTROL_PREFIX), &end, 10);
	if (number <= 0 || *end != '-' || strlen(at) >= sizeof socket->name || (pid && number != pid))
		return false;
	strcpy(socket->name, at);
	socket->pid = (pid_t)number;
	return true;
}

static int by_pid(const void *a, const void *b)
{
	const struct control_socket *x = a, *y = b;

	return x->pid != y->pid ? (x->pid > y->pid) - (x->pid < y->pid) : strcmp(x->name, y->name);
}

struct control_socket *control_find(pid_t pid, size_t *count)
{
	FILE *file = fopen("/proc/net/unix", "re");
	struct control_socket *sockets = checked(malloc(sizeof *sockets));
	char line[512];

	*count = 0;
	if (!file)
		fail("/proc/net/unix cannot be read: %s", strerror(errno));
	while (fgets(line, sizeof line, file)) {
		if (!parse_line(line, pid, &sockets[*count]))
			continue;
		++*count;
		sockets = checked(realloc(sockets, (*count + 1) * sizeof *sockets));
	}
	fclose(file);
	qsort(sockets, *count, sizeof *sockets, by_pid);
	return sockets;
}

/* --- packets ---------------------------------------------------------------------- */

struct packet {
	struct control_header header;
	char body[CONTROL_BODY + 1];
};

/* Returns the descriptor, or -1 with the reason. */
static int connect_to(const struct control_socket *to, char *why, size_t size)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	struct timeval patience = { .tv_sec = PATIENCE_S };
	socklen_t length = offsetof(struct sockaddr_un, sun_path) + 1 + strlen(to->name), ucred_size;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct ucred peer = { 0 };

	ucred_size = sizeof peer;
	memcpy(name.sun_path + 1, to->name, strlen(to->name));
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) ||
	    connect(fd, (struct sockaddr *)&name, length) ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &ucred_size)) {
		snprintf(why, size, errno == ECONNREFUSED ? "it has ended" :
			 "its control socket cannot be reached: %s", strerror(errno));
	} else if (peer.uid != geteuid() && geteuid() != 0) {
		snprintf(why, size, "it belongs to another user");
	} else if (peer.pid != to->pid) {
		snprintf(why, size, "the name of its control socket belongs to process %ld", (long)peer.pid);
	} else {
		return fd;
	}
	if (fd >= 0)
		close(fd);
	return -1;
}

static bool send_request(int fd, enum control_verb verb, const char *body, char *why, size_t size)
{
	struct packet packet = { .header = { .length = strlen(body), .verb = verb } };
	size_t length = sizeof packet.header + packet.header.length;

	if (packet.header.length > CONTROL_BODY) {
		snprintf(why, size, "the request is longer than %d bytes", CONTROL_BODY);
		return false;
	}
	memcpy(packet.body, body, packet.header.length);
	if (send(fd, &packet, length, MSG_NOSIGNAL) == (ssize_t)length)
		return true;
	snprintf(why, size, "the request cannot be sent: %s", strerror(errno));
	return false;
}

static bool receive(int fd, struct packet *packet, char *why, size_t size)
{
	ssize_t n = recv(fd, packet, sizeof *packet, 0);

	if (n >= (ssize_t)sizeof packet->header && packet->header.length <= CONTROL_BODY &&
	    packet->header.length == n - sizeof packet->header)
		return true;
	if (n < 0)
		snprintf(why, size, errno == EAGAIN ? "it does not answer within %d seconds" :
			 "the connection ended", PATIENCE_S);
	else
		snprintf(why, size, n ? "its answer is malformed" : "the connection ended");
	return false;
}

/* The JSON in memory; NULL with the reason. */
static json_t *parse(const char *text, size_t length, bool failed, char *why, size_t size)
{
	json_t *answer = json_loadb(text, length, 0, NULL);
	const char *error = json_string_value(json_object_get(answer, "error"));

	if (!json_is_object(answer))
		snprintf(why, size, "its answer is malformed");
	else if (failed)
		snprintf(why, size, "%s", error ? error : "it failed");
	else
		return answer;
	json_decref(answer);
	return NULL;
}

static json_t *receive_answer(int fd, char *why, size_t size)
{
	static struct packet packet;
	char *text = NULL;
	size_t length = 0;
	json_t *answer;

	for (;;) {
		if (!receive(fd, &packet, why, size))
			break;
		if (length + packet.header.length > ANSWER_MAX) {
			snprintf(why, size, "its answer is too long");
			break;
		}
		text = checked(realloc(text, length + packet.header.length + 1));
		memcpy(text + length, packet.body, packet.header.length);
		length += packet.header.length;
		if (!(packet.header.flags & CONTROL_MORE)) {
			answer = parse(text, length, packet.header.flags & CONTROL_FAILED, why, size);
			free(text);
			return answer;
		}
		if (!send_request(fd, CONTROL_NEXT, "", why, size))
			break;
	}
	free(text);
	return NULL;
}

/* --- asking ----------------------------------------------------------------------- */

json_t *control_ask(const struct control_socket *socket, enum control_verb verb, json_t *request,
		    char *why, size_t size)
{
	char *body = request ? checked(json_dumps(request, JSON_COMPACT)) : checked(strdup(""));
	json_t *answer = NULL, *greeting;
	int fd = connect_to(socket, why, size);

	if (fd >= 0) {
		greeting = receive_answer(fd, why, size);
		if (greeting && send_request(fd, verb, body, why, size))
			answer = receive_answer(fd, why, size);
		json_decref(greeting);
		close(fd);
	}
	free(body);
	json_decref(request);
	return answer;
}

bool control_is_ours(const struct control_socket *socket)
{
	char why[256];
	int fd = connect_to(socket, why, sizeof why);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void set_program(json_t *answer, pid_t pid)
{
	char path[64], name[64] = "?";
	FILE *file;

	snprintf(path, sizeof path, "/proc/%ld/comm", (long)pid);
	file = fopen(path, "re");
	if (file) {
		if (fgets(name, sizeof name, file))
			name[strcspn(name, "\n")] = '\0';
		fclose(file);
	}
	json_object_set_new(answer, "pid", json_integer(pid));
	if (json_object_set_new(answer, "program", json_string(name)))
		json_object_set_new(answer, "program", json_string("?"));
}

static void explain_absence(pid_t pid)
{
	if (kill(pid, 0) && errno == ESRCH)
		fail("there is no process %ld", (long)pid);
	fail("process %ld has no control socket in this network namespace: it has no adapter open, or "
	     "DAPL_CONTROL is 0, or it may not be inspected", (long)pid);
}

json_t *control_ask_all(pid_t pid, enum control_verb verb, json_t *request)
{
	size_t count;
	struct control_socket *sockets = control_find(pid, &count);
	json_t *answers = checked(json_array()), *answer;
	char why[512];

	if (pid && !count)
		explain_absence(pid);
	for (size_t i = 0; i < count; i++) {
		answer = control_ask(&sockets[i], verb, json_incref(request), why, sizeof why);
		if (!answer && pid)
			fail("process %ld: %s", (long)pid, why);
		if (!answer)
			continue;
		set_program(answer, sockets[i].pid);
		json_array_append_new(answers, answer);
	}
	free(sockets);
	json_decref(request);
	return answers;
}
