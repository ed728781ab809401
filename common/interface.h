/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* interface.h - queries the kernel about a network interface. */
#ifndef COMMON_INTERFACE_H
#define COMMON_INTERFACE_H
#include <net/if.h>

/* SIOCGIFMTU and the like, netdevice(7), for the interface of that name. Returns 0 or an errno value. */
int interface_request(const char *netdev, unsigned long request, struct ifreq *ifr);

#endif
