/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* local_address.h - finds the local address that an entry's ia_params select: that of an interface, an address, or
 * a name of this host. If there is none, a log line tells why. */
#ifndef SOFT_LOCAL_ADDRESS_H
#define SOFT_LOCAL_ADDRESS_H
#include <net/if.h>
#include <sys/socket.h>

/* Writes the address and the name of its interface. Returns 0, or an errno value after one log line. EINVAL: `params`
 * has another form. ENODEV: this host has no such address. */
int soft_local_address_find(const char *params, struct sockaddr_storage *address, char netdev[IF_NAMESIZE]);

#endif
