/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_eth_group.c - groups of raw Ethernet endpoints as objects (eth/group.c): which are refused, what the device is
 * asked, and what a failure or a free leaves. Which frame comes to which endpoint is the device's matter. */
#include "dapl/core/eth/ep.h"
#include "dapl/core/eth/eth.h"
#include "dapl/core/eth/group.h"
#include "dapl/core/eth/rule.h"
#include "test/unit/core/core_eth.h"
#include "test/unit/core/core_objects.h"
#include "test/unit/unit.h"

#define BAD_GROUP DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1)

enum { EPS = 3, IP = IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4 | IBV_RX_HASH_SRC_IPV6 | IBV_RX_HASH_DST_IPV6,
	PORTS = IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_DST_PORT_TCP | IBV_RX_HASH_SRC_PORT_UDP |
		IBV_RX_HASH_DST_PORT_UDP };

static const uint16_t table[] = { 2, 0, 1, 2 };
static struct dapl_ep *eps[EPS];
static DAT_EP_HANDLE handles[EPS];	/* of eps, unless a case changes them */
static DAT_ETH_RSS rss;			/* valid, with `table` */
static DAT_ETH_GROUP_HANDLE made;

static bool no_object;
static struct dapl_object *last_object;		/* that was made */
static int calloc_fails;			/* the i-th from now; 0: none */

EXTEND(dapl_object_new)
void *__wrap_dapl_object_new(enum dapl_kind kind, size_t size, struct dapl_ia *ia, void (*end)(struct dapl_object *))
{
	return no_object ? NULL : (last_object = __real_dapl_object_new(kind, size, ia, end));
}

UNIT_FAIL_CALLOC(calloc_fails && !--calloc_fails)

static bool locked;

EXTEND(dapl_eth_groups_lock)
void __wrap_dapl_eth_groups_lock(void)
{
	__real_dapl_eth_groups_lock();
	locked = true;
}

EXTEND(dapl_eth_groups_unlock)
void __wrap_dapl_eth_groups_unlock(void)
{
	locked = false;
	__real_dapl_eth_groups_unlock();
}

static bool called_without_lock;

static void note_lock(void) { called_without_lock |= !locked; }

/* --- set-up ------------------------------------------------------------------------------------------------ */

UNIT_FIXTURE(set_up)
{
	no_object = called_without_lock = false;
	calloc_fails = 0;
	assert_int_equal(core_eth_open(state), 0);
	core_eth.in_group = note_lock;
	for (int i = 0; i < EPS; i++) {
		eps[i] = core_eth_ep();
		handles[i] = (DAT_EP_HANDLE)eps[i];
	}
	rss = (DAT_ETH_RSS){ .fields = DAT_ETH_RSS_IP, .table_size = 4, .table = table };
	for (size_t i = 0; i < sizeof rss.key; i++)
		rss.key[i] = (uint8_t)(i + 1);
	made = DAT_HANDLE_NULL;
}

/* No call is inside an endpoint, and no group holds one. */
static int tear_down(void **state)
{
	for (int i = 0; i < EPS; i++) {
		core_assert_refs(&eps[i]->obj, 1);
		assert_int_equal(dapl_eth_ep_free((DAT_EP_HANDLE)eps[i]), DAT_SUCCESS);
	}
	assert_false(called_without_lock);
	assert_int_equal(core_ia->obj.calls, 0);
	return core_eth_close(state);
}

static DAT_RETURN create(DAT_COUNT n) { return dapl_eth_group_create((DAT_HANDLE)core_ia, n, handles, &rss, &made); }

static struct dapl_group *created(DAT_COUNT n)
{
	assert_int_equal(create(n), DAT_SUCCESS);
	assert_non_null(made);
	return (struct dapl_group *)made;
}

static void free_group(struct dapl_group *group)
{
	assert_int_equal(dapl_eth_group_free((DAT_HANDLE)group), DAT_SUCCESS);
	core_assert_refs(&group->obj, 0);
}

/* Nothing is left of the call. */
static void assert_refused(DAT_COUNT n, DAT_RETURN expected)
{
	made = DAT_HANDLE_NULL;
	assert_int_equal(create(n), expected);
	assert_null(made);
	assert_int_equal(dapl_object_count(core_ia, DAPL_GROUP), 0);
	for (int i = 0; i < EPS; i++)
		core_assert_refs(&eps[i]->obj, 1);
}

static void assert_malformed(const char *what)
{
	if (create(EPS) != BAD_PARAM(4) || made)
		fail_msg("%s", what);
}

/* --- creating ------------------------------------------------------------------------------------------------ */

UNIT_CASE(group_comes_to_the_device_as_it_is)
{
	struct dapl_group *group = created(EPS);

	assert_ptr_equal(group->qp, core_eth.groups[0]);
	assert_int_equal(core_eth.group.n, EPS);
	for (int i = 0; i < EPS; i++)
		assert_ptr_equal(core_eth.group.members[i], eps[i]->qp);
	assert_int_equal(core_eth.group.size, 4);
	assert_memory_equal(core_eth.group.table, table, sizeof table);
	assert_memory_equal(core_eth.group.key, rss.key, sizeof rss.key);
	assert_int_equal(core_eth.group.hash.rx_hash_function, IBV_RX_HASH_FUNC_TOEPLITZ);
	assert_int_equal(group->caps, core_eth.attr.caps);
	free_group(group);
}

UNIT_CASE(hash_is_of_the_fields_asked_for)
{
	static const struct { DAT_UINT32 fields; uint64_t hashed; } rows[] = {
		{ DAT_ETH_RSS_IP, IP }, { DAT_ETH_RSS_IP | DAT_ETH_RSS_PORTS, IP | PORTS },
		{ DAT_ETH_RSS_IP | DAT_ETH_RSS_INNER, (uint64_t)IP | IBV_RX_HASH_INNER },
		{ DAT_ETH_RSS_IP | DAT_ETH_RSS_PORTS | DAT_ETH_RSS_INNER, (uint64_t)IP | PORTS | IBV_RX_HASH_INNER },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		rss.fields = rows[i].fields;
		free_group(created(EPS));
		assert_int_equal(core_eth.group.hash.rx_hash_fields_mask, rows[i].hashed);
	}
}

UNIT_CASE(missing_object_or_pointer_is_refused)
{
	const DAT_HANDLE ia = (DAT_HANDLE)core_ia;

	assert_int_equal(dapl_eth_group_create(DAT_HANDLE_NULL, EPS, handles, &rss, &made), BAD_HANDLE(IA));
	assert_int_equal(dapl_eth_group_create((DAT_HANDLE)core_pz, EPS, handles, &rss, &made), BAD_HANDLE(IA));
	assert_int_equal(dapl_eth_group_create(ia, EPS, NULL, &rss, &made), BAD_PARAM(3));
	assert_int_equal(dapl_eth_group_create(ia, EPS, handles, NULL, &made), BAD_PARAM(4));
	assert_int_equal(dapl_eth_group_create(ia, EPS, handles, &rss, NULL), BAD_PARAM(5));
	assert_int_equal(core_eth.group_calls, 0);
}

UNIT_CASE(device_without_groups_makes_none)
{
	core_eth.query_error = ENOENT;
	assert_refused(EPS, NOT_SUPPORTED);
	core_eth.query_error = ENOMEM;
	assert_refused(EPS, NO_RESOURCE(DEVICE));
	core_eth.query_error = 0;
	core_eth.attr.caps = ~(uint64_t)DAT_ETH_CAP_RSS;
	assert_refused(EPS, NOT_SUPPORTED);
	core_eth.attr.caps = DAT_ETH_CAP_RSS;
	rss.fields = DAT_ETH_RSS_IP | DAT_ETH_RSS_INNER;
	assert_refused(EPS, NOT_SUPPORTED);
	assert_int_equal(core_eth.group_calls, 0);
	rss.fields = DAT_ETH_RSS_IP | DAT_ETH_RSS_PORTS;
	free_group(created(EPS));
}

/* ETH-40 */
UNIT_CASE(af_xdp_is_in_no_group)
{
	struct dapl_ep *ep = (struct dapl_ep *)handles[EPS - 1];

	ep->eth->xdp = true;
	assert_refused(EPS, NOT_SUPPORTED);
	assert_int_equal(core_eth.group_calls, 0);
	ep->eth->xdp = false;
	free_group(created(EPS));
}

UNIT_CASE(number_of_endpoints_has_a_limit)
{
	static const uint16_t first[1];

	rss.table_size = 1;
	rss.table = first;
	core_eth.attr.max_group = EPS - 1;
	assert_refused(EPS, BAD_PARAM(2));
	assert_refused(0, BAD_PARAM(2));
	assert_refused(-1, BAD_PARAM(2));
	assert_int_equal(core_eth.group_calls, 0);
	free_group(created(EPS - 1));
	free_group(created(1));
}

UNIT_CASE(malformed_fields_are_refused)
{
	rss.fields = 0;
	assert_malformed("no field");
	rss.fields = DAT_ETH_RSS_PORTS;
	assert_malformed("ports without addresses");
	rss.fields = DAT_ETH_RSS_IP | 0x8;
	assert_malformed("an unknown field");
	rss.fields = DAT_ETH_RSS_IP;
	rss.reserved = 1;
	assert_malformed("a reserved member");
	assert_int_equal(core_eth.group_calls, 0);
}

UNIT_CASE(size_of_the_table_is_a_power_of_2)
{
	static const uint16_t zeroes[CORE_ETH_TABLE * 2];

	rss.table = zeroes;
	for (DAT_UINT32 size = 0; size <= CORE_ETH_TABLE * 2; size++) {
		rss.table_size = size;
		if (size == 1 || size == 2 || size == 4 || size == CORE_ETH_TABLE)
			free_group(created(EPS));
		else
			assert_refused(EPS, BAD_PARAM(4));
	}
}

UNIT_CASE(entry_of_the_table_names_an_endpoint)
{
	uint16_t wrong[] = { EPS, 0, 1, 2 };

	rss.table = NULL;
	assert_malformed("no table");
	rss.table = wrong;
	assert_malformed("the first entry is too large");
	wrong[0] = 0;
	wrong[3] = UINT16_MAX;
	assert_malformed("the last entry is too large");
	assert_int_equal(core_eth.group_calls, 0);
}

/* The endpoint of another service type has no eth. */
UNIT_CASE(member_is_a_raw_endpoint_of_the_ia)
{
	struct dapl_ep *plain = core_objects_ep(NULL, NULL);
	struct dapl_ia *other_ia = core_ia_new();

	handles[EPS - 1] = DAT_HANDLE_NULL;
	assert_refused(EPS, BAD_HANDLE(EP));
	handles[EPS - 1] = (DAT_EP_HANDLE)core_pz;
	assert_refused(EPS, BAD_HANDLE(EP));
	handles[EPS - 1] = (DAT_EP_HANDLE)plain;
	assert_refused(EPS, BAD_HANDLE(EP));
	core_assert_refs(&plain->obj, 1);
	handles[EPS - 1] = (DAT_EP_HANDLE)eps[EPS - 1];
	eps[0]->obj.ia = other_ia;
	assert_refused(EPS, BAD_HANDLE(EP));
	eps[0]->obj.ia = core_ia;
	assert_int_equal(core_eth.group_calls, 0);
	assert_int_equal(dapl_eth_ep_free((DAT_EP_HANDLE)plain), DAT_SUCCESS);
	core_ia_free(other_ia);
}

UNIT_CASE(endpoint_is_a_member_once)
{
	handles[2] = handles[0];
	assert_refused(EPS, BAD_PARAM(3));
	handles[2] = handles[1];
	assert_refused(EPS, BAD_PARAM(3));
	assert_int_equal(core_eth.group_calls, 0);
}

UNIT_CASE(disconnected_endpoint_is_no_member)
{
	assert_int_equal(dapl_eth_ep_disconnect(handles[1], DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
	assert_refused(EPS, BAD_STATE(EP_DISCONNECTED));
	assert_int_equal(core_eth.group_calls, 0);
	assert_int_equal(eps[1]->lock.state, 0);
}

UNIT_CASE(endpoint_may_be_in_several_groups)
{
	struct dapl_group *first = created(EPS), *second = created(EPS);

	assert_ptr_not_equal(first->qp, second->qp);
	free_group(first);
	free_group(second);
}

static void assert_fails(DAT_RETURN expected)
{
	last_object = NULL;
	assert_refused(EPS, expected);
	if (last_object)
		core_assert_refs(last_object, 0);
	assert_null(core_eth.groups[0]);
}

UNIT_CASE(failed_creation_leaves_nothing)
{
	for (int i = 1; i <= 2; i++) {
		calloc_fails = i;
		assert_fails(NO_RESOURCE(MEMORY));
	}
	no_object = true;
	assert_fails(NO_RESOURCE(MEMORY));
	no_object = false;
	assert_int_equal(core_eth.group_calls, 0);
	core_eth.group_error = ENOSPC;
	assert_fails(NO_RESOURCE(MEMORY));
	core_eth.group_error = EOPNOTSUPP;
	assert_fails(NOT_SUPPORTED);
	core_eth.group_error = 0;
	free_group(created(EPS));	/* no failure has left the lock */
}

UNIT_CASE(new_table_comes_to_the_device)
{
	static const uint16_t other[] = { 1, 1, 0, 2 };
	struct dapl_group *group = created(EPS);

	assert_int_equal(dapl_eth_group_set(made, other), DAT_SUCCESS);
	assert_memory_equal(core_eth.group.table, other, sizeof other);
	assert_int_equal(core_eth.group_calls, 2);
	free_group(group);
}

UNIT_CASE(table_that_is_refused_changes_nothing)
{
	uint16_t other[] = { 1, 1, 0, EPS };
	struct dapl_group *group = created(EPS);

	assert_int_equal(dapl_eth_group_set(made, NULL), BAD_PARAM(2));
	assert_int_equal(dapl_eth_group_set(made, other), BAD_PARAM(2));
	assert_int_equal(core_eth.group_calls, 1);
	other[3] = EPS - 1;
	core_eth.group_error = EINVAL;	/* a member has left */
	assert_int_equal(dapl_eth_group_set(made, other), BAD_PARAM(2));
	core_eth.group_error = ENOMEM;
	assert_int_equal(dapl_eth_group_set(made, other), NO_RESOURCE(MEMORY));
	assert_memory_equal(core_eth.group.table, table, sizeof table);
	core_assert_refs(&group->obj, 1);
	free_group(group);
}

UNIT_CASE(handle_of_another_object_is_no_group)
{
	const DAT_HANDLE others[] = { DAT_HANDLE_NULL, (DAT_HANDLE)eps[0], (DAT_HANDLE)core_ia };

	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		assert_int_equal(dapl_eth_group_set(others[i], table), BAD_GROUP);
		assert_int_equal(dapl_eth_group_free(others[i]), BAD_GROUP);
	}
	assert_int_equal(core_eth.group_calls, 0);
}

UNIT_CASE(freed_group_is_taken_from_the_device)
{
	struct dapl_group *group = created(EPS);

	free_group(group);
	assert_null(core_eth.groups[0]);
	assert_int_equal(dapl_object_count(core_ia, DAPL_GROUP), 0);
	assert_int_equal(dapl_eth_group_free((DAT_HANDLE)group), BAD_GROUP);
	assert_int_equal(dapl_eth_group_set((DAT_HANDLE)group, table), BAD_GROUP);
	core_assert_refs(&group->obj, 0);
	for (int i = 0; i < EPS; i++)
		assert_int_equal(eps[i]->state, DAT_EP_STATE_CONNECTED);
}

UNIT_MAIN(NULL, NULL)
