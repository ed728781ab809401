/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* net_watch.h - events of an IA when its MTU, link or address changes (dat_net_extensions.h). */
#ifndef DAPL_NET_WATCH_H
#define DAPL_NET_WATCH_H
#include "dapl/core/dapl.h"

/* Called when the library starts. Registers a fork handler, so that a child that closes an IA does not find
 * the lock held by a thread of its parent. */
void dapl_net_watch_forks(void);
DAT_RETURN dapl_net_watch(struct dapl_ia *ia, DAT_UINT32 what);
/* Called when the IA is being closed and its device is still open. Does nothing without a watch. */
void dapl_net_forget(struct dapl_ia *ia);
/* Called on the service thread when the device reports that its port came up (value 1), went down (0), or
 * changed in another way (-1). */
void dapl_net_port_changed(struct dapl_ia *ia, int value);
/* Called when the device is lost. */
void dapl_net_device_lost(struct dapl_ia *ia);

#endif
