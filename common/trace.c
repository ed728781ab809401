/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* trace.c - keeps the last trace records of every thread and prints them.
 *
 * Each thread has a ring of finished lines. Only its thread writes a ring; trace_dump()
 * reads all of them, perhaps in a signal handler of a thread that was interrupted in
 * the middle of a write. So a ring has a spin lock, held for one copy of a line, which
 * the dump waits for only briefly.
 *
 * A ring outlives its thread (its records are part of the story) and is handed to the
 * next new thread. */
#include "common/trace.h"
#include "common/compiler.h"
#include "common/file_size.h"
#include "common/lock.h"
#include "common/log.h"
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define RING_RECORDS 256	/* a power of two */
#define RECORD_TEXT 280	/* a connection's line has two addresses and a cause */
#define DUMP_SPINS 10000

struct record {
	uint64_t order;		/* 1, 2, 3... over all rings */
	unsigned length;
	char text[RECORD_TEXT];
};

struct ring {
	struct ring *next;
	bool taken;		/* has a thread */
	bool lock;		/* guards count and records */
	uint64_t count;		/* records ever written */
	struct record records[RING_RECORDS];
};

unsigned trace_level;
unsigned trace_gate;

static const struct trace_logged *logged;	/* atomic; NULL: none */
static const struct trace_logged *known;	/* what trace_log_kinds() got */

static uint64_t last_order;
static struct ring *rings;	/* grows at its head only, until trace_fini() */
static struct dapl_mutex key_lock = DAPL_MUTEX_INIT(RANK_TRACE);
/* A thread's ring; the destructor frees it. Not thread-local: the dynamic linker ends a process in which it finds no
 * memory for that. */
static pthread_key_t ring_key;
static bool have_key;		/* atomic */

static void set_gate(void)
{
	unsigned level = __atomic_load_n(&trace_level, __ATOMIC_RELAXED);

	const struct trace_logged *table = __atomic_load_n(&logged, __ATOMIC_RELAXED);

	__atomic_store_n(&trace_gate, table ? TRC_LVL_MAX : level, __ATOMIC_RELAXED);
}

void trace_set_level(unsigned level)
{
	__atomic_store_n(&trace_level, level > TRC_LVL_MAX ? TRC_LVL_MAX : level,
			 __ATOMIC_RELAXED);
	set_gate();
}

void trace_log_kinds(const struct trace_logged *table)
{
	known = table;
	trace_log_again();
}

void trace_log_again(void)
{
	const struct trace_logged *shown = NULL;

	for (const struct trace_logged *row = known; row && row->kind; row++)
		if (log_on(row->bit))
			shown = known;
	__atomic_store_n(&logged, shown, __ATOMIC_RELAXED);
	set_gate();
}

static unsigned log_bits(const char *kind)
{
	const struct trace_logged *row = __atomic_load_n(&logged, __ATOMIC_RELAXED);

	while (row && row->kind && strcmp(row->kind, kind))
		row++;
	return row ? row->bit : 0;
}

void trace_init(const char *level_var)
{
	unsigned long level = TRC_LVL_OFF;

	log_env_number(level_var, TRC_LVL_OFF, TRC_LVL_MAX, &level);
	trace_set_level(level);
}

static bool ring_trylock(struct ring *ring)
{
	return !__atomic_test_and_set(&ring->lock, __ATOMIC_ACQUIRE);
}

static void ring_unlock(struct ring *ring)
{
	__atomic_clear(&ring->lock, __ATOMIC_RELEASE);
}

static void ring_release(void *ring)
{
	__atomic_store_n(&((struct ring *)ring)->taken, false, __ATOMIC_RELEASE);
}

static struct ring *ring_take_old(void)
{
	struct ring *ring = __atomic_load_n(&rings, __ATOMIC_ACQUIRE);

	for (; ring; ring = ring->next) {
		bool taken = false;

		if (__atomic_compare_exchange_n(&ring->taken, &taken, true, false,
						__ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return ring;
	}
	return NULL;
}

static struct ring *ring_add(void)
{
	struct ring *ring = calloc(1, sizeof(*ring));

	if (!ring)
		return NULL;
	ring->taken = true;
	ring->next = __atomic_load_n(&rings, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&rings, &ring->next, ring, true,
					    __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
	return ring;
}

/* Makes the ring this thread's, until the thread ends. Returns false if there is no key or no memory. */
static bool ring_own(struct ring *ring)
{
	bool owned;

	dapl_mutex_lock(&key_lock);
	if (!have_key)
		__atomic_store_n(&have_key, !pthread_key_create(&ring_key, ring_release), __ATOMIC_RELEASE);
	owned = have_key && !pthread_setspecific(ring_key, ring);
	dapl_mutex_unlock(&key_lock);
	return owned;
}

/* Returns this thread's ring, or NULL: then its records are lost. */
static struct ring *ring_mine(void)
{
	struct ring *ring = NULL;

	if (likely(__atomic_load_n(&have_key, __ATOMIC_ACQUIRE)))
		ring = pthread_getspecific(ring_key);
	if (likely(ring))
		return ring;
	ring = ring_take_old();
	if (!ring)
		ring = ring_add();
	if (!ring || ring_own(ring))
		return ring;
	ring_release(ring);
	return NULL;
}

static void ring_keep(struct ring *ring, const struct record *record)
{
	while (!ring_trylock(ring))
		;
	ring->records[ring->count++ % RING_RECORDS] = *record;
	ring_unlock(ring);
}

static void record_format(struct record *record, enum trace_class class, const char *kind,
			  const void *object, const char *state, const char *fmt,
			  va_list args)
{
	const int room = sizeof(record->text) - 1;	/* the last byte is the newline's */
	struct timespec now;
	int n;

	clock_gettime(CLOCK_MONOTONIC, &now);
	record->order = __atomic_add_fetch(&last_order, 1, __ATOMIC_RELAXED);
	n = snprintf(record->text, room, "%X %lld.%06ld %ld %s %p %s ", class,
		     (long long)now.tv_sec, now.tv_nsec / 1000, (long)syscall(SYS_gettid),
		     kind, object, state ? state : "-");
	if (n < room) {
		int more = vsnprintf(record->text + n, room - n, fmt, args);

		n += more > 0 ? more : 0;
	}
	if (n >= room)
		n = room - 1;
	record->text[n++] = '\n';
	record->length = n;
}

static void keep_and_print(const struct record *record)
{
	struct ring *ring = ring_mine();

	if (ring)
		ring_keep(ring, record);
	while (file_write(STDERR_FILENO, record->text, record->length) < 0 && errno == EINTR)
		;
}

void trace_record(unsigned level, enum trace_class class, const char *kind, const void *object,
		  const char *state, const char *fmt, ...)
{
	bool wanted = __atomic_load_n(&trace_level, __ATOMIC_RELAXED) >= level;
	unsigned bits = log_bits(kind);
	int saved_errno = errno;
	struct record record;
	va_list args;

	if (!wanted && !log_on(bits))
		return;
	va_start(args, fmt);
	record_format(&record, class, kind, object, state, fmt, args);
	va_end(args);
	if (wanted)
		keep_and_print(&record);
	(wanted ? log_line_printed : log_line)(bits, "%.*s", (int)record.length - 1, record.text);
	errno = saved_errno;
}

/* Waits for a writer in another thread; a writer that this signal handler interrupted
 * would never finish, so the wait ends and the ring is read as it is. */
static bool ring_lock_briefly(struct ring *ring)
{
	for (int i = 0; i < DUMP_SPINS; i++)
		if (ring_trylock(ring))
			return true;
	return false;
}

/* Copies the oldest record of `ring` that comes after `order`. Returns false if there is none. */
static bool ring_next(struct ring *ring, uint64_t order, struct record *next)
{
	bool locked = ring_lock_briefly(ring), found;
	uint64_t from = ring->count > RING_RECORDS ? ring->count - RING_RECORDS : 0;
	uint64_t count = ring->count, to = count;

	while (from < to) {	/* the order of a ring's records ascends */
		uint64_t middle = from + (to - from) / 2;

		if (ring->records[middle % RING_RECORDS].order > order)
			to = middle;
		else
			from = middle + 1;
	}
	found = from < count;
	if (found)
		*next = ring->records[from % RING_RECORDS];
	if (locked)
		ring_unlock(ring);
	return found;
}

/* Copies the oldest record of all rings that comes after `order`. Returns false if there is none. */
static bool rings_next(uint64_t order, struct record *next)
{
	struct ring *ring = __atomic_load_n(&rings, __ATOMIC_ACQUIRE);
	struct record candidate;

	next->order = UINT64_MAX;
	for (; ring; ring = ring->next)
		if (ring_next(ring, order, &candidate) && candidate.order < next->order)
			*next = candidate;
	return next->order != UINT64_MAX;
}

void trace_dump(int fd)
{
	struct record record = { .order = 0 };
	int saved_errno = errno;

	while (rings_next(record.order, &record))
		while (file_write(fd, record.text, record.length) < 0 && errno == EINTR)
			;
	errno = saved_errno;
}

void trace_each(void (*each)(void *arg, const char *text, size_t length), void *arg)
{
	struct record record = { .order = 0 };

	while (rings_next(record.order, &record))
		each(arg, record.text, record.length - 1);
}

void trace_fini(void)
{
	struct ring *ring;

	dapl_mutex_lock(&key_lock);
	if (have_key)
		pthread_key_delete(ring_key);
	__atomic_store_n(&have_key, false, __ATOMIC_RELEASE);
	dapl_mutex_unlock(&key_lock);
	ring = __atomic_exchange_n(&rings, NULL, __ATOMIC_ACQUIRE);
	while (ring) {
		struct ring *next = ring->next;

		free(ring);
		ring = next;
	}
}
