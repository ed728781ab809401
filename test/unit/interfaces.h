/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* interfaces.h - the interfaces that getifaddrs() lists, as the test adds them. For programs that are linked with
 * $(interfaces_wrap); the name of the host is "thishost" there. */
#ifndef TEST_INTERFACES_H
#define TEST_INTERFACES_H
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>

enum { INTERFACES = 48 };
extern struct ifaddrs interfaces[INTERFACES];
extern struct sockaddr_storage addresses[INTERFACES];	/* of these */
extern unsigned n_interfaces;
extern unsigned lists_freed;		/* calls of freeifaddrs() */
extern int list_error;			/* errno of getifaddrs(); 0: it succeeds */

/* The next test begins without interfaces, and without an error. */
void clear_interfaces(void);
/* Removes all but the first n. */
void keep_interfaces(unsigned n);
/* Adds an address of an interface; NULL: the interface has none. */
void add_interface(const char *netdev, unsigned flags, const char *address);

#endif
