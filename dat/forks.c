/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* forks.c - the list of provider libraries that take part in a fork (forks.h). */
#include "dat/forks.h"
#include "dat/error.h"
#include "dat/lock.h"
#include <stdlib.h>

struct library {
	void (*before)(void), (*parent)(void), (*child)(void);
	struct library *next;
};

static struct dat_mutex lock = DAT_MUTEX_INIT(RANK_DAT_FORKS);	/* guards the list; held from before a fork until
								 * after it */
static struct library *libraries;

EXPORT DAT_RETURN dats_fork_add(void (*before)(void), void (*parent)(void), void (*child)(void))
{
	struct library *library = malloc(sizeof *library);

	if (!library)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	*library = (struct library){ .before = before, .parent = parent, .child = child };
	dat_mutex_lock(&lock);
	library->next = libraries;
	libraries = library;
	dat_mutex_unlock(&lock);
	return DAT_SUCCESS;
}

EXPORT void dats_fork_remove(void (*before)(void))
{
	struct library **at = &libraries, *found;

	dat_mutex_lock(&lock);
	while ((found = *at) && found->before != before)
		at = &found->next;
	if (found)
		*at = found->next;
	dat_mutex_unlock(&lock);
	free(found);
}

void forks_before(void)
{
	dat_mutex_lock(&lock);
	for (const struct library *library = libraries; library; library = library->next)
		library->before();
}

void forks_parent(void)
{
	for (const struct library *library = libraries; library; library = library->next)
		library->parent();
	dat_mutex_unlock(&lock);
}

void forks_child(void)
{
	for (const struct library *library = libraries; library; library = library->next)
		library->child();
	dat_mutex_unlock(&lock);
}
