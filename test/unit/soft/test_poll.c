/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_poll.c - when a poll drives progress, and how a CQ is armed. Progress and its owner are replaced here. */
#include <sched.h>
#include "dapl/soft/obj/cq.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/progress/owner.h"
#include "dapl/soft/progress/progress.h"
#include "dapl/soft/verbs/post.h"
#include "test/unit/unit.h"

enum { ROOM = 5, ARMED_BOTH = SOFT_ARMED | SOFT_ARMED_SOLICITED };

static struct dapl_device dev;
static struct soft_cq cq;
static struct ibv_wc ring[8], wc[ROOM];
static int entries;			/* that the poll asks for */
static int after;			/* completions that come by progress */
static bool busy;			/* progress finds something */
static unsigned progresses, sleeps;	/* calls of soft_progress_poll(), soft_owner_sleep() */
static unsigned yields;			/* calls of sched_yield(2) */

REPLACE(soft_progress_poll, soft_owner_sleep, sched_yield)

static void add(int n)
{
	while (n--)
		soft_cq_add(&cq, &(struct ibv_wc){ .wr_id = 7 }, false);
}

bool __wrap_soft_progress_poll(const struct soft_cq *of)
{
	assert_ptr_equal(of, &cq);
	progresses++;
	add(after);
	return busy;
}

/* It may take a lock, and others may find the CQ armed. */
void __wrap_soft_owner_sleep(struct dapl_device *of)
{
	assert_ptr_equal(of, &dev);
	assert_false(cq.lock.held);
	assert_true(cq.armed);
	sleeps++;
}

/* A thread that waits for the lock of the CQ calls it. The lock is free afterwards. */
int __wrap_sched_yield(void)
{
	assert_int_equal(cq.armed, 0);
	yields++;
	cq.lock.held = 0;
	return 0;
}

UNIT_FIXTURE(set_up)
{
	cq = (struct soft_cq){ .dev = &dev, .ring = ring, .mask = 7 };
	dapl_spin_init(&cq.lock, RANK_SOFT_CQ);
	entries = ROOM;
	after = 0;
	busy = true;
	progresses = sleeps = yields = 0;
}

static int poll_cq(void) { return soft_cq_poll(&cq.cq, entries, wc); }

#define CASE(name) UNIT_TEST_WITH(name, set_up, NULL)

/* --- polling --------------------------------------------------------------------------------------------------- */

CASE(completions_in_the_ring_need_no_progress)
{
	for (int before = 1; before <= ROOM; before++) {	/* fewer than asked for suffice */
		add(before);
		assert_int_equal(poll_cq(), before);
		assert_int_equal(wc[before - 1].wr_id, 7);
		assert_int_equal(progresses, 0);
	}
}

CASE(empty_ring_is_looked_at_again_after_progress)
{
	for (after = 0; after <= ROOM; after++) {	/* 0: they went to another CQ */
		assert_int_equal(poll_cq(), after);
		assert_int_equal(progresses, after + 1);
	}
}

CASE(progress_without_a_completion_ends_the_poll)
{
	busy = false;
	after = 1;
	assert_int_equal(poll_cq(), 0);
	assert_int_equal(progresses, 1);
}

CASE(poll_for_no_entries_drives_no_progress)
{
	for (entries = -1; entries < 1; entries++) {
		assert_int_equal(poll_cq(), 0);
		assert_int_equal(progresses, 0);
	}
	entries = 1;
	poll_cq();
	assert_int_equal(progresses, 1);
}

/* --- arming ----------------------------------------------------------------------------------------------------- */

CASE(each_kind_of_notification_is_armed)
{
	static const struct { uint8_t was; int solicited_only; uint8_t is; } rows[] = {
		{ 0, 0, SOFT_ARMED }, { 0, 1, SOFT_ARMED_SOLICITED }, { 0, -1, SOFT_ARMED_SOLICITED },
		{ SOFT_ARMED, 0, SOFT_ARMED }, { SOFT_ARMED_SOLICITED, 1, SOFT_ARMED_SOLICITED },
		{ SOFT_ARMED_SOLICITED, 0, ARMED_BOTH }, { SOFT_ARMED, 1, ARMED_BOTH }, { ARMED_BOTH, 1, ARMED_BOTH },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		cq.armed = rows[i].was;
		assert_int_equal(soft_cq_arm(&cq.cq, rows[i].solicited_only), 0);
		assert_int_equal(cq.armed, rows[i].is);
	}
}

CASE(thread_that_arms_may_sleep)
{
	assert_int_equal(soft_cq_arm(&cq.cq, 0), 0);
	assert_int_equal(sleeps, 1);
	assert_int_equal(yields, 0);
}

CASE(arming_waits_for_a_completion_that_is_being_added)
{
	cq.lock.held = 1;
	assert_int_equal(soft_cq_arm(&cq.cq, 0), 0);
	assert_int_equal(yields, 1);
	assert_int_equal(cq.armed, SOFT_ARMED);
}

UNIT_MAIN(NULL, NULL)
