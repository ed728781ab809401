/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* verbs_pp.c - the same 8-byte ping-pong straight on libibverbs and librdmacm; see common.h.
 * WHERE is the local address.
 *
 * It has a second thread that does nothing: a process that uses DAT has one, and glibc's
 * write(), a doorbell of software devices, is longer where there are two. */
#include "common.h"
#include <pthread.h>
#include <unistd.h>
#include <rdma/rdma_cma.h>

static struct rdma_cm_id *id, *listener;
static struct ibv_mr *mr;
static char buffer[2 * MESSAGE];	/* sent from the first half */
static int send_flags = IBV_SEND_SIGNALED;

OP static void op_post_send(void)
{
	struct ibv_sge sge = { (uintptr_t)buffer, MESSAGE, mr->lkey };
	struct ibv_send_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_SEND, .send_flags = send_flags }, *bad;
	CHECK(!ibv_post_send(id->qp, &wr, &bad), "ibv_post_send");
}

OP static void op_post_recv(void)
{
	struct ibv_sge sge = { (uintptr_t)(buffer + MESSAGE), MESSAGE, mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = 2, .sg_list = &sge, .num_sge = 1 }, *bad;
	CHECK(!ibv_post_recv(id->qp, &wr, &bad), "ibv_post_recv");
}

OP static int op_reap_send(void)
{
	struct ibv_wc wc;
	int n = ibv_poll_cq(id->send_cq, 1, &wc);
	CHECK(n >= 0 && (n == 0 || wc.status == IBV_WC_SUCCESS), "send: status %d", wc.status);
	return n;
}

OP static int op_reap_recv(void)
{
	struct ibv_wc wc;
	int n = ibv_poll_cq(id->recv_cq, 1, &wc);
	CHECK(n >= 0 && (n == 0 || wc.status == IBV_WC_SUCCESS), "recv: status %d", wc.status);
	return n;
}

static void *do_nothing(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void setup(const char *where, const char *addr, int port)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *info;
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .sq_sig_all = 0,
		.cap = { 64, 64, 1, 1, MESSAGE } };
	char service[16];
	pthread_t idle;

	CHECK(!pthread_create(&idle, NULL, do_nothing, NULL), "pthread_create");
	snprintf(service, sizeof service, "%d", port);
	if (!addr)
		hints.ai_flags = RAI_PASSIVE;
	CHECK(!rdma_getaddrinfo(addr ? addr : where, service, &hints, &info), "rdma_getaddrinfo");
	if (addr) {
		CHECK(!rdma_create_ep(&id, info, NULL, &attr), "rdma_create_ep");
	} else {
		CHECK(!rdma_create_ep(&listener, info, NULL, &attr), "rdma_create_ep");
		CHECK(!rdma_listen(listener, 1), "rdma_listen");
		puts("ready");
		fflush(stdout);
		CHECK(!rdma_get_request(listener, &id), "rdma_get_request");
	}
	if (attr.cap.max_inline_data >= MESSAGE)
		send_flags |= IBV_SEND_INLINE;
	mr = ibv_reg_mr(id->pd, buffer, sizeof buffer, IBV_ACCESS_LOCAL_WRITE);
	CHECK(mr, "ibv_reg_mr");
	op_post_recv();
	CHECK(!(addr ? rdma_connect(id, NULL) : rdma_accept(id, NULL)), "connect or accept");
}

static void finish(void)
{
	rdma_disconnect(id);
	ibv_dereg_mr(mr);
	rdma_destroy_ep(id);
	if (listener)
		rdma_destroy_ep(listener);
}
