/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* object.h - the head of every object that a consumer holds a handle of: its kind, its life, and
 * which objects depend on it. The one place where a handle becomes an object.
 *
 * Memory of objects is type-stable: freed objects go to a list of their kind and their
 * memory lives until the library is unloaded. So a stale handle can always be looked
 * at, and its magic says that it is dead.
 *
 * Any call may race with a free of the same object (doc/design/object-life.md):
 *   - A control call enters each object that a handle names: dapl_object_enter counts the
 *     call in `calls` and then looks at the magic. A free makes the magic bad and then waits
 *     until the calls inside have left (dapl_object_wait_calls), before it undoes anything.
 *   - A post or a dequeue does not enter. It holds the queue's spin lock while it uses
 *     anything that a free undoes, and a free takes these things away under that lock. The
 *     locks and `calls` survive a reuse of the memory (dapl_object_new). */
#ifndef DAPL_OBJECT_H
#define DAPL_OBJECT_H
#include <dat/udat.h>
#include <dat/dat_registry.h>
#include <stdbool.h>
#include <stdint.h>
#include "common/trace.h"

struct dapl_ia;

enum dapl_kind {	/* the numbers of DAT_HANDLE_TYPE */
	DAPL_CR = DAT_HANDLE_TYPE_CR, DAPL_EP = DAT_HANDLE_TYPE_EP,
	DAPL_EVD = DAT_HANDLE_TYPE_EVD, DAPL_IA = DAT_HANDLE_TYPE_IA,
	DAPL_LMR = DAT_HANDLE_TYPE_LMR, DAPL_PSP = DAT_HANDLE_TYPE_PSP,
	DAPL_PZ = DAT_HANDLE_TYPE_PZ, DAPL_RMR = DAT_HANDLE_TYPE_RMR,
	DAPL_RSP = DAT_HANDLE_TYPE_RSP, DAPL_CNO = DAT_HANDLE_TYPE_CNO,
	DAPL_SRQ = DAT_HANDLE_TYPE_SRQ, DAPL_CSP = DAT_HANDLE_TYPE_CSP,
	DAPL_QUERY,	/* of dat_ib_open_query */
	DAPL_DM,	/* device memory; DAT_HANDLE_TYPE_DM. DM-7 */
	DAPL_RULE,	/* of a raw Ethernet endpoint or a group */
	DAPL_GROUP,	/* of raw Ethernet endpoints */
	DAPL_KINDS
};
#define DAPL_MAGIC(kind) (0xDA7A9100u + (kind))

struct dapl_object {
	const DAT_PROVIDER *provider;	/* first word of every handle (doc/spec/registry.md 1.2). ABI-16 */
	uint32_t magic;		/* DAPL_MAGIC(kind) while the handle is valid, else 0 */
	enum dapl_kind kind;
	uint32_t users;	/* atomic. Objects whose existence forbids the consumer to free
			 * this one: a DAT rule (..._IN_USE), not memory safety.
			 * DAPL_KILLED: no more may come */
	int refs;	/* atomic. References; the last put ends the object */
	struct dapl_ia *ia;
	DAT_CONTEXT context;	/* the consumer's */
	uint32_t calls;	/* atomic. Calls that have entered. Survives a reuse of the memory */
	bool condemned;	/* killed by dat_ia_close, still listed; guarded by ia->lock */
	struct dapl_object *next, **prev;	/* ia->objects[kind]; guarded by ia->lock */
};
#define DAPL_KILLED 0x80000000u

_Static_assert(sizeof(void *) < 8 || sizeof(struct dapl_object) == 64,
	       "the hot fields behind it begin a cache line");

/* A zeroed object of `size` bytes (the same for all of a kind), not alive yet, with one
 * reference; NULL without memory. `end` (the same for all of a kind) runs on the last put,
 * before the memory goes. */
void *dapl_object_new(enum dapl_kind kind, size_t size, struct dapl_ia *ia,
		      void (*end)(struct dapl_object *));
/* Makes the handle valid and lists the object in its IA. Last step of a create: another
 * thread may free the object at once, unless this one has entered it before. */
void dapl_object_publish(struct dapl_object *obj);
/* Makes the handle bad and takes the object off its IA's list. False if it was bad
 * already (of two threads that free at once, one wins). The winner waits for the calls
 * inside, ends the object, and drops its first reference with dapl_object_bury. */
bool dapl_object_kill(struct dapl_object *obj);
/* The same for an object that nothing uses. */
enum dapl_kill { KILL_DONE, KILL_IN_USE, KILL_LOST };
enum dapl_kill dapl_object_kill_unused(struct dapl_object *obj);
/* The same in two steps: the first takes no lock. */
enum dapl_kill dapl_object_begin_kill_unused(struct dapl_object *obj);
void dapl_object_end_kill(struct dapl_object *obj);
/* After the kill: waits until no calls are inside but `own` of the caller's. No lock that a
 * call takes is held. */
void dapl_object_wait_calls(struct dapl_object *obj, uint32_t own);
/* Between two looks, the i-th time: a call inside may wait for the network. */
void dapl_object_pause(unsigned i);
/* dapl_object_put of the first reference. dat_ia_close waits for it. */
void dapl_object_bury(struct dapl_object *obj);

/* dat_ia_close. Kills every object of the IA that is alive, and leaves them listed. True if
 * no call is inside any object of the IA and none is being freed; false: look again. */
bool dapl_object_condemn_all(struct dapl_ia *ia);
/* The next object of a kind that the caller must end, killed, off the list, no calls
 * inside; NULL: none is left. */
struct dapl_object *dapl_object_next_to_end(struct dapl_ia *ia, enum dapl_kind kind);

static inline void dapl_object_get(struct dapl_object *obj)
{
	__atomic_add_fetch(&obj->refs, 1, __ATOMIC_RELAXED);
}
void dapl_object_put(struct dapl_object *obj);

/* The caller has entered it, or uses it already. False: it was killed, and has no users. */
bool dapl_use(struct dapl_object *obj) __attribute__((warn_unused_result));
/* Another use by a user of it. */
static inline void dapl_use_again(struct dapl_object *obj)
{
	__atomic_add_fetch(&obj->users, 1, __ATOMIC_RELAXED);
}
static inline void dapl_unuse(struct dapl_object *obj)
{
	__atomic_sub_fetch(&obj->users, 1, __ATOMIC_RELEASE);
}
static inline bool dapl_in_use(struct dapl_object *obj)
{
	return (__atomic_load_n(&obj->users, __ATOMIC_ACQUIRE) & ~DAPL_KILLED) != 0;
}

/* Returns false if the handle was freed. The answer stays true while the caller holds a lock
 * that the free takes to kill the object. */
static inline bool dapl_object_is_live(const struct dapl_object *obj)
{
	return __atomic_load_n(&obj->magic, __ATOMIC_ACQUIRE) != 0;
}

/* The object behind a handle, entered; NULL unless it is a live one of that kind. */
void *dapl_object_enter(DAT_HANDLE handle, enum dapl_kind kind);
/* The same for a handle of any kind. */
struct dapl_object *dapl_object_enter_any(DAT_HANDLE handle);
static inline void dapl_object_leave(struct dapl_object *obj)
{
	__atomic_sub_fetch(&obj->calls, 1, __ATOMIC_RELEASE);
}
/* An object that the caller holds by other means. */
static inline void dapl_object_enter_own(struct dapl_object *obj)
{
	__atomic_add_fetch(&obj->calls, 1, __ATOMIC_SEQ_CST);
}

/* Declares pointers to objects that are left when they go out of scope:
 *	DAPL_ENTERED struct dapl_ep *ep = dapl_ep_enter(handle);
 * NULL is none. A pointer that is handed to the caller is set NULL before. */
#define DAPL_ENTERED __attribute__((cleanup(dapl_object_leave_at)))
static inline void dapl_object_leave_at(void *pointer)
{
	struct dapl_object *obj = *(struct dapl_object **)pointer;

	if (obj)
		dapl_object_leave(obj);
}

/* Enters all live objects of a kind; the caller leaves each, and frees the array. False: no
 * memory. */
bool dapl_object_enter_all(struct dapl_ia *ia, enum dapl_kind kind, struct dapl_object ***objects,
			   size_t *count);
size_t dapl_object_count(struct dapl_ia *ia, enum dapl_kind kind);

/* Library unload. `keep`, if the registry has it, takes the newest dead objects of each kind,
 * whose handles it then recognises; the memory of the others is freed. */
void dapl_object_fini(void (*keep)(void *object));
/* Around a fork, as dapl_async_fork. */
void dapl_object_fork(bool begins);

#endif
