#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# rxe sends zeros in place of inline data that a program gives with ibv_wr_set_inline_data_list().
#
# The same data arrive by ibv_post_send() with IBV_SEND_INLINE, and by ibv_wr_set_inline_data(). So libdaplofa sends
# nothing inline where it uses this interface.
#
# Seen with rdma-core 44.0 (Debian 12) and 56.1 (Debian 13) on Linux 6.12.117:
#   ibv_wr_set_inline_data_list: status 0, the peer has ""
# Exit 0: still so. 1: the behaviour has changed. 2: cannot run here: needs an rxe device, gcc and libibverbs-dev.
# In the machine: ./bootstrap vm --kernel trixie -- findings/rxe-inline-data-list.sh
set -u
grep -qs . /sys/class/infiniband/rxe*/node_guid || { echo "needs an rxe device"; exit 2; }
dir=$(mktemp -d) || exit 2
trap 'rm -rf "$dir"' EXIT
cat > "$dir/inline.c" <<'CODE'
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char src[64] = "inline", dst[64];

static void ready(struct ibv_qp *q, uint32_t peer, union ibv_gid *gid, int index)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };
	int rc = ibv_modify_qp(q, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);

	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = peer,
		.max_dest_rd_atomic = 1, .min_rnr_timer = 12, .ah_attr = { .is_global = 1, .port_num = 1,
		.grh = { .dgid = *gid, .sgid_index = index, .hop_limit = 1 } } };
	rc |= ibv_modify_qp(q, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1 };
	rc |= ibv_modify_qp(q, &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
			    IBV_QP_MAX_QP_RD_ATOMIC);
	if (rc) {
		perror("ibv_modify_qp");
		exit(2);
	}
}

int main(void)
{
	int n;
	struct ibv_device **l = ibv_get_device_list(&n);
	struct ibv_context *c = NULL;

	for (int i = 0; i < n; i++) {
		struct ibv_context *d = ibv_open_device(l[i]);

		if (!strncmp(ibv_get_device_name(l[i]), "rxe", 3))
			c = d;
	}
	if (!c)
		return 2;
	struct ibv_pd *pd = ibv_alloc_pd(c);
	struct ibv_cq *cq = ibv_create_cq(c, 10, NULL, NULL, 0);
	struct ibv_mr *ms = ibv_reg_mr(pd, src, 64, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_mr *md = ibv_reg_mr(pd, dst, 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	struct ibv_qp *q[2];
	union ibv_gid gid;

	for (int i = 0; i < 2; i++) {
		struct ibv_qp_init_attr_ex a = { .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
			.cap = { 4, 4, 1, 1, 64 }, .pd = pd,
			.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, .send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE };
		q[i] = ibv_create_qp_ex(c, &a);
	}
	ibv_query_gid(c, 1, 1, &gid);
	ready(q[0], q[1]->qp_num, &gid, 1);
	ready(q[1], q[0]->qp_num, &gid, 1);
	static const char *const names[] = { "ibv_post_send", "ibv_wr_set_inline_data", "ibv_wr_set_inline_data_list" };
	int wrong = 0;
	for (int how = 0; how < 3; how++) {
		struct ibv_wc wc = { .status = -1 };
		struct ibv_qp_ex *e = ibv_qp_to_qp_ex(q[0]);
		struct ibv_data_buf b = { src, 7 };
		struct ibv_sge s = { (uintptr_t)src, 7, ms->lkey };
		struct ibv_send_wr w = { .sg_list = &s, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE, .wr.rdma = { (uintptr_t)dst, md->rkey } }, *bad;
		memset(dst, 0, sizeof dst);
		if (!how) {
			ibv_post_send(q[0], &w, &bad);
		} else {
			ibv_wr_start(e);
			e->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
			ibv_wr_rdma_write(e, md->rkey, (uintptr_t)dst);
			if (how == 1)
				ibv_wr_set_inline_data(e, src, 7);
			else
				ibv_wr_set_inline_data_list(e, 1, &b);
			ibv_wr_complete(e);
		}
		for (int k = 0; k < 3000 && !ibv_poll_cq(cq, 1, &wc); k++)
			usleep(1000);
		printf("%s: status %d, the peer has \"%s\"\n", names[how], wc.status, dst);
		if (wc.status == IBV_WC_SUCCESS && strcmp(dst, src)) wrong |= 1 << how;
	}
	return wrong == 4 ? 0 : 1;
}
CODE
gcc -o "$dir/inline" "$dir/inline.c" -libverbs || { echo "needs gcc and libibverbs-dev"; exit 2; }
"$dir/inline"
