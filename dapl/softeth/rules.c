/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rules.c - the list of a port's rules: adding, removing, and rules that stay for frames on their way when they have
 * moved. Which rule gets a frame is rule_find.c's. The program that takes frames away is ingress.c's; rules as objects
 * that move and that several ports share are place.c's. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include "common/clock.h"
#include "dapl/softeth/ingress.h"
#include "dapl/softeth/match.h"
#include "dapl/softeth/membership.h"
#include "dapl/softeth/port_filter.h"
#include "dapl/softeth/rules.h"
#include "dapl/softeth/spread.h"

/* True if `r` is looked at before the new rule. */
static bool precedes(const struct eth_rule *r, const struct eth_rule *new)
{
	if (r->spread != new->spread)
		return !r->spread || (new->spread && r->spread->id < new->spread->id);
	return r->rule.priority <= new->rule.priority;
}

static struct eth_rule **place_for(struct eth_port *port, const struct eth_rule *new)
{
	struct eth_rule **at = &port->rules;

	while (*at && precedes(*at, new))
		at = &(*at)->next;
	return at;
}

static bool exists(const struct eth_port *port, const struct eth_rule *new)
{
	for (const struct eth_rule *r = port->rules; r; r = r->next)
		if (!r->moved && r->spread == new->spread && dapl_eth_rule_is_same(&r->rule, &new->rule))
			return true;
	return false;
}

static void unlink_rule(struct eth_port *port, struct eth_rule *rule)
{
	struct eth_rule **at = &port->rules;

	while (*at && *at != rule)
		at = &(*at)->next;
	if (*at) {
		*at = rule->next;
		port->rule_count--;
		port->steering -= rule->rule.mode != ETH_COPY && !rule->moved;
		if (rule->rule.mode == ETH_DROP)
			eth_steer_put_counter(port, rule);
	}
}

static void link_rule(struct eth_port *port, struct eth_rule *rule)
{
	struct eth_rule **at = place_for(port, rule);

	rule->next = *at;
	*at = rule;
	port->rule_count++;
	port->steering += rule->rule.mode != ETH_COPY && !rule->moved;
}

static void free_rule(struct eth_rule *rule)
{
	eth_rule_counts_put(rule->counts);
	eth_rule_times_put(rule->times);
	if (rule->spread)
		spread_put(rule->spread);
	free(rule);
}

static void free_past(struct eth_rule **past)
{
	struct eth_rule *rule;

	while ((rule = *past)) {
		*past = rule->past;
		free_rule(rule);
	}
}

static void end_rule(struct eth_port *port, struct eth_rule *rule)
{
	membership_leave(port, rule);
	free_past(&rule->past);
	free_rule(rule);
}

/* --- what is left after a change ----------------------------------------------------------- */

/* Takes what is left of a rule that comes back off the list; NULL: nothing is left. Equal counts show that
 * it is the same rule. */
static struct eth_rule *take_left(struct eth_port *port, const struct eth_rule *rule)
{
	struct eth_rule *left = port->rules;

	while (left && !(left->moved && left->counts == rule->counts && left->spread == rule->spread))
		left = left->next;
	if (left)
		unlink_rule(port, left);
	return left;
}

static void keep_past(struct eth_port *port, struct eth_rule *rule, struct eth_rule *left)
{
	struct eth_rule **oldest = &rule->past;

	membership_leave(port, left);
	rule->past = left;
	for (unsigned n = 0; *oldest && n < ETH_MAX_PAST; n++)
		oldest = &(*oldest)->past;
	free_past(oldest);
}

/* True if no frame that the rule was left for waits in the socket. The rule left so long ago that none is
 * on its way to it. */
static bool is_read(const struct eth_port *port, uint64_t until)
{
	struct pollfd fd = { .fd = port->fd, .events = POLLIN };

	return port->last_time > until || (poll(&fd, 1, 0) >= 0 && !(fd.revents & POLLIN));
}

/* A moved rule without an end is being removed: the thread that does so still reads its counters. */
static bool is_over(const struct eth_port *port, const struct eth_rule *rule, uint64_t before)
{
	uint64_t until = rule->times->until_ns;

	return until && until < before && is_read(port, until);
}

/* Returns true if something stays. */
static bool purge_past(const struct eth_port *port, struct eth_rule *rule, uint64_t before)
{
	struct eth_rule **past = &rule->past;

	while (*past && !is_over(port, *past, before))
		past = &(*past)->past;
	free_past(past);
	return rule->past;
}

/* Ends what is left of moved rules if no frame is on its way; `at_once`: even if there may be one. Returns
 * true if something stays. */
static bool purge(struct eth_port *port, bool at_once)
{
	uint64_t before = clock_read_ns(CLOCK_REALTIME) - RULE_LEFT_NS;
	struct eth_rule **at = &port->rules, *rule;
	bool left = false, ended = false;

	while ((rule = *at)) {
		if (!rule->moved || (!at_once && !is_over(port, rule, before))) {
			left |= purge_past(port, rule, before) || rule->moved;
			at = &rule->next;
			continue;
		}
		*at = rule->next;
		port->rule_count--;
		end_rule(port, rule);
		ended = true;
	}
	if (ended || port->old_tables)
		port_filter_renew_locked(port);
	return left || port->old_tables;
}

bool eth_rule_purge(struct eth_port *port)
{
	bool left;

	dapl_mutex_lock(&port->lock);
	left = purge(port, false);
	dapl_mutex_unlock(&port->lock);
	return left;
}

/* --- adding and removing ------------------------------------------------------------------- */

/* port->lock held. */
static int add_rule(struct eth_port *port, struct eth_rule *rule)
{
	int err;

	assert_held(&port->lock);
	if (exists(port, rule))
		return EEXIST;
	if (port->rule_count == ETH_MAX_RULES)
		purge(port, true);
	if (port->rule_count == ETH_MAX_RULES)
		return ENOSPC;
	if ((err = membership_join(port, rule)))
		return err;
	link_rule(port, rule);
	err = rule->rule.mode == ETH_DROP ? eth_steer_get_counter(port, rule) : 0;
	if (!err)
		err = port_filter_renew_locked(port);
	if (err) {
		unlink_rule(port, rule);
		port_filter_renew_locked(port);
	}
	return err;
}

static int attach_locked(struct eth_port *port, struct eth_rule *rule)
{
	struct eth_rule *left = take_left(port, rule);
	int err = add_rule(port, rule);

	if (left && !err) {
		keep_past(port, rule, left);
	} else if (left) {
		link_rule(port, left);
		port_filter_renew_locked(port);
	}
	return err;
}

int eth_rule_attach(struct eth_port *port, const struct rule_part *part, uint16_t member, struct eth_rule **added)
{
	struct eth_rule *new = calloc(1, sizeof *new);
	int err;

	if (!new)
		return ENOMEM;
	*new = (struct eth_rule){ .rule = part->rule, .joined = -1, .counts = part->counts, .times = part->times,
		.spread = part->spread, .member = member,
		.needs_headers = part->spread || !eth_match_all(&part->rule) };
	__atomic_add_fetch(&new->counts->refs, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&new->times->refs, 1, __ATOMIC_RELAXED);
	if (new->spread)
		spread_get(new->spread);
	dapl_mutex_lock(&port->lock);
	new->id = ++port->last_id;
	err = attach_locked(port, new);
	if (err)
		end_rule(port, new);
	else if (port->old_tables)
		port->want_purge(port->context);
	dapl_mutex_unlock(&port->lock);
	if (!err)
		*added = new;
	return err;
}

int eth_rule_steer(struct eth_port *port)
{
	int err;

	dapl_mutex_lock(&port->lock);
	err = eth_steer_renew(port);
	dapl_mutex_unlock(&port->lock);
	return err;
}

/* port->lock held. */
static struct eth_rule *find_by_times(const struct eth_port *port, const struct rule_times *times)
{
	struct eth_rule *r = port->rules;

	assert_held(&port->lock);
	while (r && r->times != times)
		r = r->next;
	return r;
}

void eth_rule_unsteer(struct eth_port *port, const struct rule_times *times, bool purged)
{
	struct eth_rule *rule;

	dapl_mutex_lock(&port->lock);
	rule = find_by_times(port, times);
	if (rule && !rule->moved) {
		port->steering -= rule->rule.mode != ETH_COPY;
		rule->moved = true;
		eth_steer_renew(port);
		if (purged)
			port->want_purge(port->context);
	}
	dapl_mutex_unlock(&port->lock);
}

void eth_rule_detach(struct eth_port *port, const struct rule_times *times)
{
	struct eth_rule *rule;

	dapl_mutex_lock(&port->lock);
	rule = find_by_times(port, times);
	if (rule) {
		unlink_rule(port, rule);
		port_filter_renew_locked(port);
		end_rule(port, rule);
	}
	dapl_mutex_unlock(&port->lock);
}

/* A caller may ask for a rule that has ended with the disconnect of the port. */
bool eth_rule_has(struct eth_port *port, const struct eth_rule *rule)
{
	bool found = false;

	dapl_mutex_lock(&port->lock);
	for (const struct eth_rule *r = port->rules; r; r = r->next)
		found |= r == rule;
	dapl_mutex_unlock(&port->lock);
	return found;
}

void eth_rule_end_all(struct eth_port *port)
{
	struct eth_rule *rule;

	while ((rule = port->rules)) {
		unlink_rule(port, rule);
		end_rule(port, rule);
	}
	port->old_tables = false;
	eth_steer_renew(port);
}

/* --- parts --------------------------------------------------------------------------------- */

struct rule_counts *eth_rule_counts_new(void)
{
	struct rule_counts *counts = calloc(1, sizeof *counts);

	if (counts)
		counts->refs = 1;
	return counts;
}

struct rule_times *eth_rule_times_new(uint64_t from_ns)
{
	struct rule_times *times = calloc(1, sizeof *times);

	if (times)
		*times = (struct rule_times){ .refs = 1, .from_ns = from_ns };
	return times;
}

void eth_rule_counts_put(struct rule_counts *counts)
{
	if (counts && !__atomic_sub_fetch(&counts->refs, 1, __ATOMIC_ACQ_REL))
		free(counts);
}

void eth_rule_times_put(struct rule_times *times)
{
	if (times && !__atomic_sub_fetch(&times->refs, 1, __ATOMIC_ACQ_REL))
		free(times);
}
