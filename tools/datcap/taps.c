/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* taps.c - see taps.h. A program may end, or be stopped within a post, at any time. The ring of a program
 * that has ended is read to its end. */
#include "taps.h"
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "common/clock.h"
#include "lease.h"
#include "tick_clock.h"
#include "tools/cli.h"
#include "tools/control/client.h"

struct tap {
	struct control_socket socket;
	struct tap_ring *ring;		/* NULL: the program is not captured */
	uint64_t began;			/* start of the capture in the ring */
	uint32_t clock;			/* enum tap_clock */
	uint64_t next;			/* the next entry to read; counts bytes like ring->head */
	uint64_t size;			/* of that entry, bytes */
	/* ring->head as last read, ring->tail as last written: each access costs the program a cache miss */
	uint64_t head, given_back;
	void *connections;		/* struct connection by number of the QP, for tsearch */
	/* gone: the program has ended, or closed its IAs; seen: found by this call of taps_find() */
	bool gone, seen;
};

struct connection {
	uint32_t qpn;
	uint8_t flags;
	struct tap_ends ends;
};

enum { GIVE_BACK = TAP_SIZE / 16 };	/* bytes read until ring->tail is updated */

static struct tap *taps;
static size_t tap_count;
static pid_t wanted_pid;
static const char *wanted_ia;
static uint32_t snap;
static uint64_t client;
static uint64_t lost_before;		/* in rings that are closed */

/* --- programs ------------------------------------------------------------------------------------- */

static json_t *request(bool end)
{
	json_t *made = json_pack("{s:I, s:I, s:i}", "client", (json_int_t)client, "snap", (json_int_t)snap, "end", end);

	if (!made)
		fail("no memory");
	return made;
}

static bool has_ia(const struct control_socket *socket, const char *name)
{
	char why[256];
	json_t *answer = control_ask(socket, CONTROL_LIST, NULL, why, sizeof why), *ia;
	bool found = false;
	size_t i;

	json_array_foreach(json_object_get(answer, "ias"), i, ia) {
		const char *is = json_string_value(json_object_get(ia, "name"));

		found |= is && !strcmp(is, name);
	}
	json_decref(answer);
	return found;
}

/* Maps the ring, which is this descriptor of the program. Returns NULL if that fails. */
static struct tap_ring *map_ring(pid_t pid, long long descriptor)
{
	char path[64];
	struct stat st;
	int fd;
	struct tap_ring *ring = MAP_FAILED;

	snprintf(path, sizeof path, "/proc/%ld/fd/%lld", (long)pid, descriptor);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0 && !fstat(fd, &st) && st.st_size == TAP_HEAD + TAP_SIZE && fcntl(fd, F_GET_SEALS) & F_SEAL_SHRINK)
		ring = mmap(NULL, TAP_HEAD + TAP_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd >= 0)
		close(fd);
	if (ring == MAP_FAILED)
		return NULL;
	if (ring->magic == TAP_MAGIC && ring->version == TAP_VERSION && ring->size == TAP_SIZE)
		return ring;
	munmap(ring, TAP_HEAD + TAP_SIZE);
	return NULL;
}

static void close_tap(struct tap *tap)
{
	if (!tap->ring)
		return;
	lost_before += __atomic_load_n(&tap->ring->lost, __ATOMIC_RELAXED);
	munmap(tap->ring, TAP_HEAD + TAP_SIZE);
	tap->ring = NULL;
	tdestroy(tap->connections, free);
	tap->connections = NULL;
}

/* Starts or renews the capture of a program. A program that has closed its last IA and opened another starts
 * a new capture, whose ring replaces the old one. If it fails, returns false and stores the reason in
 * `why`. */
static bool ask(struct tap *tap, char *why, size_t size)
{
	json_t *answer = control_ask(&tap->socket, CONTROL_TAP, request(false), why, size);
	long long descriptor = json_integer_value(json_object_get(answer, "descriptor"));
	uint64_t began = (uint64_t)json_integer_value(json_object_get(answer, "began"));

	if (!answer)
		return false;
	json_decref(answer);
	if (tap->ring && tap->began == began)
		return true;
	close_tap(tap);
	tap->ring = map_ring(tap->socket.pid, descriptor);
	tap->began = began;
	tap->next = tap->head = tap->given_back = 0;
	tap->clock = tap->ring ? tap->ring->clock : TAP_REALTIME;
	if (!tap->ring)
		snprintf(why, size, "its messages cannot be mapped: %s", strerror(errno));
	return tap->ring;
}

static struct tap *tap_of(const struct control_socket *socket)
{
	for (size_t i = 0; i < tap_count; i++)
		if (!taps[i].gone && !strcmp(taps[i].socket.name, socket->name))
			return &taps[i];
	return NULL;
}

static void add(const struct control_socket *socket)
{
	struct tap tap = { .socket = *socket, .seen = true };
	char why[256] = "";

	if (socket->pid == getpid() || (!wanted_pid && !control_is_ours(socket)) ||
	    (wanted_ia && !has_ia(socket, wanted_ia)))
		return;
	if (!ask(&tap, why, sizeof why) && wanted_pid)
		fail("process %ld: %s", (long)socket->pid, why);
	else if (!tap.ring)
		cli_warn("process %ld is left out: %s", (long)socket->pid, why);
	taps = realloc(taps, (tap_count + 1) * sizeof *taps);
	if (!taps)
		fail("no memory");
	taps[tap_count++] = tap;
}

/* Passes the captured programs to the thread of lease.c, which renews the captures while the main thread is
 * blocked. */
static void keep_captures(void)
{
	struct control_socket *sockets = malloc((tap_count + 1) * sizeof *sockets);
	size_t n = 0;

	if (!sockets)
		fail("no memory");
	for (size_t i = 0; i < tap_count; i++)
		if (taps[i].ring && !taps[i].gone)
			sockets[n++] = taps[i].socket;
	lease_keep(sockets, n);
}

void taps_find(void)
{
	size_t count;
	struct control_socket *sockets = control_find(wanted_pid, &count);

	for (size_t i = 0; i < tap_count; i++)
		taps[i].seen = false;
	for (size_t i = 0; i < count; i++) {
		struct tap *tap = tap_of(&sockets[i]);

		if (tap)
			tap->seen = true;
		else
			add(&sockets[i]);
	}
	for (size_t i = 0; i < tap_count; i++)
		taps[i].gone |= !taps[i].seen;
	free(sockets);
	keep_captures();
}

void taps_renew(void)
{
	char why[256];

	for (size_t i = 0; i < tap_count; i++)
		if (taps[i].ring && !taps[i].gone && !ask(&taps[i], why, sizeof why))
			taps[i].gone = true;
	keep_captures();
	lease_renewed();
}

void taps_start(pid_t pid, const char *ia, uint32_t bytes)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	wanted_pid = pid;
	wanted_ia = ia;
	snap = bytes;
	client = (uint64_t)getpid() << 32 | ((uint32_t)now.tv_nsec | 1);
	lease_start(request(false));
	tick_clock_start();
	taps_find();
	if (ia && !tap_count)
		cli_warn("no running program has the IA \"%s\" open: waiting for one", ia);
	if (!ia && !pid && !tap_count)
		cli_warn("no program yet: waiting for one");
	if (pid && !tap_count)
		control_fail_absent(pid);
}

/* --- entries ---------------------------------------------------------------------------------------- */

static int compare_qpn(const void *a, const void *b)
{
	uint32_t x = ((const struct connection *)a)->qpn, y = ((const struct connection *)b)->qpn;

	return (x > y) - (x < y);
}

/* Returns NULL if no entry has had the ends of the connection. */
static const struct connection *find_connection(struct tap *tap, uint32_t qpn)
{
	struct connection key = { .qpn = qpn }, **found = tfind(&key, &tap->connections, compare_qpn);

	return found ? *found : NULL;
}

static void put_connection(struct tap *tap, const struct tap_entry *e)
{
	struct connection key = { .qpn = e->qpn }, **found = tfind(&key, &tap->connections, compare_qpn), *new;

	if (!found) {
		new = calloc(1, sizeof *new);
		if (!new)
			fail("no memory");
		new->qpn = e->qpn;
		found = tsearch(new, &tap->connections, compare_qpn);
		if (!found)
			fail("no memory");
	}
	(*found)->flags = e->flags;
	(*found)->ends = e->ends;
}

static uint64_t time_of(const struct tap *tap, const struct tap_entry *e)
{
	return tap->clock == TAP_TICKS ? tick_clock_time(e->time) : e->time;
}

/* Copies an entry to *r. Returns its payload, or NULL if the addresses of the connection are not known. */
static const uint8_t *read_entry(struct tap *tap, const struct tap_entry *e, struct tap_record *r)
{
	const struct tap_message *m = &e->message;
	const struct connection *connection = find_connection(tap, e->qpn);
	bool fetches = tap_fetches(e->op), send = e->op == TAP_SEND;

	if (!connection)
		return NULL;
	*r = (struct tap_record){ .time = time_of(tap, e), .qpn = e->qpn, .kind = e->kind, .op = e->op,
		.flags = e->flags | connection->flags, .length = m->length, .captured = m->captured,
		.word = fetches ? 0 : m->word,
		.memory = { .stag = send ? 0 : m->stag, .remote = send ? 0 : m->remote,
			    .sink_stag = fetches ? m->word : 0, .sink = fetches ? m->sink : 0 },
		.ends = connection->ends };
	if (e->op > TAP_READ)
		r->atomic = (struct tap_atomic){ m->compare_add, m->swap };
	return tap_payload_size(e->op, m->captured) ? (const uint8_t *)(e + 1) : m->payload;
}

static void give_up(struct tap *tap)
{
	cli_warn("process %ld: a record of its messages is malformed", (long)tap->socket.pid);
	tap->gone = true;
	close_tap(tap);
}

/* Allows the program to reuse the ring up to `next`. */
static void give_back(struct tap *tap)
{
	if (tap->next != tap->given_back)
		__atomic_store_n(&tap->ring->tail, tap->next, __ATOMIC_RELEASE);
	tap->given_back = tap->next;
}

/* Returns whether there is an entry at `next`. */
static bool has_more(struct tap *tap)
{
	if (tap->next == tap->head) {
		give_back(tap);
		tap->head = __atomic_load_n(&tap->ring->head, __ATOMIC_ACQUIRE);
		if (tap->clock == TAP_TICKS && tap->next != tap->head)
			tick_clock_compare();
	} else if (tap->next - tap->given_back >= GIVE_BACK) {
		give_back(tap);
	}
	return tap->next != tap->head;
}

/* Returns the size of an entry, or 0 if it is malformed. */
static uint64_t size_of(const struct tap *tap, const struct tap_entry *e)
{
	uint64_t before_end = TAP_SIZE - tap->next % TAP_SIZE, there = tap->head - tap->next, size = TAP_LINE;

	if (e->kind == TAP_FILL)
		size = before_end;
	else if (e->kind < TAP_ENDS)
		size += e->message.captured > TAP_SNAP_MAX ? before_end : tap_payload_size(e->op, e->message.captured);
	return e->kind > TAP_FILL || size > before_end || size > there ? 0 : size;
}

/* Returns the oldest unread message, or NULL if there is none. Takes the addresses of connections. Closes a ring that
 * is malformed. */
static const struct tap_entry *peek(struct tap *tap)
{
	while (tap->ring && has_more(tap)) {
		const struct tap_entry *e = (void *)((char *)tap->ring + TAP_HEAD + tap->next % TAP_SIZE);
		uint8_t state = __atomic_load_n(&e->state, __ATOMIC_RELAXED);

		tap->size = size_of(tap, e);
		if (!tap->size || (state == TAP_VALID && e->kind < TAP_ENDS && !tap_is_operation(e->op))) {
			give_up(tap);
			return NULL;
		}
		if (state == TAP_VALID && e->kind < TAP_ENDS)
			return e;
		if (state == TAP_VALID && e->kind == TAP_ENDS)
			put_connection(tap, e);
		tap->next += tap->size;
	}
	return NULL;
}

/* Returns whether a time is before `until`. A time of the future was taken before CLOCK_REALTIME was set back. Its
 * entry is due, too, since the ring would fill while it waits for its time. */
static bool is_due(uint64_t time, uint64_t until)
{
	return time < until || time > clock_read_ns(CLOCK_REALTIME);
}

/* Returns the tap with the oldest entry that is due, or NULL. Closes taps that are gone and read. */
static struct tap *find_oldest(uint64_t until, const struct tap_entry **oldest)
{
	struct tap *of = NULL;
	uint64_t first = 0;

	*oldest = NULL;
	for (size_t i = 0; i < tap_count; i++) {
		const struct tap_entry *e = peek(&taps[i]);
		uint64_t time = e ? time_of(&taps[i], e) : 0;

		if (e && (!*oldest || time < first) && is_due(time, until)) {
			*oldest = e;
			first = time;
			of = &taps[i];
		} else if (!e && taps[i].gone) {
			close_tap(&taps[i]);
		}
	}
	return of;
}

bool taps_next(uint64_t until, struct taps_message *message)
{
	static struct tap_record record;
	const struct tap_entry *oldest;
	struct tap *of;

	while ((of = find_oldest(until, &oldest))) {
		*message = (struct taps_message){ &record, read_entry(of, oldest, &record), of->socket.pid };
		if (message->payload) {
			of->next += of->size;
			return true;
		}
		give_up(of);
	}
	return false;
}

unsigned taps_count(void)
{
	unsigned n = 0;

	for (size_t i = 0; i < tap_count; i++)
		n += taps[i].ring && !taps[i].gone;
	return n;
}

uint64_t taps_lost(void)
{
	uint64_t lost = lost_before;

	for (size_t i = 0; i < tap_count; i++)
		if (taps[i].ring)
			lost += __atomic_load_n(&taps[i].ring->lost, __ATOMIC_RELAXED);
	return lost;
}

void taps_end(void)
{
	char why[256];

	lease_stop();
	for (size_t i = 0; i < tap_count; i++)
		if (taps[i].ring && !taps[i].gone)
			json_decref(control_ask(&taps[i].socket, CONTROL_TAP, request(true), why, sizeof why));
}

void taps_free(void)
{
	taps_end();	/* a second "end" lets the programs free the memory of the rings */
	for (size_t i = 0; i < tap_count; i++)
		close_tap(&taps[i]);
	free(taps);
	taps = NULL;
	tap_count = 0;
}
