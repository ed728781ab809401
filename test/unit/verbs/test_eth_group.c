/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_eth_group.c - groups of raw QPs: the work queues that a table names, hashes made when a rule needs one,
 * another table, members that leave, and what is left after a failure. The device and the rules are replaced here. */
#include "dapl/verbs/eth_group.h"
#include "dapl/verbs/eth_hash.h"
#include "dapl/verbs/eth_rule.h"
#include "dapl/verbs/eth_types.h"
#include "dapl/verbs/eth_wq.h"
#include "dapl/verbs/hw.h"
#include "test/unit/unit.h"

enum { MEMBERS = 3, SIZE = 4, MAX_HASHES = 16 };

static struct dapl_device dev;
static struct hw_eth_device eth = { .dev = &dev };
static struct verbs_context verbs;
static struct ibv_pd pd;
static struct ibv_cq cq;
static struct ibv_wq nowhere = { .context = &verbs.context }, queues[MEMBERS];
static struct hw_eth members[MEMBERS];
static const uint16_t table[SIZE] = { 0, 1, 2, 1 };
static const uint64_t fields = IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4;
static uint8_t key[HW_ETH_HASH_KEY] = { 1, 2, 3 };

/* Hashes in the order in which they were made. */
static struct hash {
	struct ibv_qp qp;
	struct ibv_wq *queues[SIZE];
	uint32_t size;
	uint64_t fields;
	bool open;
} hashes[MAX_HASHES];
static int made, alive, wqs;		/* hashes; all objects of the device; work queues of groups */
static int bad_hash;			/* this one cannot be made; -1: none */
static bool no_pd, no_cq, no_wq;

/* Redirections of rules, in their order. */
static struct { void *rule; struct ibv_qp *to; } redirected[8];
static int redirects, bad_redirect, ends;

static struct ibv_qp *group;

/* --- in place of libibverbs, eth_wq.c and eth_rule.c -------------------------------------------------------- */

static void *object(bool refused, void *made_object)
{
	if (refused) {
		errno = ENOSPC;
		return NULL;
	}
	alive++;
	return made_object;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *of)
{
	assert_ptr_equal(of, &verbs.context);
	return object(no_pd, &pd);
}

int ibv_dealloc_pd(struct ibv_pd *of)
{
	assert_ptr_equal(of, &pd);
	alive--;
	return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *of, int cqe, void *cq_context, struct ibv_comp_channel *on, int vector)
{
	assert_ptr_equal(of, &verbs.context);
	assert_int_equal(cqe, 1);
	assert_true(!cq_context && !on && !vector);
	return object(no_cq, &cq);
}

int ibv_destroy_cq(struct ibv_cq *of)
{
	assert_ptr_equal(of, &cq);
	alive--;
	return 0;
}

int hw_eth_wq_create(struct hw_eth_device *of, struct ibv_wq_init_attr *attr, struct ibv_wq **out)
{
	assert_ptr_equal(of, &eth);
	assert_ptr_equal(attr->pd, &pd);
	assert_ptr_equal(attr->cq, &cq);
	assert_int_equal(attr->max_wr, 1);
	assert_int_equal(attr->max_sge, 1);
	*out = object(no_wq, &nowhere);
	wqs += *out != NULL;
	return *out ? 0 : errno;
}

static int destroy_wq(struct ibv_wq *of)
{
	assert_ptr_equal(of, &nowhere);
	for (int i = 0; i < made && wqs == 1; i++)
		assert_false(hashes[i].open);		/* the device would refuse */
	wqs--;
	alive--;
	return 0;
}

int hw_eth_wq_hash_open(struct hw_eth_device *of, struct ibv_pd *in, struct ibv_wq **named, uint32_t size,
			uint64_t hashed, const uint8_t with[HW_ETH_HASH_KEY], struct hw_hash *hash)
{
	struct hash *h = &hashes[made];

	assert_ptr_equal(of, &eth);
	assert_ptr_equal(in, &pd);
	assert_memory_equal(with, key, sizeof key);
	assert_true(size <= SIZE && made < MAX_HASHES);
	if (made++ == bad_hash)
		return ENOMEM;
	memcpy(h->queues, named, size * sizeof *named);
	h->size = size;
	h->fields = hashed;
	h->open = true;
	hash->qp = &h->qp;
	alive++;
	return 0;
}

void hw_eth_wq_hash_close(struct hw_hash *hash)
{
	if (!hash->qp)
		return;
	((struct hash *)((char *)hash->qp - offsetof(struct hash, qp)))->open = false;
	hash->qp = NULL;
	alive--;
}

int hw_eth_rule_redirect(struct hw_eth_rules *rules, struct hw_eth_rule *rule, struct ibv_qp *to)
{
	assert_ptr_equal(rules, hw_group_rules(group));
	assert_int_not_equal(eth.groups_lock.state, MUTEX_FREE);
	redirected[redirects].rule = rule;
	redirected[redirects].to = to;
	return redirects++ == bad_redirect ? ENOSPC : 0;
}

void hw_eth_rules_end(struct hw_eth_rules *rules)
{
	ends++;
	rules->first = NULL;
}

/* --- fixture -------------------------------------------------------------------------------------------------- */

UNIT_FIXTURE(set_up)
{
	verbs.sz = sizeof verbs;
	verbs.destroy_wq = destroy_wq;
	verbs.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	dev.verbs = &verbs.context;
	dev.eth = &eth;
	eth.caps.joint_hash = true;
	eth.groups = NULL;
	dapl_mutex_init(&eth.groups_lock, RANK_VERBS_ETH_GROUPS);
	memset(members, 0, sizeof members);
	for (int i = 0; i < MEMBERS; i++) {
		members[i].eth = &eth;
		members[i].wq = &queues[i];
		members[i].rules.tagged = true;
		dapl_mutex_init(&members[i].lock, RANK_VERBS_ETH_QP);
	}
	memset(hashes, 0, sizeof hashes);
	made = alive = wqs = redirects = ends = 0;
	bad_hash = bad_redirect = -1;
	no_pd = no_cq = no_wq = false;
	group = NULL;
}

/* Nothing is left: no object of the device, no group, no membership, no lock. */
static void nothing_is_left(void)
{
	assert_int_equal(alive, 0);
	assert_null(eth.groups);
	assert_int_equal(eth.groups_lock.state, MUTEX_FREE);
	for (int i = 0; i < MEMBERS; i++) {
		assert_null(members[i].groups);
		assert_int_equal(members[i].lock.state, MUTEX_FREE);
	}
}

static int create_one(struct ibv_qp **out)
{
	struct ibv_qp *qps[MEMBERS] = { &members[0].qp, &members[1].qp, &members[2].qp };
	struct dapl_eth_rss rss = { .hash = { .rx_hash_fields_mask = fields, .rx_hash_key = key,
		.rx_hash_key_len = sizeof key }, .size = SIZE, .table = table };

	return hw_group_create(&dev, qps, MEMBERS, &rss, out);
}

static void create(void)
{
	assert_int_equal(create_one(&group), 0);
	assert_non_null(group);
}

UNIT_FIXTURE(tear_down)
{
	if (group)
		hw_group_free(group);
	nothing_is_left();
}

static struct dapl_eth_rule rule_of_version(uint8_t version)
{
	struct dapl_eth_rule rule = { .mode = ETH_TAKE };

	rule.key.ip_version = version;
	rule.mask.ip_version = 0xff;
	return rule;
}

/* A reason is given with EOPNOTSUPP only. */
static int target(struct dapl_eth_rule rule, struct ibv_qp **qp)
{
	const char *why;
	int err;

	dapl_mutex_lock(&eth.groups_lock);
	err = hw_group_target(hw_group_rules(group)->group, &rule, qp, &why);
	dapl_mutex_unlock(&eth.groups_lock);
	assert_true((err == EOPNOTSUPP) == (why != NULL));
	return err;
}

/* The hash of this number must exist, over these queues; -1: the queue that drops frames. */
static void leads_to(int n, int a, int b, int c, int d)
{
	int expected[SIZE] = { a, b, c, d };

	assert_true(hashes[n].open);
	assert_int_equal(hashes[n].size, SIZE);
	for (int i = 0; i < SIZE; i++)
		assert_ptr_equal(hashes[n].queues[i], expected[i] < 0 ? &nowhere : &queues[expected[i]]);
}

/* Two rules that the group has. */
static struct hw_eth_rule rules[2];

static void give_rules(uint8_t first, uint8_t second)
{
	rules[0] = (struct hw_eth_rule){ .next = &rules[1], .rule = rule_of_version(first) };
	rules[1] = (struct hw_eth_rule){ .rule = rule_of_version(second) };
	hw_group_rules(group)->first = rules;
}

/* --- making ------------------------------------------------------------------------------------------------------ */

UNIT_CASE(table_names_the_queues_of_its_members)
{
	create();
	assert_int_equal(group->qp_type, IBV_QPT_DRIVER);
	assert_int_equal(made, 1);
	leads_to(0, 0, 1, 2, 1);
	assert_int_equal(hashes[0].fields, fields);
	assert_null(hw_group_rules(group)->target);
	assert_true(hw_group_rules(group)->tagged);
	for (int i = 0; i < MEMBERS; i++)
		assert_ptr_equal(members[i].groups->group, hw_group_rules(group)->group);
}

UNIT_CASE(tags_of_groups_do_not_overlap)
{
	struct ibv_qp *more[3];
	struct hw_eth_rules *of;

	create();
	assert_int_equal(create_one(&more[0]), 0);
	assert_int_equal(create_one(&more[1]), 0);
	assert_int_equal(hw_group_rules(group)->tag_base, HW_ETH_MAX_RULES);
	assert_int_equal(hw_group_rules(more[0])->tag_base, 2 * HW_ETH_MAX_RULES);
	assert_int_equal(hw_group_rules(more[1])->tag_base, 3 * HW_ETH_MAX_RULES);
	hw_group_free(more[0]);
	assert_int_equal(create_one(&more[2]), 0);
	of = hw_group_rules(more[2]);
	assert_int_equal(of->tag_base, 2 * HW_ETH_MAX_RULES);
	assert_null(hw_group_rules_of_tag(of->group, of->tag_base));
	assert_ptr_equal(hw_group_rules_of_tag(of->group, of->tag_base + 1), of);
	assert_ptr_equal(hw_group_rules_of_tag(of->group, of->tag_base + HW_ETH_MAX_RULES), of);
	assert_null(hw_group_rules_of_tag(of->group, of->tag_base + HW_ETH_MAX_RULES + 1));
	hw_group_free(more[1]);
	hw_group_free(more[2]);
}

UNIT_CASE(qp_that_cannot_share_makes_no_group)
{
	for (int i = 0; i < MEMBERS; i++)
		for (int lack = 0; lack < 2; lack++) {
			set_up(state);
			if (lack)
				members[i].wq = NULL;
			else
				members[i].rules.tagged = false;
			assert_int_equal(create_one(&group), EOPNOTSUPP);
			assert_null(group);
			nothing_is_left();
		}
}

UNIT_CASE(failed_group_leaves_nothing)
{
	bool *const refuse[] = { &no_pd, &no_cq, &no_wq };

	for (int i = 0; i < 3; i++) {
		set_up(state);
		*refuse[i] = true;
		assert_int_equal(create_one(&group), ENOSPC);
		nothing_is_left();
	}
	set_up(state);
	bad_hash = 0;
	assert_int_equal(create_one(&group), ENOMEM);
	nothing_is_left();
}

/* --- hashes of rules ---------------------------------------------------------------------------------------------- */

UNIT_CASE(joint_hash_serves_all_rules)
{
	struct ibv_qp *qp;

	create();
	assert_int_equal(target(rule_of_version(4), &qp), 0);
	assert_ptr_equal(qp, &hashes[0].qp);
	assert_int_equal(target((struct dapl_eth_rule){ .mode = ETH_TAKE }, &qp), 0);
	assert_ptr_equal(qp, &hashes[0].qp);
	assert_int_equal(made, 1);
}

UNIT_CASE(device_without_makes_a_hash_for_each_kind)
{
	struct dapl_eth_rule other = { .mode = ETH_TAKE };
	struct ibv_qp *four, *again, *none;

	eth.caps.joint_hash = false;
	create();
	assert_int_equal(made, 0);
	assert_int_equal(target(rule_of_version(4), &four), 0);
	leads_to(0, 0, 1, 2, 1);
	assert_int_equal(hashes[0].fields, fields);
	assert_int_equal(target(rule_of_version(4), &again), 0);
	assert_ptr_equal(four, again);
	other.key.ether_type = htons(0x8801);
	other.mask.ether_type = 0xffff;
	assert_int_equal(target(other, &none), 0);
	assert_ptr_equal(none, &hashes[1].qp);
	assert_int_equal(hashes[1].size, 1);		/* the table's first entry */
	assert_ptr_equal(hashes[1].queues[0], &queues[0]);
	assert_int_equal(hashes[1].fields, 0);
}

UNIT_CASE(rule_of_no_kind_has_no_target)
{
	struct ibv_qp *qp = NULL;

	eth.caps.joint_hash = false;
	create();
	assert_int_equal(target((struct dapl_eth_rule){ .mode = ETH_TAKE }, &qp), EOPNOTSUPP);
	bad_hash = made;
	assert_int_equal(target(rule_of_version(4), &qp), ENOMEM);
	assert_int_equal(target(rule_of_version(4), &qp), 0);	/* tried again */
	assert_non_null(qp);
}

/* --- another table ---------------------------------------------------------------------------------------------- */

UNIT_CASE(rules_are_redirected_to_another_table)
{
	static const uint16_t other[SIZE] = { 2, 2, 0, 0 };

	create();
	give_rules(4, 6);
	assert_int_equal(hw_group_set(group, other), 0);
	leads_to(1, 2, 2, 0, 0);
	assert_false(hashes[0].open);
	assert_int_equal(redirects, 2);
	for (int i = 0; i < 2; i++) {
		assert_ptr_equal(redirected[i].rule, &rules[i]);
		assert_ptr_equal(redirected[i].to, &hashes[1].qp);
	}
}

UNIT_CASE(each_kind_is_made_anew)
{
	static const uint16_t other[SIZE] = { 2, 2, 0, 0 };
	struct ibv_qp *four, *six;

	eth.caps.joint_hash = false;
	create();
	assert_int_equal(target(rule_of_version(6), &six), 0);
	assert_int_equal(target(rule_of_version(4), &four), 0);
	give_rules(6, 4);
	assert_int_equal(hw_group_set(group, other), 0);
	assert_int_equal(made, 4);
	leads_to(2, 2, 2, 0, 0);
	leads_to(3, 2, 2, 0, 0);
	assert_int_equal(hashes[2].fields, fields);		/* IPv4 */
	assert_int_equal(hashes[3].fields, 0);
	assert_ptr_equal(redirected[0].to, &hashes[3].qp);
	assert_ptr_equal(redirected[1].to, &hashes[2].qp);
}

UNIT_CASE(failed_table_leaves_all_as_it_was)
{
	static const uint16_t other[SIZE] = { 2, 2, 0, 0 };

	create();
	give_rules(4, 6);
	bad_hash = 1;
	assert_int_equal(hw_group_set(group, other), ENOMEM);
	assert_int_equal(redirects, 0);
	leads_to(0, 0, 1, 2, 1);
	bad_redirect = 0;
	assert_int_equal(hw_group_set(group, other), ENOSPC);
	assert_int_equal(redirects, 4);
	assert_ptr_equal(redirected[0].to, &hashes[2].qp);
	assert_ptr_equal(redirected[1].to, &hashes[2].qp);
	assert_ptr_equal(redirected[2].to, &hashes[0].qp);	/* and back */
	assert_ptr_equal(redirected[3].to, &hashes[0].qp);
	leads_to(0, 0, 1, 2, 1);
	assert_false(hashes[2].open);
	hw_group_leave_all(&members[0]);				/* the table is still the first one */
	leads_to(3, -1, 1, 2, 1);
}

/* --- members ---------------------------------------------------------------------------------------------------- */

UNIT_CASE(frames_of_a_member_that_left_are_dropped)
{
	static const uint16_t without[SIZE] = { 0, 2, 2, 0 }, first[SIZE] = { 0, 2, 2, 2 }, last[SIZE] = { 2, 2, 2, 0 };

	create();
	give_rules(4, 6);
	hw_group_leave_all(&members[1]);
	assert_null(members[1].groups);
	leads_to(1, 0, -1, 2, -1);
	assert_false(hashes[0].open);
	assert_int_equal(redirects, 2);
	assert_int_equal(ends, 0);
	assert_int_equal(hw_group_set(group, table), EINVAL);	/* names it */
	leads_to(1, 0, -1, 2, -1);
	assert_int_equal(hw_group_set(group, without), 0);
	leads_to(2, 0, 2, 2, 0);
	hw_group_leave_all(&members[0]);
	assert_int_equal(hw_group_set(group, first), EINVAL);
	assert_int_equal(hw_group_set(group, last), EINVAL);
}

UNIT_CASE(member_leaves_all_of_its_groups)
{
	struct ibv_qp *other;

	create();
	assert_int_equal(create_one(&other), 0);
	hw_group_leave_all(&members[2]);
	assert_null(members[2].groups);
	assert_int_equal(made, 4);
	leads_to(2, 0, 1, -1, 1);
	leads_to(3, 0, 1, -1, 1);
	hw_group_free(other);
	assert_ptr_equal(members[0].groups->group, hw_group_rules(group)->group);
	assert_null(members[0].groups->next);
}

/* A work queue cannot be destroyed while a table names it. */
UNIT_CASE(group_ends_if_a_member_cannot_be_left_out)
{
	create();
	give_rules(4, 6);
	bad_hash = 1;
	hw_group_leave_all(&members[1]);
	assert_null(members[1].groups);
	assert_int_equal(ends, 1);
	assert_false(hashes[0].open);
	assert_null(hw_group_rules(group)->first);
}

UNIT_MAIN(NULL, NULL)
