/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* messages.h - messages of rtnetlink as the kernel writes them, built in memory: a header and attributes. */
#ifndef TEST_NET_MESSAGES_H
#define TEST_NET_MESSAGES_H
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <stddef.h>
#include <stdint.h>

/* A message without attributes; `head` is the structure behind the header of netlink. */
struct nl_msg *message_new(int type, int flags, const void *head, size_t size);
/* These add an attribute. */
void message_put(struct nl_msg *msg, int kind, const void *data, size_t size);
void message_put_u32(struct nl_msg *msg, int kind, uint32_t value);
void message_put_text(struct nl_msg *msg, int kind, const char *text);
void message_put_ip(struct nl_msg *msg, int kind, const char *text);
/* `size` bytes that count from `first`. */
void message_put_lladdr(struct nl_msg *msg, int kind, uint8_t first, size_t size);

/* Returns the first `length` bytes of a message, with this length in its header. Frees `msg`. */
struct nl_msg *message_cut(struct nl_msg *msg, size_t length);

/* An interface, with a link-layer address of six bytes that count from `index`. */
struct nl_msg *message_link(int type, int index, const char *name, uint32_t mtu, unsigned flags);
/* A local address. */
struct nl_msg *message_address(int type, int index, const char *text, uint8_t prefix);
/* A neighbour without link-layer address. */
struct nl_msg *message_neighbour(int type, int index, const char *address, int state);
/* A unicast route of the main table. NULL: the default route of `family`. */
struct nl_msg *message_route(int type, int family, const char *to, uint8_t prefix);

#endif
