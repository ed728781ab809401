/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* net_watch_types.h - the watch of one IA, which the files net_*.c share. Types only; each file declares its
 * functions in a header of its own. */
#ifndef DAPL_NET_WATCH_TYPES_H
#define DAPL_NET_WATCH_TYPES_H
#include "dapl/core/dapl.h"
#include "dapl/core/base/service.h"

/* What an event can be about, except for the loss of the device. */
enum dapl_net_kind { KIND_MTU, KIND_LINK, KIND_ADDRESS, KINDS };

/* dapl_net_lock (net_list.h) guards the fields. */
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

#endif
