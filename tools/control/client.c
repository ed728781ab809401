/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* client.c - see client.h. Any user may bind any abstract name, so the peer's credentials decide: an
 * answer counts only if it comes from this user, or if this user is root. */
#include "tools/control/client.h"
#include "common/clock.h"
#include "tools/cli.h"
#include "tools/parse_json.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
	PATIENCE_S = 3,		/* to wait for a packet; a program under load answers within milliseconds */
	PATIENCE_AGAIN_NS = 100000000,	/* the same for a program that did not answer an earlier request */
	RETRY_NS = 20000000,	/* between two attempts to connect */
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

static void set_failure(struct control_result *result, bool absent, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static void set_failure(struct control_result *result, bool absent, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(result->why, sizeof result->why, fmt, args);
	va_end(args);
	result->absent = absent;
}

/* Returns the descriptor, or -1 with the reason, and the errno if a call failed. Never waits: connect() gives
 * EAGAIN if too many clients already wait for the program. */
static int connect_to(const struct control_socket *to, struct control_result *result)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	socklen_t length = offsetof(struct sockaddr_un, sun_path) + 1 + strlen(to->name), ucred_size;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), err = 0;
	struct ucred peer = { 0 };

	ucred_size = sizeof peer;
	memcpy(name.sun_path + 1, to->name, strlen(to->name));
	if (fd < 0 || connect(fd, (struct sockaddr *)&name, length) ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &ucred_size)) {
		err = errno;
		if (err == ECONNREFUSED)
			set_failure(result, true, "it has ended");
		else
			set_failure(result, false, "its control socket cannot be reached: %s", strerror(err));
	} else if (peer.uid != geteuid() && geteuid() != 0) {
		set_failure(result, true, "it belongs to another user");
	} else if (peer.pid != to->pid) {
		set_failure(result, false, "the name of its control socket belongs to process %ld",
			    (long)peer.pid);
	} else {
		return fd;
	}
	if (fd >= 0)
		close(fd);
	errno = err;
	return -1;
}

static bool send_request(int fd, enum control_verb verb, const char *body, struct control_result *result)
{
	struct packet packet = { .header = { .length = strlen(body), .verb = verb } };
	size_t length = sizeof packet.header + packet.header.length;

	if (packet.header.length > CONTROL_BODY) {
		set_failure(result, false, "the request is longer than %d bytes", CONTROL_BODY);
		return false;
	}
	memcpy(packet.body, body, packet.header.length);
	if (send(fd, &packet, length, MSG_NOSIGNAL) == (ssize_t)length)
		return true;
	set_failure(result, errno == EPIPE || errno == ECONNRESET, "the request cannot be sent: %s",
		    strerror(errno));
	return false;
}

static bool receive(int fd, struct packet *packet, struct control_result *result)
{
	ssize_t n = recv(fd, packet, sizeof *packet, 0);

	if (n >= (ssize_t)sizeof packet->header && packet->header.length <= CONTROL_BODY &&
	    packet->header.length == n - sizeof packet->header)
		return true;
	if (n > 0)
		set_failure(result, false, "its answer is malformed");
	else
		set_failure(result, true, "the connection ended");
	return false;
}

/* Parses an answer. Returns NULL with the reason if it is malformed, or if it reports a failure. */
static json_t *parse(const char *text, size_t length, bool failed, struct control_result *result)
{
	json_t *answer = parse_json(text, length);
	const char *error = json_string_value(json_object_get(answer, "error"));

	if (!json_is_object(answer))
		set_failure(result, false, "its answer is malformed");
	else if (failed)
		set_failure(result, false, "%s", error ? error : "it failed");
	else
		return answer;
	json_decref(answer);
	return NULL;
}

/* --- asking ----------------------------------------------------------------------- */

/* A request to one program. Those to several programs proceed side by side, so that programs that do not
 * answer cost their time once. */
struct inquiry {
	const struct control_socket *socket;
	enum control_verb verb;
	const char *body;
	struct control_result *result;
	enum { WAITING, GREETING, ANSWER, DONE } step;	/* WAITING: not connected yet */
	int fd;
	char *text;		/* of the answer that is being received */
	size_t length;
	uint64_t patience, until;	/* nanoseconds; for the next packet */
};

static struct {
	size_t answers;		/* received by all calls of control_ask_all() */
	pid_t *silent;		/* programs that a warning was printed for */
	size_t silent_count;
} asked;

static bool was_silent(pid_t pid)
{
	for (size_t i = 0; i < asked.silent_count; i++)
		if (asked.silent[i] == pid)
			return true;
	return false;
}

static void be_patient(struct inquiry *q)
{
	q->until = clock_now_ns() + q->patience;
}

static void finish(struct inquiry *q)
{
	if (q->fd >= 0)
		close(q->fd);
	free(q->text);
	q->text = NULL;
	q->fd = -1;
	q->step = DONE;
}

/* Tries again later if the program has a queue of clients, or if descriptors lack that other inquiries hold. */
static void begin(struct inquiry *q, bool others_hold_descriptors)
{
	q->fd = connect_to(q->socket, q->result);
	if (q->fd >= 0) {
		q->step = GREETING;
		be_patient(q);
	} else if ((errno == EMFILE || errno == ENFILE) && others_hold_descriptors) {
		be_patient(q);
	} else if (errno != EAGAIN) {
		finish(q);
	}
}

/* Takes the last piece of a message from the program: of its greeting, or of its answer. */
static void take_message(struct inquiry *q, bool failed)
{
	json_t *message = parse(q->text, q->length, failed, q->result);

	q->length = 0;
	if (q->step == ANSWER)
		q->result->answer = message;
	else
		json_decref(message);
	if (!message || q->step == ANSWER || !send_request(q->fd, q->verb, q->body, q->result))
		finish(q);
	else
		q->step = ANSWER;
}

static void take_packet(struct inquiry *q)
{
	static _Thread_local struct packet packet;

	be_patient(q);
	if (!receive(q->fd, &packet, q->result)) {
		finish(q);
		return;
	}
	if (q->length + packet.header.length > ANSWER_MAX) {
		set_failure(q->result, false, "its answer is too long");
		finish(q);
		return;
	}
	q->text = checked(realloc(q->text, q->length + packet.header.length + 1));
	memcpy(q->text + q->length, packet.body, packet.header.length);
	q->length += packet.header.length;
	if (!(packet.header.flags & CONTROL_MORE))
		take_message(q, packet.header.flags & CONTROL_FAILED);
	else if (!send_request(q->fd, CONTROL_NEXT, "", q->result))
		finish(q);
}

/* Begins those that wait. Returns when the first of all inquiries is to be looked at again, or 0 if all are done. */
static uint64_t begin_waiting(struct inquiry *all, size_t count)
{
	uint64_t first = UINT64_MAX;
	size_t open = 0, left = 0;

	for (size_t i = 0; i < count; i++)
		open += all[i].fd >= 0;
	for (size_t i = 0; i < count; i++) {
		if (all[i].step == WAITING) {
			begin(&all[i], open > 0);
			open += all[i].fd >= 0;
		}
		if (all[i].step == WAITING && clock_now_ns() + RETRY_NS < first)
			first = clock_now_ns() + RETRY_NS;
		if (all[i].step != DONE && all[i].until < first)
			first = all[i].until;
		left += all[i].step != DONE;
	}
	return left ? first : 0;
}

/* Waits until `time`, or for a packet, and takes what has come. `fds` has room for all inquiries. */
static void take_packets(struct inquiry *all, size_t count, struct pollfd *fds, uint64_t time)
{
	uint64_t now = clock_now_ns();
	size_t open = 0;

	for (size_t i = 0; i < count; i++)
		if (all[i].fd >= 0)	/* poll() refuses more elements than there may be descriptors */
			fds[open++] = (struct pollfd){ .fd = all[i].fd, .events = POLLIN };
	poll(fds, open, time > now ? (int)((time - now) / 1000000 + 1) : 0);
	for (size_t i = 0, at = 0; i < count; i++)
		if (all[i].fd >= 0 && fds[at++].revents)
			take_packet(&all[i]);
}

static void end_overdue(struct inquiry *all, size_t count)
{
	uint64_t now = clock_now_ns();

	for (size_t i = 0; i < count; i++)
		if (all[i].step != DONE && now >= all[i].until) {
			set_failure(all[i].result, false, "it does not answer within %d seconds", PATIENCE_S);
			finish(&all[i]);
		}
}

void control_ask_each(const struct control_socket *sockets, size_t count, enum control_verb verb,
		      json_t *request, struct control_result *results)
{
	char *body = request ? checked(json_dumps(request, JSON_COMPACT)) : checked(strdup(""));
	struct inquiry *all = checked(calloc(count + 1, sizeof *all));
	struct pollfd *fds = checked(calloc(count + 1, sizeof *fds));
	uint64_t time;

	for (size_t i = 0; i < count; i++) {
		results[i] = (struct control_result){ .answer = NULL };
		all[i] = (struct inquiry){ &sockets[i], verb, body, &results[i], .fd = -1,
			.patience = was_silent(sockets[i].pid) ? PATIENCE_AGAIN_NS : PATIENCE_S * 1000000000ull };
		be_patient(&all[i]);
	}
	while ((time = begin_waiting(all, count))) {
		take_packets(all, count, fds, time);
		end_overdue(all, count);
	}
	free(fds);
	free(all);
	free(body);
	json_decref(request);
}

json_t *control_ask(const struct control_socket *socket, enum control_verb verb, json_t *request,
		    char *why, size_t size)
{
	struct control_result result;

	control_ask_each(socket, 1, verb, request, &result);
	if (!result.answer)
		snprintf(why, size, "%s", result.why);
	return result.answer;
}

bool control_is_ours(const struct control_socket *socket)
{
	struct control_result result;
	int fd = connect_to(socket, &result);

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

/* Prints one warning for each program: a tool asks the same programs several times, and --top asks them in
 * each interval. */
static void warn_once(pid_t pid, const char *why)
{
	if (was_silent(pid))
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
	struct control_result *results = checked(calloc(count + 1, sizeof *results));
	json_t *answers = checked(json_array());

	if (pid && !count)
		control_fail_absent(pid);
	control_ask_each(sockets, count, verb, request, results);
	for (size_t i = 0; i < count; i++) {
		if (!results[i].answer && pid)
			fail("process %ld: %s", (long)pid, results[i].why);
		if (!results[i].answer && !results[i].absent)
			warn_once(sockets[i].pid, results[i].why);
		if (!results[i].answer)
			continue;
		asked.answers++;
		set_program(results[i].answer, &sockets[i]);
		json_array_append_new(answers, results[i].answer);
	}
	free(results);
	free(sockets);
	return answers;
}
