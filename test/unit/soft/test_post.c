/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_post.c - which requests and receives a queue takes, what it keeps of them, and what happens at once when they
 * are posted. The socket is full, so requests wait in the send queue. */
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/srq.h"
#include "dapl/soft/progress/progress.h"
#include "dapl/soft/rdmap/transmit.h"
#include "dapl/soft/rdmap/ud.h"
#include "dapl/soft/rdmap/unexpected.h"
#include "dapl/soft/shm/shm_conn.h"
#include "dapl/soft/verbs/post.h"
#include "dapl/soft/verbs/qp_life.h"
#include "test/unit/soft/stream_test.h"
#include "test/unit/unit.h"

enum { INLINE_MAX = 64, SGES = 4 };	/* of the queue pair of a stream */

static unsigned datagrams;
static int ud_err;
static enum ibv_wc_status ud_status;
static struct soft_qp *bare;		/* a second queue pair, without a connection */

REPLACE(soft_ud_send)

int __wrap_soft_ud_send(struct soft_qp *qp, const struct ibv_send_wr *wr, enum ibv_wc_status *status)
{
	assert_ptr_equal(qp, bare);
	datagrams++;
	*status = ud_status;
	return ud_err;
}

UNIT_FIXTURE(set_up_shared_queue)
{
	stream_open(&s, &(struct stream_options){ .peer_is_dapl = true, .srq = true });
	s.conn->stream.tx.blocked = true;
}

static int open_bare(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr attr = { .qp_type = type, .send_cq = stream_device.cq,
		.recv_cq = stream_device.cq, .cap = { 2, 2, SGES, SGES, INLINE_MAX } };
	struct ibv_qp *made;
	int err;

	datagrams = 0;
	ud_err = 0;
	ud_status = IBV_WC_SUCCESS;
	err = soft_qp_create(stream_device.dev, stream_device.pd, &attr, &made);
	bare = (struct soft_qp *)made;
	return err;
}

static int set_up_unconnected(void **state) { return open_bare(IBV_QPT_RC); }
static int set_up_datagrams(void **state) { return open_bare(IBV_QPT_UD); }
static int tear_down_bare(void **state) { return soft_qp_destroy(&bare->qp); }

static int post(struct soft_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad = NULL;
	int err = soft_qp_post_send(&qp->qp, wr, &bad);

	if (err)
		assert_ptr_equal(bad, wr);
	else
		assert_null(bad);
	return err;
}

static struct ibv_wc completion(void)
{
	struct ibv_wc wc;

	assert_int_equal(stream_poll(&s, &wc, 1), 1);
	return wc;
}

/* The queue has failed. While a flush waits, its completions come later. */
static void set_failed(struct soft_qp *qp, bool flush_waits)
{
	dapl_mutex_lock(&qp->lock);
	soft_qp_set_state(qp, IBV_QPS_ERR);
	qp->flush_waits = flush_waits;
	dapl_mutex_unlock(&qp->lock);
}

#define BARE(name) UNIT_TEST_WITH(name, set_up_unconnected, tear_down_bare)
#define DATAGRAM(name) UNIT_TEST_WITH(name, set_up_datagrams, tear_down_bare)
#define SHARED(name) UNIT_TEST_WITH(name, set_up_shared_queue, stream_test_close)

/* --- what a send queue takes --------------------------------------------------------------------------------- */

BARE(unconnected_queue_takes_no_request)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND };

	assert_int_equal(post(bare, &wr), EINVAL);
	assert_int_equal(bare->sq_tail, 0);
	expect_no_completion();
}

BARE(failed_queue_flushes_a_request_at_once)
{
	struct ibv_send_wr wr = { .wr_id = 3, .opcode = IBV_WR_RDMA_READ };
	struct ibv_wc wc;

	set_failed(bare, false);
	assert_int_equal(post(bare, &wr), 0);
	wc = completion();
	assert_int_equal(wc.wr_id, 3);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(wc.opcode, IBV_WC_RDMA_READ);
	assert_int_equal(bare->sq_tail, 0);
}

BARE(request_waits_for_the_flush_before_it)
{
	struct ibv_send_wr wr = { .wr_id = 3, .opcode = IBV_WR_SEND };

	set_failed(bare, true);
	assert_int_equal(post(bare, &wr), 0);
	expect_no_completion();
	assert_int_equal(bare->sq_tail, 1);
	assert_int_equal(soft_swqe(bare, 0)->wr_id, 3);
	bare->flush_waits = false;
}

BARE(bind_is_refused_or_flushed_as_other_requests_are)
{
	struct ibv_mw_bind bind = { .wr_id = 6, .bind_info = { .mr = stream_device.open, .length = 8 } };
	struct ibv_mw mw = { .rkey = 0x1200 };
	struct ibv_wc wc;

	assert_int_equal(soft_qp_bind_mw(&bare->qp, &mw, &bind), EINVAL);
	set_failed(bare, false);
	assert_int_equal(soft_qp_bind_mw(&bare->qp, &mw, &bind), 0);
	wc = completion();
	assert_int_equal(wc.wr_id, 6);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(wc.opcode, IBV_WC_BIND_MW);
	assert_int_equal(mw.rkey, 0x1200);
	assert_int_equal(bare->sq_tail, 0);
	set_failed(bare, true);
	assert_int_equal(soft_qp_bind_mw(&bare->qp, &mw, &bind), 0);
	assert_int_equal(bare->sq_tail, 1);
	expect_no_completion();
	bare->flush_waits = false;
}

/* --- datagrams -------------------------------------------------------------------------------------------------- */

DATAGRAM(sent_datagram_completes_if_that_was_asked_for)
{
	struct ibv_send_wr wr = { .wr_id = 4, .opcode = IBV_WR_SEND };
	struct ibv_wc wc;

	assert_int_equal(post(bare, &wr), 0);
	expect_no_completion();
	wr.send_flags = IBV_SEND_SIGNALED;
	assert_int_equal(post(bare, &wr), 0);
	wc = completion();
	assert_int_equal(wc.wr_id, 4);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(datagrams, 2);
}

DATAGRAM(failed_datagram_completes_always)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND };

	ud_status = IBV_WC_LOC_LEN_ERR;
	assert_int_equal(post(bare, &wr), 0);
	assert_int_equal(completion().status, IBV_WC_LOC_LEN_ERR);
}

DATAGRAM(refused_datagram_has_no_completion)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED };

	ud_err = EAGAIN;
	assert_int_equal(post(bare, &wr), EAGAIN);
	expect_no_completion();
}

DATAGRAM(failed_queue_sends_no_datagram)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND };

	set_failed(bare, false);
	assert_int_equal(post(bare, &wr), 0);
	assert_int_equal(completion().status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(datagrams, 0);
}

/* --- receives --------------------------------------------------------------------------------------------------- */

BARE(receives_before_the_refused_one_are_posted)
{
	struct ibv_sge sge[SGES + 1] = { stream_test_sge(0, 10), stream_test_sge(50, 7) };
	struct ibv_recv_wr wr[] = { { .wr_id = 1, .sg_list = sge, .num_sge = 2, .next = &wr[1] },
				    { .wr_id = 2, .sg_list = sge, .num_sge = SGES + 1, .next = &wr[2] },
				    { .wr_id = 3, .sg_list = sge, .num_sge = 1 } }, *bad = NULL;

	assert_int_equal(soft_qp_post_recv(&bare->qp, wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr[1]);
	assert_int_equal(bare->rq.tail, 1);
	assert_int_equal(soft_rwqe(&bare->rq, 0)->wr_id, 1);
	assert_int_equal(soft_rwqe(&bare->rq, 0)->length, 17);
	wr[1].num_sge = 0;
	assert_int_equal(soft_qp_post_recv(&bare->qp, &wr[1], &bad), ENOMEM);
	assert_ptr_equal(bad, &wr[2]);
	assert_int_equal(bare->rq.tail, 2);
}

SHARED(queue_pair_with_a_shared_queue_takes_no_receive)
{
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad = NULL;

	assert_int_equal(soft_qp_post_recv(&s.qp->qp, &wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr);
}

SHARED(shared_queue_takes_receives_until_it_is_full)
{
	struct ibv_recv_wr wr[STREAM_WRS + 1] = { { 0 } }, *bad = NULL;

	for (uint32_t i = 0; i <= STREAM_WRS; i++) {
		wr[i].wr_id = i;
		wr[i].next = i < STREAM_WRS ? &wr[i + 1] : NULL;
	}
	assert_int_equal(soft_srq_post(&s.srq->srq, wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &wr[STREAM_WRS]);
	for (uint32_t i = 0; i < STREAM_WRS; i++)
		assert_int_equal(soft_rwqe(&s.srq->rq, i)->wr_id, i);
}

UNIT_MAIN(stream_test_open_device, stream_test_close_device)
