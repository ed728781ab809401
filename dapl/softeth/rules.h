/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rules.h - the rules of a port: their list, and the kernel's filter (rules.c). */
#ifndef SOFTETH_RULES_H
#define SOFTETH_RULES_H
#include "dapl/softeth/match.h"
#include "dapl/softeth/port_types.h"

/* Frames of a poll that the same rule has matched in a row: counters that other ports share are changed
 * once for all of them. */
struct rule_tally {
	struct eth_rule *rule;
	uint64_t frames, bytes;
};

/* --- port->lock held ------------------------------------------------------------------------- */

/* Returns the rule that matches the frame, or NULL. `time` in ns. Sets *hash if the rule is a group's. Does
 * not count the frame, which a caller may only look at. */
struct eth_rule *eth_rule_find(struct eth_port *port, const uint8_t *frame, uint32_t captured,
			       struct eth_tag tag, uint64_t time, bool outgoing, bool other_host, uint32_t *hash);
/* Returns the rule with this id, or NULL if it has ended. */
struct eth_rule *eth_rule_by_id(const struct eth_port *port, uint32_t id);
/* Counts frames as given to the program by the rule. */
void eth_rule_count_frames(struct eth_rule *rule, uint64_t frames, uint64_t bytes);
/* Ends all rules and their program; the filter stays as it is. */
void eth_rules_free(struct eth_port *port);

static inline void eth_tally_end(struct rule_tally *tally)
{
	if (tally->rule)
		eth_rule_count_frames(tally->rule, tally->frames, tally->bytes);
}

/* Counts a frame, with eth_tally_end() behind the last one. */
static inline void eth_tally_frame(struct rule_tally *tally, struct eth_rule *rule, uint32_t bytes)
{
	if (rule != tally->rule) {
		eth_tally_end(tally);
		*tally = (struct rule_tally){ .rule = rule };
	}
	tally->frames++;
	tally->bytes += bytes;
}

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
/* Replaces the kernel's filter by one for the rules, and for the tables of their groups. */
int eth_filter_renew(struct eth_port *port);
/* Ends rules that were left for frames on their way, if there are no such frames any more. Returns true if
 * some rules stay. */
bool eth_rule_purge(struct eth_port *port);

/* --- no lock is needed ------------------------------------------------------------------------ */

/* Sets a filter that accepts nothing. Returns 0 or an errno. */
int eth_filter_none(int fd);
/* With one reference; NULL: no memory. */
struct rule_counts *rule_counts_new(void);
struct rule_times *rule_times_new(uint64_t from_ns);
/* May be NULL. */
void rule_counts_put(struct rule_counts *counts);
void rule_times_put(struct rule_times *times);

#endif
