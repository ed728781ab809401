/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_eth_rule.c - rules of raw Ethernet endpoints and groups as objects (eth/rule.c): which are refused, what the
 * device is asked, and what ends them. Which frames match is the device's matter. */
#include <semaphore.h>
#include "common/trace.h"
#include "dapl/core/base/fork.h"
#include "dapl/core/eth/ep.h"
#include "dapl/core/eth/eth.h"
#include "dapl/core/eth/group.h"
#include "dapl/core/eth/rule.h"
#include "test/unit/child.h"
#include "test/unit/core/core_eth.h"
#include "test/unit/core/core_objects.h"
#include "test/unit/unit.h"

#define BAD_RULE DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1)
#define BAD_PLACE DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE2)
#define BAD_STATE_OF_RULES DAT_ERROR(DAT_INVALID_STATE, DAT_NO_SUBTYPE)

static struct dapl_ep *ep, *other;
static struct dapl_group *group;	/* of ep */
static int group_refs, ep_refs;		/* without rules */

/* No memory for the next object. */
static bool no_memory;

EXTEND(dapl_object_new)
void *__wrap_dapl_object_new(enum dapl_kind kind, size_t size, struct dapl_ia *ia, void (*end)(struct dapl_object *))
{
	return no_memory ? NULL : __real_dapl_object_new(kind, size, ia, end);
}

UNIT_FIXTURE(set_up)
{
	assert_int_equal(core_eth_open(state), 0);
	no_memory = false;
	ep = core_eth_ep();
	other = core_eth_ep();
	group = core_eth_group(ep);
	ep_refs = ep->obj.refs;
	group_refs = group->obj.refs;
}

/* Rules go with them. Unless a case has freed one: then it is NULL. */
static int tear_down(void **state)
{
	if (group)
		assert_int_equal(dapl_eth_group_free((DAT_HANDLE)group), DAT_SUCCESS);
	if (ep)
		assert_int_equal(dapl_eth_ep_free((DAT_EP_HANDLE)ep), DAT_SUCCESS);
	assert_int_equal(dapl_eth_ep_free((DAT_EP_HANDLE)other), DAT_SUCCESS);
	return core_eth_close(state);
}

/* A rule for frames to one address, which differs in its last byte. */
static DAT_ETH_RULE rule_to(uint8_t last)
{
	DAT_ETH_RULE rule = { .mode = DAT_ETH_COPY, .priority = 3, .tag = last };

	rule.key.dst[5] = last;
	memset(rule.mask.dst, 0xff, sizeof rule.mask.dst);
	return rule;
}

static DAT_RETURN add(void *at, const DAT_ETH_RULE *rule, DAT_ETH_RULE_HANDLE *handle)
{
	return dapl_eth_rule_add((DAT_HANDLE)at, rule, handle);
}

static DAT_ETH_RULE_HANDLE added(void *at, uint8_t last)
{
	const DAT_ETH_RULE rule = rule_to(last);
	DAT_ETH_RULE_HANDLE handle = DAT_HANDLE_NULL;

	assert_int_equal(add(at, &rule, &handle), DAT_SUCCESS);
	assert_non_null(handle);
	return handle;
}

static DAT_RETURN query(DAT_ETH_RULE_HANDLE rule) { return dapl_eth_rule_query(rule, NULL, NULL, NULL); }
static DAT_RETURN move(DAT_ETH_RULE_HANDLE rule, void *to) { return dapl_eth_rule_move(rule, (DAT_HANDLE)to); }
static struct core_eth_rule *device_rule(DAT_ETH_RULE_HANDLE rule) { return ((struct dapl_rule *)rule)->device_rule; }

static void assert_ended(DAT_ETH_RULE_HANDLE rule)
{
	assert_int_equal(query(rule), BAD_RULE);
	assert_int_equal(dapl_eth_rule_free(rule), BAD_RULE);
	assert_int_equal(move(rule, other), BAD_RULE);
	core_assert_refs((struct dapl_object *)rule, 0);
}

static void disconnect(struct dapl_ep *of)
{
	assert_int_equal(dapl_eth_ep_disconnect((DAT_EP_HANDLE)of, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
}

/* --- adding --------------------------------------------------------------------------------------------- */

UNIT_CASE(rule_comes_to_the_device_as_it_is)
{
	DAT_ETH_RULE rule = rule_to(9), copy;
	DAT_ETH_RULE_HANDLE handle;

	rule.flags = DAT_ETH_ALL | DAT_ETH_ALL_MULTICAST | DAT_ETH_EGRESS;
	rule.inner_key.port_dst = rule.inner_mask.port_dst = 77;
	assert_int_equal(add(ep, &rule, &handle), DAT_SUCCESS);
	assert_ptr_equal(device_rule(handle)->qp, ep->qp);
	assert_memory_equal(&device_rule(handle)->rule, &rule, sizeof rule);
	assert_int_equal(dapl_eth_rule_query(handle, &copy, NULL, NULL), DAT_SUCCESS);
	assert_memory_equal(&copy, &rule, sizeof rule);
	core_assert_refs(&ep->obj, ep_refs + 1);
	handle = added(group, 1);
	assert_ptr_equal(device_rule(handle)->qp, group->qp);
	core_assert_refs(&group->obj, group_refs + 1);
}

/* The endpoint of another service type has no eth. */
UNIT_CASE(rule_is_for_a_raw_endpoint_or_a_group)
{
	struct dapl_ep *plain = core_objects_ep(NULL, NULL);
	const DAT_ETH_RULE rule = rule_to(1);
	DAT_ETH_RULE_HANDLE handle;

	assert_int_equal(add(NULL, &rule, &handle), BAD_HANDLE(EP));
	assert_int_equal(add(plain, &rule, &handle), BAD_HANDLE(EP));
	assert_int_equal(add(core_pz, &rule, &handle), BAD_HANDLE(EP));
	core_assert_refs(&plain->obj, 1);
	assert_int_equal(dapl_eth_ep_free((DAT_EP_HANDLE)plain), DAT_SUCCESS);
	assert_int_equal(core_eth.adds, 0);
}

UNIT_CASE(missing_pointer_is_refused)
{
	const DAT_ETH_RULE rule = rule_to(1);
	DAT_ETH_RULE_HANDLE handle;

	assert_int_equal(add(ep, NULL, &handle), BAD_PARAM(2));
	assert_int_equal(add(ep, &rule, NULL), BAD_PARAM(3));
	core_assert_refs(&ep->obj, ep_refs);
	assert_int_equal(core_eth.adds, 0);
}

static void assert_refused(const DAT_ETH_RULE *rule, const char *what)
{
	DAT_ETH_RULE_HANDLE handle = DAT_HANDLE_NULL;

	if (add(ep, rule, &handle) != BAD_PARAM(2) || handle)
		fail_msg("%s", what);
}

static DAT_ETH_RULE join(uint8_t version, uint8_t first)
{
	DAT_ETH_RULE rule = { .mode = DAT_ETH_COPY, .flags = DAT_ETH_JOIN };

	rule.key.ip_version = version;
	rule.key.ip_dst[0] = first;
	memset(&rule.mask, 0xff, sizeof rule.mask);
	return rule;
}

UNIT_CASE(only_an_ip_group_can_be_joined)
{
	static const struct {
		uint8_t version, first;
		bool good;
	} rows[] = { { 4, 223, false }, { 4, 224, true }, { 4, 239, true }, { 4, 240, false }, { 4, 255, false },
		{ 6, 0xff, true }, { 6, 0xfe, false }, { 6, 224, false }, { 0, 224, false }, { 0, 0xff, false } };

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const DAT_ETH_RULE rule = join(rows[i].version, rows[i].first);
		DAT_ETH_RULE_HANDLE handle;

		if (add(ep, &rule, &handle) != (rows[i].good ? DAT_SUCCESS : BAD_PARAM(2)))
			fail_msg("row %zu", i);
	}
}

/* Each refusal is of the same type: the trace tells them apart. */
UNIT_CASE(trace_tells_what_is_wrong_with_a_rule)
{
	DAT_ETH_RULE rule = rule_to(1);

	trace_set_level(TRC_LVL_ERROR);
	rule.mode = 0;
	assert_refused(&rule, "mode");
	assert_true(core_eth_traced("dat_eth_rule_add refused: mode is 0, expected DAT_ETH_COPY"));
	rule = rule_to(1);
	rule.flags = 0x18;
	assert_refused(&rule, "flags");
	assert_true(core_eth_traced("refused: flags have the unknown bits 0x10"));
	rule = rule_to(1);
	rule.key.protocol = 17;
	rule.mask.protocol = 0;
	assert_refused(&rule, "protocol");
	assert_true(core_eth_traced("refused: key.protocol has bits that mask.protocol does not have"));
	rule = rule_to(1);
	rule.mask.dst[5] = 0xfe;
	assert_refused(&rule, "dst");
	assert_true(core_eth_traced("refused: key.dst has bits that mask.dst does not have"));
	rule = rule_to(1);
	rule.inner_key.tunnel_id = 1;
	assert_refused(&rule, "tunnel_id");
	assert_true(core_eth_traced("refused: inner_key.tunnel_id has bits that inner_mask.tunnel_id does not have"));
	rule = join(4, 10);
	assert_refused(&rule, "join");
	assert_true(core_eth_traced("DAT_ETH_JOIN, but key.ip_version and key.ip_dst name no multicast group"));
	trace_set_level(TRC_LVL_OFF);
}

static DAT_RETURN add_mode(void *at, DAT_UINT32 mode, DAT_UINT32 flags)
{
	DAT_ETH_RULE rule = rule_to(1);
	DAT_ETH_RULE_HANDLE handle;

	rule.mode = mode;
	rule.flags = flags;
	return add(at, &rule, &handle);
}

UNIT_CASE(frames_are_taken_where_the_device_can)
{
	assert_int_equal(add_mode(ep, DAT_ETH_TAKE, 0), DAT_SUCCESS);
	assert_int_equal(add_mode(ep, DAT_ETH_DROP, 0), DAT_SUCCESS);
	assert_int_equal(add_mode(group, DAT_ETH_TAKE, 0), DAT_SUCCESS);
	ep->eth->caps = group->caps = ~(uint64_t)DAT_ETH_CAP_TAKE;
	assert_int_equal(add_mode(ep, DAT_ETH_TAKE, 0), NOT_SUPPORTED);
	assert_int_equal(add_mode(ep, DAT_ETH_DROP, 0), NOT_SUPPORTED);
	assert_int_equal(add_mode(group, DAT_ETH_TAKE, 0), NOT_SUPPORTED);
	ep->eth->caps = group->caps = 0;
	assert_int_equal(add_mode(ep, DAT_ETH_COPY, DAT_ETH_EGRESS), DAT_SUCCESS);
	assert_int_equal(add_mode(group, DAT_ETH_COPY, 0), DAT_SUCCESS);
	assert_int_equal(core_eth.adds, 5);
}

/* ETH-40 */
UNIT_CASE(af_xdp_takes_and_drops_only)
{
	ep->eth->xdp = true;
	ep->eth->caps = ~(uint64_t)DAT_ETH_CAP_TAKE;	/* that is of the ingress */
	assert_int_equal(add_mode(ep, DAT_ETH_TAKE, DAT_ETH_ALL), DAT_SUCCESS);
	assert_int_equal(add_mode(ep, DAT_ETH_DROP, 0), DAT_SUCCESS);
	assert_int_equal(add_mode(ep, DAT_ETH_COPY, 0), NOT_SUPPORTED);
	assert_int_equal(add_mode(ep, DAT_ETH_DROP + 1, 0), NOT_SUPPORTED);
	assert_int_equal(add_mode(ep, DAT_ETH_TAKE, DAT_ETH_EGRESS), NOT_SUPPORTED);
	assert_int_equal(core_eth.adds, 2);
}

UNIT_CASE(mode_that_cannot_be_kept_is_not_supported)
{
	assert_int_equal(add_mode(ep, DAT_ETH_DROP + 1, 0), NOT_SUPPORTED);
	assert_int_equal(add_mode(ep, DAT_ETH_TAKE, DAT_ETH_EGRESS), NOT_SUPPORTED);
	assert_int_equal(add_mode(ep, DAT_ETH_DROP, DAT_ETH_EGRESS), NOT_SUPPORTED);
	assert_int_equal(add_mode(group, DAT_ETH_DROP, 0), NOT_SUPPORTED);
	assert_int_equal(core_eth.adds, 0);
}

static void assert_not_added(void *at, DAT_RETURN expected)
{
	const DAT_ETH_RULE rule = rule_to(1);
	DAT_ETH_RULE_HANDLE handle = DAT_HANDLE_NULL;

	assert_int_equal(add(at, &rule, &handle), expected);
	assert_null(handle);
	core_assert_refs(&ep->obj, ep_refs);
	core_assert_refs(&group->obj, group_refs);
	assert_int_equal(dapl_object_count(core_ia, DAPL_RULE), 0);
}

UNIT_CASE(refused_rule_leaves_nothing)
{
	no_memory = true;
	assert_not_added(ep, NO_RESOURCE(MEMORY));
	no_memory = false;
	assert_int_equal(core_eth.adds, 0);
	core_eth.add_error = EEXIST;
	assert_not_added(ep, BAD_STATE_OF_RULES);
	assert_not_added(group, BAD_STATE_OF_RULES);
	core_eth.add_error = ENOSPC;
	assert_not_added(ep, NO_RESOURCE(MEMORY));
	core_eth.add_error = EPERM;
	assert_not_added(group, DAT_ERROR(DAT_PRIVILEGES_VIOLATION, DAT_NO_SUBTYPE));
	core_eth.add_error = EOPNOTSUPP;
	assert_not_added(ep, NOT_SUPPORTED);
	core_eth.add_error = 0;
	assert_int_equal(dapl_eth_rule_free(added(ep, 1)), DAT_SUCCESS);	/* no refusal has left a lock */
}

UNIT_CASE(disconnected_endpoint_gets_no_rule)
{
	disconnect(ep);
	assert_not_added(ep, BAD_STATE(EP_DISCONNECTED));
	assert_int_equal(core_eth.adds, 0);
}

/* --- freeing and asking ---------------------------------------------------------------------------------- */

UNIT_CASE(freed_rule_is_taken_from_the_device)
{
	const DAT_ETH_RULE_HANDLE first = added(ep, 1), middle = added(ep, 2), last = added(ep, 3);

	assert_int_equal(dapl_eth_rule_free(middle), DAT_SUCCESS);
	assert_ended(middle);
	assert_int_equal(core_eth_count(ep->qp), 2);
	core_assert_refs(&ep->obj, ep_refs + 2);
	assert_int_equal(query(first), DAT_SUCCESS);
	assert_int_equal(dapl_eth_rule_free(last), DAT_SUCCESS);
	disconnect(ep);
	assert_ended(first);
	core_assert_refs(&ep->obj, ep_refs);
}

/* Another endpoint's rule gets the memory of one of them. */
UNIT_CASE(freed_rules_have_left_their_endpoint)
{
	enum { DEAD_KEPT = 33 };	/* objects of a kind, from which on the oldest is used again */
	DAT_ETH_RULE_HANDLE rule;

	for (int i = 0; i <= DEAD_KEPT; i++)
		assert_int_equal(dapl_eth_rule_free(added(ep, 1)), DAT_SUCCESS);
	rule = added(other, 1);
	disconnect(ep);
	assert_int_equal(query(rule), DAT_SUCCESS);
}

UNIT_CASE(handle_of_another_object_is_no_rule)
{
	assert_int_equal(query(DAT_HANDLE_NULL), BAD_RULE);
	assert_int_equal(query((DAT_HANDLE)ep), BAD_RULE);
	assert_int_equal(dapl_eth_rule_free(DAT_HANDLE_NULL), BAD_RULE);
	assert_int_equal(dapl_eth_rule_free((DAT_HANDLE)group), BAD_RULE);
	assert_int_equal(move(DAT_HANDLE_NULL, other), BAD_RULE);
	assert_int_equal(move((DAT_HANDLE)ep, other), BAD_RULE);
	core_assert_refs(&other->obj, ep_refs);
}

/* As a call finds it that has entered before the endpoint was disconnected, until its handle ends. */
UNIT_CASE(rule_without_one_of_the_device_counts_nothing)
{
	const DAT_ETH_RULE_HANDLE rule = added(ep, 1);
	DAT_UINT64 frames = 5, bytes = 5;

	device_rule(rule)->qp = NULL;
	((struct dapl_rule *)rule)->device_rule = NULL;
	assert_int_equal(dapl_eth_rule_query(rule, NULL, &frames, &bytes), DAT_SUCCESS);
	assert_int_equal(frames, 0);
	assert_int_equal(bytes, 0);
	assert_int_equal(move(rule, other), BAD_RULE);
	assert_int_equal(core_eth.moves, 0);
	assert_int_equal(dapl_eth_rule_free(rule), DAT_SUCCESS);
	core_assert_refs(&ep->obj, ep_refs);
}

/* --- moving --------------------------------------------------------------------------------------------------- */

/* The place of a rule is where it ends. */
UNIT_CASE(moved_rule_is_the_other_endpoints)
{
	const DAT_ETH_RULE_HANDLE rule = added(ep, 1), stays = added(ep, 2);
	DAT_UINT64 frames;

	device_rule(rule)->frames = 4;
	assert_int_equal(move(rule, other), DAT_SUCCESS);
	assert_ptr_equal(device_rule(rule)->qp, other->qp);
	assert_int_equal(core_eth_count(ep->qp), 1);
	core_assert_refs(&ep->obj, ep_refs + 1);
	core_assert_refs(&other->obj, ep_refs + 1);
	disconnect(ep);
	assert_ended(stays);
	assert_int_equal(dapl_eth_rule_query(rule, NULL, &frames, NULL), DAT_SUCCESS);
	assert_int_equal(frames, 4);
	disconnect(other);
	assert_ended(rule);
	core_assert_refs(&other->obj, ep_refs);
}

UNIT_CASE(rule_moves_between_endpoints_and_groups)
{
	struct dapl_group *second = core_eth_group(other);
	const DAT_ETH_RULE_HANDLE rule = added(ep, 1);
	struct dapl_object *const places[] = { &group->obj, &second->obj, &other->obj, &group->obj };

	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		assert_int_equal(move(rule, places[i]), DAT_SUCCESS);
		core_assert_refs(&ep->obj, ep_refs);
		core_assert_refs(&group->obj, group_refs + (places[i] == &group->obj));
		core_assert_refs(&second->obj, group_refs + (places[i] == &second->obj));
		core_assert_refs(&other->obj, ep_refs + (places[i] == &other->obj));
	}
	assert_int_equal(core_eth_count(group->qp), 1);
	assert_int_equal(dapl_eth_group_free((DAT_HANDLE)group), DAT_SUCCESS);
	group = NULL;
	assert_ended(rule);
	assert_int_equal(dapl_eth_group_free((DAT_HANDLE)second), DAT_SUCCESS);
}

UNIT_CASE(move_to_its_own_place_does_nothing)
{
	const DAT_ETH_RULE_HANDLE rule = added(ep, 1), shared = added(group, 2);

	assert_int_equal(move(rule, ep), DAT_SUCCESS);
	assert_int_equal(move(shared, group), DAT_SUCCESS);
	assert_int_equal(core_eth.moves, 0);
	core_assert_refs(&ep->obj, ep_refs + 1);
	core_assert_refs(&group->obj, group_refs + 1);
}

static void assert_stays(DAT_ETH_RULE_HANDLE rule, void *to, DAT_RETURN expected)
{
	assert_int_equal(move(rule, to), expected);
	assert_ptr_equal(device_rule(rule)->qp, ep->qp);
	core_assert_refs((struct dapl_object *)rule, 1);
	core_assert_refs(&ep->obj, ep_refs + 1);
	core_assert_refs(&other->obj, ep_refs);
	core_assert_refs(&group->obj, group_refs);
}

UNIT_CASE(refused_move_leaves_the_rule_where_it_is)
{
	static const struct { int error; DAT_RETURN expected; } rows[] = {
		{ EEXIST, BAD_STATE_OF_RULES }, { ENOENT, BAD_RULE }, { EOPNOTSUPP, NOT_SUPPORTED },
		{ ENOSPC, NO_RESOURCE(MEMORY) },
	};
	const DAT_ETH_RULE_HANDLE rule = added(ep, 1);

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		core_eth.move_error = rows[i].error;
		assert_stays(rule, other, rows[i].expected);
		assert_stays(rule, group, rows[i].expected);
	}
	core_eth.move_error = 0;
	disconnect(other);
	assert_stays(rule, other, BAD_STATE(EP_DISCONNECTED));
	assert_int_equal(core_eth.moves, 2 * sizeof rows / sizeof *rows);
	assert_int_equal(move(rule, group), DAT_SUCCESS);	/* no refusal has left a lock */
}

UNIT_CASE(rule_moves_to_raw_endpoints_and_groups_of_its_ia)
{
	struct dapl_ep *plain = core_objects_ep(NULL, NULL);
	const DAT_ETH_RULE_HANDLE rule = added(ep, 1);
	struct dapl_ia *another = core_ia_new();

	assert_stays(rule, NULL, BAD_PLACE);
	assert_stays(rule, plain, BAD_PLACE);
	assert_stays(rule, core_pz, BAD_PLACE);
	other->obj.ia = another;
	assert_stays(rule, other, BAD_PLACE);
	other->obj.ia = core_ia;
	core_ia_free(another);
	core_assert_refs(&plain->obj, 1);
	assert_int_equal(dapl_eth_ep_free((DAT_EP_HANDLE)plain), DAT_SUCCESS);
	assert_int_equal(core_eth.moves, 0);
}

/* ETH-40 */
UNIT_CASE(rule_does_not_move_to_or_from_af_xdp)
{
	const DAT_ETH_RULE_HANDLE rule = added(ep, 1);

	other->eth->xdp = true;
	assert_stays(rule, other, NOT_SUPPORTED);
	other->eth->xdp = false;
	ep->eth->xdp = true;
	assert_stays(rule, other, NOT_SUPPORTED);
	assert_stays(rule, group, NOT_SUPPORTED);
	assert_int_equal(core_eth.moves, 0);
	ep->eth->xdp = false;
	assert_int_equal(move(rule, other), DAT_SUCCESS);
}

UNIT_CASE(rule_that_drops_moves_to_endpoints_only)
{
	DAT_ETH_RULE rule = rule_to(1);
	DAT_ETH_RULE_HANDLE handle;

	rule.mode = DAT_ETH_DROP;
	assert_int_equal(add(ep, &rule, &handle), DAT_SUCCESS);
	assert_stays(handle, group, NOT_SUPPORTED);
	assert_int_equal(core_eth.moves, 0);
	assert_int_equal(move(handle, other), DAT_SUCCESS);
}

/* What a thread gets that uses the rules of an endpoint while another one frees it: the queue pair is gone. */
static DAT_ETH_RULE_HANDLE rule_of_freed, another_of_freed;
static unsigned used_meanwhile;

static void use_rules_of_freed(struct ibv_qp *qp)
{
	used_meanwhile++;
	assert_null(ep->qp);
	assert_int_equal(query(rule_of_freed), DAT_SUCCESS);
	assert_int_equal(move(rule_of_freed, other), BAD_RULE);
	assert_int_equal(dapl_eth_rule_free(rule_of_freed), DAT_SUCCESS);
	assert_int_equal(query(another_of_freed), DAT_SUCCESS);
}

UNIT_CASE(rules_of_an_endpoint_that_is_being_freed_can_be_used)
{
	rule_of_freed = added(ep, 1);
	another_of_freed = added(ep, 2);
	used_meanwhile = 0;
	memset(core_eth.rules, 0, sizeof core_eth.rules);	/* the device's end with the queue pair */
	core_device.destroy_qp = use_rules_of_freed;
	assert_int_equal(dapl_eth_ep_free((DAT_EP_HANDLE)ep), DAT_SUCCESS);
	ep = NULL;
	core_device.destroy_qp = NULL;
	assert_int_equal(used_meanwhile, 1);
	assert_ended(rule_of_freed);
	assert_ended(another_of_freed);
}

UNIT_CASE(rules_end_with_a_freed_group)
{
	const DAT_ETH_RULE_HANDLE rules[] = { added(group, 1), added(group, 2) }, of_member = added(ep, 3);
	struct dapl_group *freed = group;

	assert_int_equal(dapl_eth_group_free((DAT_HANDLE)group), DAT_SUCCESS);
	group = NULL;
	assert_ended(rules[0]);
	assert_ended(rules[1]);
	core_assert_refs(&freed->obj, 0);
	assert_int_equal(query(of_member), DAT_SUCCESS);
}

/* --- calls of other threads ------------------------------------------------------------------------------------- */

static void *free_in_thread(void *rule) { return (void *)(uintptr_t)dapl_eth_rule_free((DAT_HANDLE)rule); }

static void *disconnect_in_thread(void *of)
{
	return (void *)(uintptr_t)dapl_eth_ep_disconnect((DAT_EP_HANDLE)of, DAT_CLOSE_ABRUPT_FLAG);
}

/* The memory of a rule stays while a call is inside, though its handle is bad already. */
static void assert_call_is_waited_for(void *(*end)(void *), void *arg, DAT_ETH_RULE_HANDLE handle)
{
	struct dapl_rule *rule = dapl_object_enter(handle, DAPL_RULE);
	pthread_t thread;
	void *ret;

	assert_non_null(rule);
	assert_int_equal(pthread_create(&thread, NULL, end, arg), 0);
	while (dapl_object_is_live(&rule->obj))
		usleep(100);		/* the alarm ends it */
	usleep(10000);			/* time for a thread that does not wait */
	assert_int_equal(__atomic_load_n(&rule->obj.refs, __ATOMIC_ACQUIRE), 1);
	assert_null(rule->device_rule);
	dapl_object_leave(&rule->obj);
	assert_int_equal(pthread_join(thread, &ret), 0);
	assert_int_equal((uintptr_t)ret, DAT_SUCCESS);
	assert_ended(handle);
}

UNIT_CASE(end_of_a_rule_waits_for_calls_inside)
{
	const DAT_ETH_RULE_HANDLE freed = added(ep, 1), ended = added(ep, 2);

	assert_call_is_waited_for(free_in_thread, freed, freed);
	assert_call_is_waited_for(disconnect_in_thread, ep, ended);
}

/* The endpoints of a move may be named in either order. */
static void *move_there_and_back(void *rule)
{
	for (int i = 0; i < 500; i++)
		if (move((DAT_HANDLE)rule, other) != DAT_SUCCESS || move((DAT_HANDLE)rule, ep) != DAT_SUCCESS)
			return rule;
	return NULL;
}

UNIT_CASE(moves_in_both_directions_do_not_block_each_other)
{
	const DAT_ETH_RULE_HANDLE rules[] = { added(ep, 1), added(ep, 2) };
	pthread_t thread;
	void *failed;

	assert_int_equal(pthread_create(&thread, NULL, move_there_and_back, rules[0]), 0);
	assert_null(move_there_and_back(rules[1]));
	assert_int_equal(pthread_join(thread, &failed), 0);
	assert_null(failed);
	core_assert_refs(&ep->obj, ep_refs + 2);
	core_assert_refs(&other->obj, ep_refs);
	assert_int_equal(core_eth_count(ep->qp), 2);
}

static sem_t inside, forking;

/* The device is slow: a fork that does not wait for it comes first. */
static void wait_for_the_fork(void)
{
	sem_post(&inside);
	sem_wait(&forking);
	usleep(50000);
}

static void let_it_finish(void) { sem_post(&forking); }
static void *add_in_thread(void *of) { return (void *)added(of, 1); }

/* A thread adds a rule while another one forks. */
UNIT_CASE(child_can_use_rules)
{
	static struct dapl_fork_part first = { .rank = RANK_FORK + 1, .before = let_it_finish };
	pthread_t thread;
	pid_t pid;

	sem_init(&inside, 0, 0);
	sem_init(&forking, 0, 0);
	dapl_fork_register(&first);
	dapl_eth_rule_forks();
	core_eth.in_add = wait_for_the_fork;
	assert_int_equal(pthread_create(&thread, NULL, add_in_thread, ep), 0);
	sem_wait(&inside);
	pid = fork_child();
	if (!pid) {
		dapl_eth_groups_lock();
		dapl_eth_groups_unlock();
		_exit(0);
	}
	expect_success(pid);
	assert_int_equal(pthread_join(thread, NULL), 0);
	core_eth.in_add = NULL;
	added(ep, 2);
}

UNIT_MAIN(NULL, NULL)
