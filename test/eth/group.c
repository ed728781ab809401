/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* group.c - rules and tables of groups that change while frames come: no frame is lost, and none comes twice. */
#include "members.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* --- ETH-33 --------------------------------------------------------------------------------- */

static void ETH_33_rules_belong_to_the_group(void)
{
	DAT_ETH_RULE any = wire_any(), drop = { .mode = DAT_ETH_DROP };
	DAT_ETH_RULE_HANDLE rule, other;
	DAT_ETH_GROUP_HANDLE group;

	open_members("64");
	group = make_group();
	rule = add_rule(group, &any);
	FAILS(dat_eth_rule_add(group, &any, &other), DAT_INVALID_STATE);
	FAILS(dat_eth_rule_add(group, &drop, &other), DAT_MODEL_NOT_SUPPORTED);
	FAILS(dat_eth_rule_add(group, NULL, &other), DAT_INVALID_PARAMETER);
	add_rule(eps[0], &any);		/* a rule of the endpoint itself is another rule */
	FAILS(dat_eth_poll(group, NULL, 0, NULL), DAT_INVALID_HANDLE);
	FAILS(dat_eth_group_free(eps[0]), DAT_INVALID_HANDLE);
	OK(dat_eth_rule_free(rule));
	rule = add_rule(group, &any);
	OK(dat_eth_group_free(group));
	FAILS(dat_eth_rule_query(rule, NULL, NULL, NULL), DAT_INVALID_HANDLE);
	FAILS(dat_eth_rule_add(group, &any, &rule), DAT_INVALID_HANDLE);
	FAILS(dat_eth_group_free(group), DAT_INVALID_HANDLE);
	FAILS(dat_eth_group_set(group, table), DAT_INVALID_HANDLE);
	group = make_group();
	OK(dat_ep_free(eps[1]));	/* a member leaves */
	add_rule(group, &any);
	for (int i = 0; i < MEMBERS; i++)
		if (i != 1)
			OK(dat_ep_free(eps[i]));
	OK(dat_eth_group_free(group));
	wire_close(&w);
}

/* A member has as many rules as it may have. A rule that does not fit there is added to no member. */
static void ETH_33_a_rule_is_at_all_members_or_at_none(void)
{
	DAT_ETH_ATTR attr = { .size = sizeof attr };
	DAT_ETH_RULE any = wire_any();
	DAT_ETH_GROUP_HANDLE group;
	DAT_ETH_RULE_HANDLE handle;

	open_members("64");
	OK(dat_eth_query(w.ia, &attr));
	group = make_group();
	for (any.priority = 0; any.priority < attr.max_rules; any.priority++)
		add_rule(eps[MEMBERS - 1], &any);
	FAILS(dat_eth_rule_add(group, &any, &handle), DAT_INSUFFICIENT_RESOURCES);
	for (any.priority = 0; any.priority < attr.max_rules; any.priority++)
		add_rule(eps[0], &any);
	wire_close(&w);
}

static unsigned rounds;		/* atomic: changes made so far */

/* Frames and changes alternate, even if one of the two threads is slow. */
static void *send_frames(void *none)
{
	struct made m = make_frame(0);
	double end = life_now() + 30;

	for (uint32_t i = 0; i < MOST; i++) {
		memcpy(m.frame + SOURCE + 2, &i, sizeof i);
		random_bytes(m.frame + 26, 8);
		wire_send(&w, m.frame, m.length);
		while (i % 500 == 0 && __atomic_load_n(&rounds, __ATOMIC_RELAXED) < i / 500 && life_now() < end)
			usleep(100);
	}
	return none;
}

/* Calls `change` while frames come, until all have come. */
static void change_under_load(void (*change)(unsigned round))
{
	pthread_t sender;
	double end;

	rounds = 0;
	pthread_create(&sender, NULL, send_frames, NULL);
	for (end = life_now() + 30; received < MOST && life_now() < end;) {
		collect();
		change(rounds + 1);
		__atomic_add_fetch(&rounds, 1, __ATOMIC_RELAXED);
	}
	pthread_join(sender, NULL);
	collect_until(MOST);
	EXPECT(rounds >= MOST / 500 - 1);
}

static DAT_ETH_GROUP_HANDLE groups[2];
static DAT_ETH_RULE_HANDLE moved_rule;

static void move_rule(unsigned round)
{
	const DAT_HANDLE places[] = { groups[0], eps[1], groups[1], groups[0], eps[0] };

	OK(dat_eth_rule_move(moved_rule, places[round % 5]));
}

static void ETH_33_a_moving_rule_loses_no_frame(void)
{
	DAT_ETH_RULE any = wire_any();
	DAT_UINT64 frames;

	open_members("65536");
	groups[0] = make_group();
	random_table();
	groups[1] = make_group();
	moved_rule = add_rule(eps[0], &any);
	change_under_load(move_rule);
	OK(dat_eth_rule_query(moved_rule, NULL, &frames, NULL));
	EXPECT(frames == MOST);
	OK(dat_eth_rule_move(moved_rule, groups[0]));
	OK(dat_eth_group_free(groups[0]));
	FAILS(dat_eth_rule_move(moved_rule, groups[1]), DAT_INVALID_HANDLE);
	wire_close(&w);
}

/* --- ETH-34 --------------------------------------------------------------------------------- */

static void set_table(unsigned round)
{
	(void)round;
	random_table();
	OK(dat_eth_group_set(groups[0], table));
}

static void ETH_34_a_changing_table_loses_no_frame(void)
{
	DAT_ETH_RULE any = wire_any();

	open_members("65536");
	groups[0] = make_group();
	add_rule(groups[0], &any);
	change_under_load(set_table);
	for (int i = 0; i < MEMBERS; i++)
		EXPECT(from_member[i] > 0);
	wire_close(&w);
}

/* As before Linux 6.9. There the limit is one for all network namespaces, and need not be set. */
static void limit_memory_of_filters(void)
{
	FILE *limit = fopen("/proc/sys/net/core/optmem_max", "w");

	if (limit) {
		fprintf(limit, "20480");
		EXPECT(!fclose(limit));
	}
}

static void ETH_34_little_memory_for_filters_is_enough(void)
{
	DAT_ETH_RULE any = wire_any();

	open_members("65536");
	limit_memory_of_filters();
	groups[0] = make_group();
	moved_rule = add_rule(groups[0], &any);
	groups[1] = make_group();
	change_under_load(set_table);
	for (int i = 0; i < MEMBERS; i++)
		EXPECT(from_member[i] > 0);
	OK(dat_eth_rule_move(moved_rule, groups[1]));
	OK(dat_eth_rule_move(moved_rule, eps[0]));
	wire_close(&w);
}

static void ETH_34_frames_go_by_the_new_table(void)
{
	DAT_ETH_RULE any = wire_any();

	open_members("4096");
	groups[0] = make_group();
	add_rule(groups[0], &any);
	for (uint32_t i = 0; i < 500; i++) {
		if (i % 50 == 0)
			set_table(0);
		send_frame(i);
		collect();		/* a slow sender fills a block with each frame */
	}
	collect_until(500);
	/* a second later the filters have only this table */
	sleep(2);
	for (uint32_t i = 500; i < 1000; i++) {
		send_frame(i);
		collect();
	}
	collect_until(1000);
	wire_close(&w);
}

static void ETH_34_wrong_tables_are_refused(void)
{
	DAT_ETH_RULE any = wire_any();
	uint16_t wrong[TABLE];

	open_members("4096");
	groups[0] = make_group();
	add_rule(groups[0], &any);
	FAILS(dat_eth_group_set(groups[0], NULL), DAT_INVALID_PARAMETER);
	FAILS(dat_eth_group_set(eps[0], table), DAT_INVALID_HANDLE);
	memcpy(wrong, table, sizeof wrong);
	wrong[5] = MEMBERS;
	FAILS(dat_eth_group_set(groups[0], wrong), DAT_INVALID_PARAMETER);
	OK(dat_ep_disconnect(eps[3], DAT_CLOSE_ABRUPT_FLAG));
	wrong[5] = 3;
	FAILS(dat_eth_group_set(groups[0], wrong), DAT_INVALID_PARAMETER);
	for (int i = 0; i < TABLE; i++)		/* nothing for the endpoint that has left */
		table[i] = (uint16_t)(i % 3);
	OK(dat_eth_group_set(groups[0], table));
	OK(dat_ep_reset(eps[3]));
	for (uint32_t i = 0; i < 200; i++) {
		send_frame(i);
		collect();
	}
	collect_until(200);
	EXPECT(!from_member[3]);
	wire_close(&w);
}

int main(int argc, char **argv)
{
	static const struct life_case cases[] = {
		CASE(ETH_33_rules_belong_to_the_group),
		CASE(ETH_33_a_rule_is_at_all_members_or_at_none),
		CASE(ETH_33_a_moving_rule_loses_no_frame),
		CASE(ETH_34_a_changing_table_loses_no_frame),
		CASE(ETH_34_little_memory_for_filters_is_enough),
		CASE(ETH_34_frames_go_by_the_new_table),
		CASE(ETH_34_wrong_tables_are_refused),
	};

	if (!wire_possible())
		return WIRE_SKIPPED;
	members_seed();
	return life_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
