/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* control.c - see control.h.
 *
 * A client is a slot of a fixed array. Descriptors change under `lock`, so the child of a fork finds all
 * of them and closes its copies. A client that sends nothing for CONTROL_STALL_MS is disconnected: a client
 * has no reason to wait. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "common/container_of.h"
#include "common/control.h"
#include "common/lock.h"
#include "common/log.h"
#include "common/trace.h"
#include "dapl/core/base/control.h"
#include "dapl/core/base/fork.h"
#include "dapl/core/base/service.h"
#include "dapl/core/device.h"

enum { ACCEPT_PAUSE_US = 1000000 };	/* pause in accepting when the process lacks descriptors */

struct client {
	int fd;				/* -1: the slot is free. Changed under `lock` */
	struct dapl_watch watch;
	struct dapl_timer timer;
	uint16_t verb, flags;		/* of the answer that is being sent */
	struct json_writer answer;
	size_t sent;			/* bytes of `answer` that were sent */
};

static struct dapl_mutex users_lock = DAPL_MUTEX_INIT(RANK_CONTROL_USERS);	/* start and stop */
static int users;				/* guarded by users_lock */

static struct dapl_mutex lock = DAPL_MUTEX_INIT(RANK_CONTROL);	/* guards the descriptors */
static int listener = -1;
static struct client clients[CONTROL_CLIENTS];
static bool prepared;		/* the clients' descriptors were set to -1 */

static struct dapl_watch listener_watch;
static struct dapl_timer accept_timer;
static dapl_control_verb *const *verbs;
static unsigned verb_count;

void dapl_control_serve(dapl_control_verb *const *table, unsigned count)
{
	verbs = table;
	verb_count = count;
}

/* --- answers ------------------------------------------------------------------------- */

static int take_fd(int *fd)
{
	int taken;

	dapl_mutex_lock(&lock);
	taken = *fd;
	*fd = -1;
	dapl_mutex_unlock(&lock);
	return taken;
}

/* Called on the service thread, or after the client's callbacks have ended. */
static void drop(struct client *client)
{
	int fd;

	dapl_watch_stop(&client->watch);
	dapl_timer_stop(&client->timer);
	json_write_free(&client->answer);
	fd = take_fd(&client->fd);
	if (fd >= 0)
		close(fd);
}

static void stalled(struct dapl_timer *timer)
{
	drop(container_of(timer, struct client, timer));
}

/* Returns false if the packet was not sent. If the socket's buffer is full, the client sends requests and
 * does not read the answers. */
static bool send_packet(int fd, uint16_t verb, uint16_t flags, const char *body, size_t length)
{
	struct control_header header = { .length = length, .verb = verb, .flags = flags };
	struct iovec parts[] = { { &header, sizeof header }, { (void *)(uintptr_t)body, length } };
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };
	ssize_t n;

	do
		n = sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)(sizeof header + length);
}

static bool send_piece(struct client *client)
{
	size_t left = client->answer.length - client->sent;
	size_t length = left < CONTROL_BODY ? left : CONTROL_BODY;
	bool more = left > length;

	if (!send_packet(client->fd, client->verb, client->flags | (more ? CONTROL_MORE : 0),
			 client->answer.text + client->sent, length))
		return false;
	client->sent += length;
	if (!more)
		json_write_free(&client->answer);
	return true;
}

static void answer_failure(struct client *client, const char *why)
{
	json_write_free(&client->answer);
	client->flags = CONTROL_FAILED;
	json_write_open(&client->answer, NULL, '{');
	json_write_text(&client->answer, "error", why);
	json_write_close(&client->answer, '}');
}

static void run_verb(struct client *client, const struct json_object *request)
{
	dapl_control_verb *verb = client->verb < verb_count ? verbs[client->verb] : NULL;
	char why[256];
	const char *failed;

	if (!verb) {
		snprintf(why, sizeof why, "unknown verb %u", client->verb);
		answer_failure(client, why);
		return;
	}
	json_write_open(&client->answer, NULL, '{');
	failed = verb(request, &client->answer, why, sizeof why);
	json_write_close(&client->answer, '}');
	if (client->answer.failed)
		failed = "no memory for the answer";
	if (failed)
		answer_failure(client, failed);
}

/* Returns false if the client must be disconnected. */
static bool answer_request(struct client *client, const struct control_header *header,
			   const char *body)
{
	struct json_object request = { .count = 0 };
	const char *fault = NULL;
	char why[160];
	size_t at = 0;

	if (header->verb == CONTROL_NEXT)
		return client->answer.length && send_piece(client);
	json_write_free(&client->answer);
	client->sent = 0;
	client->verb = header->verb;
	client->flags = 0;
	if (header->length)
		fault = json_read(body, header->length, &request, &at);
	if (fault) {
		snprintf(why, sizeof why, "the request, byte %zu: %s", at + 1, fault);
		answer_failure(client, why);
	} else {
		run_verb(client, &request);
	}
	return client->answer.length && send_piece(client);
}

static void readable(struct dapl_watch *watch)
{
	struct client *client = container_of(watch, struct client, watch);
	static struct {		/* only the service thread uses it */
		struct control_header header;
		char body[CONTROL_BODY + 1];
	} packet;
	ssize_t n = recv(client->fd, &packet, sizeof packet, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < (ssize_t)sizeof packet.header ||
	    packet.header.length != n - sizeof packet.header ||
	    packet.header.length > CONTROL_BODY || packet.header.flags ||
	    !answer_request(client, &packet.header, packet.body)) {
		drop(client);
		return;
	}
	dapl_timer_start(&client->timer, CONTROL_STALL_MS * 1000, stalled);
}

/* --- clients ------------------------------------------------------------------------- */

/* Follows the rule of ptrace(2), without its capabilities: a set-user-id program, and a program that is not
 * dumpable, give no answers. */
static bool may_be_controlled(void)
{
	return !getauxval(AT_SECURE) && prctl(PR_GET_DUMPABLE) == 1;
}

static bool is_permitted(int fd)
{
	struct ucred peer;
	socklen_t size = sizeof peer;

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) && may_be_controlled() &&
	       (peer.uid == geteuid() || peer.uid == 0);
}

/* Returns the slot that now has the descriptor, or NULL if no slot is free. */
static struct client *take_slot(int fd)
{
	struct client *client = NULL;

	dapl_mutex_lock(&lock);
	for (int i = 0; i < CONTROL_CLIENTS && !client; i++)
		if (clients[i].fd < 0)
			client = &clients[i];
	if (client)
		client->fd = fd;
	dapl_mutex_unlock(&lock);
	return client;
}

static void refuse(int fd, const char *json)
{
	send_packet(fd, CONTROL_NEXT, CONTROL_FAILED, json, strlen(json));
	close(fd);
}

static void welcome(int fd)
{
	struct client *client;

	if (!is_permitted(fd)) {
		refuse(fd, "{\"error\":\"only the user of the program, and root, get answers\"}");
		return;
	}
	client = take_slot(fd);
	if (!client) {
		refuse(fd, "{\"error\":\"too many connections to the control socket at a time\"}");
		return;
	}
	client->sent = 0;
	dapl_timer_start(&client->timer, CONTROL_STALL_MS * 1000, stalled);
	if (!send_packet(fd, CONTROL_NEXT, 0, "{}", 2) ||
	    dapl_watch_start(&client->watch, fd, readable))
		drop(client);
}

static void acceptable(struct dapl_watch *watch);

static void accept_again(struct dapl_timer *timer)
{
	(void)timer;
	if (dapl_watch_start(&listener_watch, listener, acceptable))
		dapl_timer_start(&accept_timer, ACCEPT_PAUSE_US, accept_again);
}

/* If accept4() fails for lack of descriptors, the listener stays readable. A pause keeps the service thread
 * from looping. */
static void acceptable(struct dapl_watch *watch)
{
	int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd >= 0) {
		welcome(fd);
	} else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
		dapl_watch_stop(watch);
		dapl_timer_start(&accept_timer, ACCEPT_PAUSE_US, accept_again);
	}
}

/* --- start and stop ------------------------------------------------------------------ */

/* Returns field 22 of /proc/self/stat, or 0 if it is unknown. The kernel reuses a pid, but not a pid with
 * its start time. */
static unsigned long long start_time(void)
{
	int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	unsigned long long start = 0;
	char text[1024], *at;
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	at = strrchr(text, ')');	/* the name ends there; it may contain spaces and parentheses */
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	if (at)
		start = strtoull(at, NULL, 10);
	return start;
}

/* Writes an abstract name: its path begins with a zero byte. Returns the length of the address. */
static socklen_t make_name(struct sockaddr_un *name, unsigned long long start, int copy)
{
	char suffix[8] = "";
	int length;

	if (copy > 1)
		snprintf(suffix, sizeof suffix, "-%d", copy);
	*name = (struct sockaddr_un){ .sun_family = AF_UNIX };
	length = snprintf(name->sun_path + 1, sizeof name->sun_path - 1, CONTROL_PREFIX "%ld-%llu-%s%s",
			  (long)getpid(), start, dapl_device_ops.name, suffix);
	return offsetof(struct sockaddr_un, sun_path) + 1 + length;
}

/* Returns -1 and sets errno on failure. Another user, or a copy of this library, may have taken the name:
 * then the next number is tried. */
static int make_listener(void)
{
	unsigned long long start = start_time();
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un name;
	int err = fd < 0 ? errno : EADDRINUSE;

	for (int copy = 1; copy <= 8 && err == EADDRINUSE; copy++) {
		socklen_t length = make_name(&name, start, copy);

		err = bind(fd, (struct sockaddr *)&name, length) ? errno : 0;
	}
	if (!err && listen(fd, 2 * CONTROL_CLIENTS))
		err = errno;
	if (err && fd >= 0)
		close(fd);
	errno = err;
	return err ? -1 : fd;
}

static bool is_wanted(void)
{
	unsigned long wanted = 1;

	log_env_number("DAPL_CONTROL", 0, 1, &wanted);
	return wanted && verb_count && may_be_controlled();
}

static void start(void)
{
	int fd, err = 0;

	dapl_mutex_lock(&lock);
	for (int i = 0; i < CONTROL_CLIENTS && !prepared; i++)
		clients[i].fd = -1;
	prepared = true;
	fd = listener = make_listener();
	err = fd < 0 ? errno : 0;
	dapl_mutex_unlock(&lock);
	if (!err)
		err = dapl_watch_start(&listener_watch, fd, acceptable);
	if (!err)
		return;
	fd = take_fd(&listener);
	if (fd >= 0)
		close(fd);
	trace(TRC_LVL_ERROR, TRC_DAPL_ERROR, "control", NULL, NULL, "no control socket: %s",
	      strerror(err));
}

/* Stops the callbacks of the listener first, because they start those of clients. */
static void stop(void)
{
	int fd;

	for (int i = 0; i < 2; i++) {	/* the watch may start the timer, and the timer the watch */
		dapl_watch_stop(&listener_watch);
		dapl_timer_drain(&accept_timer);
	}
	dapl_watch_stop(&listener_watch);
	for (int i = 0; i < CONTROL_CLIENTS && prepared; i++) {
		dapl_watch_stop(&clients[i].watch);
		dapl_timer_drain(&clients[i].timer);
		drop(&clients[i]);
	}
	fd = take_fd(&listener);
	if (fd >= 0)
		close(fd);
}

/* --- fork ---------------------------------------------------------------------------- */

static void before_fork(void)
{
	dapl_mutex_lock(&lock);
}

static void after_fork(void)
{
	dapl_mutex_unlock(&lock);
}

/* The child has no service thread: it closes its copies, and its next first user starts anew. An answer
 * that the parent was writing leaks, because its memory may be inconsistent. */
static void after_fork_in_child(void)
{
	dapl_mutex_unlock(&lock);
	dapl_mutex_init(&users_lock, RANK_CONTROL_USERS);
	users = 0;
	if (listener >= 0)
		close(listener);
	listener = -1;
	for (int i = 0; i < CONTROL_CLIENTS && prepared; i++) {
		if (clients[i].fd >= 0)
			close(clients[i].fd);
		memset(&clients[i], 0, sizeof clients[i]);	/* without json_write_free(): the answer may
								 * be half written */
		clients[i].fd = -1;
	}
	listener_watch = (struct dapl_watch){ 0 };
	accept_timer = (struct dapl_timer){ 0 };
}

static void watch_forks(void)
{
	static struct dapl_fork_part part = { .rank = RANK_CONTROL, .before = before_fork,
		.parent = after_fork, .child = after_fork_in_child };

	dapl_fork_register(&part);
}

void dapl_control_get(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch_forks);	/* before users_lock is taken */
	dapl_mutex_lock(&users_lock);
	if (!users++ && is_wanted())
		start();
	dapl_mutex_unlock(&users_lock);
}

void dapl_control_put(void)
{
	dapl_mutex_lock(&users_lock);
	if (users > 0 && !--users && __atomic_load_n(&listener, __ATOMIC_RELAXED) >= 0)
		stop();
	dapl_mutex_unlock(&users_lock);
}
