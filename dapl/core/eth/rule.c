/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rule.c - rules of raw Ethernet endpoints and of groups as objects. The device matches the frames. ETH-10
 * to 14, 29, 33. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "dapl/core/base/fork.h"
#include "dapl/core/eth/eth.h"
#include "dapl/core/eth/rule.h"

#define RULE_FLAGS (DAT_ETH_ALL | DAT_ETH_ALL_MULTICAST | DAT_ETH_JOIN | DAT_ETH_EGRESS)

/* Guards the places of all rules, and the lists of groups. Only its holder takes the locks of two
 * endpoints, so two threads cannot block each other. */
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

void dapl_eth_groups_lock(void)
{
	dapl_mutex_lock(&move_lock);
}

void dapl_eth_groups_unlock(void)
{
	dapl_mutex_unlock(&move_lock);
}

/* --- where a rule is: an endpoint or a group ----------------------------------------------- */

/* The place of a rule. One member is NULL. */
struct place {
	struct dapl_ep *ep;
	struct dapl_group *group;
};

/* Enters the object of a handle. Returns NULL if it is neither a raw endpoint nor a group. */
static struct dapl_object *place_enter(DAT_HANDLE handle, struct place *place)
{
	struct dapl_ep *ep = dapl_ep_enter(handle);

	*place = (struct place){ .ep = NULL };
	if (ep && !ep->eth) {
		dapl_object_leave(&ep->obj);
		return NULL;
	}
	if (ep) {
		place->ep = ep;
		return &ep->obj;
	}
	place->group = dapl_object_enter(handle, DAPL_GROUP);
	return place->group ? &place->group->obj : NULL;
}

static struct dapl_object *place_object(const struct place *place)
{
	return place->ep ? &place->ep->obj : &place->group->obj;
}

static struct ibv_qp *place_qp(const struct place *place)
{
	return place->ep ? place->ep->qp : place->group->qp;
}

static uint64_t place_caps(const struct place *place)
{
	return place->ep ? place->ep->eth->caps : place->group->caps;
}

/* An endpoint that receives by AF_XDP has no copies, nor frames that this host sends. ETH-40. */
static bool is_xdp(const struct place *place)
{
	return place->ep && place->ep->eth->xdp;
}

static struct dapl_rule **place_rules(const struct place *place)
{
	return place->ep ? &place->ep->eth->rules : &place->group->rules;
}

/* Called with move_lock held, or when no other thread can move the rule. */
static struct place place_of(const struct dapl_rule *rule)
{
	return (struct place){ rule->ep, rule->group };
}

/* Takes the lock of an endpoint. Called with move_lock held, which alone guards a group's rules. */
static void place_lock(const struct place *place)
{
	assert_held(&move_lock);
	if (place->ep)
		dapl_mutex_lock(&place->ep->lock);
}

static void place_unlock(const struct place *place)
{
	if (place->ep)
		dapl_mutex_unlock(&place->ep->lock);
}

/* Both locks held. */
static void link_rule(struct dapl_rule *rule, const struct place *place)
{
	struct dapl_rule **rules = place_rules(place);

	assert_held(&move_lock);
	rule->next = *rules;
	*rules = rule;
}

static void unlink_rule(struct dapl_rule *rule)
{
	const struct place place = place_of(rule);
	struct dapl_rule **at = place_rules(&place);

	while (*at && *at != rule)
		at = &(*at)->next;
	if (*at)
		*at = rule->next;
}

/* Both locks held. Returns NULL if the device has no such rule: the rule ended with its QP. A thread
 * that frees or resets the endpoint takes the QP away before dapl_eth_rules_end() clears device_rule. */
static void *device_rule_at(const struct dapl_rule *rule, const struct place *place)
{
	return place_qp(place) ? rule->device_rule : NULL;
}

static void end_rule(struct dapl_object *obj)
{
	const struct place place = place_of((struct dapl_rule *)obj);

	dapl_object_put(place_object(&place));
}

/* --- adding ---------------------------------------------------------------------------------- */

#define FIELD(name) { #name, offsetof(DAT_ETH_KEY, name), sizeof ((DAT_ETH_KEY *)NULL)->name }
static const struct {
	const char *name;
	size_t offset, size;
} fields[] = {
	FIELD(dst), FIELD(src), FIELD(ether_type), FIELD(vlan_tci), FIELD(ip_version), FIELD(protocol), FIELD(tos),
	FIELD(fragment), FIELD(flow_label), FIELD(ip_src), FIELD(ip_dst), FIELD(port_src), FIELD(port_dst),
	FIELD(tunnel_id), FIELD(tunnel),
};

/* Returns the name of the first field that has a bit outside of its mask, or NULL. */
static const char *find_exceeding(const DAT_ETH_KEY *key, const DAT_ETH_KEY *mask)
{
	const uint8_t *k = (const uint8_t *)key, *m = (const uint8_t *)mask;

	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
		for (size_t at = fields[i].offset; at < fields[i].offset + fields[i].size; at++)
			if (k[at] & ~m[at])
				return fields[i].name;
	return NULL;
}

static bool is_group(const DAT_ETH_KEY *key)
{
	return key->ip_version == 4 ? key->ip_dst[0] >> 4 == 14 :
		key->ip_version == 6 && key->ip_dst[0] == 0xff;
}

/* Returns what is wrong with the rule, in `text` or a constant, or NULL. ETH-11 */
static const char *find_wrong(const DAT_ETH_RULE *rule, char *text, size_t size)
{
	const char *field;

	if (!rule->mode)
		return "mode is 0, expected DAT_ETH_COPY, DAT_ETH_TAKE or DAT_ETH_DROP";
	if (rule->flags & ~RULE_FLAGS) {
		snprintf(text, size, "flags have the unknown bits 0x%x", rule->flags & ~RULE_FLAGS);
		return text;
	}
	if ((field = find_exceeding(&rule->key, &rule->mask))) {
		snprintf(text, size, "key.%s has bits that mask.%s does not have", field, field);
		return text;
	}
	if ((field = find_exceeding(&rule->inner_key, &rule->inner_mask))) {
		snprintf(text, size, "inner_key.%s has bits that inner_mask.%s does not have", field, field);
		return text;
	}
	if ((rule->flags & DAT_ETH_JOIN) && !is_group(&rule->key))
		return "DAT_ETH_JOIN, but key.ip_version and key.ip_dst name no multicast group";
	return NULL;
}

/* Returns why the device cannot keep the mode of the rule, or NULL. Frames that this host sends reach the packet socket
 * after the hook that takes frames away, so they can only be copied. A group cannot drop frames. ETH-28. */
static const char *find_missing(const struct place *place, const DAT_ETH_RULE *rule)
{
	if (is_xdp(place))
		return (rule->mode == DAT_ETH_TAKE || rule->mode == DAT_ETH_DROP) && !(rule->flags & DAT_ETH_EGRESS) ?
			NULL : "eth_receive is xdp, which takes and drops frames that come in, and copies none";
	if (rule->mode == DAT_ETH_COPY)
		return NULL;
	if (rule->mode != DAT_ETH_TAKE && rule->mode != DAT_ETH_DROP)
		return "an unknown mode, expected DAT_ETH_COPY, DAT_ETH_TAKE or DAT_ETH_DROP";
	if (rule->mode == DAT_ETH_DROP && !place->ep)
		return "a group cannot drop frames";
	if (rule->flags & DAT_ETH_EGRESS)
		return "frames that this host sends (DAT_ETH_EGRESS) can be copied only";
	return place_caps(place) & DAT_ETH_CAP_TAKE ? NULL : "the device cannot take frames (no DAT_ETH_CAP_TAKE)";
}

static void trace_refused(const struct dapl_object *at, const char *why)
{
	trace(TRC_LVL_ERROR, TRC_DAPL_ERROR, "ep", at, NULL, "dat_eth_rule_add refused: %s", why);
}

static DAT_RETURN add_status(int err)
{
	if (err == EEXIST)
		return DAT_ERROR(DAT_INVALID_STATE, DAT_NO_SUBTYPE);
	return dapl_status(err, DAT_RESOURCE_MEMORY);
}

static DAT_RETURN bad_place_state(const struct place *place)
{
	return place->ep && place->ep->state != DAT_EP_STATE_CONNECTED ? dapl_status_bad_ep_state(place->ep->state) :
		DAT_SUCCESS;
}

/* Both locks held. */
static DAT_RETURN add_locked(const struct place *place, struct dapl_rule *rule)
{
	DAT_RETURN ret = bad_place_state(place);

	assert_held(&move_lock);
	if (ret != DAT_SUCCESS)
		return ret;
	return add_status(dapl_device_ops.eth->add_rule(place_qp(place), (const struct dapl_eth_rule *)&rule->rule,
							&rule->device_rule));
}

static DAT_RETURN add_to(const struct place *place, const DAT_ETH_RULE *wanted, DAT_ETH_RULE_HANDLE *handle)
{
	struct dapl_object *at = place_object(place);
	struct dapl_rule *rule = dapl_object_new(DAPL_RULE, sizeof *rule, at->ia, end_rule);
	DAT_RETURN ret;

	if (!rule)
		return NO_RESOURCE(MEMORY);
	dapl_object_get(at);
	rule->ep = place->ep;
	rule->group = place->group;
	rule->rule = *wanted;
	dapl_mutex_lock(&move_lock);
	place_lock(place);
	ret = add_locked(place, rule);
	if (ret == DAT_SUCCESS) {
		dapl_object_publish(&rule->obj);
		link_rule(rule, place);
		*handle = (DAT_ETH_RULE_HANDLE)rule;
	}
	place_unlock(place);
	dapl_mutex_unlock(&move_lock);
	if (ret != DAT_SUCCESS)
		dapl_object_put(&rule->obj);
	return ret;
}

DAT_RETURN dapl_eth_rule_add(DAT_HANDLE at, const DAT_ETH_RULE *wanted, DAT_ETH_RULE_HANDLE *handle)
{
	struct place place;
	DAPL_ENTERED struct dapl_object *entered = place_enter(at, &place);
	const char *why;
	char text[96];

	if (!entered)
		return BAD_HANDLE(EP);
	if (!wanted)
		return BAD_PARAM(2);
	if (!handle)
		return BAD_PARAM(3);
	if ((why = find_wrong(wanted, text, sizeof text))) {
		trace_refused(entered, why);
		return BAD_PARAM(2);
	}
	if ((why = find_missing(&place, wanted))) {
		trace_refused(entered, why);
		return NOT_SUPPORTED;
	}
	return add_to(&place, wanted, handle);
}

/* --- the other calls ------------------------------------------------------------------------- */

/* ETH-12 */
DAT_RETURN dapl_eth_rule_free(DAT_HANDLE handle)
{
	DAPL_ENTERED struct dapl_rule *rule = dapl_object_enter(handle, DAPL_RULE);
	struct place place;

	if (!rule || !dapl_object_kill(&rule->obj))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	dapl_mutex_lock(&move_lock);
	place = place_of(rule);
	place_lock(&place);
	unlink_rule(rule);
	if (device_rule_at(rule, &place))
		dapl_device_ops.eth->free_rule(place_qp(&place), rule->device_rule);
	rule->device_rule = NULL;
	place_unlock(&place);
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
	struct place place;

	if (!rule)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	dapl_mutex_lock(&move_lock);
	place = place_of(rule);
	place_lock(&place);
	if (device_rule_at(rule, &place))
		dapl_device_ops.eth->count_rule(place_qp(&place), rule->device_rule, &counted[0], &counted[1]);
	place_unlock(&place);
	dapl_mutex_unlock(&move_lock);
	if (copy)
		*copy = rule->rule;
	if (frames)
		*frames = counted[0];
	if (bytes)
		*bytes = counted[1];
	return DAT_SUCCESS;
}

/* Called with move_lock and the locks of both places held. */
static DAT_RETURN move_locked(struct dapl_rule *rule, const struct place *from, const struct place *to)
{
	DAT_RETURN ret = bad_place_state(to);
	void *moved;
	int err;

	assert_held(&move_lock);
	if (ret != DAT_SUCCESS)
		return ret;
	if (!device_rule_at(rule, from))	/* another thread disconnected or freed its endpoint */
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	err = dapl_device_ops.eth->move_rule(place_qp(from), rule->device_rule, place_qp(to), &moved);
	if (err)
		return err == ENOENT ? DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1) : add_status(err);
	unlink_rule(rule);
	dapl_object_get(place_object(to));
	rule->ep = to->ep;
	rule->group = to->group;
	rule->device_rule = moved;
	link_rule(rule, to);
	return DAT_SUCCESS;
}

/* Called with move_lock held. */
static DAT_RETURN move(struct dapl_rule *rule, const struct place *from, const struct place *to)
{
	DAT_RETURN ret;

	assert_held(&move_lock);
	place_lock(from);
	if (to->ep && from->ep)
		dapl_mutex_lock_another(&to->ep->lock);
	else
		place_lock(to);
	ret = move_locked(rule, from, to);
	place_unlock(to);
	place_unlock(from);
	return ret;
}

/* ETH-29, 33 */
DAT_RETURN dapl_eth_rule_move(DAT_HANDLE handle, DAT_HANDLE to_handle)
{
	DAPL_ENTERED struct dapl_rule *rule = dapl_object_enter(handle, DAPL_RULE);
	struct place from, to;
	DAPL_ENTERED struct dapl_object *entered = place_enter(to_handle, &to);
	DAT_RETURN ret = DAT_SUCCESS;
	bool elsewhere;

	if (!rule)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	if (!entered || entered->ia != rule->obj.ia)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE2);
	if (rule->rule.mode == DAT_ETH_DROP && to.group)
		return NOT_SUPPORTED;
	dapl_mutex_lock(&move_lock);
	from = place_of(rule);
	elsewhere = place_object(&from) != entered;
	if (elsewhere)
		ret = is_xdp(&from) || is_xdp(&to) ? NOT_SUPPORTED : move(rule, &from, &to);
	dapl_mutex_unlock(&move_lock);
	if (elsewhere && ret == DAT_SUCCESS)
		dapl_object_put(place_object(&from));
	return ret;
}

/* --- the end of an endpoint or a group ------------------------------------------------------- */

/* Removes the first rule from the list, and returns it. Called with the place's lock held. */
static struct dapl_rule *take_rule(struct dapl_rule **rules)
{
	struct dapl_rule *rule = *rules;

	if (rule) {
		*rules = rule->next;
		rule->device_rule = NULL;
	}
	return rule;
}

/* Ends a rule, unless a thread that frees it at the same time, or dat_ia_close, does so. */
static void bury_rule(struct dapl_rule *rule)
{
	if (!dapl_object_kill(&rule->obj))
		return;
	dapl_object_wait_calls(&rule->obj, 0);
	dapl_object_bury(&rule->obj);
}

/* ETH-13 */
void dapl_eth_rules_end(struct dapl_ep *ep)
{
	struct dapl_rule *rule;

	for (;;) {
		dapl_mutex_lock(&ep->lock);
		rule = take_rule(&ep->eth->rules);
		dapl_mutex_unlock(&ep->lock);
		if (!rule)
			return;
		bury_rule(rule);
	}
}

/* ETH-33 */
void dapl_eth_group_rules_end(struct dapl_group *group)
{
	struct dapl_rule *rule;

	for (;;) {
		dapl_mutex_lock(&move_lock);
		rule = take_rule(&group->rules);
		dapl_mutex_unlock(&move_lock);
		if (!rule)
			return;
		bury_rule(rule);
	}
}
