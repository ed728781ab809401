/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* listeners.h - the TCP sockets of this network namespace that listen, from the kernel's socket
 * diagnosis, and the processes that hold them, as far as this user may read /proc. */
#ifndef TOOLS_INFO_LISTENERS_H
#define TOOLS_INFO_LISTENERS_H
#include <jansson.h>

#ifdef TOOLS_NET
/* Returns an array of objects with "address", "port", "uid" and "inode", and with "pid" and "program" if
 * the process is found. */
json_t *listeners_tcp(void);

/* For a test: adds the listener of one answer to `list`. Leaves out other sockets, and answers that are too
 * short. */
struct nlmsghdr;
void listeners_parse(struct nlmsghdr *head, json_t *list);
#else
static inline json_t *listeners_tcp(void)
{
	return json_array();
}
#endif

#endif
