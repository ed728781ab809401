/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rules.h - the rules of a port: adding, removing, and what is left of those that moved (rules.c). */
#ifndef SOFTETH_RULES_H
#define SOFTETH_RULES_H
#include "dapl/softeth/port_types.h"

/* port->lock held. Ends all rules and their program; the filter stays as it is. */
void eth_rule_end_all(struct eth_port *port);

/* --- these take port->lock; an int is 0 or an errno ------------------------------------------- */

/* Adds a rule to list and filter. `member`: the port's number in the group. The rule takes frames from the
 * kernel once eth_rule_steer() is called. EEXIST: there is an equal one; ENOSPC: there are ETH_MAX_RULES. */
int eth_rule_attach(struct eth_port *port, const struct rule_part *part, uint16_t member, struct eth_rule **added);
/* Replaces the program on the device's ingress by one for the rules. */
int eth_rule_steer(struct eth_port *port);
/* The rule takes no frames from the kernel any more. `purged`: it stays for frames on their way, and is
 * purged later. */
void eth_rule_unsteer(struct eth_port *port, const struct rule_times *times, bool purged);
/* Takes the rule off list and filter, and frees it. */
void eth_rule_detach(struct eth_port *port, const struct rule_times *times);
/* True if the port still has this rule. */
bool eth_rule_has(struct eth_port *port, const struct eth_rule *rule);
/* Ends rules that were left for frames on their way, if there are no such frames any more. Returns true if
 * some rules stay. */
bool eth_rule_purge(struct eth_port *port);

/* --- no lock is needed ------------------------------------------------------------------------ */

/* With one reference; NULL: no memory. */
struct rule_counts *eth_rule_counts_new(void);
struct rule_times *eth_rule_times_new(uint64_t from_ns);
/* May be NULL. */
void eth_rule_counts_put(struct rule_counts *counts);
void eth_rule_times_put(struct rule_times *times);

#endif
