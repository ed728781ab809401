/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fork.c - calls the registered parts around a fork, and counts the threads in these handlers
 * (fork.h). */
#include "dapl/core/base/fork.h"
#include <dat/udat.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>
#include "common/lock.h"
#include "dapl/core/base/registry.h"

static struct dapl_mutex parts_lock = DAPL_MUTEX_INIT(RANK_FORK);	/* guards parts */
static struct dapl_fork_part *parts;	/* by rank */
static int inside;			/* atomic: threads in handlers */
static void (*leave_registry)(void (*before)(void));	/* dats_fork_remove of the registry; NULL: the
							 * handlers are installed by pthread_atfork */

static void enter(void)
{
	__atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST);
}

static void leave(void)
{
	__atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
}

static void before(void)
{
	enter();
	dapl_mutex_lock(&parts_lock);
	for (const struct dapl_fork_part *part = parts; part; part = part->next)
		if (part->before)
			part->before();
	leave();
}

static void call_backwards(const struct dapl_fork_part *part, bool in_child)
{
	void (*call)(void);

	if (!part)
		return;
	call_backwards(part->next, in_child);
	call = in_child ? part->child : part->parent;
	if (call)
		call();
}

static void in_parent(void)
{
	enter();
	call_backwards(parts, false);
	dapl_mutex_unlock(&parts_lock);
	leave();
}

/* Other threads that were in handlers do not exist in the child. */
static void in_child(void)
{
	__atomic_store_n(&inside, 1, __ATOMIC_SEQ_CST);
	call_backwards(parts, true);
	dapl_mutex_unlock(&parts_lock);
	leave();
}

static void install(void)
{
	DAT_RETURN (*add)(void (*)(void), void (*)(void), void (*)(void));

	*(void **)&add = dapl_registry_function("dats_fork_add");
	if (add && add(before, in_parent, in_child) == DAT_SUCCESS)
		*(void **)&leave_registry = dapl_registry_function("dats_fork_remove");
	else
		pthread_atfork(before, in_parent, in_child);
}

void dapl_fork_register(struct dapl_fork_part *part)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct dapl_fork_part **at = &parts;

	pthread_once(&once, install);
	dapl_mutex_lock(&parts_lock);
	while (*at && (*at)->rank <= part->rank)
		at = &(*at)->next;
	part->next = *at;
	*at = part;
	dapl_mutex_unlock(&parts_lock);
}

void dapl_fork_end(void)
{
	if (leave_registry)
		leave_registry(before);
	for (int i = 0; i < 10000 && __atomic_load_n(&inside, __ATOMIC_SEQ_CST); i++)
		usleep(100);
}
