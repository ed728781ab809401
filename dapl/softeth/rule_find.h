/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rule_find.h - finds the rule of a port that gives a frame to the program, and counts the frame, for the rule and
 * for the port. The caller holds port->lock. */
#ifndef SOFTETH_RULE_FIND_H
#define SOFTETH_RULE_FIND_H
#include "common/growth.h"
#include "dapl/softeth/match.h"
#include "dapl/softeth/port_types.h"

/* Returns the rule that matches the frame, or NULL. `time` in ns. Sets *hash if the rule is a group's. Does
 * not count the frame, which a caller may only look at. */
struct eth_rule *eth_rule_find(struct eth_port *port, const uint8_t *frame, uint32_t captured,
			       struct eth_tag tag, uint64_t time, bool outgoing, bool other_host, uint32_t *hash);
/* Returns the rule with this id, or NULL if it has ended. */
struct eth_rule *eth_rule_by_id(const struct eth_port *port, uint32_t id);
/* Counts frames as given to the program by the rule. */
void eth_rule_count_frames(struct eth_rule *rule, uint64_t frames, uint64_t bytes);

/* Returns the rule that every frame matches that the kernel has handed over so far, or NULL: then eth_rule_find() finds
 * the rule of each. */
struct eth_rule *eth_rule_of_all(const struct eth_port *port);

/* Counts checksums that are wrong, and a frame that was cut. */
static inline void eth_rule_count_faults(struct eth_port *port, const struct dapl_eth_frame *frame)
{
	port->stats.bad += (frame->flags & (ETH_FRAME_IP_BAD | ETH_FRAME_L4_BAD)) != 0;
	port->stats.cut += (frame->flags & ETH_FRAME_CUT) != 0;
}

/* Fills in the frame's time, in ns, and losses, and counts it as received. Its flags are set already. */
static inline void eth_rule_account(struct eth_port *port, struct dapl_eth_frame *frame, uint64_t time)
{
	frame->time = port->last_time = frame_time_even_out(time, port->last_time);
	frame->lost = port->lost_pending;
	port->lost_pending = 0;
	port->stats.received++;
	port->stats.received_bytes += frame->wire_length;
	eth_rule_count_faults(port, frame);
}

/* Frames of a poll that the same rule has matched in a row: counters that other ports share are changed
 * once for all of them. */
struct rule_tally {
	struct eth_rule *rule;
	uint64_t frames, bytes;
};

static inline void eth_tally_end(struct rule_tally *tally)
{
	if (tally->rule)
		eth_rule_count_frames(tally->rule, tally->frames, tally->bytes);
}

/* Counts frames, with eth_tally_end() behind the last ones. */
static inline void eth_tally_frames(struct rule_tally *tally, struct eth_rule *rule, uint64_t frames, uint64_t bytes)
{
	if (rule != tally->rule) {
		eth_tally_end(tally);
		*tally = (struct rule_tally){ .rule = rule };
	}
	tally->frames += frames;
	tally->bytes += bytes;
}

#endif
