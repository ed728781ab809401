/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rtnl.h - one request to the kernel over rtnetlink(7), and the attributes of its messages: for libraries that are
 * built without libnl. */
#ifndef COMMON_RTNL_H
#define COMMON_RTNL_H
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stddef.h>

/* Sends the request, and calls each(message, arg) with each answer to it. Returns 0 or an errno value. EINTR: a change
 * interrupted a dump (NLM_F_DUMP), so that it may be incomplete. */
int rtnl_request(struct nlmsghdr *request, void (*each)(const struct nlmsghdr *, void *), void *arg);
/* The payload of the first attribute of a kind that has at least `size` bytes of it. NULL: there is none. */
const void *rtnl_attribute(const struct rtattr *at, int length, int kind, size_t size);
/* True if the attribute is of that kind, and holds that text. */
bool rtnl_is_text(const struct rtattr *at, int kind, const char *text);

#endif
