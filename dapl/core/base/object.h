/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* object.h - the head of every object that a consumer holds a handle of: its kind, its life, and which
 * objects depend on it. The one place where a handle becomes an object.
 *
 * Memory of objects is type-stable: freed objects go to a list of their kind, and their memory stays
 * allocated until the library is unloaded. So code may read a stale handle at any time, and finds in its
 * magic that the object is dead.
 *
 * Any call may race with a free of the same object (doc/design/object-life.md):
 *   - A control call enters each object that a handle names: dapl_object_enter adds the call to `calls` and
 *     reads the magic then. A free makes the magic bad, and then waits until the calls inside have left
 *     (dapl_object_wait_calls), before it destroys anything.
 *   - A post or a dequeue does not enter. It holds the queue's spin lock while it uses anything that a free
 *     destroys, and a free removes these things under that lock. The locks and `calls` keep their values
 *     when the memory is used again (dapl_object_new). */
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
	uint32_t users;	/* atomic. Objects whose existence forbids the consumer to free this one: a DAT rule
			 * (..._IN_USE), not memory safety. DAPL_KILLED: no user may be added */
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

/* Returns a zeroed object of `size` bytes with one reference, which is not live yet, or NULL if there is no
 * memory. `end` is called by the last put, before the memory goes to the list of dead objects. `size` and
 * `end` are the same for all objects of a kind. */
void *dapl_object_new(enum dapl_kind kind, size_t size, struct dapl_ia *ia,
		      void (*end)(struct dapl_object *));
/* Makes the handle valid and lists the object in its IA. This is the last step of a create: another thread
 * may free the object at once, unless this thread has entered it before. */
void dapl_object_publish(struct dapl_object *obj);
/* Makes the handle invalid and removes the object from its IA's list. Returns false if another thread has
 * killed it: of two threads that free an object, one wins. The winner waits for the calls inside, ends the
 * object, and drops its first reference with dapl_object_bury. */
bool dapl_object_kill(struct dapl_object *obj);
/* Kills an object only if it has no users. */
enum dapl_kill { KILL_DONE, KILL_IN_USE, KILL_LOST };
enum dapl_kill dapl_object_kill_unused(struct dapl_object *obj);
/* The same as dapl_object_kill_unused in two steps. The first takes no lock. */
enum dapl_kill dapl_object_begin_kill_unused(struct dapl_object *obj);
void dapl_object_end_kill(struct dapl_object *obj);
/* Called after the kill: waits until no calls are inside except the `own` calls of the caller. The caller
 * holds no lock that a call takes. */
void dapl_object_wait_calls(struct dapl_object *obj, uint32_t own);
/* Pauses between two looks, for the i-th time. The first pauses only yield; later ones sleep, because a
 * call inside may wait for the network. */
void dapl_object_pause(unsigned i);
/* Drops the first reference. dat_ia_close waits for this. */
void dapl_object_bury(struct dapl_object *obj);

/* For dat_ia_close: kills every live object of the IA, and leaves the objects listed. Returns true if no
 * call is inside any object of the IA and no object is being freed. After false the caller must call
 * again. */
bool dapl_object_condemn_all(struct dapl_ia *ia);
/* Returns the next object of a kind that the caller must end, or NULL if none is left. The object was
 * killed and removed from the list, and no calls are inside. */
struct dapl_object *dapl_object_next_to_end(struct dapl_ia *ia, enum dapl_kind kind);

static inline void dapl_object_get(struct dapl_object *obj)
{
	__atomic_add_fetch(&obj->refs, 1, __ATOMIC_RELAXED);
}
void dapl_object_put(struct dapl_object *obj);

/* Adds a user. The caller has entered the object, or uses it already. Returns false if the object was
 * killed and has no users. */
bool dapl_use(struct dapl_object *obj) __attribute__((warn_unused_result));
/* Adds another use by a user that the object already has. */
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

/* Enters the object of a handle. Returns NULL unless the object is live and of that kind. */
void *dapl_object_enter(DAT_HANDLE handle, enum dapl_kind kind);
/* Does the same for a handle of any kind. */
struct dapl_object *dapl_object_enter_any(DAT_HANDLE handle);
static inline void dapl_object_leave(struct dapl_object *obj)
{
	__atomic_sub_fetch(&obj->calls, 1, __ATOMIC_RELEASE);
}
/* Enters an object that cannot be freed meanwhile, because the caller keeps it in another way. */
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

/* Enters all live objects of a kind. The caller leaves each, and frees the array. Returns false if there is
 * no memory; then *count is 0. */
bool dapl_object_enter_all(struct dapl_ia *ia, enum dapl_kind kind, struct dapl_object ***objects,
			   size_t *count);
size_t dapl_object_count(struct dapl_ia *ia, enum dapl_kind kind);

/* Called when the library is unloaded. `keep`, if the registry has it, takes the newest dead objects of
 * each kind, and recognises their handles from then on. Frees the memory of the others. */
void dapl_object_fini(void (*keep)(void *object));
/* Called around a fork: takes or releases the lock of dead objects. */
void dapl_object_fork(bool begins);

#endif
