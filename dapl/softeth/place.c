/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* place.c - rules as objects, at a port or at a group, and their moves.
 *
 * The packet socket sees a frame before the program that takes frames away does. So a rule is added to the
 * filters of all its ports before the first program has it, and removed from them after the last program
 * has lost it: no frame is missed by both. */
#include <errno.h>
#include <linux/membarrier.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "dapl/softeth/change.h"
#include "dapl/softeth/group.h"
#include "dapl/softeth/ingress.h"
#include "dapl/softeth/place.h"
#include "dapl/softeth/rules.h"

static uint32_t ports_of(const struct eth_place *at)
{
	return at->group ? at->group->n : 1;
}

/* NULL: it has left the group. */
static struct eth_port *port_of(const struct eth_place *at, uint32_t i)
{
	return at->group ? at->group->ports[i] : at->port;
}

/* --- all ports of a place; the lock of groups is held ----------------------------------------- */

static void unsteer(const struct eth_place *at, const struct rule_times *times, bool purged)
{
	for (uint32_t i = 0; i < ports_of(at); i++)
		if (port_of(at, i))
			eth_rule_unsteer(port_of(at, i), times, purged);
}

static void detach(const struct eth_place *at, const struct rule_times *times)
{
	unsteer(at, times, false);
	for (uint32_t i = 0; i < ports_of(at); i++)
		if (port_of(at, i))
			eth_rule_detach(port_of(at, i), times);
}

/* *last: the rule at the last port. */
static int attach(const struct eth_place *at, const struct rule_part *part, struct eth_rule **last)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < ports_of(at); i++)
		if (port_of(at, i))
			err = eth_rule_attach(port_of(at, i), part, (uint16_t)i, last);
	for (uint32_t i = 0; !err && i < ports_of(at); i++)
		if (port_of(at, i))
			err = eth_rule_steer(port_of(at, i));
	if (err)
		detach(at, part->times);
	return err;
}

static void forget(struct rule_part *part)
{
	eth_rule_counts_put(part->counts);
	eth_rule_times_put(part->times);
}

/* --- what the caller knows a rule by: that of the port, or that of the group ------------------- */

static int add_to_group(const struct eth_place *at, const struct rule_part *part, void **added)
{
	struct group_rule *new = malloc(sizeof *new);
	struct eth_rule *last;
	int err;

	if (!new)
		return ENOMEM;
	err = attach(at, part, &last);
	if (err) {
		free(new);
		return err;
	}
	new->part = *part;
	__atomic_add_fetch(&part->counts->refs, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&part->times->refs, 1, __ATOMIC_RELAXED);
	new->next = at->group->rules;
	at->group->rules = new;
	*added = new;
	return 0;
}

/* The rule gets references of its own to counts and times. */
static int add(const struct eth_place *at, struct rule_part *part, void **added)
{
	struct eth_rule *rule;
	int err;

	if (!part->counts || !part->times)
		return ENOMEM;
	part->spread = at->group ? at->group->spread : NULL;
	if (at->group)
		return add_to_group(at, part, added);
	err = attach(at, part, &rule);
	if (!err)
		*added = rule;
	return err;
}

static struct group_rule **find_in_group(struct eth_group *group, const void *rule)
{
	struct group_rule **r = &group->rules;

	while (*r && *r != rule)
		r = &(*r)->next;
	return r;
}

/* Copies the part, with references for the caller. Returns false if the rule has ended. */
static bool find(const struct eth_place *at, const void *handle, struct rule_part *part)
{
	const struct eth_rule *rule = handle;
	const struct group_rule *shared;

	if (at->group) {
		if (!(shared = *find_in_group(at->group, handle)))
			return false;
		*part = shared->part;
	} else {
		if (!eth_rule_has(at->port, rule))
			return false;
		*part = (struct rule_part){ .rule = rule->rule, .counts = rule->counts, .times = rule->times };
	}
	__atomic_add_fetch(&part->counts->refs, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&part->times->refs, 1, __ATOMIC_RELAXED);
	return true;
}

/* Leaves the rules at the ports, which the caller removes. */
static void remove_from_group(const struct eth_place *at, const void *handle)
{
	struct group_rule **r, *rule;

	if (!at->group)
		return;
	r = find_in_group(at->group, handle);
	rule = *r;
	*r = rule->next;
	forget(&rule->part);
	free(rule);
}

/* --- calls ---------------------------------------------------------------------------------------- */

int eth_place_add(struct eth_place at, const struct dapl_eth_rule *rule, void **added)
{
	struct rule_part part = { .rule = *rule, .counts = eth_rule_counts_new(), .times = eth_rule_times_new(0) };
	int err;

	eth_group_lock();
	err = add(&at, &part, added);
	eth_group_unlock();
	forget(&part);
	return err;
}

void eth_place_free(struct eth_place at, void *rule)
{
	struct rule_part part;

	eth_group_lock();
	if (find(&at, rule, &part)) {
		remove_from_group(&at, rule);
		detach(&at, part.times);
		forget(&part);
	}
	eth_group_unlock();
}

/* The new rule is at its ports before any frame is its. */
static int move(const struct eth_place *from, void *rule, const struct eth_place *to, struct rule_part *old,
		void **moved)
{
	struct rule_part new = { .rule = old->rule, .counts = old->counts, .times = eth_rule_times_new(UINT64_MAX) };
	int err = add(to, &new, moved);
	uint64_t now;

	if (!err) {
		now = change_begin();
		__atomic_store_n(&new.times->from_ns, now, __ATOMIC_RELAXED);
		__atomic_store_n(&old->times->until_ns, now, __ATOMIC_RELAXED);
		change_end();
		remove_from_group(from, rule);
		unsteer(from, old->times, true);
	}
	eth_rule_times_put(new.times);
	return err;
}

/* Adds what the program at `from` has counted until it ended: first waits until it has ended on all
 * processors. */
static void keep_dropped(const struct eth_place *from, const void *rule, struct rule_counts *counts)
{
	uint64_t frames, bytes;

	syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);	/* waits for what runs in the kernel under RCU */
	if (eth_steer_count(from->port, rule, &frames, &bytes))
		return;
	__atomic_add_fetch(&counts->frames, frames, __ATOMIC_RELAXED);
	__atomic_add_fetch(&counts->bytes, bytes, __ATOMIC_RELAXED);
}

/* A rule that drops frames gives them to no port, so no instant divides them: for a moment both programs have the
 * rule, and what the first one drops the second one does not see. */
static int move_drop(const struct eth_place *from, void *rule, const struct eth_place *to, struct rule_part *old,
		     void **moved)
{
	struct rule_part new = { .rule = old->rule, .counts = old->counts, .times = eth_rule_times_new(0) };
	int err = add(to, &new, moved);

	if (!err) {
		unsteer(from, old->times, false);
		keep_dropped(from, rule, old->counts);
		detach(from, old->times);
	}
	eth_rule_times_put(new.times);
	return err;
}

int eth_place_move(struct eth_place from, void *rule, struct eth_place to, void **moved)
{
	struct rule_part old;
	int err = ENOENT;

	eth_group_lock();
	if (find(&from, rule, &old)) {
		err = old.rule.mode == ETH_DROP ? move_drop(&from, rule, &to, &old, moved) :
			move(&from, rule, &to, &old, moved);
		forget(&old);
	}
	eth_group_unlock();
	return err;
}

void eth_place_count(struct eth_place at, const void *rule, uint64_t *frames, uint64_t *bytes)
{
	uint64_t dropped[2] = { 0, 0 };		/* here; what was dropped before a move is in the counts */
	struct rule_part part;

	*frames = *bytes = 0;
	eth_group_lock();
	if (find(&at, rule, &part)) {
		if (!at.group && part.rule.mode == ETH_DROP)
			eth_steer_count(at.port, rule, &dropped[0], &dropped[1]);
		*frames = dropped[0] + __atomic_load_n(&part.counts->frames, __ATOMIC_RELAXED);
		*bytes = dropped[1] + __atomic_load_n(&part.counts->bytes, __ATOMIC_RELAXED);
		forget(&part);
	}
	eth_group_unlock();
}
