/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rule.c - rules of raw Ethernet endpoints as objects. Whether a frame matches is the device's matter.
 * ETH-10 to 14, 29. */
#include <errno.h>
#include <string.h>
#include "dapl/core/base/fork.h"
#include "dapl/core/eth/eth.h"

#define RULE_FLAGS (DAT_ETH_ALL | DAT_ETH_ALL_MULTICAST | DAT_ETH_JOIN | DAT_ETH_EGRESS)

/* Guards the endpoints of all rules, and excludes that two threads hold the locks of two endpoints. */
static struct dapl_mutex move_lock = DAPL_MUTEX_INIT(RANK_ETH_MOVE);

static void before_fork(void)
{
	dapl_mutex_lock(&move_lock);
}

static void after_fork(void)
{
	dapl_mutex_unlock(&move_lock);
}

void dapl_eth_rule_forks(void)
{
	static struct dapl_fork_part part = { .rank = RANK_ETH_MOVE, .before = before_fork, .parent = after_fork,
		.child = after_fork };

	dapl_fork_register(&part);
}

static void end_rule(struct dapl_object *obj)
{
	dapl_object_put(&((struct dapl_rule *)obj)->ep->obj);
}

static bool exceeds(const DAT_ETH_KEY *key, const DAT_ETH_KEY *mask)
{
	const uint8_t *k = (const uint8_t *)key, *m = (const uint8_t *)mask;

	for (size_t i = 0; i < sizeof *key; i++)
		if (k[i] & ~m[i])
			return true;
	return false;
}

static bool is_group(const DAT_ETH_KEY *key)
{
	return key->ip_version == 4 ? key->ip_dst[0] >> 4 == 14 :
		key->ip_version == 6 && key->ip_dst[0] == 0xff;
}

/* ETH-11 */
static bool is_good(const DAT_ETH_RULE *rule)
{
	return !(rule->flags & ~RULE_FLAGS) && !exceeds(&rule->key, &rule->mask) &&
		!exceeds(&rule->inner_key, &rule->inner_mask) &&
		(!(rule->flags & DAT_ETH_JOIN) || is_group(&rule->key));
}

/* Frames that this host sends pass the packet socket behind the hook at which others are taken away. */
static bool is_able(const struct dapl_ep *ep, const DAT_ETH_RULE *rule)
{
	if (rule->mode == DAT_ETH_COPY)
		return true;
	return (rule->mode == DAT_ETH_TAKE || rule->mode == DAT_ETH_DROP) &&
		(ep->eth->caps & DAT_ETH_CAP_TAKE) && !(rule->flags & DAT_ETH_EGRESS);
}

static DAT_RETURN add_status(int err)
{
	if (err == EEXIST)
		return DAT_ERROR(DAT_INVALID_STATE, DAT_NO_SUBTYPE);
	return dapl_status(err, DAT_RESOURCE_MEMORY);
}

/* ep->lock held. */
static DAT_RETURN add_locked(struct dapl_ep *ep, struct dapl_rule *rule)
{
	if (ep->state != DAT_EP_STATE_CONNECTED)
		return dapl_bad_ep_state(ep->state);
	return add_status(dapl_device_ops.eth->add_rule(ep->qp, (const struct dapl_eth_rule *)&rule->rule,
							&rule->device_rule));
}

DAT_RETURN dapl_eth_rule_add(struct dapl_ep *ep, const DAT_ETH_RULE *wanted, DAT_ETH_RULE_HANDLE *handle)
{
	struct dapl_rule *rule;
	DAT_RETURN ret;

	if (!wanted)
		return BAD_PARAM(2);
	if (!handle)
		return BAD_PARAM(3);
	if (!wanted->mode || !is_good(wanted))
		return BAD_PARAM(2);
	if (!is_able(ep, wanted))
		return NOT_SUPPORTED;
	rule = dapl_object_new(DAPL_RULE, sizeof *rule, ep->obj.ia, end_rule);
	if (!rule)
		return NO_RESOURCE(MEMORY);
	dapl_object_get(&ep->obj);
	rule->ep = ep;
	rule->rule = *wanted;
	dapl_mutex_lock(&ep->lock);
	ret = add_locked(ep, rule);
	if (ret == DAT_SUCCESS) {
		dapl_object_publish(&rule->obj);
		rule->next = ep->eth->rules;
		ep->eth->rules = rule;
		*handle = (DAT_ETH_RULE_HANDLE)rule;
	}
	dapl_mutex_unlock(&ep->lock);
	if (ret != DAT_SUCCESS)
		dapl_object_put(&rule->obj);
	return ret;
}

/* ep->lock held. */
static void unlink_rule(struct dapl_rule *rule)
{
	struct dapl_rule **at = &rule->ep->eth->rules;

	while (*at && *at != rule)
		at = &(*at)->next;
	if (*at)
		*at = rule->next;
}

/* ETH-12 */
DAT_RETURN dapl_eth_rule_free(DAT_HANDLE handle)
{
	DAPL_ENTERED struct dapl_rule *rule = dapl_object_enter(handle, DAPL_RULE);

	if (!rule || !dapl_object_kill(&rule->obj))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	dapl_mutex_lock(&move_lock);
	dapl_mutex_lock(&rule->ep->lock);
	unlink_rule(rule);
	if (rule->device_rule)
		dapl_device_ops.eth->free_rule(rule->ep->qp, rule->device_rule);
	rule->device_rule = NULL;
	dapl_mutex_unlock(&rule->ep->lock);
	dapl_mutex_unlock(&move_lock);
	dapl_object_wait_calls(&rule->obj, 1);
	dapl_object_bury(&rule->obj);
	return DAT_SUCCESS;
}

/* ETH-14 */
DAT_RETURN dapl_eth_rule_query(DAT_HANDLE handle, DAT_ETH_RULE *copy, DAT_UINT64 *frames, DAT_UINT64 *bytes)
{
	DAPL_ENTERED struct dapl_rule *rule = dapl_object_enter(handle, DAPL_RULE);
	uint64_t counted[2] = { 0, 0 };

	if (!rule)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	dapl_mutex_lock(&move_lock);
	dapl_mutex_lock(&rule->ep->lock);
	if (rule->device_rule)
		dapl_device_ops.eth->count_rule(rule->ep->qp, rule->device_rule, &counted[0], &counted[1]);
	dapl_mutex_unlock(&rule->ep->lock);
	dapl_mutex_unlock(&move_lock);
	if (copy)
		*copy = rule->rule;
	if (frames)
		*frames = counted[0];
	if (bytes)
		*bytes = counted[1];
	return DAT_SUCCESS;
}

/* Both endpoints' locks are held. */
static DAT_RETURN move_locked(struct dapl_rule *rule, struct dapl_ep *to)
{
	void *moved;
	int err;

	if (to->state != DAT_EP_STATE_CONNECTED)
		return dapl_bad_ep_state(to->state);
	if (!rule->device_rule)		/* its endpoint was disconnected meanwhile */
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	err = dapl_device_ops.eth->move_rule(rule->ep->qp, rule->device_rule, to->qp, &moved);
	if (err)
		return err == ENOENT ? DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1) : add_status(err);
	unlink_rule(rule);
	dapl_object_get(&to->obj);
	rule->ep = to;
	rule->device_rule = moved;
	rule->next = to->eth->rules;
	to->eth->rules = rule;
	return DAT_SUCCESS;
}

/* ETH-29 */
DAT_RETURN dapl_eth_rule_move(DAT_HANDLE handle, DAT_EP_HANDLE to_handle)
{
	DAPL_ENTERED struct dapl_rule *rule = dapl_object_enter(handle, DAPL_RULE);
	DAPL_ENTERED struct dapl_ep *to = dapl_ep_enter(to_handle);
	DAT_RETURN ret = DAT_SUCCESS;
	struct dapl_ep *from;

	if (!rule)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	if (!to || !to->eth || to->obj.ia != rule->obj.ia)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE2);
	if (rule->rule.mode == DAT_ETH_DROP)
		return NOT_SUPPORTED;
	dapl_mutex_lock(&move_lock);
	from = rule->ep;
	if (from != to) {
		dapl_mutex_lock(&from->lock);
		dapl_mutex_lock_another(&to->lock);
		ret = move_locked(rule, to);
		dapl_mutex_unlock(&to->lock);
		dapl_mutex_unlock(&from->lock);
	}
	dapl_mutex_unlock(&move_lock);
	if (from != to && ret == DAT_SUCCESS)
		dapl_object_put(&from->obj);
	return ret;
}

/* The first rule, off the list. */
static struct dapl_rule *take_rule(struct dapl_ep *ep)
{
	struct dapl_rule *rule;

	dapl_mutex_lock(&ep->lock);
	rule = ep->eth->rules;
	if (rule) {
		ep->eth->rules = rule->next;
		rule->device_rule = NULL;
	}
	dapl_mutex_unlock(&ep->lock);
	return rule;
}

/* ETH-13. A thread that frees the rule at the same time, or dat_ia_close, buries it instead. */
void dapl_eth_rules_end(struct dapl_ep *ep)
{
	struct dapl_rule *rule;

	while ((rule = take_rule(ep)))
		if (dapl_object_kill(&rule->obj)) {
			dapl_object_wait_calls(&rule->obj, 0);
			dapl_object_bury(&rule->obj);
		}
}
