/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* net_events.h - the events of one IA: which changes have one, and when it is posted. Changes are noted when
 * the kernel or the device reports them. The service thread posts the events, at most ten times a second.
 * Their values come from the device, as for dat_ia_query(). */
#ifndef DAPL_NET_EVENTS_H
#define DAPL_NET_EVENTS_H
#include "dapl/core/ia/net_watch_types.h"

/* Reads the values with which the first events are compared. The watch has its IA, and is not listed yet.
 * Called without a lock, because it asks the kernel. */
void dapl_net_watch_init(struct dapl_net_watch *w);
/* The next four are called with dapl_net_lock held. */
/* Counts a change if the link or the address differs from what was noted last. */
void dapl_net_note(struct dapl_net_watch *w, enum dapl_net_kind kind, DAT_UINT32 value);
/* `mtu` is that of the interface. */
void dapl_net_note_mtu(struct dapl_net_watch *w, DAT_UINT32 mtu);
/* Lets the service thread query the device, and post an event of each kind that has changed. */
void dapl_net_schedule(struct dapl_net_watch *w);
/* Called when the kernel has dropped messages: reports the present state. The number of changes is
 * unknown. */
void dapl_net_look_anew(struct dapl_net_watch *w);
/* Posts an event at once. Returns false if the EVD is full. Called without a lock. */
bool dapl_net_post(struct dapl_ia *ia, DAT_UINT32 what, DAT_UINT32 before, DAT_UINT32 now, DAT_UINT32 lost);

#endif
