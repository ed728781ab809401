/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* clients.c - see clients.h.
 *
 * Of a descriptor that a process passes, the service asks what needs no lock of the socket: its protocol, and what the
 * kernel keeps for the programs of option.c. A process could hold the socket's lock, and the service would wait for it
 * in getpeername() or TCP_INFO. A message is peeked first: descriptors beyond the first then stay in the queue, and are
 * closed with it by a thread of the user (dispose.h). */
#include "tools/sock/clients.h"
#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "tools/cli.h"
#include "tools/sock/attach.h"
#include "tools/sock/dispose.h"
#include "tools/sock/locate.h"
#include "tools/sock/loop.h"
#include "tools/sock/option.h"
#include "tools/sock/point.h"

enum {
	USER_CLIENTS = 512,		/* processes of a user */
	USER_ENTRIES = 4096,		/* connections that they expect */
	USER_ASKS = 64,			/* questions under way; each has an endpoint */
	USER_RATE = 5000,		/* requests a second */
	BUCKETS = 4096,
	BACKLOG = 128,
	TURN = 16,			/* requests of a process before others have their turn */
};

struct user {
	uid_t uid;
	unsigned clients, entries, asks;
	uint64_t window;		/* ms; when the current second has begun */
	unsigned requests;		/* in it */
	struct user *next;
};

/* A connection that a process expects. */
struct entry {
	struct client *client;
	uint32_t id;
	int ia;				/* where the process is to listen */
	unsigned owed;			/* answers to EXPECT less the HEREs since: these are of an earlier IA */
	uint16_t qualifier;		/* 0: the process has not said it yet */
	uint8_t key[SOCK_SERVICE_KEY];
	uint64_t until;			/* ms */
	struct entry *next_in_bucket;
	struct entry *next_of_client;
	struct entry *earlier, *later;	/* by `until` */
};

struct client {
	struct loop_watch watch;
	struct user *user;
	uint64_t number;
	bool paused;			/* its descriptors are not closed as fast as they come */
	bool ended;			/* waits to be closed */
	struct entry *entries;
	struct client *next;
};

static struct loop_watch listener = { .fd = -1 };
static bool listener_paused;
static int sockets;			/* the map */
static struct user *users;
static struct client *clients;
static uint64_t last_number;
static struct entry *buckets[BUCKETS];
static struct entry *first, *last;	/* by `until` */
static unsigned waiting;		/* clients that are paused or ended */

/* --- users ------------------------------------------------------------------------------------------------------- */

static struct user *find_user(uid_t uid)
{
	struct user *u;

	for (u = users; u; u = u->next)
		if (u->uid == uid)
			return u;
	u = calloc(1, sizeof *u);
	if (u) {
		u->uid = uid;
		u->next = users, users = u;
	}
	return u;
}

/* Entries of users without processes are dropped. */
static void free_users(void)
{
	for (struct user **at = &users; *at;) {
		struct user *u = *at;

		if (u->clients || u->asks) {
			at = &u->next;
			continue;
		}
		*at = u->next;
		free(u);
	}
}

static bool is_too_fast(struct user *u)
{
	if (loop_now_ms() - u->window >= 1000)
		u->window = loop_now_ms(), u->requests = 0;
	return u->requests++ >= USER_RATE;
}

/* --- connections that are expected ------------------------------------------------------------------------------- */

/* Keys are random numbers. */
static struct entry **bucket_of(const uint8_t key[SOCK_SERVICE_KEY])
{
	return &buckets[(key[0] | key[1] << 8) % BUCKETS];
}

static void take_from_queue(struct entry *e)
{
	*(e->earlier ? &e->earlier->later : &first) = e->later;
	*(e->later ? &e->later->earlier : &last) = e->earlier;
}

static void put_last(struct entry *e)
{
	e->until = loop_now_ms() + SOCK_SERVICE_HERE_MS;
	e->earlier = last, e->later = NULL;
	*(last ? &last->later : &first) = e;
	last = e;
}

static void free_entry(struct entry *e)
{
	struct entry **at = bucket_of(e->key);

	while (*at != e)
		at = &(*at)->next_in_bucket;
	*at = e->next_in_bucket;
	at = &e->client->entries;
	while (*at != e)
		at = &(*at)->next_of_client;
	*at = e->next_of_client;
	take_from_queue(e);
	e->client->user->entries--;
	free(e);
}

static struct entry *entry_of(struct client *c, uint32_t id)
{
	struct entry *e = c->entries;

	while (e && e->id != id)
		e = e->next_of_client;
	return e;
}

static bool expect(struct client *c, uint32_t id, const uint8_t key[SOCK_SERVICE_KEY], int ia)
{
	struct entry *e = entry_of(c, id), **bucket = bucket_of(key);

	if (e)
		free_entry(e);
	e = c->user->entries < USER_ENTRIES ? calloc(1, sizeof *e) : NULL;
	if (!e)
		return false;
	e->client = c;
	e->id = id;
	e->ia = ia;
	memcpy(e->key, key, sizeof e->key);
	e->next_in_bucket = *bucket, *bucket = e;	/* the process that said it last is asked first */
	e->next_of_client = c->entries, c->entries = e;
	put_last(e);
	c->user->entries++;
	return true;
}

/* --- the life of a client ---------------------------------------------------------------------------------------- */

static void pause_client(struct client *c)
{
	if (!c->paused && !c->ended) {
		loop_pause(&c->watch, true);
		c->paused = true;
		waiting++;
	}
}

static void resume_client(struct client *c)
{
	c->paused = false;
	waiting--;
	loop_pause(&c->watch, false);
}

/* Its descriptor is closed, and the object freed, by the next tick that has room for it. */
static void end_client(struct client *c)
{
	if (c->ended)
		return;
	if (!c->paused) {
		loop_remove(&c->watch);
		waiting++;
	}
	c->paused = false;
	c->ended = true;
	while (c->entries)
		free_entry(c->entries);
	loop_start_anew();
}

static void free_ended_clients(void)
{
	for (struct client **at = &clients; *at;) {
		struct client *c = *at;

		if (!c->ended || !dispose_has_room(c->user->uid)) {
			if (c->paused && dispose_has_room(c->user->uid))
				resume_client(c);
			at = &c->next;
			continue;
		}
		dispose_take(c->watch.fd, c->user->uid);
		c->user->clients--;
		waiting--;
		*at = c->next;
		free(c);
	}
}

/* --- requests ---------------------------------------------------------------------------------------------------- */

static void send_answer(struct client *c, const struct sock_service_answer *a)
{
	/* A process that does not read its answers has no use for the service. */
	if (send(c->watch.fd, a, sizeof *a, MSG_DONTWAIT | MSG_NOSIGNAL) != sizeof *a)
		end_client(c);
}

static void answer(struct client *c, const struct sock_service_request *r, enum sock_service_result result)
{
	struct sock_service_answer a = { .magic = SOCK_SERVICE_MAGIC, .version = SOCK_SERVICE_VERSION,
					 .type = r->type, .id = r->id, .result = result };

	send_answer(c, &a);
}

static bool is_tcp(int fd)
{
	int protocol = 0;
	socklen_t size = sizeof protocol;

	return fd >= 0 && !getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) && protocol == IPPROTO_TCP;
}

/* What the socket of a request tells. */
static enum sock_service_result look(const struct sock_service_request *r, int fd, struct paths_of *of)
{
	bool connector = r->type == SOCK_SERVICE_ASK;
	struct option_socket state;

	if (!is_tcp(fd) || attach_read_socket(sockets, fd, &state) || !(state.flags & OPTION_CONNECTOR) == connector)
		return SOCK_SERVICE_NO_SOCKET;
	if (!(state.flags & OPTION_AWARE))
		return SOCK_SERVICE_NOT_AWARE;
	memcpy(of->key, connector ? &state.mine : &state.theirs, 8);
	memcpy(of->key + 8, connector ? &state.theirs : &state.mine, 8);
	memcpy(of->local, state.tuple.local, 16);
	memcpy(of->remote, state.tuple.remote, 16);
	return SOCK_SERVICE_OK;
}

/* Where the process is to listen: e->ia. */
static void answer_expectation(struct entry *e, const uint8_t peer[16])
{
	struct sock_service_answer a = { .magic = SOCK_SERVICE_MAGIC, .version = SOCK_SERVICE_VERSION,
					 .type = SOCK_SERVICE_EXPECT, .id = e->id };

	memcpy(a.key, e->key, sizeof a.key);
	memcpy(a.peer, peer, sizeof a.peer);
	snprintf(a.ia, sizeof a.ia, "%s", point_name(e->ia));
	e->owed++;
	send_answer(e->client, &a);
}

enum sock_service_code clients_find(const uint8_t key[SOCK_SERVICE_KEY], int ia, uint16_t *qualifier)
{
	static const uint8_t unknown[16];
	struct entry *elsewhere = NULL;

	*qualifier = 0;
	for (struct entry *e = *bucket_of(key); e; e = e->next_in_bucket) {
		if (memcmp(e->key, key, sizeof e->key))
			continue;
		if (e->qualifier && e->ia == ia) {
			*qualifier = e->qualifier;
			return SOCK_SERVICE_REDIRECT;
		}
		if (e->ia != ia && !elsewhere)
			elsewhere = e;
	}
	if (elsewhere) {
		elsewhere->ia = ia;
		elsewhere->qualifier = 0;
		answer_expectation(elsewhere, unknown);
	}
	return SOCK_SERVICE_WAIT;
}

static void on_expect(struct client *c, const struct sock_service_request *r, int fd)
{
	struct paths_of of;
	enum sock_service_result result = look(r, fd, &of);
	int ia = result ? -1 : point_beside(of.local);

	if (!result && ia < 0)
		ia = point_instead_of(of.local);
	if (!result && ia < 0)
		result = SOCK_SERVICE_NO_ADAPTER;
	if (!result && !expect(c, r->id, of.key, ia))
		result = SOCK_SERVICE_BUSY;
	if (result)
		answer(c, r, result);
	else
		answer_expectation(entry_of(c, r->id), of.remote);
}

static void on_ask(struct client *c, const struct sock_service_request *r, int fd)
{
	struct clients_ask ask = { .client = c->number, .user = c->user->uid, .id = r->id };
	enum sock_service_result result = look(r, fd, &ask.of);

	if (!result && !paths_choose(&ask.of, &ask.path))
		result = point_beside(ask.of.local) < 0	? SOCK_SERVICE_NO_ADAPTER :
			 locate_ask(&ask.of)		? SOCK_SERVICE_LATER :
							  SOCK_SERVICE_NO_PEER;
	if (!result && c->user->asks < USER_ASKS && point_ask(&ask)) {
		c->user->asks++;
		return;
	}
	answer(c, r, result ? result : SOCK_SERVICE_BUSY);
}

void clients_answered(const struct clients_ask *ask, enum sock_service_result result, uint16_t qualifier)
{
	struct sock_service_answer a = { .magic = SOCK_SERVICE_MAGIC, .version = SOCK_SERVICE_VERSION,
					 .type = SOCK_SERVICE_ASK, .id = ask->id, .result = result };
	struct user *u = find_user(ask->user);

	if (u && u->asks)
		u->asks--;
	if (!result) {
		memcpy(a.key, ask->of.key, sizeof a.key);
		memcpy(a.peer, ask->path.peer, sizeof a.peer);
		a.qualifier = qualifier;
		snprintf(a.ia, sizeof a.ia, "%s", point_name(ask->path.ia));
		paths_given(&ask->of);
	}
	for (struct client *c = clients; c; c = c->next)
		if (c->number == ask->client && !c->ended)
			send_answer(c, &a);
}

static void serve(struct client *c, const struct sock_service_request *r, int fd)
{
	struct entry *e;

	if (is_too_fast(c->user)) {
		if (r->type == SOCK_SERVICE_EXPECT || r->type == SOCK_SERVICE_ASK)
			answer(c, r, SOCK_SERVICE_BUSY);
		return;
	}
	switch (r->type) {
	case SOCK_SERVICE_EXPECT:
		on_expect(c, r, fd);
		break;
	case SOCK_SERVICE_ASK:
		on_ask(c, r, fd);
		break;
	case SOCK_SERVICE_HERE:
		e = entry_of(c, r->id);
		if (e && e->owed)
			e->owed--;
		if (e && !e->owed)
			e->qualifier = (uint16_t)r->qualifier;
		if (e) {
			take_from_queue(e);
			put_last(e);
		}
		break;
	default:
		e = entry_of(c, r->id);
		if (e)
			free_entry(e);
	}
}

/* Returns 1 for a request, with its descriptor or -1; 0 if there is none now; -1 for the end or what is no request.
 * That stays in the socket. */
static int receive(struct client *c, struct sock_service_request *r, int *fd)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { r, sizeof *r };
	/* Without the padding, where the kernel would put one descriptor more. */
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
			      .msg_controllen = CMSG_LEN(sizeof(int)) };
	ssize_t n = recvmsg(c->watch.fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC | MSG_PEEK);
	struct cmsghdr *h = CMSG_FIRSTHDR(&msg);
	char taken[sizeof *r];

	*fd = -1;
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	if (h && h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS && h->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(fd, CMSG_DATA(h), sizeof *fd);
	if (!(msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) && sock_service_is_request(r, (size_t)n) &&
	    recv(c->watch.fd, taken, sizeof taken, MSG_DONTWAIT) == n)
		return 1;
	return -1;
}

static void on_client(struct loop_watch *watch)
{
	struct client *c = (struct client *)watch;

	for (int i = 0; i < TURN && !c->ended; i++) {
		struct sock_service_request r;
		int fd, got;

		if (!dispose_has_room(c->user->uid)) {
			pause_client(c);
			return;
		}
		got = receive(c, &r, &fd);
		if (got > 0)
			serve(c, &r, fd);
		if (fd >= 0)
			dispose_take(fd, c->user->uid);
		if (got < 0)
			end_client(c);
		if (got <= 0)
			return;
	}
}

static void on_listener(struct loop_watch *watch)
{
	int fd = accept4(watch->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct client *c;
	struct ucred cred = { 0 };
	socklen_t size = sizeof cred;
	struct user *u;

	if (fd < 0) {
		/* Without descriptors the process waits: it would be told of the same connection again and again. */
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
			loop_pause(watch, listener_paused = true);
		return;
	}
	u = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) ? NULL : find_user(cred.uid);
	c = u && u->clients < USER_CLIENTS ? calloc(1, sizeof *c) : NULL;
	if (!c) {
		dispose_take(fd, cred.uid);
		return;
	}
	*c = (struct client){ .watch = { fd, on_client }, .user = u, .number = ++last_number, .next = clients };
	clients = c;
	u->clients++;
	if (!loop_add(&c->watch))
		end_client(c);
}

bool clients_tick(void)
{
	while (first && loop_now_ms() >= first->until)
		free_entry(first);
	free_ended_clients();
	free_users();
	if (listener_paused)
		loop_pause(&listener, listener_paused = false);
	return waiting || first;
}

/* --- begin and end ----------------------------------------------------------------------------------------------- */

int clients_open(const char *path, int map)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };

	if (strlen(path) >= sizeof sa.sun_path)
		return ENAMETOOLONG;
	strcpy(sa.sun_path, path);
	sockets = map;
	listener.fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	listener.ready = on_listener;
	if (listener.fd < 0 || (unlink(path) && errno != ENOENT) || bind(listener.fd, (void *)&sa, sizeof sa) ||
	    chmod(path, 0666) || listen(listener.fd, BACKLOG) || !loop_add(&listener))
		return errno;
	return 0;
}

void clients_close(void)
{
	struct sockaddr_un sa;
	socklen_t size = sizeof sa;

	if (listener.fd >= 0 && !getsockname(listener.fd, (void *)&sa, &size))
		unlink(sa.sun_path);
}
