/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_flush.c - the flush behind each RDMA write of some queue pairs: what reaches the device, and that each write
 * completes once, whatever became of it. The device is replaced here. */
#include "config.h"
#include "dapl/verbs/flush.h"
#include "dapl/verbs/object_table.h"
#include "dapl/verbs/segments.h"
#include "test/unit/unit.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

enum { QPN = 17, KEY = 5, ADDRESS = 0x7000, WITH_FLUSH = 1 << 11 };

typedef void flush_function(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, size_t length, uint8_t type,
			    uint8_t level);

/* struct ibv_qp_ex of rdma-core 46 and newer, whatever the header knows. */
static struct {
	struct ibv_qp_ex known;
	void *newer[2];
} device_qp;

static void set_flush(flush_function *f)
{
#ifdef HAVE_STRUCT_IBV_QP_EX_WR_FLUSH
	device_qp.known.wr_flush = f;
#else
	/* behind wr_abort and wr_atomic_write, of which rdma-core 44 has the second */
	memcpy((char *)&device_qp + offsetof(struct ibv_qp_ex, wr_abort) + 2 * sizeof(void *), &f, sizeof f);
#endif
}

static struct verbs_context verbs;
static struct ibv_pd pd = { .context = &verbs.context };
static struct ibv_cq cq = { .context = &verbs.context };
static struct ibv_qp qp, plain_qp;
static char data[100];

/* What the device was asked for. */
enum kind { WRITE, WRITE_IMM, FLUSH, OTHER };
static struct request {
	enum kind kind;
	uint64_t wr_id, addr, length;
	unsigned flags;
	uint32_t imm;
} posted[8];
static unsigned posts, started, completed;
static int refuse;			/* errno of the next posts */
static struct ibv_wc ready[8];		/* what the CQ has */
static unsigned readies, polls;
static int poll_error;
static int destroy_result;

static void put(enum kind kind, struct ibv_qp_ex *of, uint32_t rkey, uint64_t addr)
{
	assert_int_equal(started, completed + 1);
	assert_int_equal(rkey, KEY);
	posted[posts++] = (struct request){ .kind = kind, .wr_id = of->wr_id, .addr = addr, .flags = of->wr_flags };
}

static void device_write(struct ibv_qp_ex *of, uint32_t rkey, uint64_t addr) { put(WRITE, of, rkey, addr); }

static void device_write_imm(struct ibv_qp_ex *of, uint32_t rkey, uint64_t addr, __be32 imm)
{
	put(WRITE_IMM, of, rkey, addr);
	posted[posts - 1].imm = imm;
}

static void device_flush(struct ibv_qp_ex *of, uint32_t rkey, uint64_t addr, size_t length, uint8_t type, uint8_t level)
{
	put(FLUSH, of, rkey, addr);
	posted[posts - 1].length = length;
	assert_int_equal(type, 1);	/* visible, not persistent */
	assert_int_equal(level, 0);	/* the range, not the region */
}

static void device_sges(struct ibv_qp_ex *of, size_t n, const struct ibv_sge *list)
{
	for (size_t i = 0; i < n; i++)
		posted[posts - 1].length += list[i].length;
}

static void device_start(struct ibv_qp_ex *of) { started++; }

static int device_complete(struct ibv_qp_ex *of)
{
	completed++;
	if (refuse)
		posts -= 2;
	return refuse;
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *of)
{
	assert_ptr_equal(of, &qp);
	return &device_qp.known;
}

static int device_post_send(struct ibv_qp *of, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	for (; wr && !refuse; wr = wr->next)
		posted[posts++] = (struct request){ .kind = OTHER, .wr_id = wr->wr_id, .flags = wr->send_flags };
	*bad = wr;
	return refuse;
}

static int device_poll_cq(struct ibv_cq *of, int entries, struct ibv_wc *wc)
{
	unsigned n = readies < (unsigned)entries ? readies : (unsigned)entries;

	polls++;
	if (poll_error)
		return poll_error;
	memcpy(wc, ready, n * sizeof *wc);
	memmove(ready, ready + n, (readies - n) * sizeof *wc);
	readies -= n;
	return (int)n;
}

static struct ibv_qp_init_attr_ex asked;
static bool refuses_qp;

static struct ibv_qp *create_qp_ex(struct ibv_context *of, struct ibv_qp_init_attr_ex *attr)
{
	assert_ptr_equal(of, &verbs.context);
	asked = *attr;
	attr->cap.max_send_wr += 2;		/* devices round up */
	return refuses_qp ? NULL : &qp;
}

static unsigned destroyed;

int ibv_destroy_qp(struct ibv_qp *of)
{
	assert_ptr_equal(of, &qp);
	destroyed++;
	return 0;
}

static int destroy(struct ibv_qp *of)
{
	assert_true(of == &qp || of == &plain_qp);
	return destroy_result;
}

static int set_up(void **state)
{
	posts = started = completed = readies = polls = destroyed = 0;
	refuse = destroy_result = poll_error = 0;
	refuses_qp = false;
	verbs = (struct verbs_context){ .sz = sizeof verbs, .create_qp_ex = create_qp_ex };
	verbs.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	verbs.context.ops.post_send = device_post_send;
	verbs.context.ops.poll_cq = device_poll_cq;
	qp = (struct ibv_qp){ .context = &verbs.context, .pd = &pd, .qp_num = QPN, .qp_type = IBV_QPT_RC };
	plain_qp = qp;
	plain_qp.qp_num = QPN + 1;
	device_qp.known = (struct ibv_qp_ex){ .wr_rdma_write = device_write, .wr_rdma_write_imm = device_write_imm,
		.wr_set_sge_list = device_sges, .wr_start = device_start,
		.wr_complete = device_complete };
	set_flush(device_flush);
	return hw_flush_adopt(&verbs.context) || hw_flush_qp_add(&qp);
}

UNIT_FIXTURE(tear_down)
{
	hw_flush_qp_destroy(&qp, destroy);
	hw_flush_release(&verbs.context);
}

/* An address, as core posts it. */
#define REQUEST(n) ((uintptr_t)data + 8 * (n))

static int post_as(struct ibv_qp *to, enum ibv_wr_opcode opcode, unsigned flags, uint32_t length)
{
	struct ibv_sge sge[] = { { (uintptr_t)data, length, 3 }, { (uintptr_t)data, length, 3 } };
	struct ibv_send_wr wr = { .wr_id = REQUEST(1), .sg_list = sge, .num_sge = 2, .opcode = opcode, .imm_data = 77,
		.send_flags = flags, .wr.rdma = { ADDRESS, KEY } }, *bad = NULL;
	int err = ibv_post_send(to, &wr, &bad);

	if (err)
		assert_ptr_equal(bad, &wr);
	return err;
}

static int post(enum ibv_wr_opcode opcode, unsigned flags, uint32_t length)
{
	return post_as(&qp, opcode, flags, length);
}

/* The device completes the request that it was given. */
static void complete(const struct request *request, enum ibv_wc_status status)
{
	ready[readies++] = (struct ibv_wc){ .wr_id = request->wr_id, .status = status, .qp_num = QPN, .opcode = 8 };
}

/* --- posting -------------------------------------------------------------------------------- */

UNIT_CASE(flush_of_the_same_bytes_follows_a_write)
{
	assert_int_equal(post(IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED | IBV_SEND_FENCE, 10), 0);
	assert_int_equal(posts, 2);
	assert_int_equal(started, 1);		/* one doorbell */
	assert_int_equal(posted[0].kind, WRITE);
	assert_int_equal(posted[0].flags, IBV_SEND_FENCE);
	assert_int_equal(posted[1].kind, FLUSH);
	assert_int_equal(posted[1].flags, IBV_SEND_SIGNALED);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(posted[i].addr, ADDRESS);
		assert_int_equal(posted[i].length, 20);
	}
}

UNIT_CASE(immediate_data_stays_and_inline_data_is_read_from_its_region)
{
	assert_int_equal(post(IBV_WR_RDMA_WRITE_WITH_IMM, IBV_SEND_SIGNALED | IBV_SEND_INLINE | IBV_SEND_SOLICITED,
			      10), 0);
	assert_int_equal(posted[0].kind, WRITE_IMM);
	assert_int_equal(posted[0].imm, 77);
	assert_int_equal(posted[0].flags, IBV_SEND_SOLICITED);
	assert_int_equal(posted[0].length, 20);
	assert_int_equal(posted[1].kind, FLUSH);
}

UNIT_CASE(other_requests_go_to_the_device_alone)
{
	assert_int_equal(post(IBV_WR_SEND, IBV_SEND_SIGNALED, 10), 0);
	assert_int_equal(post(IBV_WR_RDMA_READ, IBV_SEND_SIGNALED, 10), 0);
	assert_int_equal(post(IBV_WR_RDMA_WRITE, 0, 10), 0);			/* does not complete */
	assert_int_equal(post(IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0), 0);	/* writes nothing */
	assert_int_equal(post_as(&plain_qp, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 10), 0);
	assert_int_equal(posts, 5);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(posted[i].kind, OTHER);
		assert_int_equal(posted[i].wr_id, REQUEST(1));
	}
}

UNIT_CASE(list_ends_at_the_request_that_is_refused)
{
	struct ibv_sge sge = { (uintptr_t)data, 10, 3 };
	struct ibv_send_wr send = { .wr_id = REQUEST(2), .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr write = { .wr_id = REQUEST(1), .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.next = &send, .send_flags = IBV_SEND_SIGNALED, .wr.rdma = { ADDRESS, KEY } }, *bad = NULL;

	assert_int_equal(ibv_post_send(&qp, &write, &bad), 0);
	assert_int_equal(posts, 3);
	assert_int_equal(posted[2].wr_id, REQUEST(2));
	refuse = ENOMEM;
	assert_int_equal(ibv_post_send(&qp, &write, &bad), ENOMEM);
	assert_ptr_equal(bad, &write);
	assert_int_equal(posts, 3);
	assert_int_equal(ibv_post_send(&qp, &send, &bad), ENOMEM);
	assert_ptr_equal(bad, &send);
}

UNIT_CASE(segments_are_checked_where_others_are)
{
	tear_down(state);
	verbs.context.ops.post_send = device_post_send;
	assert_int_equal(hw_segments_adopt(&verbs.context), 0);
	assert_int_equal(hw_flush_adopt(&verbs.context), 0);
	assert_int_equal(hw_flush_qp_add(&qp), 0);
	assert_int_equal(post(IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 10), SEGMENT_NOT_REGISTERED);
	assert_int_equal(post(IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED | IBV_SEND_INLINE, 10), SEGMENT_NOT_REGISTERED);
	assert_int_equal(posts + started, 0);
	hw_segments_release(&verbs.context);
}

const char *ibv_get_device_name(struct ibv_device *of) { return "fake0"; }

/* --- completions ---------------------------------------------------------------------------- */

UNIT_CASE(success_of_the_flush_is_that_of_the_write)
{
	struct ibv_wc wc[4];

	assert_int_equal(post(IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 10), 0);
	complete(&posted[1], IBV_WC_SUCCESS);
	assert_int_equal(ibv_poll_cq(&cq, 4, wc), 1);
	assert_int_equal(wc[0].wr_id, REQUEST(1));
	assert_int_equal(wc[0].status, IBV_WC_SUCCESS);
	assert_int_equal(wc[0].opcode, IBV_WC_RDMA_WRITE);
	assert_int_equal(ibv_poll_cq(&cq, 4, wc), 0);
}

UNIT_CASE(failed_write_completes_once_with_its_own_status)
{
	struct ibv_wc wc[4];

	assert_int_equal(post(IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 10), 0);
	complete(&posted[0], IBV_WC_REM_ACCESS_ERR);
	complete(&posted[1], IBV_WC_WR_FLUSH_ERR);
	complete(&(struct request){ .wr_id = REQUEST(5) }, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(ibv_poll_cq(&cq, 4, wc), 2);
	assert_int_equal(wc[0].wr_id, REQUEST(1));
	assert_int_equal(wc[0].status, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(wc[1].wr_id, REQUEST(5));
	assert_int_equal(wc[1].status, IBV_WC_WR_FLUSH_ERR);
}

UNIT_CASE(empty_poll_means_an_empty_queue)
{
	struct ibv_wc wc;

	assert_int_equal(post(IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 10), 0);
	complete(&posted[0], IBV_WC_WR_FLUSH_ERR);
	complete(&posted[1], IBV_WC_WR_FLUSH_ERR);
	complete(&(struct request){ .wr_id = REQUEST(5) }, IBV_WC_WR_FLUSH_ERR);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(ibv_poll_cq(&cq, 1, &wc), 1);
		assert_int_equal(wc.wr_id, i ? REQUEST(5) : REQUEST(1));
	}
	assert_int_equal(ibv_poll_cq(&cq, 1, &wc), 0);
}

UNIT_CASE(refused_flush_is_the_failure_of_its_write)
{
	struct ibv_wc wc[4];

	assert_int_equal(post(IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 10), 0);
	complete(&posted[1], IBV_WC_REM_INV_REQ_ERR);
	assert_int_equal(ibv_poll_cq(&cq, 4, wc), 1);
	assert_int_equal(wc[0].wr_id, REQUEST(1));
	assert_int_equal(wc[0].status, IBV_WC_REM_INV_REQ_ERR);
}

/* A record may be posted again as soon as its write has failed: the new write completes, too. */
UNIT_CASE(every_one_of_many_failed_writes_completes_once)
{
	struct ibv_wc wc[8];

	for (int i = 0; i < 2; i++)
		assert_int_equal(post(IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 10), 0);
	for (int i = 0; i < 4; i++)
		complete(&posted[i], i ? IBV_WC_WR_FLUSH_ERR : IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(ibv_poll_cq(&cq, 8, wc), 2);
	assert_int_equal(wc[0].status, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(wc[1].status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(wc[1].wr_id, REQUEST(1));
}

UNIT_CASE(error_of_a_poll_is_passed_on)
{
	struct ibv_wc wc;

	poll_error = -1;
	assert_int_equal(ibv_poll_cq(&cq, 1, &wc), -1);
	assert_int_equal(polls, 1);
}

/* Other files keep what belongs to the object itself (siw.c, segments.c). */
UNIT_CASE(entries_of_other_files_are_not_taken)
{
	assert_null(object_table_find(&qp));
	assert_null(object_table_find(&verbs.context));
}

/* --- life ----------------------------------------------------------------------------------- */

UNIT_CASE(send_queue_has_room_for_two_requests_a_write)
{
	struct ibv_qp_init_attr attr = { .send_cq = &cq, .recv_cq = &cq, .qp_type = IBV_QPT_RC, .qp_context = data,
		.cap = { .max_send_wr = 10, .max_recv_wr = 3, .max_inline_data = 64 } };

	assert_ptr_equal(hw_flush_make_qp(&pd, &attr), &qp);
	assert_int_equal(asked.cap.max_send_wr, 20);
	assert_int_equal(asked.cap.max_recv_wr, 3);
	assert_int_equal(asked.cap.max_inline_data, 64);
	assert_ptr_equal(asked.qp_context, data);
	assert_ptr_equal(asked.pd, &pd);
	assert_true(asked.send_ops_flags & WITH_FLUSH);
	assert_int_equal(attr.cap.max_send_wr, 11);
	refuses_qp = true;
	assert_null(hw_flush_make_qp(&pd, &attr));
}

UNIT_CASE(offer_is_what_the_library_makes)
{
	assert_true(hw_flush_is_offered(&pd, &cq));
	assert_int_equal(destroyed, 1);
	refuses_qp = true;
	assert_false(hw_flush_is_offered(&pd, &cq));
	assert_int_equal(destroyed, 1);
}

UNIT_CASE(queue_pair_that_stays_is_flushed_further)
{
	destroy_result = EBUSY;
	assert_int_equal(hw_flush_qp_destroy(&qp, destroy), EBUSY);
	assert_int_equal(post(IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 10), 0);
	assert_int_equal(posts, 2);
	destroy_result = 0;
	assert_int_equal(hw_flush_qp_destroy(&plain_qp, destroy), 0);
	assert_int_equal(post(IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 10), 0);
	assert_int_equal(posts, 4);
	assert_int_equal(hw_flush_qp_destroy(&qp, destroy), 0);
	assert_int_equal(post(IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 10), 0);
	assert_int_equal(posts, 5);
}

UNIT_MAIN(NULL, NULL)
