/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* object.c - memory and life of objects (object.h). What an object is for is not known
 * here. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include "dapl/core/dapl.h"

/* Dead objects by kind, oldest first: the longer a stale handle stays recognisable,
 * the better. */
static pthread_mutex_t dead_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	struct dapl_object *first, **last;
	unsigned count;
} dead[DAPL_KINDS];	/* guarded by dead_lock */
enum { KEEP_DEAD = 32 };	/* of a kind, before the oldest is used again */

static struct dapl_object *reuse(enum dapl_kind kind)
{
	struct dapl_object *obj = NULL;

	pthread_mutex_lock(&dead_lock);
	if (dead[kind].count > KEEP_DEAD) {
		obj = dead[kind].first;
		dead[kind].first = obj->next;
		dead[kind].count--;
	}
	pthread_mutex_unlock(&dead_lock);
	return obj;
}

void *dapl_object_new(enum dapl_kind kind, size_t size, struct dapl_ia *ia,
		      void (*end)(struct dapl_object *))
{
	struct dapl_object *obj = reuse(kind);

	size = (size + 63) & ~(size_t)63;
	if (!obj && !(obj = aligned_alloc(64, size)))
		return NULL;
	memset(obj, 0, size);
	obj->kind = kind;
	obj->refs = 1;
	obj->end = end;
	obj->ia = ia;
	if (ia)
		obj->provider = ia->obj.provider;
	return obj;
}

void dapl_object_publish(struct dapl_object *obj)
{
	struct dapl_ia *ia = obj->ia;

	if (ia && ia != (struct dapl_ia *)obj) {
		struct dapl_object **list = &ia->objects[obj->kind];

		pthread_mutex_lock(&ia->lock);
		obj->next = *list;
		obj->prev = list;
		if (*list)
			(*list)->prev = &obj->next;
		*list = obj;
		pthread_mutex_unlock(&ia->lock);
	}
	__atomic_store_n(&obj->magic, DAPL_MAGIC(obj->kind), __ATOMIC_RELEASE);
}

bool dapl_object_kill(struct dapl_object *obj)
{
	uint32_t alive = DAPL_MAGIC(obj->kind);
	struct dapl_ia *ia = obj->ia;

	if (!__atomic_compare_exchange_n(&obj->magic, &alive, 0, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED))
		return false;
	if (ia && ia != (struct dapl_ia *)obj) {
		pthread_mutex_lock(&ia->lock);
		*obj->prev = obj->next;
		if (obj->next)
			obj->next->prev = obj->prev;
		pthread_mutex_unlock(&ia->lock);
	}
	return true;
}

void dapl_object_put(struct dapl_object *obj)
{
	enum dapl_kind kind = obj->kind;

	if (__atomic_sub_fetch(&obj->refs, 1, __ATOMIC_ACQ_REL))
		return;
	if (obj->end)
		obj->end(obj);
	pthread_mutex_lock(&dead_lock);
	obj->next = NULL;
	if (!dead[kind].first)
		dead[kind].last = &dead[kind].first;
	*dead[kind].last = obj;
	dead[kind].last = &obj->next;
	dead[kind].count++;
	pthread_mutex_unlock(&dead_lock);
}

void dapl_object_wait_alone(struct dapl_object *obj)
{
	while (__atomic_load_n(&obj->refs, __ATOMIC_ACQUIRE) > 1)
		sched_yield();
}

struct dapl_object *dapl_object_any(DAT_HANDLE handle)
{
	struct dapl_object *obj = (struct dapl_object *)handle;
	uint32_t magic = obj ? __atomic_load_n(&obj->magic, __ATOMIC_RELAXED) : 0;

	return magic - DAPL_MAGIC(0) < DAPL_KINDS && obj->kind == magic - DAPL_MAGIC(0) ?
		obj : NULL;
}

void dapl_object_fork(bool begins)
{
	if (begins)
		pthread_mutex_lock(&dead_lock);
	else
		pthread_mutex_unlock(&dead_lock);
}

void dapl_object_fini(void)
{
	pthread_mutex_lock(&dead_lock);
	for (int kind = 0; kind < DAPL_KINDS; kind++) {
		struct dapl_object *obj;

		while ((obj = dead[kind].first)) {
			dead[kind].first = obj->next;
			free(obj);
		}
		dead[kind].count = 0;
	}
	pthread_mutex_unlock(&dead_lock);
}
