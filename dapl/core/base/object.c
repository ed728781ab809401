/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* object.c - memory and life of objects (object.h). It knows the structures of objects only for the locks
 * that a reuse of the memory must spare. */
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "dapl/core/dapl.h"

/* Dead objects by kind, oldest first. The oldest memory is used again first, so that a stale handle is
 * recognised for as long as possible. */
static struct dapl_mutex dead_lock = DAPL_MUTEX_INIT(RANK_DEAD_OBJECTS);
static struct {
	struct dapl_object *first, **last;
	unsigned count;
} dead[DAPL_KINDS];	/* guarded by dead_lock */
enum { KEEP_DEAD = 32 };	/* dead objects of a kind that are kept before the oldest is used again */

static struct dapl_object *reuse(enum dapl_kind kind)
{
	struct dapl_object *obj = NULL;

	dapl_mutex_lock(&dead_lock);
	if (dead[kind].count > KEEP_DEAD) {
		obj = dead[kind].first;
		dead[kind].first = obj->next;
		dead[kind].count--;
	}
	dapl_mutex_unlock(&dead_lock);
	return obj;
}

static void (*end_of[DAPL_KINDS])(struct dapl_object *);	/* atomic */

/* The locks of posts and dequeues, in the order in which they are taken. A post or a dequeue with a stale
 * handle may take such a lock while the memory is used again, so a reuse does not change `bytes` bytes from
 * the lock on. */
struct spared {
	size_t lock, bytes;
	bool is_post_lock;	/* else a spin lock */
};
static const struct spared spared[DAPL_KINDS][3] = {
	[DAPL_EP] = {
		{ offsetof(struct dapl_ep, sq.lock), sizeof(struct dapl_post_lock), true },
		{ offsetof(struct dapl_ep, rq.lock), sizeof(struct dapl_post_lock), true } },
	[DAPL_EVD] = { { offsetof(struct dapl_evd, lock), sizeof(dapl_gate), false } },
	[DAPL_SRQ] = { { offsetof(struct dapl_srq, lock), sizeof(struct dapl_post_lock), true } },
};

static void take_spared(struct dapl_object *obj, const struct spared *s)
{
	void *lock = (char *)obj + s->lock;

	if (s->is_post_lock)
		dapl_post_lock((struct dapl_post_lock *)lock);
	else
		dapl_spin_lock((struct dapl_spin *)lock);
}

static void release_spared(struct dapl_object *obj, const struct spared *s)
{
	void *lock = (char *)obj + s->lock;

	if (s->is_post_lock)
		dapl_post_unlock((struct dapl_post_lock *)lock);
	else
		dapl_spin_unlock((struct dapl_spin *)lock);
}

/* Uses relaxed stores, because a late call may read without a lock: it finds old values or zeroes, then
 * takes a lock and finds no queue. */
static void zero(char *at, const char *end)
{
	for (; at < end && (uintptr_t)at % sizeof(uint64_t); at++)
		__atomic_store_n(at, 0, __ATOMIC_RELAXED);
	for (; at + sizeof(uint64_t) <= end; at += sizeof(uint64_t))
		__atomic_store_n((uint64_t *)(void *)at, 0, __ATOMIC_RELAXED);
	for (; at < end; at++)
		__atomic_store_n(at, 0, __ATOMIC_RELAXED);
}

/* Zeroes all after the head of the object except the spared bytes. Holds the locks of late calls
 * meanwhile. */
static void clear(struct dapl_object *obj, size_t size)
{
	const struct spared *s, *first = spared[obj->kind];
	char *from = (char *)(obj + 1);

	for (s = first; s->bytes; s++)
		take_spared(obj, s);
	for (s = first; s->bytes; s++) {
		zero(from, (char *)obj + s->lock);
		from = (char *)obj + s->lock + s->bytes;
	}
	zero(from, (char *)obj + size);
	while (s-- > first)
		release_spared(obj, s);
}

void *dapl_object_new(enum dapl_kind kind, size_t size, struct dapl_ia *ia,
		      void (*end)(struct dapl_object *))
{
	struct dapl_object *obj = reuse(kind);

	size = (size + 63) & ~(size_t)63;
	if (obj) {
		clear(obj, size);
	} else {
		if (!(obj = aligned_alloc(64, size)))
			return NULL;
		memset(obj, 0, size);
		obj->kind = kind;	/* never changes: a late call reads it */
	}
	__atomic_store_n(&end_of[kind], end, __ATOMIC_RELAXED);
	obj->refs = 1;
	obj->users = 0;
	obj->context = (DAT_CONTEXT){ .as_64 = 0 };
	obj->condemned = false;
	obj->next = NULL;
	obj->prev = NULL;
	__atomic_store_n(&obj->ia, ia, __ATOMIC_RELAXED);	/* a late call may read it */
	if (ia && obj->provider != ia->obj.provider)	/* written only if it changes: a thread with a stale
							 * handle may read it */
		obj->provider = ia->obj.provider;
	return obj;
}

/* Returns the IA whose list the object belongs on, or NULL for the IA itself and for objects without an
 * IA. */
static struct dapl_ia *list_of(const struct dapl_object *obj)
{
	return obj->ia == (const struct dapl_ia *)obj ? NULL : obj->ia;
}

void dapl_object_publish(struct dapl_object *obj)
{
	struct dapl_ia *ia = list_of(obj);

	if (!ia) {
		__atomic_store_n(&obj->magic, DAPL_MAGIC(obj->kind), __ATOMIC_RELEASE);
		return;
	}
	dapl_mutex_lock(&ia->lock);
	obj->next = ia->objects[obj->kind];
	obj->prev = &ia->objects[obj->kind];
	if (obj->next)
		obj->next->prev = &obj->next;
	*obj->prev = obj;
	__atomic_store_n(&obj->magic, DAPL_MAGIC(obj->kind), __ATOMIC_RELEASE);
	dapl_mutex_unlock(&ia->lock);
}

/* --- killing --------------------------------------------------------------------------- */

/* The caller has set DAPL_KILLED, so no other thread kills the object. */
static void make_bad(struct dapl_object *obj)
{
	__atomic_exchange_n(&obj->magic, 0, __ATOMIC_SEQ_CST);
}

/* Removes the object from its IA's list. Called with ia->lock held. */
static void unlist(struct dapl_ia *ia, struct dapl_object *obj)
{
	assert_held(&ia->lock);
	*obj->prev = obj->next;
	if (obj->next)
		obj->next->prev = obj->prev;
	ia->ending++;
}

static bool condemn(struct dapl_object *obj)
{
	if (__atomic_fetch_or(&obj->users, DAPL_KILLED, __ATOMIC_ACQ_REL) & DAPL_KILLED)
		return false;
	make_bad(obj);
	return true;
}

void dapl_object_end_kill(struct dapl_object *obj)
{
	struct dapl_ia *ia = list_of(obj);

	if (!ia)
		return;
	dapl_mutex_lock(&ia->lock);
	unlist(ia, obj);
	dapl_mutex_unlock(&ia->lock);
}

bool dapl_object_kill(struct dapl_object *obj)
{
	if (!condemn(obj))
		return false;
	dapl_object_end_kill(obj);
	return true;
}

enum dapl_kill dapl_object_begin_kill_unused(struct dapl_object *obj)
{
	uint32_t users = 0;

	if (!__atomic_compare_exchange_n(&obj->users, &users, DAPL_KILLED, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_ACQUIRE))
		return users & DAPL_KILLED ? KILL_LOST : KILL_IN_USE;
	make_bad(obj);
	return KILL_DONE;
}

enum dapl_kill dapl_object_kill_unused(struct dapl_object *obj)
{
	enum dapl_kill killed = dapl_object_begin_kill_unused(obj);

	if (killed == KILL_DONE)
		dapl_object_end_kill(obj);
	return killed;
}

bool dapl_use(struct dapl_object *obj)
{
	uint32_t users = __atomic_load_n(&obj->users, __ATOMIC_RELAXED);

	do
		if (users == DAPL_KILLED)
			return false;
	while (!__atomic_compare_exchange_n(&obj->users, &users, users + 1, true, __ATOMIC_ACQ_REL,
					    __ATOMIC_RELAXED));
	return true;
}

void dapl_object_pause(unsigned i)
{
	struct timespec pause = { .tv_nsec = 50000 };

	if (i < 100)
		sched_yield();
	else
		nanosleep(&pause, NULL);
}

void dapl_object_wait_calls(struct dapl_object *obj, uint32_t own)
{
	assert_no_lock_held();
	for (unsigned i = 0; __atomic_load_n(&obj->calls, __ATOMIC_SEQ_CST) > own; i++)
		dapl_object_pause(i);
}

void dapl_object_bury(struct dapl_object *obj)
{
	struct dapl_ia *ia = list_of(obj);
	bool counted = ia && obj->prev;	/* it was published: a discard EVD was not */

	dapl_object_put(obj);
	if (!counted)
		return;
	dapl_mutex_lock(&ia->lock);
	ia->ending--;
	dapl_mutex_unlock(&ia->lock);
}

/* No call can enter an object that was killed. So an object without calls stays without calls. If this is
 * true of all objects, no call of the IA runs that could publish another object. */
bool dapl_object_condemn_all(struct dapl_ia *ia)
{
	bool no_calls_inside = true;

	dapl_mutex_lock(&ia->lock);
	for (int kind = 0; kind < DAPL_KINDS; kind++)
		for (struct dapl_object *o = ia->objects[kind]; o; o = o->next)
			if (condemn(o)) {
				o->condemned = true;
				no_calls_inside = false;	/* a call may be inside */
			} else if (!o->condemned ||
				   __atomic_load_n(&o->calls, __ATOMIC_SEQ_CST)) {
				no_calls_inside = false;
			}
	no_calls_inside &= !ia->ending;
	dapl_mutex_unlock(&ia->lock);
	return no_calls_inside;
}

struct dapl_object *dapl_object_next_to_end(struct dapl_ia *ia, enum dapl_kind kind)
{
	struct dapl_object *obj;
	bool ours = false;

	for (unsigned i = 0; !ours; i++) {
		dapl_mutex_lock(&ia->lock);
		obj = ia->objects[kind];
		ours = obj && (obj->condemned || condemn(obj));
		if (ours)
			unlist(ia, obj);
		dapl_mutex_unlock(&ia->lock);
		if (!obj)
			return NULL;
		if (!ours)
			dapl_object_pause(i);	/* another thread has killed it and is about to unlist it */
	}
	dapl_object_wait_calls(obj, 0);
	return obj;
}

/* --- references ------------------------------------------------------------------------ */

void dapl_object_put(struct dapl_object *obj)
{
	enum dapl_kind kind = obj->kind;
	void (*end)(struct dapl_object *);

	if (__atomic_sub_fetch(&obj->refs, 1, __ATOMIC_ACQ_REL))
		return;
	end = __atomic_load_n(&end_of[kind], __ATOMIC_RELAXED);
	if (end)
		end(obj);
	dapl_mutex_lock(&dead_lock);
	obj->next = NULL;
	if (!dead[kind].first)
		dead[kind].last = &dead[kind].first;
	*dead[kind].last = obj;
	dead[kind].last = &obj->next;
	dead[kind].count++;
	dapl_mutex_unlock(&dead_lock);
}

/* --- handles --------------------------------------------------------------------------- */

/* Adds to `calls` first and reads the magic then; a kill writes the magic first and reads `calls` then. All
 * four are sequentially consistent: either the kill waits for this call, or this call sees the kill. */
void *dapl_object_enter(DAT_HANDLE handle, enum dapl_kind kind)
{
	struct dapl_object *obj = (struct dapl_object *)handle;

	if (!obj)
		return NULL;
	/* Do not write to memory that is not recognised as an object. */
	if (__atomic_load_n(&obj->magic, __ATOMIC_RELAXED) != DAPL_MAGIC(kind))
		return NULL;
	dapl_object_enter_own(obj);
	if (__atomic_load_n(&obj->magic, __ATOMIC_SEQ_CST) == DAPL_MAGIC(kind))
		return obj;
	dapl_object_leave(obj);
	return NULL;
}

struct dapl_object *dapl_object_enter_any(DAT_HANDLE handle)
{
	struct dapl_object *obj = (struct dapl_object *)handle;
	uint32_t magic = obj ? __atomic_load_n(&obj->magic, __ATOMIC_RELAXED) : 0;

	return magic - DAPL_MAGIC(0) < DAPL_KINDS && obj->kind == magic - DAPL_MAGIC(0) ?
		dapl_object_enter(handle, obj->kind) : NULL;
}

static size_t count_listed(const struct dapl_ia *ia, enum dapl_kind kind)
{
	size_t count = 0;

	for (struct dapl_object *o = ia->objects[kind]; o; o = o->next)
		count++;
	return count;
}

size_t dapl_object_count(struct dapl_ia *ia, enum dapl_kind kind)
{
	size_t count;

	dapl_mutex_lock(&ia->lock);
	count = count_listed(ia, kind);
	dapl_mutex_unlock(&ia->lock);
	return count;
}

bool dapl_object_enter_all(struct dapl_ia *ia, enum dapl_kind kind, struct dapl_object ***objects,
			   size_t *count)
{
	struct dapl_object **all;
	size_t n = 0;

	dapl_mutex_lock(&ia->lock);
	all = malloc((count_listed(ia, kind) + 1) * sizeof *all);
	for (struct dapl_object *o = ia->objects[kind]; all && o; o = o->next)
		if (dapl_object_enter((DAT_HANDLE)o, kind))
			all[n++] = o;
	dapl_mutex_unlock(&ia->lock);
	*objects = all;
	*count = n;
	return all != NULL;
}

void dapl_object_fork(bool begins)
{
	if (begins)
		dapl_mutex_lock(&dead_lock);
	else
		dapl_mutex_unlock(&dead_lock);
}

enum { HAND_OVER = 20 };	/* dead objects of a kind for the registry, which keeps a few hundred in
				 * all */

void dapl_object_fini(void (*keep)(void *object))
{
	dapl_mutex_lock(&dead_lock);
	for (int kind = 0; kind < DAPL_KINDS; kind++) {
		struct dapl_object *obj;

		while ((obj = dead[kind].first)) {
			dead[kind].first = obj->next;
			/* an IA's handle is the registry's own */
			if (keep && kind != DAPL_IA && dead[kind].count <= HAND_OVER)
				keep(obj);
			else
				free(obj);
			dead[kind].count--;
		}
	}
	dapl_mutex_unlock(&dead_lock);
}
