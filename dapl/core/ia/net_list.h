/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* net_list.h - the list of watched IAs, and the lock of their watches. */
#ifndef DAPL_NET_LIST_H
#define DAPL_NET_LIST_H
#include "dapl/core/ia/net_watch_types.h"

/* Guards the list, the fields of watches, and the socket of the process (net_socket.h). Not held while the
 * kernel or the device is queried, nor while an event is posted. */
extern struct dapl_mutex dapl_net_lock;

/* All are called with the lock held. */
struct dapl_net_watch *dapl_net_first(void);
/* Returns NULL if there is no watch of this IA. */
struct dapl_net_watch *dapl_net_find(const struct dapl_ia *ia);
void dapl_net_add(struct dapl_net_watch *w);
/* Returns the watch that was removed; NULL if there was none. */
struct dapl_net_watch *dapl_net_remove(const struct dapl_ia *ia);
/* Called in the child of a fork, which has no watches. */
void dapl_net_clear(void);

#endif
