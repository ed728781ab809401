/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* object.h - the head of every object that a consumer holds a handle of: its kind, its
 * life, who depends on it. The one place where a handle becomes an object.
 *
 * Memory of objects is type-stable: freed objects go to a list of their kind and their
 * memory lives until the library is unloaded. So a stale handle can always be looked
 * at, and its magic says that it is dead. */
#ifndef DAPL_OBJECT_H
#define DAPL_OBJECT_H
#include <dat/udat.h>
#include <dat/dat_registry.h>
#include <pthread.h>
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
	DAPL_KINDS
};
#define DAPL_MAGIC(kind) (0xDA7A9100u + (kind))

struct dapl_object {
	const DAT_PROVIDER *provider;	/* first word of every handle (registry.md 1.2) */
	uint32_t magic;		/* DAPL_MAGIC(kind) while the handle is good, else 0 */
	enum dapl_kind kind;
	int users;	/* atomic. Objects whose existence forbids the consumer to free
			 * this one: a DAT rule (..._IN_USE), not memory safety */
	int refs;	/* atomic. Who still looks at it; the last put ends it */
	struct dapl_ia *ia;
	DAT_CONTEXT context;	/* the consumer's */
	void (*end)(struct dapl_object *);	/* on the last put, before the memory goes */
	struct dapl_object *next, **prev;	/* ia->objects[kind]; guarded by ia->lock */
};

/* A zeroed object of `size` bytes (the same for all of a kind), not alive yet, with one
 * reference; NULL without memory. */
void *dapl_object_new(enum dapl_kind kind, size_t size, struct dapl_ia *ia,
		      void (*end)(struct dapl_object *));
/* Makes the handle good and lists the object in its IA. Last step of a create. */
void dapl_object_publish(struct dapl_object *obj);
/* Makes the handle bad and takes the object off its IA's list. False if it was bad
 * already (of two threads that free at once, one wins). */
bool dapl_object_kill(struct dapl_object *obj);

static inline void dapl_object_get(struct dapl_object *obj)
{
	__atomic_add_fetch(&obj->refs, 1, __ATOMIC_RELAXED);
}
void dapl_object_put(struct dapl_object *obj);
/* Waits until the caller's reference is the last one. Others hold theirs briefly. */
void dapl_object_wait_alone(struct dapl_object *obj);

static inline void dapl_use(struct dapl_object *obj)
{
	__atomic_add_fetch(&obj->users, 1, __ATOMIC_RELAXED);
}
static inline void dapl_unuse(struct dapl_object *obj)
{
	__atomic_sub_fetch(&obj->users, 1, __ATOMIC_RELEASE);
}
static inline bool dapl_in_use(struct dapl_object *obj)
{
	return __atomic_load_n(&obj->users, __ATOMIC_ACQUIRE) > 0;
}

/* The object behind a handle, NULL unless it is a live one of that kind. */
static inline void *dapl_object_from(DAT_HANDLE handle, enum dapl_kind kind)
{
	struct dapl_object *obj = (struct dapl_object *)handle;

	if (unlikely(!obj || __atomic_load_n(&obj->magic, __ATOMIC_RELAXED) != DAPL_MAGIC(kind)))
		return NULL;
	return obj;
}
/* The same for a handle of any kind. */
struct dapl_object *dapl_object_any(DAT_HANDLE handle);

/* Frees all memory of dead objects: library unload. */
void dapl_object_fini(void);
/* Around a fork, as dapl_ia_fork. */
void dapl_object_fork(bool begins);

#endif
