/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_group.c - groups of ports: their life, ports that leave, and changes of the table, which filters must know
 * before it begins. Rules and filters of ports (rules.c) are replaced here; tables themselves are spread.c's. */
#include <linux/filter.h>
#include "dapl/softeth/group.h"
#include "dapl/softeth/port_filter.h"
#include "dapl/softeth/rules.h"
#include "dapl/softeth/spread.h"
#include "test/unit/softeth/port_calls.h"
#include "test/unit/unit.h"

enum { SIZE = 32 };

static uint8_t key[TOEPLITZ_KEY];
static const uint16_t first_table[SIZE] = { 0, 1, 2, 0 }, second_table[SIZE] = { 2, 2, 1, 1 };
static struct eth_group *group;		/* of all ports */
static uint64_t now_s;			/* the clock */
static bool no_memory;
static unsigned announced;		/* filters that were renewed while the newest table had not begun */

/* --- rules and filters of ports, the clock, memory ------------------------------------------------------- */

REPLACE(eth_rule_unsteer, eth_rule_detach, eth_rule_end_all, port_filter_renew, setsockopt, clock_gettime)
EXTEND(calloc, malloc, free)

void __wrap_eth_rule_unsteer(struct eth_port *port, const struct rule_times *times, bool purged)
{
	note_call(purged ? 'p' : 'u', port);
}

void __wrap_eth_rule_detach(struct eth_port *port, const struct rule_times *times) { note_call('d', port); }

static void note_locked(char letter, const struct eth_port *port)
{
	assert_int_not_equal(port->lock.state, 0);
	note_call(letter, port);
}

void __wrap_eth_rule_end_all(struct eth_port *port) { note_locked('f', port); }

/* The filter that drops everything. */
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
	assert_int_equal(name, SO_ATTACH_FILTER);
	assert_int_equal(((const struct sock_fprog *)value)->len, 1);
	note_locked('n', &ports[fd]);
	return 0;
}

static bool is_raced;			/* another thread locks the groups while a filter is renewed */
static pthread_t other_thread;
static bool other_was_in;		/* atomic */

static void *lock_groups(void *unused)
{
	eth_group_lock();
	__atomic_store_n(&other_was_in, true, __ATOMIC_RELAXED);
	eth_group_unlock();
	return unused;
}

int __wrap_port_filter_renew(struct eth_port *port)
{
	if (is_raced && port == &ports[0]) {
		assert_int_equal(pthread_create(&other_thread, NULL, lock_groups, NULL), 0);
		usleep(20000);		/* long enough for a thread that nothing stops */
		assert_false(__atomic_load_n(&other_was_in, __ATOMIC_RELAXED));
	}
	announced += group->spread->newest->from_ns == UINT64_MAX;
	return note_call('r', port);
}

static size_t fails_size;		/* the allocation that fails */
static const size_t table_size = sizeof(struct spread_table) + SIZE * sizeof(uint16_t);
static void *made[8];			/* the tables that were made last */
static unsigned makes;

static void *keep_table(void *p, size_t size)
{
	if (size == table_size)
		made[makes++ % 8] = p;
	return p;
}

static bool fails(size_t size) { return (fails_size && size == fails_size) || (no_memory && size == table_size); }
void *__wrap_malloc(size_t size) { return fails(size) ? NULL : keep_table(__real_malloc(size), size); }

void *__wrap_calloc(size_t n, size_t size)
{
	return fails(n * size) ? NULL : keep_table(__real_calloc(n, size), n * size);
}

/* A table that is freed is recorded as a call of port 0. */
void __wrap_free(void *p)
{
	for (int i = 0; p && i < 8; i++)
		if (made[i] == p) {
			made[i] = NULL;
			note_call('t', &ports[0]);
		}
	__real_free(p);
}

int __wrap_clock_gettime(clockid_t id, struct timespec *now)
{
	assert_int_equal(id, CLOCK_REALTIME);	/* as time stamps of frames */
	*now = (struct timespec){ .tv_sec = (time_t)now_s };
	return 0;
}

/* --- a case ------------------------------------------------------------------------------------------------ */

static int create(struct eth_group **created)
{
	const struct dapl_eth_rss rss = { .hash = { .rx_hash_key = key, .rx_hash_key_len = sizeof key }, .size = SIZE,
		.table = first_table };
	struct eth_port *const members[PORTS] = { &ports[0], &ports[1], &ports[2] };

	return eth_group_create(members, PORTS, &rss, created);
}

UNIT_FIXTURE(set_up)
{
	for (int i = 0; i < PORTS; i++) {
		ports[i].fd = i;
		dapl_mutex_init(&ports[i].lock, RANK_SOFT_ETH);
	}
	forget_calls();
	no_memory = is_raced = other_was_in = false;
	fails_size = announced = 0;
	now_s = 100;
	assert_int_equal(create(&group), 0);
}

UNIT_FIXTURE(tear_down)
{
	if (group)
		eth_group_free(group);
}

static uint16_t owner_at(uint64_t entry, uint64_t seconds)
{
	return spread_owner(group->spread, (uint32_t)entry, seconds * 1000000000);
}

static void assert_table(const uint16_t *table, uint64_t seconds)
{
	for (uint64_t i = 0; i < SIZE; i++)
		assert_int_equal(owner_at(i, seconds), table[i]);
}

static unsigned tables(void)
{
	unsigned n = 0;

	for (const struct spread_table *t = group->spread->newest; t; t = t->older)
		n++;
	return n;
}

/* --- tables ------------------------------------------------------------------------------------------------ */

UNIT_CASE(frames_go_by_the_table_of_their_time)
{
	assert_table(first_table, 0);
	assert_int_equal(eth_group_set(group, second_table), 0);
	assert_table(first_table, 99);
	assert_table(second_table, 100);
	now_s = 105;
	assert_int_equal(eth_group_set(group, first_table), 0);
	assert_table(second_table, 104);
	assert_table(first_table, 105);
}

/* Else a filter would reject frames that the table has given to its port. */
UNIT_CASE(all_filters_know_a_table_before_it_begins)
{
	assert_int_equal(eth_group_set(group, second_table), 0);
	assert_string_equal(calls, "r0 r1 r2");
	assert_int_equal(announced, PORTS);
}

UNIT_CASE(table_is_withdrawn_if_any_filter_fails)
{
	static const char *const calls_that_fail[] = { "r0", "r1", "r2" };

	for (size_t i = 0; i < sizeof calls_that_fail / sizeof *calls_that_fail; i++) {
		forget_calls();
		announced = 0;
		failing = calls_that_fail[i];
		assert_int_equal(eth_group_set(group, second_table), ENOSPC);
		assert_string_equal(calls, "r0 r1 r2 r0 r1 r2 t0");	/* the filters forget it before it is freed */
		assert_int_equal(announced, PORTS);
		assert_int_equal(tables(), 1);
		assert_table(first_table, UINT64_MAX / 1000000000);
	}
}

UNIT_CASE(tables_are_kept_for_ten_seconds)
{
	assert_int_equal(eth_group_set(group, second_table), 0);
	now_s = 105;
	assert_int_equal(eth_group_set(group, first_table), 0);
	assert_int_equal(tables(), 3);		/* the table until 100 is 5 s old */
	forget_calls();
	now_s = 111;
	assert_int_equal(eth_group_set(group, second_table), 0);
	assert_int_equal(tables(), 3);
	assert_table(second_table, 104);	/* 7 s ago */
	assert_string_equal(calls, "r0 r1 r2 t0");	/* no port reads a table when it is freed */
}

/* An old table is taken off the list before it is known that there is no memory for the new one. */
UNIT_CASE(old_table_is_freed_without_memory_for_a_new_one)
{
	assert_int_equal(eth_group_set(group, second_table), 0);
	forget_calls();
	no_memory = true;
	now_s = 200;
	assert_int_equal(eth_group_set(group, first_table), ENOMEM);
	assert_string_equal(calls, "r0 r1 r2 t0");
	assert_int_equal(tables(), 1);
	assert_table(second_table, 200);
}

UNIT_CASE(changes_of_tables_exclude_each_other)
{
	is_raced = true;
	assert_int_equal(eth_group_set(group, second_table), 0);
	assert_int_equal(pthread_join(other_thread, NULL), 0);
	assert_true(other_was_in);
}

/* --- ports that leave ----------------------------------------------------------------------------------------- */

UNIT_CASE(closed_port_leaves_all_its_groups)
{
	struct eth_group *other;

	assert_int_equal(create(&other), 0);
	eth_group_leave(&ports[1]);
	assert_string_equal(calls, "f1 n1");	/* its own rules, and those of groups */
	assert_null(group->ports[1]);
	assert_null(other->ports[1]);
	assert_ptr_equal(group->ports[0], &ports[0]);
	assert_ptr_equal(other->ports[2], &ports[2]);
	assert_int_equal(ports[1].lock.state, 0);
	eth_group_free(other);
}

UNIT_CASE(table_that_names_a_port_that_left_is_refused)
{
	static const uint16_t without_port_1[SIZE] = { 0, 0, 0, 2 }, last_is_port_1[SIZE] = { [SIZE - 1] = 1 };

	eth_group_leave(&ports[1]);
	forget_calls();
	assert_int_equal(eth_group_set(group, second_table), EINVAL);
	assert_int_equal(eth_group_set(group, last_is_port_1), EINVAL);
	assert_string_equal(calls, "");
	assert_int_equal(tables(), 1);
	assert_int_equal(eth_group_set(group, without_port_1), 0);
	assert_string_equal(calls, "r0 r2");
	assert_table(without_port_1, 100);
}

/* --- life ------------------------------------------------------------------------------------------------------- */

UNIT_CASE(group_needs_memory)
{
	struct eth_group *created = NULL;

	no_memory = true;
	assert_int_equal(create(&created), ENOMEM);
	no_memory = false;
	fails_size = sizeof *group + PORTS * sizeof *group->ports;
	assert_int_equal(create(&created), ENOMEM);
	assert_null(created);
}

static struct group_rule *add_rule(void)
{
	struct group_rule *rule = calloc(1, sizeof *rule);

	assert_non_null(rule);
	rule->part.counts = eth_rule_counts_new();
	rule->part.times = eth_rule_times_new(0);
	rule->next = group->rules;
	group->rules = rule;
	return rule;
}

/* Rules of ports that were moved out of it count on. */
UNIT_CASE(rules_of_a_freed_group_go_from_all_programs_first)
{
	struct rule_counts *counts;
	struct rule_times *times;

	add_rule();
	counts = add_rule()->part.counts;
	times = group->rules->part.times;
	counts->refs++;
	times->refs++;
	group->ports[1] = NULL;
	eth_group_free(group);
	group = NULL;
	assert_string_equal(calls, "u0 u2 d0 d2 u0 u2 d0 d2 t0");
	assert_int_equal(counts->refs, 1);
	assert_int_equal(times->refs, 1);
	eth_rule_counts_put(counts);
	eth_rule_times_put(times);
}

UNIT_CASE(table_outlives_the_group_at_rules_that_were_moved)
{
	struct eth_spread *spread = group->spread;

	spread_get(spread);
	eth_group_free(group);
	group = NULL;
	assert_int_equal(spread->refs, 1);
	assert_int_equal(spread_owner(spread, 2, 100), 2);
	spread_put(spread);
}

/* A port that leaves does not look at groups that are gone. */
UNIT_CASE(freed_group_is_forgotten)
{
	struct eth_group *second, *third;

	assert_int_equal(create(&second), 0);
	assert_int_equal(create(&third), 0);
	eth_group_free(second);
	eth_group_leave(&ports[0]);
	assert_null(group->ports[0]);
	assert_null(third->ports[0]);
	eth_group_free(third);
	eth_group_leave(&ports[1]);
	assert_null(group->ports[1]);
}

UNIT_MAIN(NULL, NULL)
