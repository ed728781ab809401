/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* client.c - see client.h. Any user may bind any abstract name, so the peer's credentials decide: an
 * answer counts only if it comes from this user, or if this user is root. */
#include "tools/control/client.h"
#include "tools/cli.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum {
	PATIENCE_S = 3,		/* to wait for a packet; a program under load answers within milliseconds */
	ANSWER_MAX = 64 << 20,	/* bytes */
};

static void *checked(void *memory)
{
	if (!memory)
		fail("there is no memory left");
	return memory;
}

/* --- finding ---------------------------------------------------------------------- */

/* Parses a line of /proc/net/unix. Returns whether it is a listening control socket, of `pid` if that is not
 * 0. */
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

/* Why there is no answer. */
struct failure {
	char *why;
	size_t size;
	bool absent;	/* this user has no such program with an IA open: control_ask_all() does not warn */
};

static void set_failure(struct failure *failure, bool absent, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static void set_failure(struct failure *failure, bool absent, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(failure->why, failure->size, fmt, args);
	va_end(args);
	failure->absent = absent;
}

/* Returns the descriptor, or -1 with the reason. */
static int connect_to(const struct control_socket *to, struct failure *failure)
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
		if (errno == ECONNREFUSED)
			set_failure(failure, true, "it has ended");
		else
			set_failure(failure, false, "its control socket cannot be reached: %s",
				    strerror(errno));
	} else if (peer.uid != geteuid() && geteuid() != 0) {
		set_failure(failure, true, "it belongs to another user");
	} else if (peer.pid != to->pid) {
		set_failure(failure, false, "the name of its control socket belongs to process %ld",
			    (long)peer.pid);
	} else {
		return fd;
	}
	if (fd >= 0)
		close(fd);
	return -1;
}

static bool send_request(int fd, enum control_verb verb, const char *body, struct failure *failure)
{
	struct packet packet = { .header = { .length = strlen(body), .verb = verb } };
	size_t length = sizeof packet.header + packet.header.length;

	if (packet.header.length > CONTROL_BODY) {
		set_failure(failure, false, "the request is longer than %d bytes", CONTROL_BODY);
		return false;
	}
	memcpy(packet.body, body, packet.header.length);
	if (send(fd, &packet, length, MSG_NOSIGNAL) == (ssize_t)length)
		return true;
	set_failure(failure, errno == EPIPE || errno == ECONNRESET, "the request cannot be sent: %s",
		    strerror(errno));
	return false;
}

static bool receive(int fd, struct packet *packet, struct failure *failure)
{
	ssize_t n = recv(fd, packet, sizeof *packet, 0);

	if (n >= (ssize_t)sizeof packet->header && packet->header.length <= CONTROL_BODY &&
	    packet->header.length == n - sizeof packet->header)
		return true;
	if (n < 0 && errno == EAGAIN)
		set_failure(failure, false, "it does not answer within %d seconds", PATIENCE_S);
	else if (n > 0)
		set_failure(failure, false, "its answer is malformed");
	else
		set_failure(failure, true, "the connection ended");
	return false;
}

/* Parses an answer. Returns NULL with the reason if it is malformed, or if it reports a failure. */
static json_t *parse(const char *text, size_t length, bool failed, struct failure *failure)
{
	json_t *answer = json_loadb(text, length, 0, NULL);
	const char *error = json_string_value(json_object_get(answer, "error"));

	if (!json_is_object(answer))
		set_failure(failure, false, "its answer is malformed");
	else if (failed)
		set_failure(failure, false, "%s", error ? error : "it failed");
	else
		return answer;
	json_decref(answer);
	return NULL;
}

static json_t *receive_answer(int fd, struct failure *failure)
{
	static _Thread_local struct packet packet;
	char *text = NULL;
	size_t length = 0;
	json_t *answer;

	for (;;) {
		if (!receive(fd, &packet, failure))
			break;
		if (length + packet.header.length > ANSWER_MAX) {
			set_failure(failure, false, "its answer is too long");
			break;
		}
		text = checked(realloc(text, length + packet.header.length + 1));
		memcpy(text + length, packet.body, packet.header.length);
		length += packet.header.length;
		if (!(packet.header.flags & CONTROL_MORE)) {
			answer = parse(text, length, packet.header.flags & CONTROL_FAILED, failure);
			free(text);
			return answer;
		}
		if (!send_request(fd, CONTROL_NEXT, "", failure))
			break;
	}
	free(text);
	return NULL;
}

/* --- asking ----------------------------------------------------------------------- */

static json_t *ask(const struct control_socket *socket, enum control_verb verb, json_t *request,
		   struct failure *failure)
{
	char *body = request ? checked(json_dumps(request, JSON_COMPACT)) : checked(strdup(""));
	json_t *answer = NULL, *greeting;
	int fd = connect_to(socket, failure);

	if (fd >= 0) {
		greeting = receive_answer(fd, failure);
		if (greeting && send_request(fd, verb, body, failure))
			answer = receive_answer(fd, failure);
		json_decref(greeting);
		close(fd);
	}
	free(body);
	json_decref(request);
	return answer;
}

json_t *control_ask(const struct control_socket *socket, enum control_verb verb, json_t *request,
		    char *why, size_t size)
{
	struct failure failure = { why, size, false };

	return ask(socket, verb, request, &failure);
}

bool control_is_ours(const struct control_socket *socket)
{
	char why[256];
	struct failure failure = { why, sizeof why, false };
	int fd = connect_to(socket, &failure);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

const char *control_program(char name[CONTROL_PROGRAM], pid_t pid)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof path, "/proc/%ld/comm", (long)pid);
	strcpy(name, "?");
	file = fopen(path, "re");
	if (file) {
		if (fgets(name, CONTROL_PROGRAM, file))
			name[strcspn(name, "\n")] = '\0';
		fclose(file);
	}
	return name;
}

static void set_program(json_t *answer, const struct control_socket *socket)
{
	char name[CONTROL_PROGRAM];

	control_program(name, socket->pid);
	json_object_set_new(answer, "pid", json_integer(socket->pid));
	if (json_object_set_new(answer, "socket", json_string_nocheck(socket->name)))
		fail("there is no memory left");
	if (json_object_set_new(answer, "program", json_string(name)))
		json_object_set_new(answer, "program", json_string("?"));
}

void control_fail_absent(pid_t pid)
{
	if (kill(pid, 0) && errno == ESRCH)
		fail("there is no process %ld", (long)pid);
	fail("process %ld has no control socket in this network namespace: it has no adapter open, or "
	     "DAPL_CONTROL is 0, or it may not be inspected", (long)pid);
}

/* --- all programs ----------------------------------------------------------------- */

static struct {
	size_t answers;		/* received by all calls */
	pid_t *silent;		/* programs that a warning was printed for */
	size_t silent_count;
} asked;

/* Prints one warning for each program: a tool asks the same programs several times, and --top asks them in
 * each interval. */
static void warn_once(pid_t pid, const char *why)
{
	for (size_t i = 0; i < asked.silent_count; i++)
		if (asked.silent[i] == pid)
			return;
	asked.silent = checked(realloc(asked.silent, (asked.silent_count + 1) * sizeof *asked.silent));
	asked.silent[asked.silent_count++] = pid;
	cli_warn("process %ld is left out: %s", (long)pid, why);
}

int control_status(void)
{
	return asked.silent_count && !asked.answers ? CLI_FAILURE : 0;
}

json_t *control_ask_all(pid_t pid, enum control_verb verb, json_t *request)
{
	size_t count;
	struct control_socket *sockets = control_find(pid, &count);
	json_t *answers = checked(json_array()), *answer;
	char why[512];
	struct failure failure = { why, sizeof why, false };

	if (pid && !count)
		control_fail_absent(pid);
	for (size_t i = 0; i < count; i++) {
		answer = ask(&sockets[i], verb, json_incref(request), &failure);
		if (!answer && pid)
			fail("process %ld: %s", (long)pid, why);
		if (!answer && !failure.absent)
			warn_once(sockets[i].pid, why);
		if (!answer)
			continue;
		asked.answers++;
		set_program(answer, &sockets[i]);
		json_array_append_new(answers, answer);
	}
	free(sockets);
	json_decref(request);
	return answers;
}
