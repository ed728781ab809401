/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_eth.c - the table of the operations for raw Ethernet endpoints: each operation is the function of the file that
 * has it, none is missing, and a rule cannot be moved. */
#include "dapl/verbs/eth.h"
#include "dapl/verbs/eth_attr.h"
#include "dapl/verbs/eth_clock.h"
#include "dapl/verbs/eth_cq.h"
#include "dapl/verbs/eth_group.h"
#include "dapl/verbs/eth_qp.h"
#include "dapl/verbs/eth_recv.h"
#include "dapl/verbs/eth_rule.h"
#include "dapl/verbs/eth_send.h"
#include "test/unit/unit.h"
#include "test/unit/verbs/eth_objects.h"

static const struct dapl_eth_ops *const ops = &hw_eth_ops;

#define CASE(name) UNIT_TEST_WITH(name, objects_begin, objects_end)

/* --- the table --------------------------------------------------------------------------------------------------- */

/* Programs compare it: it is the value of DAT_ETH_ATTR_RAW. */
CASE(carrier_is_verbs)
{
	assert_string_equal(ops->carrier, "VERBS");
}

/* eth_send.c gives the headers of a message to the NIC, from the addresses of its segments. */
CASE(headers_of_sends_must_have_addresses)
{
	assert_true(ops->reads_headers);
}

/* This device has those that a device may leave out, too. */
CASE(no_operation_is_missing)
{
	size_t first = offsetof(struct dapl_eth_ops, query);
	uintptr_t word;

	for (size_t at = first; at < sizeof *ops; at += sizeof word) {
		memcpy(&word, (const char *)ops + at, sizeof word);
		if (!word)
			fail_msg("operation %zu", (at - first) / sizeof word);
	}
}

/* To another queue pair or to its own; neither is touched, and no flow is made or destroyed. */
CASE(rule_stays_where_it_is)
{
	struct hw_eth_rule rule = { .flow = &objects.flow, .tag = 1, .frames = 7, .bytes = 700 }, rule_was;
	struct hw_eth qps[2], qps_were[2];
	void *moved = &moved;

	memset(qps, 0, sizeof qps);
	for (int i = 0; i < 2; i++) {
		dapl_mutex_init(&qps[i].lock, RANK_VERBS_ETH_QP);
		qps[i].eth = &eth;
		qps[i].hw = &objects.qp;
		qps[i].rules.eth = &eth;
		qps[i].rules.target = &objects.qp;
		qps[i].rules.lock = &qps[i].lock;
	}
	qps[0].rules.first = &rule;
	qps[0].rules.tags_used = 1;
	memcpy(qps_were, qps, sizeof qps);
	memcpy(&rule_was, &rule, sizeof rule);
	for (int to = 0; to < 2; to++) {
		assert_int_equal(ops->move_rule(&qps[0].qp, &rule, &qps[to].qp, &moved), EOPNOTSUPP);
		assert_ptr_equal(moved, &moved);
		assert_memory_equal(qps, qps_were, sizeof qps);
		assert_memory_equal(&rule, &rule_was, sizeof rule);
	}
	steps_are("");
}

UNIT_MAIN(NULL, NULL)
