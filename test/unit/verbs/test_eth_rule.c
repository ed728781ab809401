/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_eth_rule.c - rules of raw QPs and groups: a flow each, tags of flows, memberships of the network device,
 * counting, and what is left after a failure. The device, the sockets and the groups are replaced here. */
#include <linux/if_packet.h>
#include <net/if.h>
#include "dapl/verbs/eth_flow.h"
#include "dapl/verbs/eth_group.h"
#include "dapl/verbs/eth_rule.h"
#include "dapl/verbs/hw.h"
#include "test/unit/unit.h"

enum { INDEX = 3, GROUP_TAGS = 4 * HW_ETH_MAX_RULES };

static struct dapl_device dev;
static struct hw_eth_device eth = { .dev = &dev };
static struct verbs_context verbs;
static struct ibv_qp targets[2] = { { .context = &verbs.context }, { .context = &verbs.context } };
static struct hw_eth q;
static struct hw_group {
	struct ibv_qp qp;
	struct hw_eth_rules rules;
	struct dapl_mutex lock;
} group;
static struct hw_membership membership = { .group = &group };

/* The device's flows, and the arguments of its last call. */
static struct ibv_flow flows[128];
static int made, alive, create_errno;
static const struct ibv_qp *target_asked;
static uint32_t tag_asked;			/* 0: none */
static unsigned port_asked;

static const char *no_target;			/* why a group has none */
static struct ibv_qp *group_target;

/* Sockets are descriptors of /dev/null. */
static int sockets[4], socket_count;
static int family_asked[4], type_asked[4], option_asked[4];
static uint8_t address_asked[16];
static int bad_socket, bad_option;		/* the call of this number fails; -1: none */

static struct ibv_flow *create_flow(struct ibv_qp *of, struct ibv_flow_attr *attr)
{
	const uint8_t *at = (const uint8_t *)(attr + 1);

	target_asked = of;
	tag_asked = 0;
	port_asked = attr->port;
	for (int i = 0; i < attr->num_of_specs; i++, at += ((const struct hw_spec_head *)at)->size)
		if (((const struct hw_spec_head *)at)->type == IBV_FLOW_SPEC_ACTION_TAG)
			tag_asked = ((const struct ibv_flow_spec_action_tag *)at)->tag_id;
	if (create_errno) {
		errno = create_errno;
		return NULL;
	}
	alive++;
	flows[made].context = &verbs.context;
	return &flows[made++];
}

static int destroy_flow(struct ibv_flow *flow)
{
	assert_ptr_equal(flow->context, &verbs.context);
	flow->context = NULL;			/* destroyed once */
	alive--;
	return 0;
}

int socket(int family, int type, int protocol)
{
	assert_int_equal(protocol, 0);
	if (socket_count == bad_socket) {
		errno = EPERM;
		return -1;
	}
	family_asked[socket_count] = family;
	type_asked[socket_count] = type;
	return sockets[socket_count++] = open("/dev/null", O_RDONLY);
}

int setsockopt(int fd, int level, int option, const void *value, socklen_t size)
{
	int n = socket_count - 1;

	assert_int_equal(fd, sockets[n]);
	if (option == MCAST_JOIN_GROUP) {
		const struct group_req *request = value;

		assert_int_equal(size, sizeof *request);
		assert_int_equal(level, family_asked[n] == AF_INET ? IPPROTO_IP : IPPROTO_IPV6);
		assert_int_equal(request->gr_interface, INDEX);
		assert_int_equal(request->gr_group.ss_family, family_asked[n]);
		if (family_asked[n] == AF_INET)
			memcpy(address_asked, &((const struct sockaddr_in *)&request->gr_group)->sin_addr, 4);
		else
			memcpy(address_asked, &((const struct sockaddr_in6 *)&request->gr_group)->sin6_addr, 16);
		option_asked[n] = option;
	} else {
		const struct packet_mreq *request = value;

		assert_int_equal(size, sizeof *request);
		assert_int_equal(level, SOL_PACKET);
		assert_int_equal(option, PACKET_ADD_MEMBERSHIP);
		assert_int_equal(request->mr_ifindex, INDEX);
		option_asked[n] = request->mr_type;
	}
	if (n != bad_option)
		return 0;
	errno = ENOBUFS;
	return -1;
}

static bool is_open(int n) { return fcntl(sockets[n], F_GETFD) >= 0; }

struct hw_eth_rules *hw_group_rules(struct ibv_qp *qp)
{
	assert_ptr_equal(qp, &group.qp);
	return &group.rules;
}

struct hw_eth_rules *hw_group_rules_of_tag(struct hw_group *of, uint32_t tag)
{
	return tag > of->rules.tag_base ? &of->rules : NULL;
}

int hw_group_target(struct hw_group *of, const struct dapl_eth_rule *rule, struct ibv_qp **qp, const char **why)
{
	assert_non_null(rule);
	assert_ptr_equal(of, &group);
	assert_int_not_equal(eth.groups_lock.state, MUTEX_FREE);
	*qp = group_target;
	*why = no_target;
	return no_target ? EOPNOTSUPP : group_target ? 0 : ENOMEM;
}

/* --- fixture -------------------------------------------------------------------------------------------------- */

UNIT_FIXTURE(set_up)
{
	verbs.sz = sizeof verbs;
	verbs.ibv_create_flow = create_flow;
	verbs.ibv_destroy_flow = destroy_flow;
	verbs.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	dev.attr.netdev_index = INDEX;
	dev.attr.port = 2;
	eth.caps.partial = false;
	dapl_mutex_init(&eth.groups_lock, RANK_VERBS_ETH_GROUPS);
	memset(&q, 0, sizeof q);
	dapl_mutex_init(&q.lock, RANK_VERBS_ETH_QP);
	q.qp.qp_type = IBV_QPT_RAW_PACKET;
	q.rules = (struct hw_eth_rules){ .eth = &eth, .target = &targets[0], .tagged = true, .lock = &q.lock };
	memset(&group, 0, sizeof group);
	dapl_mutex_init(&group.lock, RANK_VERBS_ETH_GROUP);
	group.qp.qp_type = IBV_QPT_DRIVER;
	group.rules = (struct hw_eth_rules){ .eth = &eth, .group = &group, .tagged = true, .tag_base = GROUP_TAGS,
		.lock = &group.lock };
	group_target = &targets[1];
	no_target = NULL;
	made = alive = create_errno = socket_count = 0;
	bad_socket = bad_option = -1;
	memset(address_asked, 0, sizeof address_asked);
}

/* No flow, socket or lock is left. */
UNIT_FIXTURE(tear_down)
{
	hw_eth_rules_end(&q.rules);
	hw_eth_rules_end(&group.rules);
	assert_int_equal(alive, 0);
	for (int i = 0; i < socket_count; i++)
		assert_false(is_open(i));
	assert_int_equal(q.rules.tags_used, 0);
	assert_int_equal(group.rules.tags_used, 0);
	assert_int_equal(q.lock.state + group.lock.state + eth.groups_lock.state, MUTEX_FREE);
}

/* Frames of an Ethernet type, each a rule of its own. */
static struct dapl_eth_rule rule_of(uint16_t type, uint32_t tag)
{
	struct dapl_eth_rule rule = { .mode = ETH_TAKE, .tag = tag };

	rule.key.ether_type = htons(type);
	rule.mask.ether_type = 0xffff;
	return rule;
}

/* A type of flow that has no tag. */
static struct dapl_eth_rule rule_of_all(uint32_t flags, uint32_t tag)
{
	return (struct dapl_eth_rule){ .mode = ETH_TAKE, .flags = flags, .tag = tag };
}

static int add_to(struct ibv_qp *qp, struct dapl_eth_rule rule, void **added)
{
	return hw_eth_rule_add(qp, &rule, added);
}

static void *add(struct dapl_eth_rule rule)
{
	void *added = NULL;

	assert_int_equal(add_to(&q.qp, rule, &added), 0);
	assert_non_null(added);
	return added;
}

static void refused(struct dapl_eth_rule rule, int err)
{
	int before = alive;
	void *added = NULL;

	assert_int_equal(add_to(&q.qp, rule, &added), err);
	assert_null(added);
	assert_int_equal(alive, before);
}

static uint32_t hit(uint32_t tag, uint32_t length)
{
	uint32_t found;

	dapl_mutex_lock(&q.lock);
	found = hw_eth_rule_hit(&q, tag, length);
	dapl_mutex_unlock(&q.lock);
	return found;
}

static void counted(struct ibv_qp *qp, void *rule, uint64_t frames, uint64_t bytes)
{
	uint64_t n = 1, b = 1;

	hw_eth_rule_count(qp, rule, &n, &b);
	assert_int_equal(n, frames);
	assert_int_equal(b, bytes);
}

/* --- rules of a QP ---------------------------------------------------------------------------------------------- */

UNIT_CASE(each_rule_is_a_flow_with_a_tag)
{
	for (uint16_t i = 1; i <= 3; i++) {
		add(rule_of(0x8800 + i, 0));
		assert_ptr_equal(target_asked, &targets[0]);
		assert_int_equal(port_asked, 2);
		assert_int_equal(tag_asked, i);
	}
	assert_int_equal(alive, 3);
}

UNIT_CASE(same_rule_is_added_once)
{
	struct dapl_eth_rule rule = rule_of(0x8801, 7);

	add(rule);
	rule.tag = 8;
	refused(rule, EEXIST);
	rule.priority = 1;
	add(rule);
	rule.flags = ETH_ALL_MULTICAST;
	add(rule);
	rule = rule_of(0x8801, 0);
	rule.key.dst[0] = 1;			/* another key, mask and so on */
	add(rule);
	rule.mask.dst[0] = 0xff;
	eth.caps.partial = true;
	add(rule);
}

UNIT_CASE(qp_has_room_for_64_rules)
{
	void *some = NULL;

	for (uint16_t i = 0; i < HW_ETH_MAX_RULES; i++) {
		void *added = add(rule_of(0x8800 + i, 100 + i));

		if (i == 9)
			some = added;
	}
	refused(rule_of(0x9000, 0), ENOSPC);
	assert_int_equal(hit(HW_ETH_MAX_RULES, 60), 100 + HW_ETH_MAX_RULES - 1);
	hw_eth_rule_free(&q.qp, some);
	assert_int_equal(alive, HW_ETH_MAX_RULES - 1);
	add(rule_of(0x9000, 0));
	assert_int_equal(tag_asked, 10);	/* that of the rule which is gone */
}

UNIT_CASE(refusal_of_the_device_has_few_reasons)
{
	static const struct { int from, to; } cases[] = { { EINVAL, EOPNOTSUPP }, { EOPNOTSUPP, EOPNOTSUPP },
		{ EPERM, EPERM }, { ENOMEM, ENOMEM }, { ENOSPC, ENOSPC }, { ENODEV, ENODEV }, { EIO, EIO } };

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		create_errno = cases[i].from;
		refused(rule_of(0x8801, 0), cases[i].to);
		assert_null(q.rules.first);
		assert_int_equal(q.rules.tags_used, 0);
	}
}

UNIT_CASE(partial_masks_need_the_device)
{
	struct dapl_eth_rule rule = rule_of(0x8801, 0);

	rule.mask.ether_type = htons(0xff00);
	refused(rule, EOPNOTSUPP);
	eth.caps.partial = true;
	add(rule);
}

UNIT_CASE(rule_that_flows_cannot_express_is_refused)
{
	struct dapl_eth_rule rule = rule_of(0x8801, 0);

	rule.key.tos = rule.mask.tos = 0xff;	/* without a version of IP */
	refused(rule, EOPNOTSUPP);
}

UNIT_CASE(frames_without_a_tag_are_of_one_rule)
{
	void *first = add(rule_of_all(ETH_ALL, 5));

	assert_int_equal(tag_asked, 0);
	assert_int_equal(q.rules.tags_used, 0);
	assert_int_equal(hit(0, 60), 5);
	refused(rule_of_all(ETH_ALL_MULTICAST, 6), EOPNOTSUPP);
	add(rule_of_all(ETH_ALL_MULTICAST, 0));		/* its user does not tell frames by a tag */
	assert_int_equal(hit(0, 60), 5);
	hw_eth_rule_free(&q.qp, first);
	assert_int_equal(hit(0, 60), 0);
}

UNIT_CASE(cq_without_tags_leaves_flows_without)
{
	q.rules.tagged = false;
	add(rule_of(0x8801, 5));
	assert_int_equal(tag_asked, 0);
	refused(rule_of(0x8802, 6), EOPNOTSUPP);
	add(rule_of(0x8802, 0));
}

UNIT_CASE(frames_are_counted_for_the_rule_of_their_tag)
{
	void *one = add(rule_of(0x8801, 71)), *two = add(rule_of(0x8802, 72));

	assert_int_equal(hit(1, 60), 71);
	assert_int_equal(hit(2, 100), 72);
	assert_int_equal(hit(2, 10), 72);
	assert_int_equal(hit(3, 10), 0);
	assert_int_equal(hit(0, 10), 0);
	counted(&q.qp, one, 1, 60);
	counted(&q.qp, two, 2, 110);
	hw_eth_rule_free(&q.qp, one);
	assert_int_equal(hit(1, 60), 0);
	counted(&q.qp, one, 0, 0);
}

UNIT_CASE(uncounted_frames_are_told_from_none)
{
	struct dapl_eth_rule drop = rule_of(0x8801, 5);
	void *dropped, *all, *multicast;

	drop.mode = ETH_DROP;
	dropped = add(drop);
	all = add(rule_of_all(ETH_ALL, 0));
	multicast = add(rule_of_all(ETH_ALL_MULTICAST, 0));
	assert_int_equal(hit(0, 60), 0);
	counted(&q.qp, all, 1, 60);
	counted(&q.qp, dropped, UINT64_MAX, UINT64_MAX);
	counted(&q.qp, multicast, UINT64_MAX, UINT64_MAX);
}

UNIT_CASE(unknown_rule_is_not_freed)
{
	void *rule = add(rule_of(0x8801, 0));
	struct hw_eth_rule other = { .flow = &flows[100] };

	hw_eth_rule_free(&q.qp, &other);
	assert_int_equal(alive, 1);
	hw_eth_rules_end(&q.rules);
	assert_int_equal(alive, 0);
	hw_eth_rule_free(&q.qp, rule);		/* gone with a reset */
	assert_int_equal(alive, 0);
}

/* --- the network device ----------------------------------------------------------------------------------------- */

static struct dapl_eth_rule joining(uint8_t version)
{
	struct dapl_eth_rule rule = { .mode = ETH_TAKE, .flags = ETH_JOIN };

	rule.key.ip_version = version;
	rule.mask.ip_version = 0xff;
	memset(rule.key.ip_dst, version == 4 ? 0xe1 : 0xff, version == 4 ? 4 : 16);
	memset(rule.mask.ip_dst, 0xff, version == 4 ? 4 : 16);
	return rule;
}

UNIT_CASE(group_is_joined_as_long_as_the_rule_is_there)
{
	static const uint8_t versions[] = { 4, 6 };

	for (int i = 0; i < 2; i++) {
		struct dapl_eth_rule rule = joining(versions[i]);
		void *added;

		set_up(state);
		added = add(rule);
		assert_int_equal(socket_count, 1);
		assert_int_equal(family_asked[0], i ? AF_INET6 : AF_INET);
		assert_int_equal(type_asked[0], SOCK_DGRAM | SOCK_CLOEXEC);
		assert_memory_equal(address_asked, rule.key.ip_dst, 16);
		assert_true(is_open(0));
		hw_eth_rule_free(&q.qp, added);
		assert_false(is_open(0));
	}
}

UNIT_CASE(filter_of_the_network_device_is_opened)
{
	static const struct { uint32_t flags; int type; } cases[] = { { ETH_ALL, PACKET_MR_PROMISC },
		{ ETH_ALL_MULTICAST, PACKET_MR_ALLMULTI }, { ETH_ALL | ETH_ALL_MULTICAST, PACKET_MR_PROMISC } };

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		set_up(state);
		add(rule_of_all(cases[i].flags, 0));
		assert_int_equal(socket_count, 1);
		assert_int_equal(family_asked[0], AF_PACKET);
		assert_int_equal(type_asked[0], SOCK_RAW | SOCK_CLOEXEC);
		assert_int_equal(option_asked[0], cases[i].type);
		assert_true(is_open(0));
		assert_int_equal(tear_down(state), 0);
	}
}

UNIT_CASE(other_rules_need_no_network_device)
{
	dev.attr.netdev_index = 0;
	add(rule_of(0x8801, 0));
	assert_int_equal(socket_count, 0);
	refused(joining(4), ENODEV);
	refused(rule_of_all(ETH_ALL, 0), ENODEV);
	refused(rule_of_all(ETH_ALL_MULTICAST, 0), ENODEV);
}

UNIT_CASE(failed_rule_leaves_no_membership)
{
	struct dapl_eth_rule rule = joining(4);

	rule.flags |= ETH_ALL_MULTICAST;
	for (int call = 0; call < 2; call++) {
		set_up(state);
		bad_socket = call;
		refused(rule, EPERM);
		assert_int_equal(tear_down(state), 0);
		set_up(state);
		bad_option = call;
		refused(rule, ENOBUFS);
		assert_int_equal(tear_down(state), 0);
	}
	set_up(state);
	create_errno = ENOMEM;
	refused(rule, ENOMEM);
	assert_int_equal(socket_count, 2);
}

/* --- groups ----------------------------------------------------------------------------------------------------- */

UNIT_CASE(rule_of_a_group_leads_to_its_target)
{
	void *added;

	assert_int_equal(add_to(&group.qp, rule_of(0x8801, 81), &added), 0);
	assert_ptr_equal(target_asked, &targets[1]);
	assert_int_equal(tag_asked, GROUP_TAGS + 1);
	assert_null(q.rules.first);
	q.groups = &membership;
	assert_int_equal(hit(GROUP_TAGS + 1, 60), 81);
	assert_int_equal(hit(GROUP_TAGS - 1, 60), 0);
	counted(&group.qp, added, 1, 60);
	q.groups = NULL;
	assert_int_equal(hit(GROUP_TAGS + 1, 60), 0);
	hw_eth_rule_free(&group.qp, added);
	assert_int_equal(alive, 0);
}

UNIT_CASE(group_takes_only_rules_with_tag_and_target)
{
	void *added;

	assert_int_equal(add_to(&group.qp, rule_of_all(ETH_ALL, 0), &added), EOPNOTSUPP);
	group_target = NULL;
	assert_int_equal(add_to(&group.qp, rule_of(0x8801, 0), &added), ENOMEM);
	no_target = "no hash";
	assert_int_equal(add_to(&group.qp, rule_of(0x8801, 0), &added), EOPNOTSUPP);
	assert_int_equal(made, 0);
	assert_int_equal(group.rules.tags_used, 0);
}

UNIT_CASE(redirected_rule_keeps_its_tag)
{
	void *added;

	assert_int_equal(add_to(&group.qp, rule_of(0x8801, 0), &added), 0);
	assert_int_equal(hw_eth_rule_redirect(&group.rules, added, &targets[0]), 0);
	assert_ptr_equal(target_asked, &targets[0]);
	assert_int_equal(tag_asked, GROUP_TAGS + 1);
	assert_int_equal(alive, 1);
	assert_null(flows[0].context);			/* the first one */
	create_errno = ENOMEM;
	assert_int_equal(hw_eth_rule_redirect(&group.rules, added, &targets[1]), ENOMEM);
	assert_int_equal(alive, 0);
	assert_ptr_equal(group.rules.first, added);
}

UNIT_MAIN(NULL, NULL)
