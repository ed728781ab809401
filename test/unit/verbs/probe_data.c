/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* probe_data.c - data over a connection, and the limits of one connection. */
#include <errno.h>
#include <stdlib.h>
#include "dapl/core/base/settings.h"
#include "test/unit/verbs/probe.h"
#include "test/unit/verbs/probe_cases.h"

/* Receives posted in INIT, before there is a connection. */
void data(struct point *p)
{
	struct side a, b;
	struct ibv_wc wc;

	if (!side_start(&a, false) || !side_start(&b, false))
		return;
	EXPECT(post_recv(&a, 4096), 0);
	EXPECT(post_recv(&b, 4096), 0);
	EXPECT(connect_to(&a, p->port, NULL, 0), 0);
	COMES(p->requests, 1);
	p->requests = 0;
	EXPECT(accept_on(p, &b, NULL, 0), 0);
	COMES(a.established, 1);
	COMES(b.established, 1);
	send_one(&a, &b, 0);
	send_one(&b, &a, 0);
	EXPECT(post_recv(&b, 4096), 0);
	struct ibv_sge g = { (uintptr_t)memory, 64, mr->lkey };
	struct ibv_send_wr w = { .sg_list = &g, .num_sge = 1, .opcode = IBV_WR_RDMA_READ,
		.wr.rdma = { (uintptr_t)memory + 2048, mr->rkey } }, *bad;

	fill(memory + 2048, 64, 9);
	EXPECT(abs(ibv_post_send(a.qp, &w, &bad)), 0);
	EXPECT(reap(a.cq, &wc), IBV_WC_SUCCESS);
	EXPECT(memcmp(memory, memory + 2048, 64), 0);
	EXPECT(OPS.error_qp(b.qp), 0);
	EXPECT(reap(b.cq, &wc), IBV_WC_WR_FLUSH_ERR);
	OPS.disconnect(b.conn);
	COMES(a.disconnected, 1);
	EXPECT(a.orderly, true);
	hang_up(&a);
	release(&b);
	COMES(a.released, 1);
	COMES(b.released, 1);
	EXPECT(OPS.reset_qp(dev, a.qp), EOPNOTSUPP);
	side_stop(&a);
	side_stop(&b);
}

static void expect_tuned(struct side *s)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr is = { 0 };

	EXPECT(ibv_query_qp(s->qp, &is, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			    IBV_QP_MIN_RNR_TIMER | IBV_QP_AV, &init), 0);
	EXPECT(is.timeout, 17);
	EXPECT(is.retry_cnt, 3);
	EXPECT(is.rnr_retry, 2);
	EXPECT(is.min_rnr_timer, 9);
	EXPECT(is.ah_attr.grh.traffic_class, 0x28);
}

void limits_of_one_connection(struct point *p)
{
	struct side a, b;

	tuning = (struct dapl_conn_tuning){ .ack_timeout = 17 + 1, .ack_retry = 3 + 1,
		.rnr_timer = 9 + 1, .rnr_retry = 2 + 1, .traffic_class = 0x28 + 1 };
	if (pair(p, &a, &b)) {
		expect_tuned(&a);
		expect_tuned(&b);
		end_pair(&a, &b);
	}
	tuning = (struct dapl_conn_tuning){ 0 };
	dapl_settings.ack_timer = 17;
	dapl_settings.ack_retry = 3;
	dapl_settings.rnr_timer = 9;
	dapl_settings.rnr_retry = 2;
	dapl_settings.tos = 0x28;
	if (pair(p, &a, &b)) {
		expect_tuned(&a);
		expect_tuned(&b);
		end_pair(&a, &b);
	}
	dapl_settings_read();
}
