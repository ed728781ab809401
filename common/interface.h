/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* interface.h - queries the kernel about a network interface. */
#ifndef COMMON_INTERFACE_H
#define COMMON_INTERFACE_H
#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

/* SIOCGIFMTU and the like, netdevice(7), for the interface of that index, whatever its name is now. Returns 0 or an
 * errno value. */
int interface_request_index(int index, unsigned long request, struct ifreq *ifr);
/* SIOCETHTOOL with a command of linux/ethtool.h, for the interface of that index. Returns 0 or an errno value. */
int interface_ethtool(int index, void *command);
/* The numbers of queues of a network device. One that does not tell has one of each. */
void interface_queues(int index, uint32_t *rx, uint32_t *tx);
/* Whether frames of a link type, ARPHRD_*, begin with an Ethernet header. */
bool interface_type_is_ethernet(int type);

#endif
