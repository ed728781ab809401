/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* net_list.c - see net_list.h. */
#include "dapl/core/ia/net_list.h"

struct dapl_mutex dapl_net_lock = DAPL_MUTEX_INIT(RANK_NET_WATCH);
static struct dapl_net_watch *watches;

struct dapl_net_watch *dapl_net_first(void)
{
	assert_held(&dapl_net_lock);
	return watches;
}

/* Returns the link to the watch of this IA; it points to NULL if there is no watch. Called with the lock
 * held. */
static struct dapl_net_watch **link_to(const struct dapl_ia *ia)
{
	struct dapl_net_watch **p = &watches;

	assert_held(&dapl_net_lock);
	while (*p && (*p)->ia != ia)
		p = &(*p)->next;
	return p;
}

struct dapl_net_watch *dapl_net_find(const struct dapl_ia *ia)
{
	return *link_to(ia);
}

void dapl_net_add(struct dapl_net_watch *w)
{
	assert_held(&dapl_net_lock);
	w->next = watches;
	watches = w;
}

struct dapl_net_watch *dapl_net_remove(const struct dapl_ia *ia)
{
	struct dapl_net_watch **p = link_to(ia), *w = *p;

	if (w)
		*p = w->next;
	return w;
}

void dapl_net_clear(void)
{
	assert_held(&dapl_net_lock);
	watches = NULL;
}
