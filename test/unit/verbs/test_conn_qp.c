/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_conn_qp.c - the two steps of a queue pair to RTS: what rdma_cm proposes, within what the two sides, the
 * connection and the environment say. rdma_cm and the device are replaced here. */
#include "dapl/core/base/settings.h"
#include "dapl/verbs/conn_qp.h"
#include "test/unit/unit.h"

enum { RTR, RTS, STEPS };

struct dapl_settings dapl_settings;		/* in place of the environment */

static struct rdma_cm_id id;
static struct ibv_qp qp;
static struct dapl_conn conn;

static struct ibv_qp_attr proposed;		/* by rdma_cm, for both steps */
static struct {
	struct ibv_qp_attr attr;
	int mask;
} set[STEPS];
static int proposals, steps;
static int no_proposal, no_step;		/* the call of this number fails; -1: none */

int rdma_init_qp_attr(struct rdma_cm_id *of, struct ibv_qp_attr *attr, int *mask)
{
	enum ibv_qp_state state = attr->qp_state;

	assert_ptr_equal(of, &id);
	if (proposals++ == no_proposal) {
		errno = EINVAL;
		return -1;
	}
	*attr = proposed;
	attr->qp_state = state;
	*mask = state == IBV_QPS_RTR ? 0x111 : 0x222;
	return 0;
}

int ibv_modify_qp(struct ibv_qp *of, struct ibv_qp_attr *attr, int mask)
{
	assert_ptr_equal(of, &qp);
	assert_true(steps < STEPS);
	set[steps].attr = *attr;
	set[steps].mask = mask;
	return steps++ == no_step ? ENOMEM : 0;
}

UNIT_FIXTURE(begin)
{
	memset(&dapl_settings, 0, sizeof dapl_settings);
	dapl_settings.tclass = dapl_settings.ack_timer = -1;
	conn = (struct dapl_conn){ .id = &id, .qp = &qp, .tos = -1, .reads_in = 16, .reads_out = 16 };
	proposed = (struct ibv_qp_attr){ .path_mtu = IBV_MTU_2048, .max_dest_rd_atomic = 8,
		.max_rd_atomic = 4, .timeout = 14 };
	memset(set, 0, sizeof set);
	proposals = steps = 0;
	no_proposal = no_step = -1;
}

static void move(void)
{
	bool gone = false;

	proposals = steps = 0;
	assert_int_equal(hw_qp_to_rts(&conn, &gone), 0);
	assert_false(gone);
	assert_int_equal(steps, STEPS);
}

#define TEST(name) UNIT_TEST_WITH(name, begin, NULL)

TEST(both_steps_use_the_mask_of_rdma_cm)
{
	move();
	assert_int_equal(set[RTR].attr.qp_state, IBV_QPS_RTR);
	assert_int_equal(set[RTR].mask, 0x111);
	assert_int_equal(set[RTS].attr.qp_state, IBV_QPS_RTS);
	assert_int_equal(set[RTS].mask, 0x222);
}

TEST(least_mtu_of_path_peer_and_environment_is_set)
{
	static const struct { enum ibv_mtu path; unsigned bytes; uint8_t peer; enum ibv_mtu least; } cases[] = {
		{ IBV_MTU_2048, 0, 0, IBV_MTU_2048 },
		{ IBV_MTU_2048, 1024, 0, IBV_MTU_1024 },
		{ IBV_MTU_2048, 4096, 0, IBV_MTU_2048 },
		{ IBV_MTU_2048, 0, IBV_MTU_512, IBV_MTU_512 },
		{ IBV_MTU_2048, 1024, IBV_MTU_512, IBV_MTU_512 },
		{ IBV_MTU_4096, 1024, IBV_MTU_2048, IBV_MTU_1024 },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		proposed.path_mtu = cases[i].path;
		dapl_settings.ib_mtu = cases[i].bytes;
		conn.peer_mtu = cases[i].peer;
		move();
		assert_int_equal(set[RTR].attr.path_mtu, cases[i].least);
	}
}

TEST(mtu_in_bytes_is_rounded_down_to_a_code)
{
	static const struct { unsigned bytes; uint8_t code; } cases[] = {
		{ 0, 0 }, { 256, IBV_MTU_256 }, { 511, IBV_MTU_256 }, { 512, IBV_MTU_512 },
		{ 1024, IBV_MTU_1024 }, { 2047, IBV_MTU_1024 }, { 2048, IBV_MTU_2048 },
		{ 4096, IBV_MTU_4096 }, { 9000, IBV_MTU_4096 },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		dapl_settings.ib_mtu = cases[i].bytes;
		assert_int_equal(hw_qp_own_mtu(), cases[i].code);
	}
}

TEST(reads_do_not_exceed_what_the_sides_agreed_on)
{
	move();
	assert_int_equal(set[RTR].attr.max_dest_rd_atomic, 8);
	assert_int_equal(set[RTS].attr.max_rd_atomic, 4);
	conn.reads_in = 3;
	conn.reads_out = 2;
	move();
	assert_int_equal(set[RTR].attr.max_dest_rd_atomic, 3);
	assert_int_equal(set[RTS].attr.max_rd_atomic, 2);
}

TEST(retries_and_timers_are_those_of_the_environment)
{
	dapl_settings.ack_retry = 5;
	dapl_settings.rnr_retry = 6;
	dapl_settings.rnr_timer = 12;
	move();
	assert_int_equal(set[RTR].attr.min_rnr_timer, 12);
	assert_int_equal(set[RTS].attr.timeout, 14);	/* rdma_cm knows the path */
	assert_int_equal(set[RTS].attr.retry_cnt, 5);
	assert_int_equal(set[RTS].attr.rnr_retry, 6);
}

TEST(connection_overrides_the_environment)
{
	dapl_settings.ack_retry = 5;
	dapl_settings.rnr_retry = 6;
	dapl_settings.rnr_timer = 12;
	conn.tuning = (struct dapl_conn_tuning){ .ack_timeout = 1 + 0, .ack_retry = 1 + 3,
		.rnr_timer = 1 + 20, .rnr_retry = 1 + 7, .traffic_class = 1 + 32 };
	proposed.ah_attr.is_global = 1;
	move();
	assert_int_equal(set[RTR].attr.min_rnr_timer, 20);
	assert_int_equal(set[RTR].attr.ah_attr.grh.traffic_class, 32);
	assert_int_equal(set[RTS].attr.timeout, 0);
	assert_int_equal(set[RTS].attr.retry_cnt, 3);
	assert_int_equal(set[RTS].attr.rnr_retry, 7);
}

/* rdma_cm has the initiator's timer and class; a side that accepts has variables of its own. */
TEST(environment_holds_at_both_sides)
{
	static const int timers[] = { 0, 9, 31 };

	proposed.ah_attr.is_global = 1;
	proposed.ah_attr.grh.traffic_class = 9;
	for (int active = 0; active < 2; active++)
		for (int i = 0; i < 3; i++) {
			conn.active = active;
			dapl_settings.ack_timer = timers[i];
			conn.tos = timers[i];	/* of DAPL_CM_TOS */
			move();
			assert_int_equal(set[RTS].attr.timeout, timers[i]);
			assert_int_equal(set[RTR].attr.ah_attr.grh.traffic_class, timers[i]);
		}
	dapl_settings.tclass = 40;
	move();
	assert_int_equal(set[RTR].attr.ah_attr.grh.traffic_class, 40);
	dapl_settings.tclass = conn.tos = -1;
	move();
	assert_int_equal(set[RTR].attr.ah_attr.grh.traffic_class, 9);
}

TEST(unset_path_fields_stay_as_rdma_cm_says)
{
	struct ibv_ah_attr ah = { .is_global = 1, .sl = 3, .grh = { .hop_limit = 64, .traffic_class = 9 } };

	hw_qp_set_path(&ah, NULL);
	assert_int_equal(ah.sl, 3);
	assert_int_equal(ah.grh.hop_limit, 64);
	assert_int_equal(ah.grh.traffic_class, 9);
}

/* A path without a GRH has a service level only. */
TEST(path_fields_of_the_environment_are_set)
{
	for (int global = 0; global < 2; global++) {
		struct ibv_ah_attr ah = { .is_global = (uint8_t)global, .grh = { .traffic_class = 9 } };

		dapl_settings.ib_sl = 5;
		dapl_settings.hop_limit = 7;
		dapl_settings.tclass = 0;
		hw_qp_set_path(&ah, global ? &conn : NULL);
		assert_int_equal(ah.sl, 5);
		assert_int_equal(ah.grh.hop_limit, global ? 7 : 0);
		assert_int_equal(ah.grh.traffic_class, global ? 0 : 9);
	}
}

/* Then rdma_cm reports nothing more of the connection: its user must not wait for that. */
TEST(refusal_of_rdma_cm_tells_that_the_peer_is_gone)
{
	for (int step = 0; step < STEPS; step++) {
		bool gone = false;

		begin(state);
		no_proposal = step;
		assert_int_equal(hw_qp_to_rts(&conn, &gone), EINVAL);
		assert_true(gone);
		assert_int_equal(steps, step);
	}
}

TEST(refusal_of_the_device_is_an_error_of_its_own)
{
	for (int step = 0; step < STEPS; step++) {
		bool gone = false;

		begin(state);
		no_step = step;
		assert_int_equal(hw_qp_to_rts(&conn, &gone), ENOMEM);
		assert_false(gone);
		assert_int_equal(steps, step + 1);
		assert_int_equal(proposals, step + 1);
	}
}

UNIT_MAIN(NULL, NULL)
