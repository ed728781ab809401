/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* changes.h - makes changes from messages of the kernel. Keeps the state before them; reads no socket. */
#ifndef NET_CHANGES_H
#define NET_CHANGES_H
#include "net/table.h"
#include <netlink/msg.h>

enum { NET_CHANGES_PER_MESSAGE = 2 };	/* MTU and link */

struct net_changes {
	unsigned what;			/* kinds to report */
	struct net_table table;		/* links as last reported */
	struct dat_net_change ready[NET_CHANGES_PER_MESSAGE];
	size_t count;
	int err;			/* ENOMEM */
};

/* Replaces `ready` by the changes that a message of rtnetlink reports. */
void net_changes_of(struct net_changes *changes, struct nl_msg *msg);
/* Replaces `ready` by the changes that a uevent of the kernel reports: `length` bytes of words KEY=VALUE,
 * each ended by 0. */
void net_changes_of_uevent(struct net_changes *changes, const char *text, size_t length);

#endif
