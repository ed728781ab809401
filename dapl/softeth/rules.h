/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rules.h - the rules of a port: their list, and the kernel's filter (rules.c). */
#ifndef SOFTETH_RULES_H
#define SOFTETH_RULES_H
#include "dapl/softeth/match.h"
#include "dapl/softeth/port_types.h"

/* --- port->lock held ------------------------------------------------------------------------- */

/* The rule that wants the frame; NULL: none does. `time` in ns. *hash is set if the rule is a group's. The frame is not
 * counted: it may only be looked at. */
struct eth_rule *eth_rule_find(struct eth_port *port, const uint8_t *frame, uint32_t captured,
			       struct eth_tag tag, uint64_t time, bool outgoing, bool other_host, uint32_t *hash);
/* Counts frames as given to the program by the rule. */
void eth_rule_count_frames(struct eth_rule *rule, uint64_t frames, uint64_t bytes);
/* Ends all rules and their program; the filter stays as it is. */
void eth_rules_free(struct eth_port *port);

/* --- these take port->lock; an int is 0 or an errno ------------------------------------------- */

/* Adds a rule to list and filter, `member` of a group. It takes frames from the kernel once it is steered.
 * EEXIST: there is an equal one; ENOSPC: there are ETH_MAX_RULES. */
int eth_rule_attach(struct eth_port *port, const struct rule_part *part, uint16_t member, struct eth_rule **added);
/* The program on the device's ingress becomes that of the rules. */
int eth_rule_steer(struct eth_port *port);
/* It no longer takes frames from the kernel; `purged`: it is left for frames on their way, then it goes. */
void eth_rule_unsteer(struct eth_port *port, const struct rule_times *times, bool purged);
/* Takes the rule off list and filter, and frees it. */
void eth_rule_detach(struct eth_port *port, const struct rule_times *times);
/* Whether the port has this rule still. */
bool eth_rule_has(struct eth_port *port, const struct eth_rule *rule);
/* The kernel's filter becomes that of the rules, and of the tables of their groups. */
int eth_filter_renew(struct eth_port *port);
/* Ends rules that were left for frames on their way, if none is any more. Returns whether some are left. */
bool eth_rule_purge(struct eth_port *port);

/* --- no lock is needed ------------------------------------------------------------------------ */

/* The socket receives nothing. Returns an errno. */
int eth_filter_none(int fd);
/* With one reference; NULL: no memory. */
struct rule_counts *rule_counts_new(void);
struct rule_times *rule_times_new(uint64_t from_ns);
/* May be NULL. */
void rule_counts_put(struct rule_counts *counts);
void rule_times_put(struct rule_times *times);

#endif
