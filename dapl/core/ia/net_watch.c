/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* net_watch.c - see net_watch.h. Begin and end of a watch, and what the device itself reports. The service
 * thread reads one rtnetlink socket of the process, whose messages say that something changed
 * (net_socket.c); the changes are counted and become events (net_events.c, which has the list of watched IAs).
 * The calls go in this order. */
#include <stdlib.h>
#include <dat/dat_net_extensions.h>
#include "dapl/core/base/fork.h"
#include "dapl/core/event/async.h"
#include "dapl/core/ia/net_events.h"
#include "dapl/core/ia/net_socket.h"
#include "dapl/core/ia/net_watch.h"

void dapl_net_port_changed(struct dapl_ia *ia, int value)
{
	dapl_mutex_lock(&dapl_net_lock);
	for (struct dapl_net_watch *w = dapl_net_first(); w; w = w->next) {
		if (w->ia != ia)
			continue;
		if (value >= 0)
			dapl_net_note(w, KIND_LINK, (DAT_UINT32)value);
		dapl_net_schedule(w);
	}
	dapl_mutex_unlock(&dapl_net_lock);
}

void dapl_net_device_lost(struct dapl_ia *ia)
{
	bool watched = false;

	dapl_mutex_lock(&dapl_net_lock);
	for (struct dapl_net_watch *w = dapl_net_first(); w; w = w->next)
		watched |= w->ia == ia && w->what & DAT_NET_RDMA;
	dapl_mutex_unlock(&dapl_net_lock);
	if (watched)
		dapl_net_post(ia, DAT_NET_RDMA, 1, 0, 0);
}

static void before_fork(void)
{
	dapl_mutex_lock(&dapl_net_lock);
}

static void after_fork(void)
{
	dapl_mutex_unlock(&dapl_net_lock);
}

static void in_child(void)
{
	dapl_net_socket_drop();
	dapl_net_clear();
	dapl_mutex_unlock(&dapl_net_lock);
}

void dapl_net_watch_forks(void)
{
	static struct dapl_fork_part part = { .rank = RANK_NET_WATCH, .before = before_fork,
		.parent = after_fork, .child = in_child };

	dapl_fork_register(&part);
}

static struct dapl_net_watch *new_watch(struct dapl_ia *ia, DAT_UINT32 what)
{
	struct dapl_net_watch *w = calloc(1, sizeof *w);

	if (!w)
		return NULL;
	w->ia = ia;
	w->what = what;
	w->index = ia->attr.netdev_index;
	dapl_net_watch_init(w);
	return w;
}

/* Lists the new watch, or changes the watch that the IA has. *made and *s become NULL if they are in use
 * now; the caller frees them otherwise. */
static void enter(struct dapl_ia *ia, DAT_UINT32 what, struct dapl_net_watch **made, struct dapl_net_socket **s)
{
	struct dapl_net_watch *there;

	dapl_mutex_lock(&dapl_net_lock);
	there = dapl_net_find(ia);
	if (there) {
		there->what = what;
	} else {
		dapl_net_add(*made);
		*made = NULL;
	}
	dapl_net_socket_give(s);
	dapl_mutex_unlock(&dapl_net_lock);
}

DAT_RETURN dapl_net_watch(struct dapl_ia *ia, DAT_UINT32 what)
{
	struct dapl_net_socket *s;
	struct dapl_net_watch *w;
	int err;

	if (what & ~(DAT_UINT32)(DAT_NET_MTU | DAT_NET_LINK | DAT_NET_ADDRESS | DAT_NET_RDMA))
		return BAD_PARAM(2);
	if (!what) {
		dapl_net_forget(ia);
		return DAT_SUCCESS;
	}
	if (dapl_async_handle(ia) == DAT_EVD_OUT_OF_SCOPE)
		return NOT_SUPPORTED;
	err = dapl_net_socket_open(&s);	/* before the values are read, so that no change between is missed */
	if (err)
		return dapl_status(err, DAT_RESOURCE_MEMORY);
	w = new_watch(ia, what);
	if (w)
		enter(ia, what, &w, &s);
	else
		err = ENOMEM;
	dapl_net_socket_close(s);
	free(w);
	return dapl_status(err, DAT_RESOURCE_MEMORY);
}

void dapl_net_forget(struct dapl_ia *ia)
{
	struct dapl_net_socket *s = NULL;
	struct dapl_net_watch *w;

	dapl_mutex_lock(&dapl_net_lock);
	w = dapl_net_remove(ia);
	if (w && !dapl_net_first())
		s = dapl_net_socket_take();
	dapl_mutex_unlock(&dapl_net_lock);
	dapl_net_socket_close(s);
	if (!w)
		return;
	dapl_timer_drain(&w->timer);	/* its handler may post once more */
	free(w);
}
