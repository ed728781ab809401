/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* net_messages.h - reads the kernel's messages about links and addresses, and notes at each watch what changed. */
#ifndef DAPL_NET_MESSAGES_H
#define DAPL_NET_MESSAGES_H
#include <stddef.h>

/* Reads the messages of one datagram. `bytes` is aligned for a struct nlmsghdr. A message that is not whole, and all
 * behind it, are ignored. */
void dapl_net_read_messages(const char *bytes, size_t length);
/* Called when the kernel has dropped messages, and the socket was empty since then. Lets each watch report
 * the present state. */
void dapl_net_messages_lost(void);

#endif
