/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eth_group.c - groups of raw QPs: a table of their work queues, hash QPs over it, and flows that lead to these.
 *
 * Verbs cannot change a table. Another one is a new object with new hash QPs, and each flow is destroyed and made
 * again: frames of the moment between go where they would go without the rule. The other order would give frames to two
 * QPs. A QP that leaves is replaced in the table by a work queue that never has a receive. */
#include "eth_group.h"
#include "eth_hash.h"
#include "eth_rule.h"
#include "eth_types.h"
#include "eth_wq.h"
#include "hw.h"
#include "common/log.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* groups_lock guards `next`, members, table and hashes; `lock` guards the rules. The rest is constant. */
struct hw_group {
	struct ibv_qp qp;		/* what core has */
	struct hw_group *next;
	struct hw_eth_device *eth;
	struct hw_eth_rules rules;
	struct dapl_mutex lock;		/* guards the rules */
	uint32_t number;		/* from 1; tells the tags of groups from each other */
	struct ibv_pd *pd;		/* those of members may end before the group */
	struct ibv_cq *cq;		/* of `nowhere` */
	struct ibv_wq *nowhere;		/* gets the frames of members that have left: it has no receive */
	struct hw_eth **members;	/* NULL: it has left */
	uint32_t n, size;		/* members; entries of the table */
	uint16_t *table;
	uint64_t fields;
	uint8_t key[HW_ETH_HASH_KEY];
	struct hw_hash hashes[HASH_KINDS];	/* made when a rule needs one */
};

static struct hw_group *group_of(struct ibv_qp *qp)
{
	return container_of(qp, struct hw_group, qp);
}

struct hw_eth_rules *hw_group_rules(struct ibv_qp *qp)
{
	return &group_of(qp)->rules;
}

struct hw_eth_rules *hw_group_rules_of_tag(struct hw_group *g, uint32_t tag)
{
	uint32_t base = g->rules.tag_base;

	return tag > base && tag <= base + HW_ETH_MAX_RULES ? &g->rules : NULL;
}

/* --- hash QPs; groups_lock held -------------------------------------------------------------- */

static int open_hash(struct hw_group *g, enum hw_hash_kind kind, struct hw_hash *hash)
{
	uint32_t size = kind == HASH_NONE ? 1 : g->size;
	struct ibv_wq **queues = calloc(size, sizeof *queues);
	int err;

	if (!queues)
		return ENOMEM;
	for (uint32_t i = 0; i < size; i++)
		queues[i] = g->members[g->table[i]] ? g->members[g->table[i]]->wq : g->nowhere;
	err = hw_eth_wq_hash_open(g->eth, g->pd, queues, size, hw_hash_fields(kind, g->fields), g->key, hash);
	free(queues);
	return err;
}

static void close_hashes(struct hw_hash hashes[HASH_KINDS])
{
	for (int kind = 0; kind < HASH_KINDS; kind++)
		hw_eth_wq_hash_close(&hashes[kind]);
}

static const char *kind_of(const struct hw_group *g, const struct dapl_eth_rule *rule, enum hw_hash_kind *kind)
{
	*kind = HASH_JOINT;
	return g->eth->caps.joint_hash ? NULL : hw_hash_kind_of(rule, g->fields, kind);
}

int hw_group_target(struct hw_group *g, const struct dapl_eth_rule *rule, struct ibv_qp **qp, const char **why)
{
	enum hw_hash_kind kind;
	int err;

	*why = kind_of(g, rule, &kind);
	if (*why)
		return EOPNOTSUPP;
	if (!g->hashes[kind].qp && (err = open_hash(g, kind, &g->hashes[kind])))
		return err;
	*qp = g->hashes[kind].qp;
	return 0;
}

/* --- another table; groups_lock held ----------------------------------------------------------- */

/* Redirects the flows of all rules to these QPs. Returns the first error, after it has tried all. */
static int redirect(struct hw_group *g, const struct hw_hash hashes[HASH_KINDS])
{
	enum hw_hash_kind kind;
	int err = 0, failed;

	for (struct hw_eth_rule *rule = g->rules.first; rule; rule = rule->next) {
		kind_of(g, &rule->rule, &kind);		/* succeeds, as when the rule was added */
		failed = hw_eth_rule_redirect(&g->rules, rule, hashes[kind].qp);
		err = err ? err : failed;
	}
	return err;
}

/* Replaces the hash QPs that exist by new ones over the current table. On failure everything is as before. */
static int rebuild(struct hw_group *g)
{
	struct hw_hash fresh[HASH_KINDS] = { { .qp = NULL } };
	int err = 0;

	for (int kind = 0; kind < HASH_KINDS && !err; kind++)
		if (g->hashes[kind].qp)
			err = open_hash(g, kind, &fresh[kind]);
	if (!err) {
		err = redirect(g, fresh);
		if (err)
			redirect(g, g->hashes);
	}
	if (err) {
		close_hashes(fresh);
		return err;
	}
	close_hashes(g->hashes);
	memcpy(g->hashes, fresh, sizeof fresh);
	return 0;
}

static bool names_left_member(const struct hw_group *g, const uint16_t *table)
{
	for (uint32_t i = 0; i < g->size; i++)
		if (!g->members[table[i]])
			return true;
	return false;
}

int hw_group_set(struct ibv_qp *qp, const uint16_t *table)
{
	struct hw_group *g = group_of(qp);
	uint16_t *before = malloc(g->size * sizeof *before);
	int err;

	if (!before)
		return ENOMEM;
	dapl_mutex_lock(&g->eth->groups_lock);
	memcpy(before, g->table, g->size * sizeof *before);
	if (names_left_member(g, table)) {
		err = EINVAL;
	} else {
		memcpy(g->table, table, g->size * sizeof *before);
		err = rebuild(g);
		if (err)
			memcpy(g->table, before, g->size * sizeof *before);
	}
	dapl_mutex_unlock(&g->eth->groups_lock);
	free(before);
	return err;
}

/* --- members; groups_lock held -------------------------------------------------------------------- */

static int join(struct hw_group *g, struct hw_eth *q)
{
	struct hw_membership *m = malloc(sizeof *m);

	if (!m)
		return ENOMEM;
	m->group = g;
	dapl_mutex_lock(&q->lock);
	m->next = q->groups;
	q->groups = m;
	dapl_mutex_unlock(&q->lock);
	return 0;
}

static void unlink_membership(struct hw_eth *q, const struct hw_group *g)
{
	struct hw_membership **at = &q->groups, *m;

	dapl_mutex_lock(&q->lock);
	while (*at && (*at)->group != g)
		at = &(*at)->next;
	m = *at;
	if (m)
		*at = m->next;
	dapl_mutex_unlock(&q->lock);
	free(m);
}

/* Rebuilds the table without the member, since a work queue that a table names cannot be destroyed. */
static void remove_member(struct hw_group *g, struct hw_eth *q)
{
	int err;

	for (uint32_t i = 0; i < g->n; i++)
		if (g->members[i] == q)
			g->members[i] = NULL;
	err = rebuild(g);
	if (!err)
		return;
	log_report(REPORT_OPEN_FAILED, LOG_FIELDS(.err = err),
		   "%s: group of raw Ethernet endpoints on %s: no table without an "
		   "endpoint that leaves: %s. No endpoint of the group gets its frames any more",
		   g->eth->dev->attr.device, g->eth->dev->attr.netdev, strerror(err));
	hw_eth_rules_end(&g->rules);
	close_hashes(g->hashes);
}

void hw_group_leave_all(struct hw_eth *q)
{
	dapl_mutex_lock(&q->eth->groups_lock);
	while (q->groups) {
		struct hw_group *g = q->groups->group;

		unlink_membership(q, g);
		remove_member(g, q);
	}
	dapl_mutex_unlock(&q->eth->groups_lock);
}

/* --- making and ending ------------------------------------------------------------------------------ */

/* Returns the lowest number that no group has. groups_lock held. */
static uint32_t free_number(const struct hw_eth_device *eth)
{
	const struct hw_group *g = eth->groups;
	uint32_t number = 1;

	while (g) {
		if (g->number == number) {
			number++;
			g = eth->groups;
		} else {
			g = g->next;
		}
	}
	return number;
}

static int open_nowhere(struct hw_group *g)
{
	struct ibv_wq_init_attr attr = { .max_wr = 1, .max_sge = 1 };

	g->pd = ibv_alloc_pd(g->eth->dev->verbs);
	g->cq = g->pd ? ibv_create_cq(g->eth->dev->verbs, 1, NULL, NULL, 0) : NULL;
	if (!g->cq)
		return hw_null_errno();
	attr.pd = g->pd;
	attr.cq = g->cq;
	return hw_eth_wq_create(g->eth, &attr, &g->nowhere);
}

static void destroy(struct hw_group *g)
{
	if (g->nowhere)
		ibv_destroy_wq(g->nowhere);
	if (g->cq)
		ibv_destroy_cq(g->cq);
	if (g->pd)
		ibv_dealloc_pd(g->pd);
	free(g->members);
	free(g->table);
	free(g);
}

static struct hw_group *allocate(struct hw_eth_device *eth, uint32_t n, const struct dapl_eth_rss *rss)
{
	struct hw_group *g = calloc(1, sizeof *g);

	if (!g)
		return NULL;
	g->eth = eth;
	g->qp.qp_type = IBV_QPT_DRIVER;
	dapl_mutex_init(&g->lock, RANK_VERBS_ETH_GROUP);
	g->rules = (struct hw_eth_rules){ .eth = eth, .group = g, .tagged = true, .lock = &g->lock };
	g->n = n;
	g->size = rss->size;
	g->fields = rss->hash.rx_hash_fields_mask;
	memcpy(g->key, rss->hash.rx_hash_key, sizeof g->key);
	g->members = calloc(n, sizeof *g->members);
	g->table = malloc(rss->size * sizeof *g->table);
	if (!g->members || !g->table) {
		destroy(g);
		return NULL;
	}
	memcpy(g->table, rss->table, rss->size * sizeof *g->table);
	return g;
}

/* groups_lock held. */
static void end(struct hw_group *g)
{
	struct hw_group **at = &g->eth->groups;

	hw_eth_rules_end(&g->rules);
	close_hashes(g->hashes);
	for (uint32_t i = 0; i < g->n; i++)
		if (g->members[i])
			unlink_membership(g->members[i], g);
	while (*at != g)
		at = &(*at)->next;
	*at = g->next;
}

/* groups_lock held. The first hash shows whether the device has room for the table. */
static int fill(struct hw_group *g, struct ibv_qp *const *qps)
{
	int err = open_nowhere(g);

	for (uint32_t i = 0; i < g->n && !err; i++) {
		struct hw_eth *q = hw_eth_of(qps[i]);

		if (!q->wq || !q->rules.tagged)
			err = EOPNOTSUPP;
		else
			err = join(g, q);
		if (!err)
			g->members[i] = q;
	}
	if (!err && g->eth->caps.joint_hash)
		err = open_hash(g, HASH_JOINT, &g->hashes[HASH_JOINT]);
	return err;
}

int hw_group_create(struct dapl_device *dev, struct ibv_qp *const *qps, uint32_t n, const struct dapl_eth_rss *rss,
		    struct ibv_qp **made)
{
	struct hw_group *g = allocate(dev->eth, n, rss);
	int err;

	if (!g)
		return ENOMEM;
	dapl_mutex_lock(&dev->eth->groups_lock);
	g->number = free_number(dev->eth);
	g->rules.tag_base = g->number * HW_ETH_MAX_RULES;
	g->next = dev->eth->groups;
	dev->eth->groups = g;
	err = fill(g, qps);
	if (err)
		end(g);
	dapl_mutex_unlock(&dev->eth->groups_lock);
	if (err)
		destroy(g);
	else
		*made = &g->qp;
	return err;
}

void hw_group_free(struct ibv_qp *qp)
{
	struct hw_group *g = group_of(qp);
	struct hw_eth_device *eth = g->eth;

	dapl_mutex_lock(&eth->groups_lock);
	end(g);
	dapl_mutex_unlock(&eth->groups_lock);
	destroy(g);
}
