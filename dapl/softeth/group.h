/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* group.h - a group of ports as group.c and place.c know it. */
#ifndef SOFTETH_GROUP_H
#define SOFTETH_GROUP_H
#include "dapl/softeth/packet.h"

/* A rule of a group. Each of its ports has a struct eth_rule with the same times. */
struct group_rule {
	struct group_rule *next;
	struct rule_part part;
};

struct eth_group {
	struct eth_group *next;		/* of all groups of the process */
	struct eth_spread *spread;
	struct group_rule *rules;
	uint32_t n;
	struct eth_port *ports[];	/* NULL: it has left */
};

/* Guards all groups, and excludes that two threads change times or tables. Before any port's lock. */
void eth_groups_lock(void);
void eth_groups_unlock(void);

#endif
