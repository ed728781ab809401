/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* device_queues.c - tests of test_device: shared receive queues, completion queues and their channels, datagrams. */
#include <poll.h>
#include "dapl/soft/tunables.h"
#include "test/unit/soft/device_ends.h"
#include "test/unit/soft/device_tests.h"
#include "test/unit/unit.h"

void shared_receive_queue_feeds_all_its_qps(void **state)
{
	struct options o = plain;
	struct end a, b, a2, b2;
	struct ibv_srq_attr attr = { 0 };
	struct upcall up;

	o.srq = true;
	open_pair(&a, &b, &o);
	a2 = a;
	b2 = b;
	a2.qp = make_qp(&a, &o);
	b2.qp = make_qp(&b, &o);
	connect_ends(&a2, &b2, &o);
	for (int i = 0; i < 4; i++)
		OK(post_recv(&b, i, i * 100, 100));
	attr.srq_limit = 3;
	OK(ops->modify_srq(b.srq, &attr, IBV_SRQ_LIMIT));
	expect_no_up(ASYNC, b.srq);
	OK(post(&a, 1, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 10, NULL, 0));
	assert_int_equal(done(b.rcq, 0).qp_num, b.qp->qp_num);
	expect_no_up(ASYNC, b.srq);
	OK(post(&a2, 2, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 10, NULL, 0));
	assert_int_equal(done(b.rcq, 1).qp_num, b2.qp->qp_num);
	up = expect_up(ASYNC, b.srq);
	assert_int_equal(up.event, IBV_EVENT_SRQ_LIMIT_REACHED);
	done(a.scq, 1);
	done(a.scq, 2);
	/* empties it; messages wait on both QPs, and are received once receives are posted */
	for (int i = 0; i < 4; i++)
		OK(post(i & 1 ? &a2 : &a, i, IBV_WR_SEND, 0, 0, 20, NULL, 0));
	done(b.rcq, 2);
	done(b.rcq, 3);
	expect_no_wc(b.rcq);
	expect_no_up(ASYNC, b.srq);
	attr.max_wr = 200;
	OK(ops->modify_srq(b.srq, &attr, IBV_SRQ_MAX_WR));
	OK(post_recv(&b, 10, 0, 100));
	done(b.rcq, 10);
	OK(post_recv(&b, 11, 0, 100));
	done(b.rcq, 11);
	for (int i = 0; i < 200; i++)
		OK(post_recv(&b, i, 0, 100));
	attr.max_wr = 100;
	assert_int_equal(ops->modify_srq(b.srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
	attr.max_wr = 0;
	assert_int_equal(ops->modify_srq(b.srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
	attr.max_wr = SOFT_MAX_WR + 1;
	assert_int_equal(ops->modify_srq(b.srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
	attr.max_wr = SOFT_MAX_WR;
	OK(ops->modify_srq(b.srq, &attr, IBV_SRQ_MAX_WR));
	/* receives stay when a QP is destroyed, and the last-WQE event comes */
	OK(ops->error_qp(b2.qp));
	up = expect_up(ASYNC, b2.qp);
	assert_int_equal(up.event, IBV_EVENT_QP_LAST_WQE_REACHED);
	expect_no_wc(b.rcq);
	release_conn(&a2);
	release_conn(&b2);
	OK(ops->destroy_qp(a2.qp));
	OK(ops->destroy_qp(b2.qp));
	OK(post(&a, 5, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 10, NULL, 0));
	done(b.rcq, 0);
	done(a.scq, 5);
	assert_int_equal(ops->destroy_srq(b.srq), EBUSY);
	close_pair(&a, &b);
}

static bool readable(struct ibv_comp_channel *channel, int ms)
{
	struct pollfd p = { .fd = channel->fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

void completion_channel_notifies_once_per_request(void **state)
{
	struct end a, b;
	struct ibv_cq *cq;
	struct ibv_wc wc;

	open_pair(&a, &b, &plain);
	for (int i = 0; i < 10; i++)
		OK(post_recv(&b, i, 0, 100));
	assert_int_equal(ops->get_cq_event(b.channel, &cq), EAGAIN);
	OK(ibv_req_notify_cq(b.rcq, 0));
	assert_false(readable(b.channel, 10));
	OK(post(&a, 1, IBV_WR_SEND, 0, 0, 10, NULL, 0));
	assert_true(readable(b.channel, 10000));
	OK(post(&a, 2, IBV_WR_SEND, 0, 0, 10, NULL, 0));
	OK(ops->get_cq_event(b.channel, &cq));
	assert_ptr_equal(cq, b.rcq);
	assert_int_equal(ops->get_cq_event(b.channel, &cq), EAGAIN);
	assert_false(readable(b.channel, 10));
	done(b.rcq, 0);
	done(b.rcq, 1);
	/* solicited only */
	OK(ibv_req_notify_cq(b.rcq, 1));
	OK(post(&a, 3, IBV_WR_SEND, 0, 0, 10, NULL, 0));
	assert_false(readable(b.channel, 50));
	OK(post(&a, 4, IBV_WR_SEND, IBV_SEND_SOLICITED, 0, 10, NULL, 0));
	assert_true(readable(b.channel, 10000));
	OK(ops->get_cq_event(b.channel, &cq));
	done(b.rcq, 2);
	done(b.rcq, 3);
	/* an error counts as solicited */
	OK(ibv_req_notify_cq(b.rcq, 1));
	OK(ops->error_qp(b.qp));
	assert_true(readable(b.channel, 10000));
	OK(ops->get_cq_event(b.channel, &cq));
	/* two CQs of one channel, and a CQ that is destroyed with its event */
	OK(ibv_req_notify_cq(b.rcq, 0));
	OK(ibv_req_notify_cq(b.scq, 0));
	OK(post_recv(&b, 1, 0, 100));
	OK(post(&b, 2, IBV_WR_SEND, 0, 0, 10, NULL, 0));
	OK(ops->get_cq_event(b.channel, &cq));
	assert_ptr_equal(cq, b.rcq);
	while (ibv_poll_cq(b.rcq, 1, &wc))
		;
	close_pair(&a, &b);
}

void ping_pong_of_blocked_threads(void **state)
{
	struct end a, b, *e[2] = { &a, &b };
	struct ibv_cq *cq;
	struct ibv_wc wc;

	open_pair(&a, &b, &plain);
	OK(post_recv(&a, 0, 0, 64));
	OK(post_recv(&b, 0, 0, 64));
	for (int i = 0; i < 200; i++) {
		struct end *from = e[i & 1], *to = e[!(i & 1)];

		OK(ibv_req_notify_cq(to->rcq, 0));
		assert_int_equal(ibv_poll_cq(to->rcq, 1, &wc), 0);
		OK(post(from, i, IBV_WR_SEND, 0, 0, 64, NULL, 0));
		assert_true(readable(to->channel, 10000));
		OK(ops->get_cq_event(to->channel, &cq));
		assert_int_equal(ibv_poll_cq(to->rcq, 1, &wc), 1);
		assert_int_equal(wc.status, 0);
		OK(post_recv(to, 0, 0, 64));
	}
	close_pair(&a, &b);
}

void cq_overrun_is_reported_and_resize_keeps_completions(void **state)
{
	struct options o = plain;
	struct end a, b;
	struct upcall up;
	int n = 0;
	struct ibv_wc wc;

	o.cqe = 16;
	open_pair(&a, &b, &o);
	for (int i = 0; i < 10; i++)
		OK(post_recv(&b, i, 0, 8));
	for (int i = 0; i < 10; i++)
		OK(post(&a, i, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 8, NULL, 0));
	for (int i = 0; i < 10; i++)
		done(a.scq, i);
	OK(ops->resize_cq(b.rcq, 100));
	assert_true(b.rcq->cqe >= 100);
	for (int i = 10; i < 60; i++)
		OK(post_recv(&b, i, 0, 8));
	OK(ops->error_qp(b.qp));
	for (int i = 0; i < 60; i++)
		expect_wc(b.rcq, i, i < 10 ? IBV_WC_SUCCESS : IBV_WC_WR_FLUSH_ERR);
	for (int i = 0; i < 60; i++)
		OK(post_recv(&b, i, 0, 8));
	assert_int_equal(ops->resize_cq(b.rcq, 16), EINVAL);
	/* an overrun gives one event; the completions that fit are kept */
	OK(ops->error_qp(a.qp));
	for (int i = 0; i < 40; i++)
		OK(post(&a, i, IBV_WR_SEND, 0, 0, 8, NULL, 0));
	up = expect_up(ASYNC, a.scq);
	assert_int_equal(up.event, IBV_EVENT_CQ_ERR);
	expect_no_up(ASYNC, a.scq);
	while (ibv_poll_cq(a.scq, 1, &wc))
		n++;
	assert_int_equal(n, a.scq->cqe);
	close_pair(&a, &b);
}

void destroyed_qp_leaves_no_completion_in_the_cq(void **state)
{
	struct end a, b;
	struct ibv_wc wc;

	open_end(&a, &plain);
	open_end(&b, &plain);
	for (int i = 0; i < 5; i++)
		OK(post_recv(&a, i, 0, 8));
	OK(ops->error_qp(a.qp));
	OK(ops->destroy_qp(a.qp));
	assert_int_equal(ibv_poll_cq(a.rcq, 1, &wc), 0);
	a.qp = make_qp(&a, &plain);
	assert_int_equal(ops->destroy_cq(a.rcq), EBUSY);
	assert_int_equal(ops->dealloc_pd(a.pd), EBUSY);
	close_pair(&a, &b);
}

/* --- datagrams ------------------------------------------------------------------------------------ */

void datagrams_arrive_or_are_lost_whole(void **state)
{
	struct options o = plain;
	struct end a, b;
	struct dapl_listener *listener;
	struct sockaddr_storage to;
	struct dapl_conn_params params;
	struct ibv_sge sge;
	struct ibv_send_wr wr = { .wr_id = 1, .opcode = IBV_WR_SEND_WITH_IMM, .sg_list = &sge,
		.num_sge = 1, .send_flags = IBV_SEND_SIGNALED };
	struct upcall at_a, at_b;
	uint16_t port = 0;
	struct ibv_wc wc;

	o.ud = true;
	open_end(&a, &o);
	open_end(&b, &o);
	OK(ops->listen(b.dev, NULL, &port, true, 8, &listener, &listener));
	to = address_of(&b, port);
	params = params_of(&a, &o, &to);
	params.pdata = "hi";
	params.pdata_len = 3;
	OK(ops->connect(a.dev, &params, &a.conn));
	at_b = expect_up(REQUEST, &listener);
	assert_true(at_b.ud);
	assert_string_equal(at_b.pdata, "hi");
	b.conn = at_b.conn;
	params = params_of(&b, &o, NULL);
	params.pdata = "ho";
	params.pdata_len = 3;
	OK(ops->accept(b.conn, &params));
	at_a = expect_up(ESTABLISHED, &a);
	assert_string_equal(at_a.pdata, "ho");
	at_b = expect_up(ESTABLISHED, &b);
	assert_int_equal(at_a.peer.qpn, b.qp->qp_num);
	assert_int_equal(at_b.peer.qpn, a.qp->qp_num);
	release_conn(&a);
	release_conn(&b);

	fill(a.buf, 4096, 8);
	sge = sge_of(&a, 0, 4096);
	wr.imm_data = htonl(99);
	wr.wr.ud.ah = at_a.peer.ah;
	wr.wr.ud.remote_qpn = at_a.peer.qpn;
	wr.wr.ud.remote_qkey = at_a.peer.qkey;
	OK(post_wr(&a, &wr));			/* no receive: the datagram is lost */
	done(a.scq, 1);
	expect_no_wc(b.rcq);
	OK(post_recv(&b, 2, 0, 5000));
	OK(post_wr(&a, &wr));
	done(a.scq, 1);
	wc = done(b.rcq, 2);
	assert_int_equal(wc.byte_len, 40 + 4096);
	assert_int_equal(wc.wc_flags, IBV_WC_GRH | IBV_WC_WITH_IMM);
	assert_int_equal(wc.imm_data, htonl(99));
	assert_int_equal(wc.src_qp, a.qp->qp_num);
	assert_memory_equal(b.buf + 40, a.buf, 4096);
	/* wrong Q_Key: lost */
	wr.wr.ud.remote_qkey++;
	OK(post_recv(&b, 3, 0, 5000));
	OK(post_wr(&a, &wr));
	done(a.scq, 1);
	expect_no_wc(b.rcq);
	/* the other way */
	sge = sge_of(&b, 0, 100);
	wr.opcode = IBV_WR_SEND;
	wr.wr.ud.ah = at_b.peer.ah;
	wr.wr.ud.remote_qpn = at_b.peer.qpn;
	wr.wr.ud.remote_qkey = at_b.peer.qkey;
	OK(post_recv(&a, 4, 0, 50));
	OK(post_recv(&a, 5, 0, 5000));
	OK(post_wr(&b, &wr));
	OK(post_wr(&b, &wr));
	expect_wc(a.rcq, 4, IBV_WC_LOC_LEN_ERR);
	wc = done(a.rcq, 5);
	assert_int_equal(wc.byte_len, 140);
	done(b.scq, 1);
	done(b.scq, 1);
	sge.length = 5000;
	OK(post_wr(&b, &wr));
	expect_wc(b.scq, 1, IBV_WC_LOC_LEN_ERR);
	OK(ops->destroy_ah(at_a.peer.ah));
	OK(ops->destroy_ah(at_b.peer.ah));
	ops->unlisten(listener);
	close_pair(&a, &b);
}
