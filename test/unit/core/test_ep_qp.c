/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_ep_qp.c - the queue pair of an endpoint: what it is made of, when it is made, emptied, exchanged and
 * destroyed, and the discard EVDs in place of missing ones. */
#include "dapl/core/base/qp_table.h"
#include "dapl/core/conn/ep_free.h"
#include "dapl/core/ep/ep.h"
#include "dapl/core/ep/ep_qp.h"
#include "dapl/core/ep/ep_state.h"
#include "dapl/core/ep/calls.h"
#include "dapl/core/event/evd.h"
#include "dapl/core/mem/zero_based.h"
#include "test/unit/core/core_objects.h"
#include "test/unit/unit.h"

static struct dapl_ep *ep;
static struct ibv_qp_init_attr wanted;		/* of the QP made last */
static unsigned made, posts;			/* QPs and receives that the device got */
static int create_error, reset_error, post_error;
static bool destroyed_locked;			/* a QP was destroyed with ep->lock held */
static unsigned silenced;

static int note_create(const struct ibv_qp_init_attr *attr)
{
	wanted = *attr;
	made += !create_error;
	return create_error;
}

static void note_destroy(struct ibv_qp *qp)
{
	struct dapl_ep *of = qp->qp_context;

	if (!dapl_mutex_try(&of->lock))
		destroyed_locked = true;
	else
		dapl_mutex_unlock(&of->lock);
}

static int note_reset(struct ibv_qp *qp) { return reset_error; }

static int note_receive(struct ibv_recv_wr *wr)
{
	posts += !post_error;
	return post_error;
}

/* As the kernel's Soft-iWARP: receives of a QP that goes to ERR complete as flushed. */
static void flush_receives(struct ibv_qp *qp)
{
	struct dapl_ep *of = qp->qp_context;

	silenced++;
	for (uint32_t i = of->rq.tail; i != of->rq.head && of->rq.ring; i++)
		core_complete(core_dto_evd, &(struct ibv_wc){ .status = IBV_WC_WR_FLUSH_ERR,
			      .wr_id = (uintptr_t)&of->rq.ring[i & of->rq.mask], .qp_num = qp->qp_num });
}

UNIT_FIXTURE(set_up)
{
	assert_int_equal(core_objects_open(state), 0);
	core_device.create_qp = note_create;
	core_device.destroy_qp = note_destroy;
	core_device.reset_qp = note_reset;
	core_device.post_recv = note_receive;
	ep = NULL;
	made = posts = silenced = 0;
	create_error = reset_error = post_error = 0;
	destroyed_locked = false;
}

static int tear_down(void **state)
{
	if (ep)
		assert_int_equal(dapl_ep_free((DAT_EP_HANDLE)ep), DAT_SUCCESS);
	assert_false(destroyed_locked);
	return core_objects_close(state);
}

/* An endpoint of these, which has no QP as long as one is missing. */
static void make_from(struct dapl_pz *pz, struct dapl_evd *recv, struct dapl_evd *request)
{
	assert_int_equal(dapl_ep_make(core_ia, pz, recv, request, core_conn_evd, NULL, NULL, 7, &ep), DAT_SUCCESS);
	dapl_object_publish(&ep->obj);
}

static void make(void) { ep = core_objects_ep(NULL, NULL); }

static DAT_RETURN need_qp(void)
{
	DAT_RETURN ret;

	dapl_ep_lock_settled(ep);
	ret = dapl_ep_need_qp(ep);
	dapl_mutex_unlock(&ep->lock);
	return ret;
}

static DAT_RETURN take_emptied(struct ibv_qp **qp)
{
	DAT_RETURN ret;

	dapl_mutex_lock(&ep->lock);
	ret = dapl_ep_take_emptied_qp(ep, qp);
	if (*qp)
		dapl_ep_give_qp(ep, *qp);
	dapl_mutex_unlock(&ep->lock);
	return ret;
}

static DAT_RETURN exchange(void)
{
	DAT_RETURN ret;

	dapl_mutex_lock(&ep->lock);
	ret = dapl_ep_exchange_qp(ep);
	dapl_mutex_unlock(&ep->lock);
	return ret;
}

static void post_receive(uint64_t cookie, int segments)
{
	const DAT_LMR_TRIPLET segment[2] = { { .segment_length = 64 }, { .segment_length = 64 } };

	assert_int_equal(dapl_receive_any(ep, segments, segment, (DAT_DTO_COOKIE){ .as_64 = cookie },
					  DAT_COMPLETION_DEFAULT_FLAG), DAT_SUCCESS);
}

/* A send and a receive that are posted, and completions of both that are not dequeued. */
static void post_and_complete(void)
{
	const struct dapl_dto *send = core_post(ep, DAT_DTO_SEND, 0, 1),
		*receive = core_post(ep, DAT_DTO_RECEIVE, 0, 2);

	core_complete(ep->request_evd, &(struct ibv_wc){ .wr_id = (uintptr_t)send });
	core_complete(ep->recv_evd, &(struct ibv_wc){ .wr_id = (uintptr_t)receive });
}

static bool has_event(void)
{
	DAT_EVENT event;

	return core_next_event(core_dto_evd, &event) != 0;
}

static void expect_empty(void)
{
	assert_int_equal(dapl_queue_count(&ep->sq), 0);
	assert_int_equal(dapl_queue_count(&ep->rq), 0);
	assert_false(has_event());
}

/* --- making ------------------------------------------------------------------------------------------ */

UNIT_CASE(queue_pair_has_the_limits_of_the_endpoint)
{
	const DAT_EP_ATTR attr = { .service_type = DAT_SERVICE_TYPE_RC, .max_message_size = 100, .max_rdma_size = 100,
		.recv_completion_flags = DAT_COMPLETION_EVD_THRESHOLD_FLAG,
		.request_completion_flags = DAT_COMPLETION_EVD_THRESHOLD_FLAG, .max_recv_dtos = 5,
		.max_request_dtos = 7, .max_recv_iov = 2, .max_request_iov = 1, .max_rdma_read_iov = 3,
		.max_rdma_write_iov = 6 };

	ep = core_objects_ep(NULL, &attr);
	assert_int_equal(made, 1);
	assert_ptr_equal(wanted.qp_context, ep);
	assert_int_equal(wanted.qp_type, IBV_QPT_RC);
	assert_ptr_equal(wanted.send_cq, core_dto_evd->cq);
	assert_ptr_equal(wanted.recv_cq, core_dto_evd->cq);
	assert_true(wanted.cap.max_send_wr > 7);	/* and the provider's markers */
	assert_int_equal(wanted.cap.max_recv_wr, 5);
	assert_int_equal(wanted.cap.max_send_sge, 6);	/* the most of sends, reads and writes */
	assert_int_equal(wanted.cap.max_recv_sge, 2);
	assert_int_equal(wanted.cap.max_inline_data, 96);
	assert_int_equal(ep->max_inline, 96);
	assert_int_equal(ep->qpn, ep->qp->qp_num);
	assert_in_range(ep->sq.mask + 1, 7 + 1, 64);
	assert_in_range(ep->rq.mask + 1, 5, 64);
}

UNIT_CASE(type_follows_the_kind_of_endpoint)
{
	make_from(core_pz, NULL, NULL);
	ep->is_ud = true;
	assert_int_equal(need_qp(), DAT_SUCCESS);
	assert_int_equal(wanted.qp_type, IBV_QPT_UD);
	dapl_ep_end_qp(ep);
	ep->is_raw = true;
	assert_int_equal(need_qp(), DAT_SUCCESS);
	assert_int_equal(wanted.qp_type, IBV_QPT_RAW_PACKET);
	dapl_ep_end_qp(ep);
	ep->is_ud = ep->is_raw = false;
}

UNIT_CASE(endpoint_of_an_srq_receives_from_it)
{
	struct dapl_srq srq = { .max = 4 };
	struct ibv_srq of_device = { .context = NULL };
	uint32_t qpn;

	make_from(core_pz, NULL, NULL);
	srq.srq = &of_device;
	ep->srq = &srq;
	assert_int_equal(need_qp(), DAT_SUCCESS);
	qpn = ep->qpn;
	assert_ptr_equal(wanted.srq, &of_device);
	assert_int_equal(wanted.cap.max_recv_wr, 0);
	assert_int_equal(wanted.cap.max_recv_sge, 0);
	assert_ptr_equal(dapl_qp_table_find(core_ia, qpn), ep);
	dapl_ep_end_qp(ep);
	assert_null(dapl_qp_table_find(core_ia, qpn));
	ep->srq = NULL;
}

UNIT_CASE(queue_pair_is_made_once)
{
	struct ibv_qp *qp;

	make_from(core_pz, core_dto_evd, NULL);
	assert_int_equal(made, 0);
	assert_int_equal(need_qp(), DAT_SUCCESS);
	qp = ep->qp;
	assert_non_null(qp);
	assert_int_equal(need_qp(), DAT_SUCCESS);
	assert_ptr_equal(ep->qp, qp);
	assert_int_equal(made, 1);
}

UNIT_CASE(queue_pair_needs_a_pz)
{
	make_from(NULL, core_dto_evd, core_dto_evd);
	assert_int_equal(need_qp(), BAD_STATE(EP_PZ));
	assert_null(ep->qp);
	assert_int_equal(made, 0);
}

UNIT_CASE(queue_pair_that_the_device_refuses_is_none)
{
	make_from(core_pz, core_dto_evd, NULL);
	create_error = EINVAL;		/* more than the device grants, as no check of core found out */
	assert_int_equal(need_qp(), NO_RESOURCE(TEP));
	create_error = ENOMEM;
	assert_int_equal(DAT_GET_TYPE(need_qp()), DAT_INSUFFICIENT_RESOURCES);
	assert_null(ep->qp);
	create_error = 0;
	assert_int_equal(need_qp(), DAT_SUCCESS);
}

/* Inline data is read by its address, which is none in a region whose addresses count from 0. */
UNIT_CASE(zero_based_memory_forbids_inline_data)
{
	core_pz->zero_based = true;
	make();
	assert_int_equal(ep->max_inline, 0);
}

UNIT_CASE(discard_evds_stand_in_for_missing_ones)
{
	make_from(core_pz, NULL, NULL);
	assert_int_equal(need_qp(), DAT_SUCCESS);
	assert_true(ep->recv_discard && ep->recv_discard->discard);
	assert_true(ep->request_discard && ep->request_discard->discard);
	assert_ptr_equal(wanted.recv_cq, ep->recv_discard->cq);
	assert_ptr_equal(wanted.send_cq, ep->request_discard->cq);
	assert_in_range(ep->request_discard->qlen, ep->attr.max_request_dtos, 64);
	assert_in_range(ep->recv_discard->qlen, ep->attr.max_recv_dtos, 64);
	dapl_ep_end_qp(ep);
	dapl_ep_end_discards(ep);
	assert_null(ep->recv_discard);
	assert_null(ep->request_discard);
}

UNIT_CASE(only_replaced_discard_evds_end)
{
	struct dapl_evd *recv;

	make_from(core_pz, NULL, NULL);
	assert_int_equal(need_qp(), DAT_SUCCESS);
	recv = ep->recv_discard;
	dapl_mutex_lock(&ep->lock);
	ep->request_evd = core_dto_evd;
	dapl_ep_end_discards_unlocked(ep);
	ep->request_evd = NULL;
	dapl_mutex_unlock(&ep->lock);
	assert_null(ep->request_discard);
	assert_ptr_equal(ep->recv_discard, recv);
	dapl_mutex_lock(&ep->lock);
	ep->request_evd = ep->recv_evd = core_dto_evd;
	dapl_ep_end_discards_unlocked(ep);
	dapl_mutex_unlock(&ep->lock);
	assert_null(ep->recv_discard);
	dapl_ep_end_qp(ep);
	ep->request_evd = ep->recv_evd = NULL;
}

/* --- ending ------------------------------------------------------------------------------------------- */

UNIT_CASE(end_removes_every_trace)
{
	make();
	post_and_complete();
	dapl_ep_end_qp(ep);
	assert_null(ep->qp);
	assert_int_equal(ep->sq.room + ep->rq.room, 0);
	assert_int_equal(core_device.qps, 0);
	expect_empty();
	dapl_ep_end_qp(ep);	/* there is none: nothing happens */
}

UNIT_CASE(end_removes_requests_of_an_evd_of_their_own)
{
	struct dapl_evd *requests = core_evd_new(core_ia, 64, DAT_EVD_DTO_FLAG);
	DAT_EVENT event;

	make_from(core_pz, core_dto_evd, requests);
	post_and_complete();
	dapl_ep_end_qp(ep);
	assert_int_equal(core_next_event(requests, &event), 0);
	expect_empty();
	assert_int_equal(dapl_ep_free((DAT_EP_HANDLE)ep), DAT_SUCCESS);
	ep = NULL;
	core_evd_free(requests);
}

UNIT_CASE(end_releases_a_held_lock)
{
	make();
	post_and_complete();
	dapl_mutex_lock(&ep->lock);
	dapl_ep_end_qp_unlocked(ep);
	assert_false(dapl_mutex_try(&ep->lock));
	dapl_mutex_unlock(&ep->lock);
	assert_null(ep->qp);
	expect_empty();
}

/* --- emptying ------------------------------------------------------------------------------------------ */

UNIT_CASE(emptied_queue_pair_is_the_same)
{
	struct ibv_qp *before, *qp;

	make();
	before = ep->qp;
	post_and_complete();
	assert_int_equal(take_emptied(&qp), DAT_SUCCESS);
	assert_ptr_equal(qp, before);
	assert_int_equal(made, 1);
	expect_empty();
}

/* Posts find no QP until the caller has given it back. */
UNIT_CASE(queue_pair_is_taken_from_posts)
{
	struct ibv_qp *qp;

	make();
	dapl_mutex_lock(&ep->lock);
	ep->state = DAT_EP_STATE_CONNECTED;
	dapl_ep_set_room(ep);
	assert_true(ep->sq.room && ep->rq.room);
	reset_error = ENOMEM;	/* nothing else sets the room */
	assert_int_not_equal(dapl_ep_take_emptied_qp(ep, &qp), DAT_SUCCESS);
	assert_null(ep->qp);
	assert_int_equal(ep->sq.room + ep->rq.room, 0);
	dapl_ep_give_qp(ep, qp);
	assert_ptr_equal(ep->qp, qp);
	assert_true(ep->sq.room && ep->rq.room);
	dapl_mutex_unlock(&ep->lock);
}

UNIT_CASE(device_that_cannot_reset_gets_another_one)
{
	struct ibv_qp *qp;
	uint32_t before;

	make();
	before = ep->qpn;
	post_and_complete();
	reset_error = EOPNOTSUPP;
	assert_int_equal(take_emptied(&qp), DAT_SUCCESS);
	assert_int_equal(made, 2);
	assert_int_equal(core_device.qps, 1);
	assert_int_not_equal(ep->qpn, before);
	assert_int_equal(ep->qpn, qp->qp_num);
	expect_empty();
}

UNIT_CASE(lost_queue_pair_is_none)
{
	struct ibv_qp *qp;

	make();
	reset_error = EOPNOTSUPP;
	create_error = ENOMEM;
	assert_int_equal(DAT_GET_TYPE(take_emptied(&qp)), DAT_INSUFFICIENT_RESOURCES);
	assert_null(qp);
	assert_null(ep->qp);
	assert_int_equal(core_device.qps, 0);
}

UNIT_CASE(queues_without_a_queue_pair_are_emptied)
{
	struct ibv_qp *qp = core_qp();

	make();
	dapl_ep_end_qp(ep);
	core_post(ep, DAT_DTO_RECEIVE, 0, 1);
	assert_int_equal(take_emptied(&qp), DAT_SUCCESS);
	assert_null(qp);
	expect_empty();
}

/* --- exchanging ---------------------------------------------------------------------------------------- */

static void expect_unchanged(const struct ibv_qp *before, uint32_t qpn)
{
	assert_ptr_equal(ep->qp, before);
	assert_int_equal(ep->qpn, qpn);
	assert_int_equal(core_device.qps, 1);
	assert_int_equal(dapl_queue_count(&ep->rq), 1);
	assert_int_equal(ep->rq.ring[0].cookie.as_64, 5);
	assert_false(has_event());
}

UNIT_CASE(failed_exchange_changes_nothing)
{
	struct ibv_qp *before;
	uint32_t qpn;

	make();
	before = ep->qp;
	qpn = ep->qpn;
	post_receive(5, 2);
	create_error = ENOMEM;
	assert_int_equal(DAT_GET_TYPE(exchange()), DAT_INSUFFICIENT_RESOURCES);
	expect_unchanged(before, qpn);
	create_error = 0;
	post_error = ENOMEM;
	assert_int_equal(DAT_GET_TYPE(exchange()), DAT_INSUFFICIENT_RESOURCES);
	expect_unchanged(before, qpn);
	post_error = 0;
	ep->attr.max_recv_iov = 1;	/* the posted receive has two segments */
	assert_int_equal(exchange(), BAD_PARAM(3));
	expect_unchanged(before, qpn);
}

/* What was posted while nothing was kept cannot be posted again. */
UNIT_CASE(receive_that_was_not_kept_forbids_an_exchange)
{
	struct ibv_qp *before;

	make();
	before = ep->qp;
	core_post(ep, DAT_DTO_RECEIVE, 0, 5);
	assert_int_equal(DAT_GET_TYPE(exchange()), DAT_INVALID_STATE);
	expect_unchanged(before, before->qp_num);
}

/* A device that flushes a QP when it is destroyed would complete receives that are posted elsewhere. */
UNIT_CASE(old_queue_pair_flushes_no_receive)
{
	core_ia->attr.no_late_flush = true;
	core_device.error_qp = flush_receives;
	make();
	post_receive(5, 1);
	assert_int_equal(exchange(), DAT_SUCCESS);
	assert_int_equal(silenced, 1);
	assert_false(has_event());
	assert_int_equal(dapl_queue_count(&ep->rq), 1);
}

static bool settled;		/* atomic */

static void *lock_settled(void *arg)
{
	struct dapl_ep *of = arg;

	dapl_ep_lock_settled(of);
	__atomic_store_n(&settled, true, __ATOMIC_RELEASE);
	dapl_mutex_unlock(&of->lock);
	return NULL;
}

UNIT_CASE(calls_wait_for_a_change_to_end)
{
	pthread_t thread;

	make();
	settled = false;
	ep->changing = true;
	assert_int_equal(pthread_create(&thread, NULL, lock_settled, ep), 0);
	usleep(20000);		/* the lock is free, and the thread must not keep it */
	dapl_mutex_lock(&ep->lock);
	assert_false(__atomic_load_n(&settled, __ATOMIC_ACQUIRE));
	ep->changing = false;
	dapl_mutex_unlock(&ep->lock);
	pthread_join(thread, NULL);
	assert_true(settled);
}

UNIT_MAIN(NULL, NULL)
