/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* group.c - groups of ports, and changes of their tables. spread.h explains tables; place.c has the rules. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "common/clock.h"
#include "dapl/softeth/change.h"
#include "dapl/softeth/group.h"
#include "dapl/softeth/port_filter.h"
#include "dapl/softeth/rules.h"
#include "dapl/softeth/spread.h"

#define KEPT_NS 10000000000ull	/* how long former tables are kept: frames may wait so long in a socket */

static struct dapl_mutex groups_lock = DAPL_MUTEX_INIT(RANK_SOFT_ETH_GROUPS);
static struct eth_group *groups;

void eth_group_lock(void)
{
	dapl_mutex_lock(&groups_lock);
}

void eth_group_unlock(void)
{
	dapl_mutex_unlock(&groups_lock);
}

int eth_group_create(struct eth_port *const *ports, uint32_t n, const struct dapl_eth_rss *rss,
		     struct eth_group **group)
{
	struct eth_group *new = calloc(1, sizeof *new + n * sizeof *new->ports);

	if (!new)
		return ENOMEM;
	if (!(new->spread = spread_new(rss))) {
		free(new);
		return ENOMEM;
	}
	new->n = n;
	memcpy(new->ports, ports, n * sizeof *ports);
	dapl_mutex_lock(&groups_lock);
	new->next = groups;
	groups = new;
	dapl_mutex_unlock(&groups_lock);
	*group = new;
	return 0;
}

/* All ports stop steering before the first filter changes. */
static void leave_ports(const struct eth_group *group, struct rule_times *times)
{
	for (uint32_t i = 0; i < group->n; i++)
		if (group->ports[i])
			eth_rule_unsteer(group->ports[i], times, false);
	for (uint32_t i = 0; i < group->n; i++)
		if (group->ports[i])
			eth_rule_detach(group->ports[i], times);
}

static void end_rules(struct eth_group *group)
{
	struct group_rule *rule;

	while ((rule = group->rules)) {
		group->rules = rule->next;
		leave_ports(group, rule->part.times);
		eth_rule_counts_put(rule->part.counts);
		eth_rule_times_put(rule->part.times);
		free(rule);
	}
}

void eth_group_free(struct eth_group *group)
{
	struct eth_group **at = &groups;

	dapl_mutex_lock(&groups_lock);
	end_rules(group);
	while (*at != group)
		at = &(*at)->next;
	*at = group->next;
	dapl_mutex_unlock(&groups_lock);
	spread_put(group->spread);	/* rules that were moved away may still need it */
	free(group);
}

/* groups_lock held. */
static void leave_groups(const struct eth_port *port)
{
	for (struct eth_group *g = groups; g; g = g->next)
		for (uint32_t i = 0; i < g->n; i++)
			if (g->ports[i] == port)
				g->ports[i] = NULL;
}

void eth_group_leave(struct eth_port *port)
{
	dapl_mutex_lock(&groups_lock);
	leave_groups(port);
	dapl_mutex_lock(&port->lock);
	eth_rule_end_all(port);
	port_filter_none(port->fd);
	dapl_mutex_unlock(&port->lock);
	dapl_mutex_unlock(&groups_lock);
}

/* --- tables ------------------------------------------------------------------------------- */

/* Renews the filters of all ports. Afterwards no port reads a table that was off the list before. */
static int renew_filters(struct eth_group *group)
{
	int err = 0, now;

	for (uint32_t i = 0; i < group->n; i++)
		if (group->ports[i] && (now = port_filter_renew(group->ports[i])))
			err = now;
	return err;
}

static bool names_left_port(const struct eth_group *group, const uint16_t *table)
{
	for (uint32_t i = 0; i < group->spread->size; i++)
		if (!group->ports[table[i]])
			return true;
	return false;
}

static int set_table(struct eth_group *group, const uint16_t *table)
{
	struct eth_spread *spread = group->spread;
	uint64_t now = clock_read_ns(CLOCK_REALTIME);
	struct spread_table *gone = spread_outdated(spread, now - KEPT_NS);
	int err;

	if (!spread_announce(spread, table))
		err = ENOMEM;
	else if (!(err = renew_filters(group))) {
		spread_begin(spread, change_begin());
		change_end();
	} else {
		struct spread_table *announced = spread_withdraw(spread);

		renew_filters(group);
		announced->older = NULL;
		spread_free_tables(announced);
	}
	if (gone && err == ENOMEM)
		renew_filters(group);
	spread_free_tables(gone);
	return err;
}

int eth_group_set(struct eth_group *group, const uint16_t *table)
{
	int err = EINVAL;

	dapl_mutex_lock(&groups_lock);
	if (!names_left_port(group, table))
		err = set_table(group, table);
	dapl_mutex_unlock(&groups_lock);
	return err;
}
