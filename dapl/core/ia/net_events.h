/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* net_events.h - the events of one IA: which changes have one, and when it is posted. Changes are noted when
 * the kernel or the device reports them. The service thread posts the events, at most ten times a second.
 * Their values come from the device, as for dat_ia_query(). */
#ifndef DAPL_NET_EVENTS_H
#define DAPL_NET_EVENTS_H
#include "dapl/core/dapl.h"
#include "dapl/core/base/service.h"

/* What an event can be about, except for the loss of the device. */
enum dapl_net_kind { KIND_MTU, KIND_LINK, KIND_ADDRESS, KINDS };

/* dapl_net_lock guards the fields. */
struct dapl_net_watch {
	struct dapl_ia *ia;
	DAT_UINT32 what;
	int index;			/* index of the interface */
	DAT_UINT32 reported[KINDS];		/* values in the last events, or when the watch began */
	DAT_UINT32 seen[KINDS];		/* values in the kernel's last messages; not for the MTU */
	int changes[KINDS];		/* changes that were seen and not reported; negative: reported
					 * before their messages were read */
	/* The MTU of the interface in the kernel's messages, now and at the last event. The device's MTU
	 * differs: it is an InfiniBand size below it, or a limit of the device. */
	DAT_UINT32 interface_mtu, interface_mtu_reported;
	bool mtu_again;			/* the device's MTU is being queried once more */
	bool scheduled;			/* the timer is started */
	uint64_t next_ns;		/* time before which no event is posted */
	struct dapl_timer timer;
	struct dapl_net_watch *next;
};

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
