/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* membership.h - makes the device receive what a rule matches: promiscuous mode, all multicast frames, or one address,
 * and an IP group for a rule that joins it. Memberships are of sockets, so they end with the process. */
#ifndef SOFTETH_MEMBERSHIP_H
#define SOFTETH_MEMBERSHIP_H
#include "dapl/softeth/port_types.h"

/* Returns 0 or an errno. After an error the rule has some of its memberships, until membership_leave(). */
int membership_join(struct eth_port *port, struct eth_rule *rule);
void membership_leave(struct eth_port *port, struct eth_rule *rule);

#endif
