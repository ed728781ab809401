/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_rules.c - the rules of a port: their order, and the memberships that the packet socket has for them,
 * which the kernel counts. Matching is filter.c's, and rules as objects are place.c's. */
#include <linux/filter.h>
#include <linux/if_packet.h>
#include "dapl/softeth/rules.h"
#include "test/unit/unit.h"

enum { KINDS = 4 };		/* of PACKET_MR_*: multicast, promiscuous, all multicast, unicast */

static struct eth_port port;
static int members[KINDS];	/* as the kernel counts them; never below 0 */
static int refused;		/* the kind that the kernel refuses, or -1 */
static bool filter_refused;
static unsigned filter_size;	/* instructions of the socket's filter */
static unsigned filter_room;	/* for it, and for the one that replaces it at the same time; 0: no limit */
static uint32_t filter_returns;	/* the value of its last instruction */

static int replace_filter(const struct sock_fprog *program)
{
	errno = ENOMEM;
	if (filter_refused || (filter_room && filter_size + program->len > filter_room))
		return -1;
	filter_size = program->len;
	filter_returns = program->filter[program->len - 1].k;
	return 0;
}

REPLACE(setsockopt)
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
	const struct packet_mreq *wanted = value;

	if (level != SOL_PACKET)
		return replace_filter(value);
	assert_in_range(wanted->mr_type, 0, KINDS - 1);
	if (name == PACKET_ADD_MEMBERSHIP) {
		errno = ENOBUFS;
		if (wanted->mr_type == refused)
			return -1;
		members[wanted->mr_type]++;
	} else if (name == PACKET_DROP_MEMBERSHIP && members[wanted->mr_type]) {
		members[wanted->mr_type]--;
	}
	return 0;
}

UNIT_FIXTURE(set_up)
{
	port = (struct eth_port){ .fd = -1, .index = 1, .counters = -1, .link = -1 };
	dapl_mutex_init(&port.lock, RANK_SOFT_ETH);
	memset(members, 0, sizeof members);
	refused = -1;
	filter_refused = false;
	filter_size = filter_room = 0;
}

/* A membership that stays would make the device receive for ever. */
UNIT_FIXTURE(tear_down)
{
	eth_rule_end_all(&port);
	assert_null(port.rules);
	assert_int_equal(port.rule_count, 0);
	for (int i = 0; i < KINDS; i++)
		assert_int_equal(members[i], 0);
}

static int attach(const struct dapl_eth_rule *rule, struct eth_rule **added)
{
	struct rule_part part = { .rule = *rule, .counts = eth_rule_counts_new(), .times = eth_rule_times_new(0) };
	int err = eth_rule_attach(&port, &part, 0, added);

	eth_rule_counts_put(part.counts);
	eth_rule_times_put(part.times);
	return err;
}

/* All frames, all multicast frames: two memberships. */
static const struct dapl_eth_rule everything = { .mode = ETH_COPY, .flags = ETH_ALL | ETH_ALL_MULTICAST };

static struct dapl_eth_rule of_address(uint8_t first, uint32_t priority)
{
	struct dapl_eth_rule rule = { .mode = ETH_COPY, .priority = priority };

	rule.key.dst[0] = first;
	rule.key.dst[5] = 9;
	memset(rule.mask.dst, 255, sizeof rule.mask.dst);
	return rule;
}

/* --- memberships -------------------------------------------------------------------------------------- */

UNIT_CASE(rule_makes_the_device_receive_its_frames)
{
	const struct dapl_eth_rule unicast = of_address(2, 0), multicast = of_address(1, 0);
	struct eth_rule *added;

	assert_int_equal(attach(&everything, &added), 0);
	assert_int_equal(members[PACKET_MR_PROMISC], 1);
	assert_int_equal(members[PACKET_MR_ALLMULTI], 1);
	assert_int_equal(attach(&unicast, &added), 0);
	assert_int_equal(members[PACKET_MR_UNICAST], 1);
	assert_int_equal(attach(&multicast, &added), 0);
	assert_int_equal(members[PACKET_MR_MULTICAST], 1);
	eth_rule_detach(&port, added->times);
	assert_int_equal(members[PACKET_MR_MULTICAST], 0);
	assert_int_equal(members[PACKET_MR_UNICAST], 1);
}

UNIT_CASE(refused_membership_leaves_none_behind)
{
	struct eth_rule *added;

	refused = PACKET_MR_ALLMULTI;	/* the second one */
	assert_int_equal(attach(&everything, &added), ENOBUFS);
	assert_int_equal(members[PACKET_MR_PROMISC], 0);
	assert_int_equal(port.rule_count, 0);
}

/* To drop a membership that was not added makes the kernel drop an equal one of another rule. */
UNIT_CASE(failed_rule_leaves_the_memberships_of_others)
{
	const struct dapl_eth_rule again = { .mode = ETH_COPY, .flags = ETH_ALL | ETH_ALL_MULTICAST, .priority = 5 };
	struct eth_rule *added;

	assert_int_equal(attach(&everything, &added), 0);
	assert_int_equal(attach(&everything, &added), EEXIST);
	assert_int_equal(members[PACKET_MR_PROMISC], 1);
	assert_int_equal(members[PACKET_MR_ALLMULTI], 1);
	refused = PACKET_MR_ALLMULTI;
	assert_int_equal(attach(&again, &added), ENOBUFS);
	assert_int_equal(members[PACKET_MR_PROMISC], 1);
	assert_int_equal(members[PACKET_MR_ALLMULTI], 1);
	refused = -1;
	filter_refused = true;
	assert_int_equal(attach(&again, &added), ENOMEM);
	assert_int_equal(members[PACKET_MR_PROMISC], 1);
	assert_int_equal(members[PACKET_MR_ALLMULTI], 1);
	assert_int_equal(port.rule_count, 1);
}

/* --- memory for filters --------------------------------------------------------------------------------- */

/* The kernel has room for one filter, but not for two at a time. */
UNIT_CASE(filter_is_replaced_where_there_is_room_for_one)
{
	const struct dapl_eth_rule first = of_address(2, 0), second = of_address(4, 1);
	struct eth_rule *added;
	unsigned size;

	assert_int_equal(attach(&first, &added), 0);
	assert_int_equal(attach(&second, &added), 0);
	size = filter_size;
	eth_rule_end_all(&port);
	filter_size = 0;
	filter_room = size + 1;
	assert_int_equal(attach(&first, &added), 0);
	assert_int_equal(attach(&second, &added), 0);
	assert_int_equal(filter_size, size);
	assert_int_equal(filter_returns, 0);	/* frames that no rule matches */
}

UNIT_CASE(all_frames_pass_where_there_is_room_for_no_filter)
{
	const struct dapl_eth_rule first = of_address(2, 0), second = of_address(4, 1);
	struct eth_rule *added;

	assert_int_equal(attach(&first, &added), 0);
	filter_room = filter_size + 2;
	assert_int_equal(attach(&second, &added), 0);
	assert_int_equal(filter_size, 1);
	assert_true(filter_returns > 0);
	assert_int_equal(port.rule_count, 2);
}

/* --- the list ------------------------------------------------------------------------------------------- */

UNIT_CASE(rules_are_ordered_by_priority_then_by_age)
{
	const struct dapl_eth_rule late = of_address(2, 7), early = of_address(4, 3), second = of_address(6, 3);
	struct eth_rule *of_late, *of_early, *of_second;

	assert_int_equal(attach(&late, &of_late), 0);
	assert_int_equal(attach(&early, &of_early), 0);
	assert_int_equal(attach(&second, &of_second), 0);
	assert_ptr_equal(port.rules, of_early);
	assert_ptr_equal(of_early->next, of_second);
	assert_ptr_equal(of_second->next, of_late);
	assert_null(of_late->next);
}

UNIT_CASE(equal_rule_is_refused_unless_its_priority_differs)
{
	const struct dapl_eth_rule rule = of_address(2, 3), other = of_address(2, 4);
	struct eth_rule *added;

	assert_int_equal(attach(&rule, &added), 0);
	assert_true(eth_rule_has(&port, added));
	assert_int_equal(attach(&rule, &added), EEXIST);
	assert_int_equal(attach(&other, &added), 0);
	assert_int_equal(port.rule_count, 2);
}

UNIT_CASE(rules_have_a_limit)
{
	struct dapl_eth_rule rule;
	struct eth_rule *added;

	for (uint32_t i = 0; i < ETH_MAX_RULES; i++) {
		rule = of_address(2, i);
		assert_int_equal(attach(&rule, &added), 0);
	}
	rule = of_address(2, ETH_MAX_RULES);
	assert_int_equal(attach(&rule, &added), ENOSPC);
	assert_int_equal(members[PACKET_MR_UNICAST], ETH_MAX_RULES);
	eth_rule_detach(&port, port.rules->times);
	assert_int_equal(attach(&rule, &added), 0);
}

/* --- rules that leave ------------------------------------------------------------------------------------- */

UNIT_CASE(rule_that_was_moved_away_stays_for_frames_on_their_way)
{
	const struct dapl_eth_rule rule = of_address(2, 0);
	struct eth_rule *added;

	assert_int_equal(attach(&rule, &added), 0);
	added->times->until_ns = UINT64_MAX - 1;
	eth_rule_unsteer(&port, added->times, false);
	assert_true(eth_rule_purge(&port));
	assert_true(eth_rule_has(&port, added));
	added->times->until_ns = 1;
	assert_false(eth_rule_purge(&port));
	assert_false(eth_rule_has(&port, added));
}

/* It takes no more frames, and its counters are read before it is detached. A timer may purge the port in between. */
UNIT_CASE(purge_leaves_a_rule_that_is_being_removed)
{
	const struct dapl_eth_rule rule = { .mode = ETH_DROP };
	struct eth_rule *added;

	assert_int_equal(attach(&rule, &added), 0);
	eth_rule_unsteer(&port, added->times, false);
	eth_rule_purge(&port);
	assert_true(eth_rule_has(&port, added));
	eth_rule_detach(&port, added->times);
	assert_int_equal(port.counters_used, 0);
}

UNIT_MAIN(NULL, NULL)
