/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_rule_find.c - which rule of a port gets a frame (dapl/softeth/rule_find.c): by priority, direction, destination,
 * time and the member of a group; rules that leave a port and come back; groups that the socket joins. Order and
 * memberships are test_rules.c's. */
#include <linux/filter.h>
#include "dapl/softeth/rule_find.h"
#include "dapl/softeth/rules.h"
#include "dapl/softeth/spread.h"
#include "test/unit/descriptors.h"
#include "test/unit/softeth/frames.h"
#include "test/unit/unit.h"

enum { INDEX = 7, MEMBERS = 2 };

static struct eth_port port;
static struct frame frame;
static struct eth_spread *spread;
static struct rule_counts *counts;	/* of the rule that moves */
static bool filter_refused, join_refused;
static unsigned filter_size, filter_room;	/* instructions of the filter; for how many there is room, 0: all */

static int replace_filter(const struct sock_fprog *program)
{
	errno = ENOMEM;
	if (filter_refused || (filter_room && program->len > filter_room))
		return -1;
	filter_size = program->len;
	return 0;
}

static int joined_level;		/* IPPROTO_IP or IPPROTO_IPV6, of the last join */
static struct ip_mreqn group4;
static struct ipv6_mreq group6;
static uint32_t hash;
static unsigned descriptors;

REPLACE(setsockopt)
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
	errno = ENODEV;
	if (level == SOL_SOCKET)
		return replace_filter(value);
	if (level == SOL_PACKET)
		return 0;
	if (join_refused)
		return -1;
	joined_level = level;
	if (level == IPPROTO_IP) {
		assert_int_equal(name, IP_ADD_MEMBERSHIP);
		assert_int_equal(size, sizeof group4);
		memcpy(&group4, value, sizeof group4);
	} else {
		assert_int_equal(name, IPV6_JOIN_GROUP);
		assert_int_equal(size, sizeof group6);
		memcpy(&group6, value, sizeof group6);
	}
	return 0;
}

UNIT_FIXTURE(set_up)
{
	descriptors = open_descriptors();
	port = (struct eth_port){ .fd = -1, .index = INDEX, .counters = -1, .link = -1 };
	dapl_mutex_init(&port.lock, RANK_SOFT_ETH);
	frame = frame_over(4, IPPROTO_UDP, 4791);	/* to 02:00:00:00:00:01 */
	counts = eth_rule_counts_new();
	spread = NULL;
	filter_refused = join_refused = false;
	filter_size = filter_room = 0;
	joined_level = -1;
	hash = 0;
}

UNIT_FIXTURE(tear_down)
{
	eth_rule_end_all(&port);
	assert_null(port.rules);
	assert_int_equal(port.rule_count, 0);
	assert_int_equal(counts->refs, 1);
	eth_rule_counts_put(counts);
	if (spread) {
		assert_int_equal(spread->refs, 1);
		spread_put(spread);
	}
	assert_int_equal(open_descriptors(), descriptors);
}

/* A rule for frames from `from_ns` until `until_ns`; 0: without an end. */
static int attach_at(const struct dapl_eth_rule *rule, struct rule_counts *of_rule, uint64_t from_ns,
		     uint64_t until_ns, uint16_t member, struct eth_rule **added)
{
	struct rule_part part = { .rule = *rule, .counts = of_rule, .times = eth_rule_times_new(from_ns),
		.spread = spread };
	int err;

	part.times->until_ns = until_ns;
	err = eth_rule_attach(&port, &part, member, added);
	eth_rule_times_put(part.times);
	return err;
}

static struct eth_rule *attach(const struct dapl_eth_rule *rule, uint16_t member)
{
	struct rule_counts *own = eth_rule_counts_new();
	struct eth_rule *added = NULL;

	assert_int_equal(attach_at(rule, own, 0, 0, member, &added), 0);
	eth_rule_counts_put(own);
	return added;
}

static struct dapl_eth_rule to_address(uint8_t last, uint32_t priority)
{
	struct dapl_eth_rule rule = { .mode = ETH_COPY, .priority = priority };

	rule.key.dst[0] = 2;
	rule.key.dst[5] = last;
	memset(rule.mask.dst, 255, sizeof rule.mask.dst);
	return rule;
}

static struct eth_rule *find_as(uint64_t time, bool outgoing, bool other_host)
{
	struct eth_rule *found;

	dapl_mutex_lock(&port.lock);
	found = eth_rule_find(&port, frame.bytes, (uint32_t)frame.length, (struct eth_tag){ 0 }, time, outgoing,
			      other_host, &hash);
	dapl_mutex_unlock(&port.lock);
	return found;
}

static struct eth_rule *find(uint64_t time) { return find_as(time, false, false); }

/* --- which frames ---------------------------------------------------------------------------------------------- */

UNIT_CASE(first_rule_that_matches_gets_the_frame)
{
	const struct dapl_eth_rule all = { .mode = ETH_COPY, .priority = 9 }, address = to_address(1, 5),
		other = to_address(3, 1);
	struct eth_rule *of_all = attach(&all, 0), *of_address = attach(&address, 0), *of_other = attach(&other, 0);

	assert_ptr_equal(find(1), of_address);
	frame.bytes[5] = 3;
	assert_ptr_equal(find(1), of_other);
	frame.bytes[5] = 4;
	assert_ptr_equal(find(1), of_all);
}

UNIT_CASE(rule_that_drops_hides_the_later_ones)
{
	const struct dapl_eth_rule all = { .mode = ETH_COPY, .priority = 9 };
	struct dapl_eth_rule drop = to_address(1, 5);

	attach(&all, 0);
	assert_non_null(find(1));
	drop.mode = ETH_DROP;
	attach(&drop, 0);
	assert_null(find(1));
}

UNIT_CASE(outgoing_frame_needs_a_rule_that_asks)
{
	const struct dapl_eth_rule in = { .mode = ETH_COPY },
		both = { .mode = ETH_COPY, .priority = 1, .flags = ETH_EGRESS };
	struct eth_rule *of_in = attach(&in, 0), *of_both;

	assert_null(find_as(1, true, false));
	of_both = attach(&both, 0);
	assert_ptr_equal(find_as(1, true, false), of_both);
	assert_ptr_equal(find(1), of_in);
}

/* A device in promiscuous mode receives it for another rule. */
UNIT_CASE(frame_for_another_host_needs_all_or_its_address)
{
	const struct dapl_eth_rule own = { .mode = ETH_COPY }, address = to_address(1, 2),
		all = { .mode = ETH_COPY, .priority = 1, .flags = ETH_ALL };
	struct eth_rule *added;

	attach(&own, 0);
	assert_null(find_as(1, false, true));
	added = attach(&address, 0);
	assert_ptr_equal(find_as(1, false, true), added);
	added = attach(&all, 0);
	assert_ptr_equal(find_as(1, false, true), added);
}

/* --- when ------------------------------------------------------------------------------------------------------ */

UNIT_CASE(rule_gets_the_frames_of_its_time)
{
	const struct dapl_eth_rule rule = to_address(1, 0);
	struct eth_rule *added;

	assert_int_equal(attach_at(&rule, counts, 100, 200, 0, &added), 0);
	assert_null(find(99));
	assert_ptr_equal(find(100), added);
	assert_ptr_equal(find(199), added);
	assert_null(find(200));
	__atomic_store_n(&added->times->until_ns, 0, __ATOMIC_RELAXED);
	assert_ptr_equal(find(UINT64_MAX), added);
}

/* --- the rule of all frames ------------------------------------------------------------------------------------ */

static struct eth_rule *find_of_all(void)
{
	struct eth_rule *found;

	dapl_mutex_lock(&port.lock);
	found = eth_rule_of_all(&port);
	dapl_mutex_unlock(&port.lock);
	return found;
}

UNIT_CASE(rule_of_all_frames_has_no_condition)
{
	struct dapl_eth_rule rule = { .mode = ETH_COPY, .priority = 9, .flags = ETH_ALL };
	struct eth_rule *added;

	assert_null(find_of_all());
	attach(&rule, 0);
	assert_null(find_of_all());		/* frames that leave do not match */
	rule.flags = ETH_EGRESS;
	rule.priority--;
	attach(&rule, 0);
	assert_null(find_of_all());		/* nor do frames to other hosts */
	rule.flags = ETH_EGRESS | ETH_ALL;
	rule.priority--;
	added = attach(&rule, 0);
	assert_ptr_equal(find_of_all(), added);
	__atomic_store_n(&added->times->until_ns, 5, __ATOMIC_RELAXED);
	assert_null(find_of_all());
	__atomic_store_n(&added->times->until_ns, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&added->times->from_ns, 5, __ATOMIC_RELAXED);
	assert_null(find_of_all());
	__atomic_store_n(&added->times->from_ns, 0, __ATOMIC_RELAXED);
	rule = to_address(1, 2);		/* another rule comes first */
	attach(&rule, 0);
	assert_null(find_of_all());
}

/* The rule leaves at `until_ns`, and comes back at `from_ns`. */
static struct eth_rule *leave_and_return(const struct dapl_eth_rule *rule, struct eth_rule *old, uint64_t until_ns,
					 uint64_t from_ns)
{
	struct eth_rule *added;

	__atomic_store_n(&old->times->until_ns, until_ns, __ATOMIC_RELAXED);
	eth_rule_unsteer(&port, old->times, false);
	assert_int_equal(attach_at(rule, counts, from_ns, 0, 0, &added), 0);
	return added;
}

UNIT_CASE(rule_that_returns_gets_frames_of_its_earlier_times)
{
	const struct dapl_eth_rule rule = to_address(1, 0);
	struct eth_rule *added;

	assert_int_equal(attach_at(&rule, counts, 100, 0, 0, &added), 0);
	added = leave_and_return(&rule, added, 200, 300);
	added = leave_and_return(&rule, added, 400, 500);
	assert_int_equal(port.rule_count, 1);
	assert_null(find(99));
	assert_ptr_equal(find(150), added);
	assert_null(find(250));
	assert_ptr_equal(find(350), added);
	assert_null(find(450));
	assert_ptr_equal(find(550), added);
	assert_false(eth_rule_purge(&port));	/* frames of these times have long arrived */
	assert_null(find(150));
	assert_null(find(350));
	assert_ptr_equal(find(550), added);
}

UNIT_CASE(oldest_times_are_forgotten_beyond_a_limit)
{
	const struct dapl_eth_rule rule = to_address(1, 0);
	struct eth_rule *added;

	assert_int_equal(attach_at(&rule, counts, 100, 0, 0, &added), 0);
	for (uint64_t i = 1; i <= ETH_MAX_PAST; i++)
		added = leave_and_return(&rule, added, 100 * i + 50, 100 * i + 100);
	assert_ptr_equal(find(110), added);
	added = leave_and_return(&rule, added, 100 * ETH_MAX_PAST + 150, 100 * ETH_MAX_PAST + 200);
	assert_null(find(110));
	assert_ptr_equal(find(210), added);
}

UNIT_CASE(rule_that_cannot_return_keeps_its_earlier_time)
{
	const struct dapl_eth_rule rule = to_address(1, 0);
	struct eth_rule *old, *added;

	assert_int_equal(attach_at(&rule, counts, 100, 200, 0, &old), 0);
	eth_rule_unsteer(&port, old->times, false);
	filter_refused = true;
	assert_int_equal(attach_at(&rule, counts, 300, 0, 0, &added), ENOMEM);
	assert_true(eth_rule_has(&port, old));
	assert_int_equal(port.rule_count, 1);
	assert_ptr_equal(find(150), old);
	assert_null(find(350));
}

/* It is another rule if it has counters of its own. */
UNIT_CASE(other_rule_takes_over_no_earlier_time)
{
	const struct dapl_eth_rule rule = to_address(1, 0);
	struct eth_rule *old, *other;

	assert_int_equal(attach_at(&rule, counts, 100, 200, 0, &old), 0);
	eth_rule_unsteer(&port, old->times, false);
	other = attach(&rule, 0);
	assert_int_equal(port.rule_count, 2);
	assert_true(eth_rule_has(&port, old));
	assert_null(other->past);
}

/* --- groups ---------------------------------------------------------------------------------------------------- */

static void make_spread(void)
{
	static const uint16_t owners[MEMBERS] = { 1, 0 };
	static uint8_t key[TOEPLITZ_KEY] = { 0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2 };
	const struct dapl_eth_rss rss = { .hash = { .rx_hash_key = key, .rx_hash_key_len = sizeof key,
		.rx_hash_fields_mask = IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4 }, .size = MEMBERS,
		.table = owners };

	spread = spread_new(&rss);
	assert_non_null(spread);
}

UNIT_CASE(frame_of_a_group_is_its_owners)
{
	const struct dapl_eth_rule all = { .mode = ETH_COPY };
	struct eth_headers headers;
	struct eth_rule *added;
	uint32_t expected;
	uint16_t owner;

	make_spread();
	eth_match_parse(frame.bytes, frame.length, (struct eth_tag){ 0 }, &headers);
	expected = spread_hash(spread, &headers);
	owner = expected & 1 ? 0 : 1;
	added = attach(&all, owner);
	assert_ptr_equal(find(1), added);
	assert_int_equal(hash, expected);
	eth_rule_detach(&port, added->times);
	hash = 77;
	attach(&all, !owner);
	assert_null(find(1));
	assert_int_equal(hash, 77);
}

/* Then the port gets the frames of all members. */
UNIT_CASE(filter_of_a_group_has_no_hash_where_there_is_no_room)
{
	const struct dapl_eth_rule rule = to_address(1, 0);
	unsigned with_hash, without;
	struct eth_rule *added;

	make_spread();
	added = attach(&rule, 0);
	with_hash = filter_size;
	eth_rule_detach(&port, added->times);
	filter_room = with_hash - 1;
	added = attach(&rule, 0);
	without = filter_size;
	assert_true(without > 1 && without < with_hash / 2);
	eth_rule_detach(&port, added->times);
	filter_room = 1;
	attach(&rule, 0);
	assert_int_equal(filter_size, 1);
}

/* --- IP groups that the socket joins --------------------------------------------------------------------------- */

static struct dapl_eth_rule joining(uint8_t version, uint8_t first)
{
	struct dapl_eth_rule rule = { .mode = ETH_COPY, .flags = ETH_JOIN };

	rule.key.ip_version = version;
	rule.key.ip_dst[0] = first;
	rule.key.ip_dst[3] = 5;
	memset(rule.mask.ip_dst, 255, version == 4 ? 4 : 16);
	return rule;
}

UNIT_CASE(rule_joins_its_ip_group_while_it_is_there)
{
	const struct dapl_eth_rule four = joining(4, 239), six = joining(6, 0xff);
	struct eth_rule *added = attach(&four, 0);

	assert_int_equal(joined_level, IPPROTO_IP);
	assert_int_equal(ntohl(group4.imr_multiaddr.s_addr), 0xef000005);
	assert_int_equal(group4.imr_ifindex, INDEX);
	assert_int_equal(open_descriptors(), descriptors + 1);
	eth_rule_detach(&port, added->times);
	assert_int_equal(open_descriptors(), descriptors);
	attach(&six, 0);
	assert_int_equal(joined_level, IPPROTO_IPV6);
	assert_memory_equal(&group6.ipv6mr_multiaddr, six.key.ip_dst, 16);
	assert_int_equal(group6.ipv6mr_interface, INDEX);
}

UNIT_CASE(refused_join_leaves_no_rule)
{
	const struct dapl_eth_rule rule = joining(4, 239);
	struct eth_rule *added;

	join_refused = true;
	assert_int_equal(attach_at(&rule, counts, 0, 0, 0, &added), ENODEV);
	assert_null(port.rules);
	assert_int_equal(open_descriptors(), descriptors);
}

UNIT_MAIN(NULL, NULL)
