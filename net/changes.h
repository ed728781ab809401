/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* changes.h - from a message of the kernel to the changes it means. Knows what was before; reads no
 * socket. */
#ifndef NET_CHANGES_H
#define NET_CHANGES_H
#include "net/table.h"
#include <netlink/msg.h>

enum { NET_CHANGES_PER_MESSAGE = 2 };	/* MTU and link */

struct net_changes {
	unsigned what;			/* kinds that are told */
	struct net_table table;		/* links as they were told last */
	struct dat_net_change ready[NET_CHANGES_PER_MESSAGE];
	size_t count;
	int err;			/* ENOMEM */
};

/* Adds to `ready` what a message of rtnetlink means. `ready` is empty when it is called. */
void net_changes_of(struct net_changes *changes, struct nl_msg *msg);
/* The same for `length` bytes of a kernel uevent: words of the form KEY=VALUE, each ended by 0. */
void net_changes_of_uevent(struct net_changes *changes, const char *text, size_t length);

#endif
