/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eth_rule.c - the rules of a raw QP or a group: a flow for each, and what the network device must do for
 * it. Flows are objects of the process, memberships belong to sockets: both end with the process.
 *
 * This file chooses a tag for each flow; the tag of a frame identifies its rule. Flows of a type without
 * specifications cannot have a tag, so frames without a tag belong to them. */
#include "eth_flow.h"
#include "eth_group.h"
#include "eth_rule.h"
#include "eth_types.h"
#include "hw.h"
#include "common/log.h"
#include <errno.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* --- the network device ------------------------------------------------------------------- */

/* Joins an IP multicast group: the kernel speaks IGMP or MLD as long as the socket is open. The socket
 * receives nothing. */
static int join_group(int index, const struct dapl_eth_key *key, int *fd)
{
	bool is_ipv4 = key->ip_version == 4;
	struct group_req group = { .gr_interface = (uint32_t)index };
	struct sockaddr_in *in = (struct sockaddr_in *)&group.gr_group;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&group.gr_group;

	if (is_ipv4) {
		in->sin_family = AF_INET;
		memcpy(&in->sin_addr, key->ip_dst, 4);
	} else {
		in6->sin6_family = AF_INET6;
		memcpy(&in6->sin6_addr, key->ip_dst, 16);
	}
	*fd = socket(is_ipv4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (*fd < 0)
		return errno;
	return setsockopt(*fd, is_ipv4 ? IPPROTO_IP : IPPROTO_IPV6, MCAST_JOIN_GROUP, &group, sizeof group) ? errno : 0;
}

/* Makes the network device receive all frames, or all multicast frames, as long as the socket is open. A
 * packet socket without a protocol receives nothing. */
static int open_filter(int index, bool all, int *fd)
{
	struct packet_mreq request = { .mr_ifindex = index,
		.mr_type = all ? PACKET_MR_PROMISC : PACKET_MR_ALLMULTI };

	*fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (*fd < 0)
		return errno;
	return setsockopt(*fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &request, sizeof request) ? errno : 0;
}

static int open_members(const struct hw_eth_rules *rules, struct hw_eth_rule *rule)
{
	int index = rules->eth->dev->attr.netdev_index, err = 0;
	uint32_t flags = rule->rule.flags;

	if ((flags & (ETH_JOIN | ETH_ALL | ETH_ALL_MULTICAST)) && !index)
		return ENODEV;
	if (flags & ETH_JOIN)
		err = join_group(index, &rule->rule.key, &rule->group);
	if (!err && (flags & (ETH_ALL | ETH_ALL_MULTICAST)))
		err = open_filter(index, flags & ETH_ALL, &rule->everything);
	return err;
}

static void close_members(struct hw_eth_rule *rule)
{
	if (rule->group >= 0)
		close(rule->group);
	if (rule->everything >= 0)
		close(rule->everything);
}

/* --- tags; the rules' lock held --------------------------------------------------------------- */

static uint32_t take_tag(struct hw_eth_rules *rules)
{
	uint32_t bit = 0;

	if (!rules->tagged)
		return 0;
	while (rules->tags_used >> bit & 1)	/* there are fewer rules than bits */
		bit++;
	rules->tags_used |= 1ull << bit;
	return rules->tag_base + bit + 1;
}

static void give_tag(struct hw_eth_rules *rules, uint32_t tag)
{
	if (tag)
		rules->tags_used &= ~(1ull << (tag - rules->tag_base - 1));
}

static struct hw_eth_rule *find(const struct hw_eth_rules *rules, uint32_t tag)
{
	struct hw_eth_rule *rule = rules->first;

	while (rule && (rule->tag != tag || rule->rule.mode == ETH_DROP))
		rule = rule->next;
	return rule;
}

static uint32_t hit(struct hw_eth_rules *rules, uint32_t tag, uint32_t length)
{
	struct hw_eth_rule *rule = find(rules, tag);

	if (!rule)
		return 0;
	rule->frames++;
	rule->bytes += length;
	return rule->rule.tag;
}

uint32_t hw_eth_rule_hit(struct hw_eth *q, uint32_t tag, uint32_t length)
{
	struct hw_eth_rules *rules = NULL;

	if (tag <= HW_ETH_MAX_RULES)
		return hit(&q->rules, tag, length);
	for (struct hw_membership *m = q->groups; m && !rules; m = m->next)
		rules = hw_group_rules_of_tag(m->group, tag);
	if (!rules)
		return 0;
	dapl_mutex_lock(rules->lock);
	tag = hit(rules, tag, length);
	dapl_mutex_unlock(rules->lock);
	return tag;
}

/* --- flows --------------------------------------------------------------------------------------- */

static int refuse(const struct hw_eth_rules *rules, const char *why)
{
	hw_eth_trace(rules->target ? (const void *)rules->target : rules->group, "%s: dat_eth_rule_add refused: %s",
		     rules->eth->dev->attr.device, why);
	return EOPNOTSUPP;
}

static int build(struct hw_eth_rules *rules, struct hw_eth_rule *rule, struct hw_flow *flow)
{
	const struct dapl_eth_rule *r = &rule->rule;
	const char *why = hw_flow_build(r, (uint8_t)rules->eth->dev->attr.port, rule->tag, flow);

	if (why)
		return refuse(rules, why);
	if (flow->partial && !rules->eth->caps.partial)
		return refuse(rules, "the device knows only full masks");
	if (!flow->tagged && rules->group)
		return refuse(rules, "frames of this rule have no flow tag, which a group needs");
	if (!flow->tagged) {
		give_tag(rules, rule->tag);
		rule->tag = 0;
	}
	if (r->tag && r->mode != ETH_DROP && !flow->tagged && find(rules, 0))
		return refuse(rules, "frames of this rule have no flow tag, and neither have those of another one");
	return 0;
}

static int find_target(const struct hw_eth_rules *rules, const struct hw_eth_rule *rule, struct ibv_qp **target)
{
	const char *why;
	int err;

	*target = rules->target;
	if (!rules->group)
		return 0;
	err = hw_group_target(rules->group, &rule->rule, target, &why);
	return why ? refuse(rules, why) : err;
}

/* Makes the flow. A device that refuses it gives EINVAL for almost any reason: that is EOPNOTSUPP here. */
static int create_flow(const struct hw_eth_rules *rules, struct hw_eth_rule *rule, struct hw_flow *flow,
		       struct ibv_qp *target)
{
	const struct dapl_device *dev = rules->eth->dev;
	int err;

	rule->flow = ibv_create_flow(target, &flow->attr);
	if (rule->flow)
		return 0;
	err = errno;
	if (err == EPERM)
		log_report(REPORT_NO_CAPABILITY, LOG_FIELDS(.err = err),
			   "%s: rule on %s: the process lacks the capability "
			   "CAP_NET_RAW (setcap cap_net_raw+ep PROGRAM, or root)", dev->attr.device, dev->attr.netdev);
	if (err == EPERM || err == ENOMEM || err == ENOSPC || err == ENODEV || err == EIO)
		return err;
	return refuse(rules, "the device has no such flow");
}

static void destroy_flow(struct hw_eth_rule *rule)
{
	if (rule->flow)
		ibv_destroy_flow(rule->flow);
	rule->flow = NULL;
}

int hw_eth_rule_redirect(struct hw_eth_rules *rules, struct hw_eth_rule *rule, struct ibv_qp *target)
{
	struct hw_flow flow;
	int err = build(rules, rule, &flow);

	destroy_flow(rule);
	return err ? err : create_flow(rules, rule, &flow, target);
}

/* --- adding ------------------------------------------------------------------------------------ */

static struct hw_eth_rules *rules_of(struct ibv_qp *qp)
{
	return dapl_eth_is_group(qp) ? hw_group_rules(qp) : &hw_eth_of(qp)->rules;
}

/* Both locks, if it is a group. */
static void lock_rules(struct hw_eth_rules *rules)
{
	if (rules->group)
		dapl_mutex_lock(&rules->eth->groups_lock);
	dapl_mutex_lock(rules->lock);
}

static void unlock_rules(struct hw_eth_rules *rules)
{
	dapl_mutex_unlock(rules->lock);
	if (rules->group)
		dapl_mutex_unlock(&rules->eth->groups_lock);
}

/* Locks held. */
static int add_locked(struct hw_eth_rules *rules, struct hw_eth_rule *rule)
{
	struct hw_eth_rule **last = &rules->first;
	struct ibv_qp *target;
	struct hw_flow flow;
	int n = 0, err;

	for (; *last; last = &(*last)->next, n++)
		if (dapl_eth_rule_is_same(&(*last)->rule, &rule->rule))
			return EEXIST;
	if (n == HW_ETH_MAX_RULES)
		return ENOSPC;
	rule->tag = take_tag(rules);
	err = build(rules, rule, &flow);
	if (!err)
		err = find_target(rules, rule, &target);
	if (!err)
		err = create_flow(rules, rule, &flow, target);
	if (err)
		give_tag(rules, rule->tag);
	else
		*last = rule;
	return err;
}

int hw_eth_rule_add(struct ibv_qp *qp, const struct dapl_eth_rule *wanted, void **added)
{
	struct hw_eth_rules *rules = rules_of(qp);
	struct hw_eth_rule *rule = calloc(1, sizeof *rule);
	int err;

	if (!rule)
		return ENOMEM;
	rule->rule = *wanted;
	rule->group = rule->everything = -1;
	err = open_members(rules, rule);
	if (!err) {
		lock_rules(rules);
		err = add_locked(rules, rule);
		unlock_rules(rules);
	}
	if (err) {
		close_members(rule);
		free(rule);
		return err;
	}
	*added = rule;
	return 0;
}

/* --- ending -------------------------------------------------------------------------------------- */

static void end(struct hw_eth_rule *rule)
{
	destroy_flow(rule);
	close_members(rule);
	free(rule);
}

/* Locks held. Takes the rule off the list. Returns NULL if it is not there any more. */
static struct hw_eth_rule *unlink_rule(struct hw_eth_rules *rules, const struct hw_eth_rule *rule)
{
	struct hw_eth_rule **at = &rules->first, *found;

	while (*at && *at != rule)
		at = &(*at)->next;
	found = *at;
	if (found) {
		*at = found->next;
		give_tag(rules, found->tag);
	}
	return found;
}

/* Frames that the flow has steered to the CQ already stay there. */
void hw_eth_rule_free(struct ibv_qp *qp, void *rule)
{
	struct hw_eth_rules *rules = rules_of(qp);
	struct hw_eth_rule *found;

	lock_rules(rules);
	found = unlink_rule(rules, rule);
	if (found)
		end(found);
	unlock_rules(rules);
}

void hw_eth_rules_end(struct hw_eth_rules *rules)
{
	dapl_mutex_lock(rules->lock);
	while (rules->first)
		end(unlink_rule(rules, rules->first));
	dapl_mutex_unlock(rules->lock);
}

/* Without tags the frames of one rule only can be counted; those that a device drops, never. */
void hw_eth_rule_count(struct ibv_qp *qp, void *added, uint64_t *frames, uint64_t *bytes)
{
	struct hw_eth_rules *rules = rules_of(qp);
	const struct hw_eth_rule *rule;

	*frames = *bytes = 0;
	dapl_mutex_lock(rules->lock);
	for (rule = rules->first; rule && rule != added; rule = rule->next)
		;
	if (rule) {
		bool known = rule->rule.mode != ETH_DROP && (rule->tag || find(rules, 0) == rule);

		*frames = known ? rule->frames : ~(uint64_t)0;
		*bytes = known ? rule->bytes : ~(uint64_t)0;
	}
	dapl_mutex_unlock(rules->lock);
}
