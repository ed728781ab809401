/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_eth_cq.c - the poll of an EVD's CQ finds the frames of raw QPs beside the device's own completions: shares of a
 * batch, notifications, moderation, and devices and QPs that are gone. The device and eth_recv.c are replaced here. */
#include <sched.h>
#include "dapl/verbs/eth_cq.h"
#include "dapl/verbs/eth_recv.h"
#include "dapl/verbs/hw.h"
#include "test/unit/unit.h"

enum { DEVICES = 2, QPS = 3, FRAME = 1000 };	/* wr_id of a frame: from FRAME on */

/* Devices, each with the CQs of two EVDs. */
static struct machine {
	struct verbs_context verbs;
	struct dapl_device dev;
	struct hw_eth_device eth;
	struct ibv_cq evds[2];
	int others;			/* completions that its own CQs have; < 0: an error */
} machines[DEVICES];
static struct hw_eth qs[QPS];
static struct ibv_cq cqs[QPS];		/* of their frames */
static int frames[QPS];			/* that are here */

/* Calls on CQs, in their order. */
static struct { struct ibv_cq *cq; int solicited; } notified[8];
static int notifies;
static struct { struct ibv_cq *cq; uint16_t count, period; } modified[8];
static int modifies;
static struct ibv_cq *bad_cq;		/* these calls fail */
static void (*meanwhile)(struct ibv_cq *cq);	/* what happens while a CQ is modified */

/* --- in place of the device and eth_recv.c -------------------------------------------------------------------- */

static struct machine *machine_of(const struct ibv_cq *cq)
{
	for (int i = 0; i < DEVICES; i++)
		if (cq->context == &machines[i].verbs.context)
			return &machines[i];
	fail_msg("a CQ of no device");
	return NULL;
}

static int poll_device(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	struct machine *m = machine_of(cq);
	int taken = m->others < n ? m->others : n;

	assert_true(n >= 0);
	for (int i = 0; i < taken; i++)
		wc[i].wr_id = (uint64_t)i;
	if (taken > 0)
		m->others -= taken;
	return taken;
}

int hw_eth_poll_frames(struct hw_eth *q, int n, struct ibv_wc *wc)
{
	int *here = &frames[q - qs], taken = *here < n ? *here : n;

	assert_true(n > 0);
	for (int i = 0; i < taken; i++)
		wc[i].wr_id = FRAME + (uint64_t)(q - qs);
	*here -= taken;
	return taken;
}

static int notify_device(struct ibv_cq *cq, int solicited)
{
	notified[notifies].cq = cq;
	notified[notifies++].solicited = solicited;
	return cq == bad_cq ? EIO : 0;
}

static int modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
	assert_int_equal(attr->attr_mask, IBV_CQ_ATTR_MODERATE);
	modified[modifies].cq = cq;
	modified[modifies].count = attr->moderate.cq_count;
	modified[modifies++].period = attr->moderate.cq_period;
	if (meanwhile)
		meanwhile(cq);
	return cq == bad_cq ? -EIO : 0;
}

/* --- fixture ---------------------------------------------------------------------------------------------------- */

UNIT_FIXTURE(set_up)
{
	memset(machines, 0, sizeof machines);
	for (int i = 0; i < DEVICES; i++) {
		struct machine *m = &machines[i];

		m->verbs = (struct verbs_context){ .sz = sizeof m->verbs, .modify_cq = modify_cq, .context = {
			.abi_compat = __VERBS_ABI_IS_EXTENDED,
			.ops = { .poll_cq = poll_device, .req_notify_cq = notify_device } } };
		m->dev.verbs = &m->verbs.context;
		m->eth = (struct hw_eth_device){ .dev = &m->dev,
			.caps = { .moderate_frames = 64, .moderate_us = 100 } };
		m->evds[0].context = m->evds[1].context = &m->verbs.context;
	}
	memset(qs, 0, sizeof qs);
	for (int i = 0; i < QPS; i++) {
		qs[i].eth = &machines[0].eth;
		qs[i].init.recv_cq = &machines[0].evds[0];
		qs[i].cq = &cqs[i];
		cqs[i].context = &machines[0].verbs.context;
	}
	memset(frames, 0, sizeof frames);
	notifies = modifies = 0;
	bad_cq = NULL;
	meanwhile = NULL;
}

UNIT_FIXTURE(tear_down)
{
	for (int i = 0; i < QPS; i++)
		hw_eth_cq_remove(&qs[i]);
	for (int i = 0; i < DEVICES; i++)
		hw_eth_cq_forget(&machines[i].eth);
}

static struct ibv_cq *evd(void) { return &machines[0].evds[0]; }

/* Polls n completions: so many frames and others are got, frames before others if they are in one batch. */
static void poll_gives(int n, int frames_got, int others_got)
{
	struct ibv_wc wc[32];
	int got = 0, polled;

	memset(wc, 0, sizeof wc);
	polled = ibv_poll_cq(evd(), n, wc);
	assert_int_equal(polled, frames_got + others_got);
	for (int i = 0; i < polled; i++)
		got += wc[i].wr_id >= FRAME;
	assert_int_equal(got, frames_got);
}

UNIT_CASE(first_raw_qp_replaces_the_devices_functions)
{
	const struct ibv_context_ops *ops = &machines[0].verbs.context.ops;
	int (*poll)(struct ibv_cq *, int, struct ibv_wc *);

	hw_eth_cq_add(&qs[0]);
	poll = ops->poll_cq;
	assert_true(poll != poll_device);
	assert_true(ops->req_notify_cq != notify_device);
	assert_true(machines[0].eth.poll_cq == poll_device);
	assert_true(machines[0].eth.req_notify_cq == notify_device);
	assert_true(machines[1].verbs.context.ops.poll_cq == poll_device);
	hw_eth_cq_add(&qs[1]);
	assert_true(ops->poll_cq == poll);
	assert_true(machines[0].eth.poll_cq == poll_device);
}

UNIT_CASE(cq_belongs_to_its_device)
{
	struct ibv_wc wc[4];

	qs[1].eth = &machines[1].eth;
	qs[1].init.recv_cq = &machines[1].evds[0];
	hw_eth_cq_add(&qs[0]);
	hw_eth_cq_add(&qs[1]);
	machines[0].others = 1;
	machines[1].others = 2;
	assert_int_equal(ibv_poll_cq(&machines[1].evds[0], 4, wc), 2);
	assert_int_equal(machines[0].others, 1);
	machines[0].eth.caps.moderate_frames = 8;
	assert_int_equal(hw_eth_moderate(&machines[1].evds[0], 64, 1), 0);
	assert_int_equal(hw_eth_moderate(evd(), 64, 1), EINVAL);
	hw_eth_cq_forget(&machines[1].eth);		/* the last one that was opened */
	poll_gives(4, 0, 1);
}

/* --- polling ---------------------------------------------------------------------------------------------------- */

UNIT_CASE(batch_is_shared_in_halves)
{
	hw_eth_cq_add(&qs[0]);
	frames[0] = machines[0].others = 20;
	poll_gives(8, 4, 4);
	poll_gives(3, 1, 2);
	poll_gives(2, 1, 1);
}

UNIT_CASE(room_that_others_leave_is_for_frames)
{
	hw_eth_cq_add(&qs[0]);
	frames[0] = 20;
	machines[0].others = 1;
	poll_gives(8, 7, 1);
	poll_gives(8, 8, 0);
	poll_gives(8, 5, 0);
	poll_gives(8, 0, 0);
}

UNIT_CASE(room_that_frames_leave_is_for_others)
{
	hw_eth_cq_add(&qs[0]);
	frames[0] = 1;
	machines[0].others = 20;
	poll_gives(8, 1, 7);
	poll_gives(8, 0, 8);
}

UNIT_CASE(completions_of_a_batch_do_not_overlap)
{
	struct ibv_wc wc[8];

	hw_eth_cq_add(&qs[0]);
	frames[0] = 20;
	machines[0].others = 2;
	assert_int_equal(ibv_poll_cq(evd(), 8, wc), 8);
	for (int i = 0; i < 8; i++)
		assert_int_equal(wc[i].wr_id, i == 4 ? 0 : i == 5 ? 1 : FRAME);
}

UNIT_CASE(single_poll_takes_others_first)
{
	hw_eth_cq_add(&qs[0]);
	frames[0] = 2;
	machines[0].others = 1;
	poll_gives(1, 0, 1);
	poll_gives(1, 1, 0);
	poll_gives(1, 1, 0);
	poll_gives(1, 0, 0);
	poll_gives(0, 0, 0);
}

UNIT_CASE(frames_of_all_qps_of_the_cq_are_found)
{
	for (int i = 0; i < QPS; i++)
		hw_eth_cq_add(&qs[i]);
	qs[2].init.recv_cq = &machines[0].evds[1];
	frames[0] = 2;
	frames[1] = 3;
	frames[2] = 4;
	poll_gives(16, 5, 0);
	assert_int_equal(frames[2], 4);
	frames[0] = frames[1] = 3;
	poll_gives(8, 6, 0);
	frames[0] = frames[1] = 3;
	machines[0].others = 8;
	poll_gives(8, 4, 4);			/* half of it, from both */
	assert_int_equal(frames[0] + frames[1], 2);
}

UNIT_CASE(error_of_the_device_loses_no_frames)
{
	struct ibv_wc wc[8];

	hw_eth_cq_add(&qs[0]);
	machines[0].others = -1;
	frames[0] = 3;
	assert_int_equal(ibv_poll_cq(evd(), 8, wc), 3);
	assert_int_equal(ibv_poll_cq(evd(), 8, wc), -1);
	assert_int_equal(ibv_poll_cq(evd(), 1, wc), -1);
}

UNIT_CASE(removed_qp_is_not_polled)
{
	for (int i = 0; i < QPS; i++)
		hw_eth_cq_add(&qs[i]);
	hw_eth_cq_remove(&qs[1]);
	hw_eth_cq_remove(&qs[1]);
	frames[0] = frames[1] = frames[2] = 2;
	poll_gives(16, 4, 0);
	assert_int_equal(frames[1], 2);
	ibv_req_notify_cq(evd(), 0);
	assert_int_equal(notifies, 3);
}

/* --- notifications ---------------------------------------------------------------------------------------------- */

UNIT_CASE(both_cqs_notify)
{
	hw_eth_cq_add(&qs[0]);
	hw_eth_cq_add(&qs[1]);
	qs[1].init.recv_cq = &machines[0].evds[1];
	assert_int_equal(ibv_req_notify_cq(evd(), 1), 0);
	assert_int_equal(notifies, 2);
	assert_ptr_equal(notified[0].cq, evd());
	assert_int_equal(notified[0].solicited, 1);
	assert_ptr_equal(notified[1].cq, &cqs[0]);
	assert_int_equal(notified[1].solicited, 0);		/* a frame is never solicited */
}

UNIT_CASE(ring_notifies_while_it_is_armed)
{
	qs[0].config.ring_frames = 8;
	hw_eth_cq_add(&qs[0]);
	assert_int_equal(ibv_req_notify_cq(evd(), 0), 0);
	assert_int_equal(notifies, 1);
	qs[0].armed = true;
	assert_int_equal(ibv_req_notify_cq(evd(), 0), 0);
	assert_int_equal(notifies, 3);
	assert_ptr_equal(notified[2].cq, &cqs[0]);
}

/* The other queues are moderated all the same. */
UNIT_CASE(refused_notification_or_moderation_is_told)
{
	struct ibv_cq *const bad[] = { evd(), &cqs[1] };

	hw_eth_cq_add(&qs[0]);
	hw_eth_cq_add(&qs[1]);
	for (int i = 0; i < 2; i++) {
		bad_cq = bad[i];
		notifies = modifies = 0;
		assert_int_equal(ibv_req_notify_cq(evd(), 0), EIO);
		assert_int_equal(notifies, i + 1);
		assert_ptr_equal(notified[i].cq, bad_cq);
		assert_int_equal(hw_eth_moderate(evd(), 1, 1), EIO);
		assert_int_equal(modifies, 3);
	}
}

/* --- moderation ------------------------------------------------------------------------------------------------- */

UNIT_CASE(moderation_is_for_all_cqs_of_the_evd)
{
	for (int i = 0; i < QPS; i++)
		hw_eth_cq_add(&qs[i]);
	qs[2].init.recv_cq = &machines[0].evds[1];
	assert_int_equal(hw_eth_moderate(evd(), 64, 100), 0);
	assert_int_equal(modifies, 3);
	assert_ptr_equal(modified[0].cq, evd());
	for (int i = 0; i < 3; i++) {
		assert_ptr_not_equal(modified[i].cq, &cqs[2]);
		assert_int_equal(modified[i].count, 64);
		assert_int_equal(modified[i].period, 100);
	}
	assert_ptr_not_equal(modified[1].cq, modified[2].cq);
}

UNIT_CASE(moderation_of_no_frames_has_no_time)
{
	hw_eth_cq_add(&qs[0]);
	assert_int_equal(hw_eth_moderate(evd(), 0, 100), 0);
	assert_int_equal(modified[1].count, 0);
	assert_int_equal(modified[1].period, 0);
}

UNIT_CASE(moderation_stays_within_the_limits)
{
	hw_eth_cq_add(&qs[0]);
	assert_int_equal(hw_eth_moderate(evd(), 65, 100), EINVAL);
	assert_int_equal(hw_eth_moderate(evd(), 64, 101), EINVAL);
	assert_int_equal(hw_eth_moderate(evd(), 64 + 0x10000, 1), EINVAL);
	assert_int_equal(modifies, 0);
}

UNIT_CASE(moderation_needs_a_device_that_has_it)
{
	assert_int_equal(hw_eth_moderate(evd(), 1, 1), EOPNOTSUPP);		/* it has no raw QP */
	hw_eth_cq_add(&qs[0]);
	machines[0].eth.caps.moderate_frames = 0;
	assert_int_equal(hw_eth_moderate(evd(), 1, 1), EOPNOTSUPP);
	machines[0].eth.caps.moderate_frames = 64;
	hw_eth_cq_forget(&machines[0].eth);
	hw_eth_cq_forget(&machines[0].eth);
	assert_int_equal(hw_eth_moderate(evd(), 1, 1), EOPNOTSUPP);
	assert_int_equal(modifies, 0);
}

static void poll_for_a_frame(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	frames[0] = 1;
	assert_int_equal(ibv_poll_cq(evd(), 1, &wc), 1);
}

UNIT_CASE(frames_are_polled_during_moderation)
{
	hw_eth_cq_add(&qs[0]);
	meanwhile = poll_for_a_frame;
	assert_int_equal(hw_eth_moderate(evd(), 1, 1), 0);
	assert_int_equal(modifies, 2);
}

static pthread_t remover;
static bool removed;

static void *remove_first(void *unused)
{
	hw_eth_cq_remove(&qs[0]);
	__atomic_store_n(&removed, true, __ATOMIC_RELEASE);
	return unused;
}

static void begin_to_remove(struct ibv_cq *cq)
{
	if (cq != qs[0].cq)
		return;
	assert_int_equal(pthread_create(&remover, NULL, remove_first, NULL), 0);
	for (int i = 0; i < 1000; i++) {
		sched_yield();
		assert_false(__atomic_load_n(&removed, __ATOMIC_ACQUIRE));
	}
}

UNIT_CASE(qp_is_removed_after_its_moderation)
{
	hw_eth_cq_add(&qs[1]);
	hw_eth_cq_add(&qs[0]);
	meanwhile = begin_to_remove;
	assert_int_equal(hw_eth_moderate(evd(), 1, 1), 0);
	assert_int_equal(modifies, 3);
	assert_int_equal(pthread_join(remover, NULL), 0);
	assert_true(removed);
	frames[0] = 1;
	poll_gives(1, 0, 0);
}

UNIT_MAIN(NULL, NULL)
