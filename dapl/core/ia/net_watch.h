/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* net_watch.h - events of an IA when its MTU, link or address changes (dat_net_extensions.h). */
#ifndef DAPL_NET_WATCH_H
#define DAPL_NET_WATCH_H
#include "dapl/core/dapl.h"

/* When the library starts: a child that closes an IA must not find the lock held by a thread of its
 * parent. */
void dapl_net_watch_forks(void);
DAT_RETURN dapl_net_watch(struct dapl_ia *ia, DAT_UINT32 what);
/* The IA is being closed; its device is still open. Harmless without a watch. */
void dapl_net_forget(struct dapl_ia *ia);
/* The device reported that its port came up, went down, or changed in another way (value < 0).
 * Service thread. */
void dapl_net_port_changed(struct dapl_ia *ia, int value);
/* The device is lost. */
void dapl_net_device_lost(struct dapl_ia *ia);

#endif
