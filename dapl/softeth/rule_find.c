/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rule_find.c - see rule_find.h. */
#include <string.h>
#include "dapl/softeth/change.h"
#include "dapl/softeth/match.h"
#include "dapl/softeth/rule_find.h"
#include "dapl/softeth/spread.h"

void eth_rule_count_frames(struct eth_rule *rule, uint64_t frames, uint64_t bytes)
{
	__atomic_add_fetch(&rule->counts->frames, frames, __ATOMIC_RELAXED);
	__atomic_add_fetch(&rule->counts->bytes, bytes, __ATOMIC_RELAXED);
}

struct eth_rule *eth_rule_by_id(const struct eth_port *port, uint32_t id)
{
	struct eth_rule *r = port->rules;

	assert_held(&port->lock);
	while (r && r->id != id)
		r = r->next;
	return r;
}

static bool is_within(const struct rule_times *times, uint64_t time)
{
	uint64_t until = __atomic_load_n(&times->until_ns, __ATOMIC_RELAXED);

	return time >= __atomic_load_n(&times->from_ns, __ATOMIC_RELAXED) && (!until || time < until);
}

static bool is_in_time(const struct eth_rule *r, uint64_t time)
{
	while (r && !is_within(r->times, time))
		r = r->past;
	return r;
}

/* False if the rule is a group's, and the frame is another member's. */
static bool is_own(const struct eth_rule *r, const struct eth_headers *headers, uint64_t time, uint32_t *hash)
{
	uint32_t found;

	if (!r->spread)
		return true;
	found = spread_hash(r->spread, headers);
	if (spread_owner(r->spread, found, time) != r->member)
		return false;
	*hash = found;
	return true;
}

/* HOT: a capture of all frames has one rule that matches everything; then headers are not parsed. ETH-20. */
struct eth_rule *eth_rule_find(struct eth_port *port, const uint8_t *frame, uint32_t captured,
			       struct eth_tag tag, uint64_t time, bool outgoing, bool other_host, uint32_t *hash)
{
	static const uint8_t none[6];
	struct eth_headers headers;
	bool parsed = false;

	assert_held(&port->lock);
	change_wait();
	for (struct eth_rule *r = port->rules; r; r = r->next) {
		if (outgoing && !(r->rule.flags & ETH_EGRESS))
			continue;
		if (other_host && !(r->rule.flags & ETH_ALL) && !memcmp(r->rule.mask.dst, none, 6))
			continue;
		if (!is_in_time(r, time))
			continue;
		if (r->needs_headers && !parsed)
			eth_match_parse(frame, captured, tag, &headers);
		parsed |= r->needs_headers;
		if (r->needs_headers && (!eth_match_rule(&r->rule, &headers) || !is_own(r, &headers, time, hash)))
			continue;
		return r->rule.mode == ETH_DROP ? NULL : r;	/* counted where it is dropped */
	}
	return NULL;
}

struct eth_rule *eth_rule_of_all(const struct eth_port *port)
{
	const uint32_t all = ETH_EGRESS | ETH_ALL;
	struct eth_rule *r = port->rules;

	assert_held(&port->lock);
	change_wait();
	if (!r || r->needs_headers || r->rule.mode == ETH_DROP || (r->rule.flags & all) != all ||
	    __atomic_load_n(&r->times->from_ns, __ATOMIC_RELAXED) ||
	    __atomic_load_n(&r->times->until_ns, __ATOMIC_RELAXED))
		return NULL;
	return r;
}
