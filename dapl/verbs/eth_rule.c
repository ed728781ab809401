/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eth_rule.c - the rules of a raw QP: a flow each, and what the network device must do for it. Flows are objects of the
 * process, memberships are of sockets: both end with it.
 *
 * A flow has a tag of ours, by which a frame's rule is found. The types of flows without specifications cannot have one:
 * frames without a tag are theirs. */
#include "eth.h"
#include "common/log.h"
#include <errno.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static bool is_same(const struct dapl_eth_rule *a, const struct dapl_eth_rule *b)
{
	return a->priority == b->priority && a->flags == b->flags && !memcmp(&a->key, &b->key, sizeof a->key) &&
		!memcmp(&a->mask, &b->mask, sizeof a->mask) &&
		!memcmp(&a->inner_key, &b->inner_key, sizeof a->inner_key) &&
		!memcmp(&a->inner_mask, &b->inner_mask, sizeof a->inner_mask);
}

/* --- the network device ------------------------------------------------------------------- */

/* IGMP or MLD is spoken as long as the socket is open; it receives nothing. */
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

/* Without a protocol the packet socket receives nothing. */
static int open_filter(int index, bool all, int *fd)
{
	struct packet_mreq request = { .mr_ifindex = index,
		.mr_type = all ? PACKET_MR_PROMISC : PACKET_MR_ALLMULTI };

	*fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (*fd < 0)
		return errno;
	return setsockopt(*fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &request, sizeof request) ? errno : 0;
}

static int open_members(struct hw_eth *q, struct hw_eth_rule *rule)
{
	int index = (int)if_nametoindex(q->eth->dev->attr.netdev), err = 0;
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

/* --- tags; q->lock held --------------------------------------------------------------------- */

static uint32_t take_tag(struct hw_eth *q)
{
	uint32_t tag = 1;

	if (!q->eth->caps.tags || !(q->wc_flags & IBV_WC_EX_WITH_FLOW_TAG))
		return 0;
	while (q->tags_used >> (tag - 1) & 1)	/* fewer rules than bits are there */
		tag++;
	q->tags_used |= 1ull << (tag - 1);
	return tag;
}

static void give_tag(struct hw_eth *q, uint32_t tag)
{
	if (tag)
		q->tags_used &= ~(1ull << (tag - 1));
}

struct hw_eth_rule *hw_eth_rule_find(struct hw_eth *q, uint32_t tag)
{
	struct hw_eth_rule *rule = q->rules;

	while (rule && (rule->tag != tag || rule->rule.mode == ETH_DROP))
		rule = rule->next;
	return rule;
}

/* --- adding ------------------------------------------------------------------------------------ */

static int refuse(const struct hw_eth *q, const char *why)
{
	hw_eth_trace(q, "%s: dat_eth_rule_add refused: %s", q->eth->dev->attr.device, why);
	return EOPNOTSUPP;
}

static int build(struct hw_eth *q, struct hw_eth_rule *rule, struct hw_flow *flow)
{
	const struct dapl_eth_rule *r = &rule->rule;
	const char *why = hw_flow_build(r, (uint8_t)q->eth->dev->attr.port, rule->tag, flow);

	if (why)
		return refuse(q, why);
	if (flow->partial && !q->eth->caps.partial)
		return refuse(q, "the device knows only full masks");
	if (!flow->tagged) {
		give_tag(q, rule->tag);
		rule->tag = 0;
	}
	if (r->tag && r->mode != ETH_DROP && !flow->tagged && hw_eth_rule_find(q, 0))
		return refuse(q, "frames of this rule have no flow tag, and neither have those of another one");
	return 0;
}

/* What a device that refuses says: EINVAL, for almost anything. */
static int create_flow(struct hw_eth *q, struct hw_eth_rule *rule, struct hw_flow *flow)
{
	int err;

	rule->flow = ibv_create_flow(q->hw, &flow->attr);
	if (rule->flow)
		return 0;
	err = errno;
	if (err == EPERM)
		log_report(REPORT_NO_CAPABILITY, LOG_FIELDS(.err = err), "%s: rule on %s: the process lacks the capability "
			   "CAP_NET_RAW", q->eth->dev->attr.device, q->eth->dev->attr.netdev);
	if (err == EPERM || err == ENOMEM || err == ENOSPC || err == ENODEV || err == EIO)
		return err;
	return refuse(q, "the device has no such flow");
}

/* q->lock held. */
static int add_locked(struct hw_eth *q, struct hw_eth_rule *rule)
{
	struct hw_eth_rule **last = &q->rules;
	struct hw_flow flow;
	int n = 0, err;

	for (; *last; last = &(*last)->next, n++)
		if (is_same(&(*last)->rule, &rule->rule))
			return EEXIST;
	if (n == HW_ETH_MAX_RULES)
		return ENOSPC;
	rule->tag = take_tag(q);
	err = build(q, rule, &flow);
	if (!err)
		err = create_flow(q, rule, &flow);
	if (err)
		give_tag(q, rule->tag);
	else
		*last = rule;
	return err;
}

int hw_eth_rule_add(struct ibv_qp *qp, const struct dapl_eth_rule *wanted, void **added)
{
	struct hw_eth *q = hw_eth_of(qp);
	struct hw_eth_rule *rule = calloc(1, sizeof *rule);
	int err;

	if (!rule)
		return ENOMEM;
	rule->rule = *wanted;
	rule->group = rule->everything = -1;
	err = open_members(q, rule);
	if (!err) {
		dapl_mutex_lock(&q->lock);
		err = add_locked(q, rule);
		dapl_mutex_unlock(&q->lock);
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
	ibv_destroy_flow(rule->flow);
	close_members(rule);
	free(rule);
}

/* q->lock held. Off the list; NULL: it was gone. */
static struct hw_eth_rule *unlink_rule(struct hw_eth *q, const struct hw_eth_rule *rule)
{
	struct hw_eth_rule **at = &q->rules, *found;

	while (*at && *at != rule)
		at = &(*at)->next;
	found = *at;
	if (found) {
		*at = found->next;
		give_tag(q, found->tag);
	}
	return found;
}

/* Frames that the flow has steered already are dropped from now on only if they come later: those in the CQ stay. */
void hw_eth_rule_free(struct ibv_qp *qp, void *rule)
{
	struct hw_eth *q = hw_eth_of(qp);
	struct hw_eth_rule *found;

	dapl_mutex_lock(&q->lock);
	found = unlink_rule(q, rule);
	if (found)
		end(found);
	dapl_mutex_unlock(&q->lock);
}

void hw_eth_rules_end(struct hw_eth *q)
{
	dapl_mutex_lock(&q->lock);
	while (q->rules)
		end(unlink_rule(q, q->rules));
	dapl_mutex_unlock(&q->lock);
}

/* Without tags only the frames of one rule can be told; those that a device drops, never. */
void hw_eth_rule_count(struct ibv_qp *qp, void *added, uint64_t *frames, uint64_t *bytes)
{
	struct hw_eth *q = hw_eth_of(qp);
	const struct hw_eth_rule *rule = q->rules;

	*frames = *bytes = 0;
	dapl_mutex_lock(&q->lock);
	for (rule = q->rules; rule && rule != added; rule = rule->next)
		;
	if (rule) {
		bool known = rule->rule.mode != ETH_DROP && (rule->tag || hw_eth_rule_find(q, 0) == rule);

		*frames = known ? rule->frames : ~(uint64_t)0;
		*bytes = known ? rule->bytes : ~(uint64_t)0;
	}
	dapl_mutex_unlock(&q->lock);
}
