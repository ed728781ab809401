/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tapped.c - see tapped.h. */
#include "dapl/core/base/tap_posts.h"
#include "test/unit/unit.h"
#include "test/unit/verbs/tapped.h"

struct ibv_context context;
struct dapl_device dev;
struct dapl_conn conn;
struct ibv_qp qp;
struct ibv_cq cq = { .context = &context };
struct ibv_srq srq = { .context = &context };
char memory[8192];
bool no_memory;

UNIT_FAIL_MALLOC(no_memory)

UNIT_FAIL_CALLOC(no_memory)

/* --- the device ------------------------------------------------------------------------------------------------- */

uint64_t posted[8];		/* wr_ids */
unsigned posts, receives;
uint64_t refused;		/* wr_id of a request; 0: none */
struct ibv_wc completions[4];
int completed, queries, query_error;
bool query_ends_capture;

static int post_send(struct ibv_qp *to, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	for (; wr; wr = wr->next) {
		*bad = wr;
		if (wr->wr_id == refused)
			return ENOMEM;
		posted[posts++ % 8] = wr->wr_id;
	}
	return 0;
}

static int post_recv(struct ibv_qp *to, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	assert_ptr_equal(to, &qp);
	receives++;
	return 0;
}

static int post_srq_recv(struct ibv_srq *to, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	assert_ptr_equal(to, &srq);
	receives++;
	*bad = wr;
	return ENOMEM;
}

int device_poll_cq(struct ibv_cq *of, int n, struct ibv_wc *wc)
{
	int got = completed;

	assert_ptr_equal(of, &cq);
	if (got > 0)
		memcpy(wc, completions, (size_t)(got < n ? got : n) * sizeof *wc);
	completed = 0;
	return got;
}

int ibv_query_qp(struct ibv_qp *of, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
	assert_int_equal(of->qp_num % 256, QPN);
	assert_int_equal(mask, IBV_QP_DEST_QPN | IBV_QP_PATH_MTU);
	queries++;
	if (query_ends_capture)
		hw_tap(&dev, false);
	query_ends_capture = false;
	attr->dest_qp_num = 99;
	attr->path_mtu = IBV_MTU_1024;
	return query_error;
}

bool is_untouched(void)
{
	return context.ops.post_send == post_send && context.ops.post_recv == post_recv &&
	       context.ops.post_srq_recv == post_srq_recv && context.ops.poll_cq == device_poll_cq;
}

void begin_capture(uint32_t snap)
{
	tap_records_begin(snap);
	hw_tap(&dev, true);
}

void end_capture(void)
{
	hw_tap(&dev, false);
	dapl_tap_end();
}

/* --- fixture ---------------------------------------------------------------------------------------------------- */

void set_address(struct sockaddr_storage *to, const char *ip, uint16_t port)
{
	struct sockaddr_in *in = (struct sockaddr_in *)to;

	memset(to, 0, sizeof *to);
	in->sin_family = AF_INET;
	in->sin_port = htons(port);
	inet_pton(AF_INET, ip, &in->sin_addr);
}

int tapped_begin(void **state)
{
	context = (struct ibv_context){ .ops = { .post_send = post_send, .post_recv = post_recv,
		.post_srq_recv = post_srq_recv, .poll_cq = device_poll_cq } };
	qp = (struct ibv_qp){ .context = &context, .qp_num = QPN, .qp_type = IBV_QPT_RC };
	dev = (struct dapl_device){ .verbs = &context, .conns = &conn };
	dapl_mutex_init(&dev.lock, RANK_VERBS_DEVICE);
	conn = (struct dapl_conn){ .dev = &dev, .qp = &qp, .state = CONN_ESTABLISHED };
	dapl_mutex_init(&conn.lock, RANK_VERBS_CONN);
	set_address(&conn.local, "10.0.0.1", 1000);
	set_address(&conn.remote, "10.0.0.2", 2000);
	posts = receives = 0;
	refused = 0;
	completed = queries = query_error = 0;
	query_ends_capture = false;
	no_memory = false;
	strcpy(memory, "payload");
	return 0;
}

int tapped_end(void **state)
{
	end_capture();
	hw_tap_close(&dev);
	tap_records_release();
	return 0;
}

int tapped_begin_captured(void **state)
{
	tapped_begin(state);
	begin_capture(SNAP);
	return 0;
}

struct ibv_sge bytes(uint32_t n) { return (struct ibv_sge){ .addr = (uintptr_t)memory, .length = n, .lkey = 5 }; }

int post(enum ibv_wr_opcode opcode, struct ibv_sge *sge, int sges)
{
	struct ibv_send_wr wr = { .wr_id = 64, .opcode = opcode, .sg_list = sge, .num_sge = sges }, *bad;

	return ibv_post_send(&qp, &wr, &bad);
}

void sends(uint32_t n)
{
	struct ibv_sge sge = bytes(n);
	unsigned before = posts;

	assert_int_equal(post(IBV_WR_SEND, &sge, 1), 0);
	assert_int_equal(posts, before + 1);
}

void completes(uint64_t id, enum ibv_wc_opcode opcode, enum ibv_wc_status status, uint32_t length)
{
	struct ibv_wc wc = { .wr_id = 0 };

	completions[0] = (struct ibv_wc){ .wr_id = id, .opcode = opcode, .status = status, .byte_len = length,
		.qp_num = QPN };
	completed = 1;
	assert_int_equal(ibv_poll_cq(&cq, 1, &wc), 1);
	assert_memory_equal(&wc, completions, sizeof wc);
}

void tapped_init(void)
{
	dapl_tap_init();
	dapl_tap_posts_init();
}
