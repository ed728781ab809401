/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_place.c - rules as objects at a port or at a group: the order in which filters and programs get and
 * lose them, moves, failures, counts. The rules of a port (rules.c) are replaced here. */
#include "dapl/softeth/group.h"
#include "dapl/softeth/ingress.h"
#include "dapl/softeth/place.h"
#include "dapl/softeth/rules.h"
#include "dapl/softeth/spread.h"
#include "test/unit/softeth/port_calls.h"
#include "test/unit/unit.h"

enum { RULES = 8 };

static struct eth_group *group;		/* of ports 0 and 2; port 1 has left it */
static struct eth_spread spread;

/* --- the rules of ports -------------------------------------------------------------------------- */

static struct {
	struct eth_rule rule;
	const struct eth_port *port;	/* NULL: free */
} attached[RULES];

static void end_rule(unsigned i)
{
	attached[i].port = NULL;
	eth_rule_counts_put(attached[i].rule.counts);
	eth_rule_times_put(attached[i].rule.times);
}

REPLACE(eth_rule_attach, eth_rule_steer, eth_rule_unsteer, eth_rule_detach, eth_rule_has, eth_steer_count)

int __wrap_eth_rule_attach(struct eth_port *port, const struct rule_part *part, uint16_t member,
			   struct eth_rule **added)
{
	unsigned i = 0;
	int err = note_call('a', port);

	if (err)
		return err;
	while (attached[i].port)
		i++;
	attached[i].port = port;
	attached[i].rule = (struct eth_rule){ .rule = part->rule, .counts = part->counts, .times = part->times,
		.spread = part->spread, .member = member };
	part->counts->refs++;
	part->times->refs++;
	*added = &attached[i].rule;
	return 0;
}

int __wrap_eth_rule_steer(struct eth_port *port) { return note_call('s', port); }

void __wrap_eth_rule_unsteer(struct eth_port *port, const struct rule_times *times, bool purged)
{
	note_call(purged ? 'p' : 'u', port);
	for (unsigned i = 0; i < RULES; i++)
		if (purged && attached[i].port == port && attached[i].rule.times == times)
			attached[i].rule.moved = true;
}

void __wrap_eth_rule_detach(struct eth_port *port, const struct rule_times *times)
{
	note_call('d', port);
	for (unsigned i = 0; i < RULES; i++)
		if (attached[i].port == port && attached[i].rule.times == times)
			end_rule(i);
}

bool __wrap_eth_rule_has(struct eth_port *port, const struct eth_rule *rule)
{
	for (unsigned i = 0; i < RULES; i++)
		if (attached[i].port == port && &attached[i].rule == rule)
			return !rule->moved;
	return false;
}

int __wrap_eth_steer_count(const struct eth_port *port, const struct eth_rule *rule, uint64_t *frames,
			   uint64_t *bytes)
{
	*frames = 700;
	*bytes = 70000;
	return 0;
}

static unsigned rules_of_ports(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < RULES; i++)
		n += attached[i].port != NULL;
	return n;
}

/* --- a case -------------------------------------------------------------------------------------- */

UNIT_FIXTURE(set_up)
{
	group = calloc(1, sizeof *group + PORTS * sizeof *group->ports);
	group->spread = &spread;
	group->n = PORTS;
	group->ports[0] = &ports[0];
	group->ports[2] = &ports[2];
	forget_calls();
}

UNIT_FIXTURE(tear_down)
{
	while (group->rules) {
		struct group_rule *rule = group->rules;

		group->rules = rule->next;
		eth_rule_counts_put(rule->part.counts);
		eth_rule_times_put(rule->part.times);
		free(rule);
	}
	for (unsigned i = 0; i < RULES; i++)
		if (attached[i].port)
			end_rule(i);
	free(group);
}

static struct eth_place at_port(int i) { return (struct eth_place){ .port = &ports[i] }; }
static struct eth_place at_group(void) { return (struct eth_place){ .group = group }; }

static void *add(struct eth_place at, uint32_t mode)
{
	const struct dapl_eth_rule rule = { .mode = mode, .tag = 5 };
	void *added = NULL;

	assert_int_equal(eth_place_add(at, &rule, &added), 0);
	assert_non_null(added);
	*calls = 0;
	return added;
}

static int try_add(struct eth_place at, const char *fails)
{
	const struct dapl_eth_rule rule = { .mode = ETH_TAKE };
	void *added;

	failing = fails;
	return eth_place_add(at, &rule, &added);
}

/* The packet socket sees a frame before the program that takes it away does: no frame is missed by both. */
UNIT_CASE(rule_is_in_all_filters_before_the_first_program_has_it)
{
	assert_int_equal(try_add(at_group(), NULL), 0);
	assert_string_equal(calls, "a0 a2 s0 s2");
	assert_int_equal(attached[0].rule.member, 0);
	assert_int_equal(attached[1].rule.member, 2);
	assert_ptr_equal(attached[0].rule.spread, &spread);
	assert_ptr_equal(attached[0].rule.times, attached[1].rule.times);
}

UNIT_CASE(rule_goes_from_all_programs_before_the_first_filter_loses_it)
{
	void *rule = add(at_group(), ETH_TAKE);

	eth_place_free(at_group(), rule);
	assert_string_equal(calls, "u0 u2 d0 d2");
	assert_int_equal(rules_of_ports(), 0);
	assert_null(group->rules);
}

UNIT_CASE(rule_of_a_port_is_the_ports_alone)
{
	void *rule = add(at_port(1), ETH_TAKE);

	assert_ptr_equal(rule, &attached[0].rule);
	assert_null(attached[0].rule.spread);
	assert_int_equal(attached[0].rule.times->from_ns, 0);
	eth_place_free(at_port(1), rule);
	assert_string_equal(calls, "u1 d1");
}

UNIT_CASE(rule_among_others_of_its_group_is_freed)
{
	void *first = add(at_group(), ETH_TAKE), *second = add(at_group(), ETH_COPY),
		*third = add(at_group(), ETH_TAKE);

	eth_place_free(at_group(), second);
	assert_int_equal(rules_of_ports(), 4);
	assert_ptr_equal(group->rules, third);
	assert_ptr_equal(group->rules->next, first);
	assert_null(group->rules->next->next);
}

UNIT_CASE(failure_at_any_port_leaves_no_rule)
{
	static const char *const calls_that_fail[] = { "a0", "a2", "s0", "s2" };

	for (size_t i = 0; i < sizeof calls_that_fail / sizeof *calls_that_fail; i++) {
		*calls = 0;
		assert_int_equal(try_add(at_group(), calls_that_fail[i]), ENOSPC);
		assert_int_equal(rules_of_ports(), 0);
		assert_null(group->rules);
	}
	assert_string_equal(calls, "a0 a2 s0 s2 u0 u2 d0 d2");
}

UNIT_CASE(rule_that_has_ended_is_not_freed_again)
{
	void *rule = add(at_group(), ETH_TAKE), *own = add(at_port(1), ETH_TAKE);

	eth_place_free(at_group(), rule);
	eth_place_free(at_port(1), own);
	*calls = 0;
	eth_place_free(at_group(), rule);
	eth_place_free(at_port(1), own);
	assert_string_equal(calls, "");
}

/* --- moves ------------------------------------------------------------------------------------------ */

UNIT_CASE(moved_rule_is_at_its_new_port_before_it_leaves)
{
	void *rule = add(at_port(0), ETH_TAKE), *moved = NULL;
	const struct rule_times *old = attached[0].rule.times, *new;

	assert_int_equal(eth_place_move(at_port(0), rule, at_port(1), &moved), 0);
	assert_string_equal(calls, "a1 s1 p0");
	assert_ptr_equal(moved, &attached[1].rule);
	new = attached[1].rule.times;
	assert_int_not_equal(old->until_ns, 0);		/* each frame is one rule's */
	assert_int_equal(old->until_ns, new->from_ns);
	assert_int_equal(new->until_ns, 0);
	assert_ptr_equal(attached[0].rule.counts, attached[1].rule.counts);
	assert_int_equal(attached[1].rule.rule.tag, 5);
}

UNIT_CASE(rule_moves_into_a_group_and_out_of_it)
{
	void *rule = add(at_port(1), ETH_TAKE), *in_group = NULL, *out = NULL;

	assert_int_equal(eth_place_move(at_port(1), rule, at_group(), &in_group), 0);
	assert_string_equal(calls, "a0 a2 s0 s2 p1");
	assert_ptr_equal(in_group, group->rules);
	assert_ptr_equal(attached[1].rule.spread, &spread);
	*calls = 0;
	assert_int_equal(eth_place_move(at_group(), in_group, at_port(1), &out), 0);
	assert_string_equal(calls, "a1 s1 p0 p2");
	assert_null(group->rules);
	assert_null(((struct eth_rule *)out)->spread);
}

UNIT_CASE(move_that_fails_changes_nothing)
{
	void *rule = add(at_port(0), ETH_TAKE), *moved = NULL;
	uint64_t frames, bytes;

	failing = "s1";
	assert_int_equal(eth_place_move(at_port(0), rule, at_port(1), &moved), ENOSPC);
	assert_string_equal(calls, "a1 s1 u1 d1");
	assert_int_equal(rules_of_ports(), 1);
	assert_int_equal(attached[0].rule.times->until_ns, 0);
	assert_null(moved);
	attached[0].rule.counts->frames = 1;
	eth_place_count(at_port(0), rule, &frames, &bytes);
	assert_int_equal(frames, 1);
}

UNIT_CASE(rule_that_has_ended_does_not_move)
{
	void *rule = add(at_group(), ETH_TAKE), *moved = NULL;

	eth_place_free(at_group(), rule);
	*calls = 0;
	assert_int_equal(eth_place_move(at_group(), rule, at_port(1), &moved), ENOENT);
	assert_string_equal(calls, "");
}

/* --- counts ----------------------------------------------------------------------------------------- */

static void assert_counts(struct eth_place at, const void *rule, uint64_t frames, uint64_t bytes)
{
	uint64_t found_frames = 9, found_bytes = 9;

	eth_place_count(at, rule, &found_frames, &found_bytes);
	assert_int_equal(found_frames, frames);
	assert_int_equal(found_bytes, bytes);
}

UNIT_CASE(frames_are_counted_across_a_group)
{
	void *rule = add(at_group(), ETH_TAKE);

	attached[0].rule.counts->frames += 3;
	attached[1].rule.counts->frames += 4;
	attached[1].rule.counts->bytes = 500;
	assert_counts(at_group(), rule, 7, 500);
	assert_int_equal(attached[0].rule.counts->refs, 3);	/* of two ports and the group: none is left behind */
	assert_int_equal(attached[0].rule.times->refs, 3);
	eth_place_free(at_group(), rule);
	assert_counts(at_group(), rule, 0, 0);
}

/* No thread sees a frame that is dropped: the program counts it. */
UNIT_CASE(dropped_frames_are_counted_by_the_program)
{
	assert_counts(at_port(1), add(at_port(1), ETH_DROP), 700, 70000);
	assert_counts(at_port(1), add(at_port(1), ETH_TAKE), 0, 0);
}

UNIT_MAIN(NULL, NULL)
