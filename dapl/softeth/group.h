/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* group.h - groups of ports (group.c), whose structures place.c uses, too. The functions take the lock of
 * groups, and those of ports. */
#ifndef SOFTETH_GROUP_H
#define SOFTETH_GROUP_H
#include "dapl/softeth/port_types.h"

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

/* The lock of groups: guards all groups, and all changes of times and tables. Outside of any port's lock. */
void eth_group_lock(void);
void eth_group_unlock(void);

/* Operations of struct eth_port_ops. Return 0 or ENOMEM; eth_group_set() also EINVAL: the table names a
 * port that has left. */
int eth_group_create(struct eth_port *const *ports, uint32_t n, const struct dapl_eth_rss *rss,
		     struct eth_group **group);
int eth_group_set(struct eth_group *group, const uint16_t *table);
/* Ends the group's rules, too. */
void eth_group_free(struct eth_group *group);
/* The port leaves all groups, and its rules end. It receives nothing afterwards. */
void eth_group_leave(struct eth_port *port);

#endif
