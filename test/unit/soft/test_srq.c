/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_srq.c - shared receive queues: limits, order, resizes, the limit event, and QPs that wait. */
#include "dapl/soft/obj/mem.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/srq.h"
#include "dapl/soft/tunables.h"
#include "test/unit/unit.h"

enum { SGES = 3 };

static struct dapl_device dev;
static struct soft_pd pd = { .pd = { .context = &dev.verbs } };
static struct soft_srq *srq;

/* The service thread would tell core of the event. */
REPLACE(dapl_task_queue)
void __wrap_dapl_task_queue(struct dapl_task *task, void (*run)(struct dapl_task *))
{
	assert_ptr_equal(task, &dev.async.task);
}

static void events_are(unsigned n)
{
	assert_int_equal(srq->below_limit.times, n);
	if (n) {
		assert_ptr_equal(TAILQ_FIRST(&dev.async.list), &srq->below_limit);
		assert_int_equal(srq->below_limit.event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
		assert_ptr_equal(srq->below_limit.event.element.srq, &srq->srq);
	}
}

static int create(uint32_t wr, uint32_t sge, uint32_t limit)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = wr, .max_sge = sge, .srq_limit = limit } };
	struct ibv_srq *made;
	int err = soft_srq_create(&pd.pd, &attr, &made);

	if (!err)
		srq = soft_srq(made);
	return err;
}

static int set_up(void **state)
{
	dapl_mutex_init(&dev.async.lock, RANK_SOFT_EVENTS);
	TAILQ_INIT(&dev.async.list);
	return create(4, SGES, 0);
}

UNIT_FIXTURE(tear_down)
{
	assert_int_equal(soft_srq_destroy(&srq->srq), 0);
	assert_true(TAILQ_EMPTY(&dev.async.list));
	assert_int_equal(pd.refs, 0);
}

static int post(uint64_t id, int sges)
{
	struct ibv_sge sge[SGES + 1];
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = sge, .num_sge = sges };

	for (int i = 0; i <= SGES; i++)
		sge[i] = (struct ibv_sge){ .addr = id, .length = 10 };
	return rq_post(&srq->rq, &wr);
}

/* A QP that takes a receive. Its place for it has room for the segments of one. */
struct taker {
	struct soft_qp qp;
	uint64_t room[2 + SGES * sizeof(struct ibv_sge)];
};

static void taker_init(struct taker *t)
{
	memset(t, 0, sizeof *t);
	dapl_mutex_init(&t->qp.lock, RANK_SOFT_QP);
	t->qp.srq = srq;
	t->qp.taken = (struct soft_rwqe *)t->room;
}

static bool take(struct taker *t)
{
	bool taken;

	dapl_mutex_lock(&t->qp.lock);
	taken = srq_take(&t->qp);
	dapl_mutex_unlock(&t->qp.lock);
	return taken;
}

static void stop_waiting(struct taker *t)
{
	dapl_mutex_lock(&t->qp.lock);
	soft_srq_stop_waiting(&t->qp);
	dapl_mutex_unlock(&t->qp.lock);
}

UNIT_CASE(sizes_have_limits)
{
	static const struct {
		uint32_t wr, sge;
		int err;
	} rows[] = { { 0, 1, EINVAL }, { SOFT_MAX_WR + 1, 1, EINVAL }, { 1, SOFT_MAX_SGE + 1, EINVAL },
		{ 1, SOFT_MAX_SGE, 0 }, { 1, 0, 0 } };
	struct soft_srq *first = srq;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_int_equal(create(rows[i].wr, rows[i].sge, 0), rows[i].err);
		if (!rows[i].err)
			assert_int_equal(soft_srq_destroy(&srq->srq), 0);
		srq = first;
	}
}

UNIT_CASE(granted_sizes_are_told)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 5 } };
	struct ibv_srq *made;

	assert_int_equal(soft_srq_create(&pd.pd, &attr, &made), 0);
	assert_int_equal(attr.attr.max_wr, 8);		/* rings are powers of two */
	assert_int_equal(attr.attr.max_sge, 1);
	assert_int_equal(pd.refs, 2);
	assert_int_equal(soft_srq_destroy(made), 0);
}

UNIT_CASE(full_queue_refuses_a_post)
{
	for (uint64_t id = 0; id < 4; id++)
		assert_int_equal(post(id, 1), 0);
	assert_int_equal(post(4, 1), ENOMEM);
}

UNIT_CASE(too_many_segments_are_refused)
{
	assert_int_equal(post(1, SGES + 1), EINVAL);
	assert_int_equal(post(1, -1), EINVAL);
	assert_int_equal(post(1, SGES), 0);
	assert_int_equal(soft_rwqe(&srq->rq, srq->rq.head)->length, 10 * SGES);
}

UNIT_CASE(qp_without_a_receive_waits_once)
{
	struct taker a, b;

	taker_init(&a);
	taker_init(&b);
	assert_false(take(&a));
	assert_false(take(&b));
	assert_false(take(&a));
	assert_ptr_equal(TAILQ_FIRST(&srq->waiting), &a.qp);
	assert_ptr_equal(TAILQ_NEXT(&a.qp, srq_link), &b.qp);
	assert_null(TAILQ_NEXT(&b.qp, srq_link));
	stop_waiting(&a);
	stop_waiting(&a);
	assert_ptr_equal(TAILQ_FIRST(&srq->waiting), &b.qp);
	stop_waiting(&b);
	assert_true(TAILQ_EMPTY(&srq->waiting));
	a.qp.srq = NULL;
	stop_waiting(&a);	/* a QP without an SRQ never waits */
}

static int modify(int mask, uint32_t wr, uint32_t limit)
{
	struct ibv_srq_attr attr = { .max_wr = wr, .srq_limit = limit };
	int err = soft_srq_modify(&srq->srq, &attr, mask);

	assert_int_equal(attr.max_wr, srq->rq.size);
	return err;
}

UNIT_CASE(resize_keeps_receives_and_their_order)
{
	struct taker t;

	taker_init(&t);
	for (uint64_t id = 0; id < 4; id++)
		post(id, 1);
	take(&t);
	post(4, SGES);			/* the ring has wrapped */
	assert_int_equal(modify(IBV_SRQ_MAX_WR, 6, 0), 0);
	assert_int_equal(srq->rq.size, 8);
	for (uint64_t id = 1; id <= 4; id++) {
		assert_true(take(&t));
		assert_int_equal(t.qp.taken->wr_id, id);
	}
	assert_int_equal(t.qp.taken->sge[SGES - 1].addr, 4);
	assert_false(take(&t));
	stop_waiting(&t);
}

UNIT_CASE(resize_below_what_is_posted_is_refused)
{
	for (uint64_t id = 0; id < 3; id++)
		post(id, 1);
	assert_int_equal(modify(IBV_SRQ_MAX_WR, 2, 0), EINVAL);
	assert_int_equal(modify(IBV_SRQ_MAX_WR, 0, 0), EINVAL);
	assert_int_equal(modify(IBV_SRQ_MAX_WR, SOFT_MAX_WR + 1, 0), EINVAL);
	assert_int_equal(srq->rq.size, 4);
	assert_int_equal(modify(IBV_SRQ_MAX_WR, 3, 0), 0);
}

UNIT_CASE(limit_is_told_once_when_it_is_passed)
{
	struct taker t;

	taker_init(&t);
	for (uint64_t id = 0; id < 4; id++)
		post(id, 1);
	assert_int_equal(modify(IBV_SRQ_LIMIT, 0, 3), 0);
	take(&t);
	events_are(0);	/* three are left */
	take(&t);
	take(&t);
	events_are(1);
	assert_int_equal(modify(IBV_SRQ_LIMIT, 0, 2), 0);	/* one is left: at once */
	events_are(2);
}

UNIT_CASE(limit_beyond_the_size_is_refused)
{
	assert_int_equal(modify(IBV_SRQ_LIMIT, 0, 5), EINVAL);
	assert_int_equal(srq->limit, 0);
	assert_int_equal(modify(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT, 8, 5), 0);
	events_are(1);
}

UNIT_CASE(queue_in_use_is_not_destroyed)
{
	srq->refs = 1;
	assert_int_equal(modify(IBV_SRQ_LIMIT, 0, 2), 0);
	assert_int_equal(soft_srq_destroy(&srq->srq), EBUSY);
	events_are(1);
	srq->refs = 0;
}

UNIT_MAIN(NULL, NULL)
