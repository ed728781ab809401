/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_qp_life.c - which queue pairs are made, what they have and hold, and what is left of one that is reset or
 * destroyed. */
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/random.h"
#include "dapl/soft/obj/window.h"
#include "dapl/soft/obj/srq.h"
#include "dapl/soft/rdmap/ud.h"
#include "dapl/soft/shm/revoke.h"
#include "dapl/soft/shm/rmem_map.h"
#include "dapl/soft/tunables.h"
#include "dapl/soft/verbs/post.h"
#include "dapl/soft/verbs/qp_life.h"
#include "test/unit/soft/stream_test.h"
#include "test/unit/unit.h"

static struct ibv_qp_init_attr attr;
static struct soft_qp *made;		/* freed by the teardown, unless NULL */
static uint32_t randoms[8];		/* the next random numbers */
static unsigned randoms_left, randoms_at;
static int allocations = -1;		/* that succeed before one fails; -1: all do */
static int ud_err;
static unsigned ud_opens;
static unsigned receives_at_revocation;	/* in the queue of `made` */
static bool mapped;

REPLACE(soft_ud_open, rmem_map_for_consumer)
EXTEND(soft_random, revoke_instead_of_flush)

uint32_t __wrap_soft_random(void) { return randoms_at < randoms_left ? randoms[randoms_at++] : __real_soft_random(); }
static bool allocation_fails(void) { return allocations >= 0 && !allocations--; }

UNIT_FAIL_MALLOC(allocation_fails())

UNIT_FAIL_CALLOC(allocation_fails())

int __wrap_soft_ud_open(struct dapl_device *dev)
{
	assert_ptr_equal(dev, stream_device.dev);
	ud_opens++;
	return ud_err;
}

void __wrap_revoke_instead_of_flush(struct soft_qp *qp)
{
	receives_at_revocation = qp->rq.tail - qp->rq.head;
	__real_revoke_instead_of_flush(qp);
}

int __wrap_rmem_map_for_consumer(const struct dapl_conn *conn, uint32_t stag, uint64_t remote, uint64_t length,
				 struct dapl_mapping *mapping)
{
	mapped = conn == s.conn && stag == 1 && remote == 2 && length == 3 && mapping;
	return EACCES;
}

/* --- what the cases use ------------------------------------------------------------------------------------ */

UNIT_FIXTURE(set_up)
{
	attr = (struct ibv_qp_init_attr){ .qp_type = IBV_QPT_RC, .send_cq = stream_device.cq,
					  .recv_cq = stream_device.cq, .cap = { 8, 8, 4, 4, 64 } };
	made = NULL;
	randoms_left = randoms_at = ud_opens = 0;
	ud_err = 0;
	mapped = false;
}

static int tear_down(void **state)
{
	allocations = -1;
	return made ? soft_qp_destroy(&made->qp) : 0;
}

static int create(void)
{
	struct ibv_qp *qp = NULL;
	int err = soft_qp_create(stream_device.dev, stream_device.pd, &attr, &qp);

	made = (struct soft_qp *)qp;
	assert_true(err ? !made : made != NULL);
	return err;
}

static void destroy(void)
{
	assert_int_equal(soft_qp_destroy(&made->qp), 0);
	made = NULL;
}

static struct ibv_srq *make_srq(uint32_t sges)
{
	struct ibv_srq_init_attr shared = { .attr = { .max_wr = 8, .max_sge = sges } };
	struct ibv_srq *srq;

	assert_int_equal(soft_srq_create(stream_device.pd, &shared, &srq), 0);
	return srq;
}

static void post_receives(void)
{
	struct ibv_recv_wr wr[] = { { .wr_id = 1, .next = &wr[1] }, { .wr_id = 2 } }, *bad;

	assert_int_equal(soft_qp_post_recv(&made->qp, wr, &bad), 0);
}

static bool take(void)
{
	bool taken;

	dapl_mutex_lock(&made->lock);
	taken = soft_qp_take_receive(made);
	dapl_mutex_unlock(&made->lock);
	return taken;
}

static void complete(uint32_t number, uint64_t id)
{
	soft_cq_add((struct soft_cq *)stream_device.cq, &(struct ibv_wc){ .wr_id = id, .qp_num = number }, false);
}

static struct soft_qp *by_number(uint32_t number)
{
	struct soft_qp *found;

	dapl_mutex_lock(&stream_device.dev->qps_lock);
	found = soft_qp_by_number(stream_device.dev, number);
	dapl_mutex_unlock(&stream_device.dev->qps_lock);
	return found;
}

static unsigned holders_of_the_domain(void) { return ((const struct soft_pd *)stream_device.pd)->refs; }

/* --- which are made ------------------------------------------------------------------------------------------ */

UNIT_CASE(more_than_the_device_offers_is_refused)
{
	static const struct ibv_qp_cap most = { SOFT_MAX_WR, SOFT_MAX_WR, SOFT_MAX_SGE, SOFT_MAX_SGE, SOFT_MAX_INLINE };
	uint32_t *const values[] = { &attr.cap.max_send_wr, &attr.cap.max_recv_wr, &attr.cap.max_send_sge,
				     &attr.cap.max_recv_sge, &attr.cap.max_inline_data };

	attr.cap = most;
	assert_int_equal(create(), 0);
	destroy();
	for (int i = 0; i < 5; i++) {
		attr.cap = most;
		++*values[i];
		assert_int_equal(create(), EINVAL);
	}
}

UNIT_CASE(queue_pair_needs_both_completion_queues)
{
	attr.send_cq = NULL;
	assert_int_equal(create(), EINVAL);
	attr.send_cq = stream_device.cq;
	attr.recv_cq = NULL;
	assert_int_equal(create(), EINVAL);
}

UNIT_CASE(type_decides_the_first_state)
{
	static const struct { enum ibv_qp_type type; int err; enum ibv_qp_state state; } cases[] = {
		{ IBV_QPT_RC, 0, IBV_QPS_INIT }, { IBV_QPT_UD, 0, IBV_QPS_RTS },
		{ IBV_QPT_RAW_PACKET, 0, IBV_QPS_INIT },
		{ IBV_QPT_UC, EOPNOTSUPP, 0 }, { IBV_QPT_XRC_SEND, EOPNOTSUPP, 0 },
	};

	for (int i = 0; i < 5; i++) {
		attr.qp_type = cases[i].type;
		assert_int_equal(create(), cases[i].err);
		if (!made)
			continue;
		assert_int_equal(made->state, cases[i].state);
		assert_int_equal(made->qp.state, cases[i].state);
		assert_int_equal(made->qp.qp_type, cases[i].type);
		destroy();
	}
}

UNIT_CASE(datagrams_need_a_socket)
{
	assert_int_equal(create(), 0);
	assert_int_equal(ud_opens, 0);
	destroy();
	attr.qp_type = IBV_QPT_UD;
	assert_int_equal(create(), 0);
	assert_int_equal(ud_opens, 1);
	destroy();
	ud_err = EMFILE;
	assert_int_equal(create(), EMFILE);
}

UNIT_CASE(without_memory_nothing_is_made)
{
	unsigned before = holders_of_the_domain();
	struct soft_qp *first = LIST_FIRST(&stream_device.dev->qps);

	for (int n = 0; n < 4; n++) {		/* the queue pair, two rings, the taken receive */
		allocations = n;
		assert_int_equal(create(), ENOMEM);
		assert_int_equal(allocations, -1);
		assert_int_equal(holders_of_the_domain(), before);
		assert_ptr_equal(LIST_FIRST(&stream_device.dev->qps), first);
	}
}

/* --- what they have -------------------------------------------------------------------------------------------- */

UNIT_CASE(granted_sizes_are_reported)
{
	attr.cap = (struct ibv_qp_cap){ 5, 9, 3, 2, 0 };
	assert_int_equal(create(), 0);
	assert_int_equal(attr.cap.max_send_wr, 8);
	assert_int_equal(attr.cap.max_recv_wr, 16);
	assert_int_equal(attr.cap.max_send_sge, 3);
	assert_int_equal(attr.cap.max_recv_sge, 2);
	destroy();
	attr.cap = (struct ibv_qp_cap){ 0 };
	assert_int_equal(create(), 0);
	assert_int_equal(attr.cap.max_send_wr, 1);
	assert_int_equal(attr.cap.max_recv_wr, 1);
	assert_int_equal(attr.cap.max_send_sge, 1);
	assert_int_equal(attr.cap.max_recv_sge, 1);
}

UNIT_CASE(requests_have_room_for_segments_and_inline_data)
{
	static const struct {
		uint32_t sges, inline_data, payload;
	} cases[] = { { 4, 10, 4 * sizeof(struct ibv_sge) }, { 1, 97, 97 }, { 0, 0, sizeof(struct ibv_sge) } };

	for (int i = 0; i < 3; i++) {
		attr.cap.max_send_sge = cases[i].sges;
		attr.cap.max_inline_data = cases[i].inline_data;
		assert_int_equal(create(), 0);
		assert_true(made->sq_stride >= sizeof(struct soft_swqe) + cases[i].payload);
		assert_int_equal(made->sq_stride % 8, 0);
		assert_int_equal(made->max_inline, cases[i].inline_data);
		destroy();
	}
}

UNIT_CASE(number_is_free_and_not_reserved)
{
	struct soft_qp *first;

	assert_int_equal(create(), 0);
	first = made;
	memcpy(randoms, (uint32_t[]){ 0xfeed, 0, 1, 0xff000001, first->qp.qp_num, 0x77345678 }, 6 * sizeof *randoms);
	randoms_left = 6;
	assert_int_equal(create(), 0);
	assert_int_equal(made->qkey, 0xfeed);
	assert_int_equal(made->qp.qp_num, 0x345678);
	assert_ptr_equal(by_number(0x345678), made);
	destroy();
	assert_null(by_number(0x345678));
	made = first;
	assert_ptr_equal(by_number(made->qp.qp_num), made);
}

UNIT_CASE(objects_of_a_queue_pair_stay)
{
	struct ibv_srq *srq = make_srq(4);
	struct ibv_cq *cq[2];
	struct ibv_pd *pd;
	struct ibv_qp *qp;

	assert_int_equal(soft_pd_alloc(stream_device.dev, &pd), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(soft_cq_create(stream_device.dev, 10, NULL, NULL, &cq[i]), 0);
	attr.send_cq = cq[0];
	attr.recv_cq = cq[1];
	attr.srq = srq;
	assert_int_equal(soft_qp_create(stream_device.dev, pd, &attr, &qp), 0);
	assert_int_equal(soft_pd_dealloc(pd), EBUSY);
	assert_int_equal(soft_cq_destroy(cq[0]), EBUSY);
	assert_int_equal(soft_cq_destroy(cq[1]), EBUSY);
	assert_int_equal(soft_srq_destroy(srq), EBUSY);
	assert_int_equal(soft_qp_destroy(qp), 0);
	assert_int_equal(soft_srq_destroy(srq), 0);
	assert_int_equal(soft_cq_destroy(cq[0]), 0);
	assert_int_equal(soft_cq_destroy(cq[1]), 0);
	assert_int_equal(soft_pd_dealloc(pd), 0);
}

/* --- error, reset, destroy --------------------------------------------------------------------------------------- */

UNIT_CASE(reset_leaves_empty_queues)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UD };

	for (int i = 0; i < 2; i++) {
		attr.qp_type = types[i];
		assert_int_equal(create(), 0);
		post_receives();
		assert_true(take());
		made->sq_tail = 3;
		made->read_next = 2;
		soft_qp_set_state(made, IBV_QPS_ERR);
		assert_int_equal(soft_qp_reset(stream_device.dev, &made->qp), 0);
		assert_int_equal(made->qp.state, i ? IBV_QPS_RTS : IBV_QPS_INIT);
		assert_int_equal(made->sq_head, made->sq_tail);
		assert_int_equal(made->read_next, made->sq_tail);
		assert_false(take());
		expect_no_completion();
		destroy();
	}
}

UNIT_CASE(only_own_completions_go)
{
	for (int i = 0; i < 2; i++) {
		assert_int_equal(create(), 0);
		complete(made->qp.qp_num, 1);
		complete(made->qp.qp_num ^ 1, 2);
		if (i)
			assert_int_equal(soft_qp_reset(stream_device.dev, &made->qp), 0);
		else
			destroy();
		expect_completion(2, IBV_WC_SUCCESS);
		expect_no_completion();
	}
}

UNIT_CASE(completions_go_from_both_queues)
{
	struct ibv_cq *cq;
	struct ibv_wc wc;

	assert_int_equal(soft_cq_create(stream_device.dev, 10, NULL, NULL, &cq), 0);
	for (int i = 0; i < 2; i++) {
		attr.send_cq = i ? cq : stream_device.cq;
		attr.recv_cq = i ? stream_device.cq : cq;
		assert_int_equal(create(), 0);
		soft_cq_add((struct soft_cq *)cq, &(struct ibv_wc){ .qp_num = made->qp.qp_num }, false);
		destroy();
		assert_int_equal(soft_cq_take((struct soft_cq *)cq, 1, &wc), 0);
	}
	assert_int_equal(soft_cq_destroy(cq), 0);
}

UNIT_CASE(peers_leave_the_memory_before_a_reset_ends)
{
	assert_int_equal(create(), 0);
	post_receives();
	assert_int_equal(soft_qp_reset(stream_device.dev, &made->qp), 0);
	assert_int_equal(receives_at_revocation, 2);
	post_receives();
	receives_at_revocation = 0;
	destroy();
	assert_int_equal(receives_at_revocation, 2);
}

UNIT_CASE(queue_pair_that_ended_waits_for_no_receive)
{
	struct ibv_srq *srq = make_srq(4);

	attr.srq = srq;
	assert_int_equal(create(), 0);
	for (int i = 0; i < 2; i++) {
		assert_false(take());
		assert_false(TAILQ_EMPTY(&soft_srq(srq)->waiting));
		if (i)
			destroy();
		else
			assert_int_equal(soft_qp_reset(stream_device.dev, &made->qp), 0);
		assert_true(TAILQ_EMPTY(&soft_srq(srq)->waiting));
	}
	assert_int_equal(soft_srq_destroy(srq), 0);
}

UNIT_CASE(nothing_refers_to_a_destroyed_queue_pair)
{
	struct dapl_device *dev = stream_device.dev;
	const struct soft_qp *qp, *gone;
	struct soft_region *window;
	struct ibv_mw *mw;

	assert_int_equal(create(), 0);
	gone = made;
	assert_int_equal(soft_mw_alloc(stream_device.pd, IBV_MW_TYPE_2, &mw), 0);
	window = &((struct soft_mw *)mw)->region;
	window->qp = made;
	window->valid = true;
	made->last_receive.times = 1;		/* an event that core has not been told yet */
	TAILQ_INSERT_TAIL(&dev->async.list, &made->last_receive, link);
	assert_int_equal(soft_qp_destroy(&made->qp), 0);
	made = NULL;
	assert_false(window->valid);
	assert_null(window->qp);
	assert_int_equal(soft_mw_dealloc(mw), 0);
	assert_true(TAILQ_EMPTY(&dev->async.list));
	LIST_FOREACH(qp, &dev->qps, link)
		assert_ptr_not_equal(qp, gone);
}

UNIT_CASE(reset_leaves_the_connection)
{
	stream_test_open_blocked(state);
	assert_int_equal(soft_qp_reset(stream_device.dev, &s.qp->qp), 0);
	assert_null(s.qp->conn);
	assert_null(s.conn->qp);
	s.alive = false;
	stream_test_close(state);
}

UNIT_CASE(memory_is_mapped_of_a_connected_peer_only)
{
	struct dapl_mapping mapping;

	assert_int_equal(create(), 0);
	assert_int_equal(soft_qp_map_remote(&made->qp, 1, 2, 3, &mapping), EOPNOTSUPP);
	assert_false(mapped);
	stream_test_open(state);
	assert_int_equal(soft_qp_map_remote(&s.qp->qp, 1, 2, 3, &mapping), EACCES);
	assert_true(mapped);
	stream_test_close(state);
}

UNIT_MAIN(stream_test_open_device, stream_test_close_device)
