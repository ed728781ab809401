/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_segments.c - the check of a request's segments against the regions of its PD: what reaches the device, the errno
 * of what does not, and the line that names the segment. */
#include "common/log.h"
#include "dapl/verbs/segments.h"
#include "test/unit/printed.h"
#include "test/unit/unit.h"

enum { LENGTH = 4096, KEY = 0x1234 };

static struct ibv_context context, other_context;
static struct ibv_pd pd = { .context = &context }, other_pd = { .context = &context };
static struct ibv_qp qp = { .context = &context, .pd = &pd, .qp_num = 17, .qp_type = IBV_QPT_RC };
static char memory[LENGTH];
static struct ibv_mr mr;
static uint64_t posted[8];		/* wr_id of each request that reached the device */
static int posts, refuse, dereg_result;

static int device_post_send(struct ibv_qp *of, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	assert_ptr_equal(of, &qp);
	for (; wr && !refuse; wr = wr->next)
		posted[posts++] = wr->wr_id;
	*bad = wr;
	return refuse;
}

const char *ibv_get_device_name(struct ibv_device *of) { return "fake0"; }

int ibv_dereg_mr(struct ibv_mr *of)
{
	assert_ptr_equal(of, &mr);
	return dereg_result;
}

static int set_up(void **state)
{
	posts = refuse = dereg_result = 0;
	qp.qp_type = IBV_QPT_RC;
	mr = (struct ibv_mr){ .context = &context, .pd = &pd, .addr = memory, .length = LENGTH, .lkey = KEY };
	context.ops.post_send = device_post_send;
	return hw_segments_adopt(&context) || hw_segments_add(&mr, (uintptr_t)memory);
}

UNIT_FIXTURE(tear_down)
{
	hw_segments_dereg(&mr);
	hw_segments_release(&context);
}

static struct ibv_sge segment(uint64_t addr, uint32_t length, uint32_t lkey)
{
	return (struct ibv_sge){ .addr = addr, .length = length, .lkey = lkey };
}
#define IN_MEMORY(offset, length) segment((uintptr_t)memory + (offset), length, KEY)

static int post(struct ibv_sge sge, unsigned flags)
{
	struct ibv_send_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1, .send_flags = flags }, *bad = NULL;
	int err = ibv_post_send(&qp, &wr, &bad);

	if (err)
		assert_ptr_equal(bad, &wr);
	return err;
}

static void assert_refused(int err, int wanted)
{
	assert_int_equal(err, wanted);
	assert_int_equal(posts, 0);
}

/* --- what is refused ---------------------------------------------------------------------------------------- */

UNIT_CASE(all_bytes_of_a_region_are_posted)
{
	assert_int_equal(post(IN_MEMORY(0, LENGTH), 0), 0);
	assert_int_equal(post(IN_MEMORY(LENGTH - 1, 1), 0), 0);
	assert_int_equal(posts, 2);
}

UNIT_CASE(bytes_outside_a_region_are_refused)
{
	assert_refused(post(IN_MEMORY(0, LENGTH + 1), 0), ERANGE);
	assert_refused(post(IN_MEMORY(LENGTH - 1, 2), 0), ERANGE);
	assert_refused(post(IN_MEMORY(-1, 2), 0), ERANGE);
	assert_refused(post(IN_MEMORY(LENGTH, 1), 0), ERANGE);
	assert_refused(post(segment(UINT64_MAX, 2, KEY), 0), ERANGE);
	assert_refused(post(IN_MEMORY(1, UINT32_MAX), 0), ERANGE);
}

UNIT_CASE(unknown_key_is_refused)
{
	assert_refused(post(segment((uintptr_t)memory, 1, KEY + 1), 0), EKEYREJECTED);
	assert_refused(post(segment((uintptr_t)memory, 1, KEY ^ 1024 << 8), 0), EKEYREJECTED);
	assert_refused(post(segment((uintptr_t)memory, 1, 0), 0), EKEYREJECTED);
}

UNIT_CASE(region_of_another_pd_is_refused)
{
	struct ibv_mr foreign = mr;

	foreign.pd = &other_pd;
	foreign.lkey = KEY + 1;
	assert_int_equal(hw_segments_add(&foreign, (uintptr_t)memory), 0);
	assert_refused(post(segment((uintptr_t)memory, 1, KEY + 1), 0), EKEYREJECTED);
	qp.pd = &other_pd;
	assert_int_equal(post(segment((uintptr_t)memory, 1, KEY + 1), 0), 0);
	qp.pd = &pd;
}

UNIT_CASE(segment_of_any_place_is_checked)
{
	struct ibv_sge sge[] = { IN_MEMORY(0, 8), IN_MEMORY(8, 8), IN_MEMORY(LENGTH, 8) };
	struct ibv_send_wr wr = { .sg_list = sge, .num_sge = 3 }, *bad;

	assert_refused(ibv_post_send(&qp, &wr, &bad), ERANGE);
	wr.num_sge = 2;
	assert_int_equal(ibv_post_send(&qp, &wr, &bad), 0);
}

UNIT_CASE(zero_based_region_begins_at_0)
{
	struct ibv_mr zero_based = mr;

	zero_based.lkey = KEY + 0x100;
	assert_int_equal(hw_segments_add(&zero_based, 0), 0);
	assert_int_equal(post(segment(0, LENGTH, KEY + 0x100), 0), 0);
	posts = 0;
	assert_refused(post(segment(1, LENGTH, KEY + 0x100), 0), ERANGE);
	assert_refused(post(segment((uintptr_t)memory, 1, KEY + 0x100), 0), ERANGE);
}

/* --- what is not checked ------------------------------------------------------------------------------------- */

UNIT_CASE(empty_segment_may_have_any_key)
{
	assert_int_equal(post(segment(0, 0, 0), 0), 0);
}

UNIT_CASE(inline_data_may_have_any_key)
{
	assert_int_equal(post(segment((uintptr_t)memory, 8, 0), IBV_SEND_INLINE), 0);
}

UNIT_CASE(raw_queue_pair_is_not_checked)
{
	qp.qp_type = IBV_QPT_RAW_PACKET;
	assert_int_equal(post(segment((uintptr_t)memory, 60, 0), 0), 0);
}

UNIT_CASE(other_devices_are_not_checked)
{
	struct ibv_mr foreign = { .context = &other_context };

	assert_int_equal(hw_segments_add(&foreign, 0), 0);
	hw_segments_release(&other_context);
	assert_null(other_context.ops.post_send);
}

/* --- lists, deregistration ------------------------------------------------------------------------------------ */

UNIT_CASE(requests_before_a_faulty_one_are_posted)
{
	struct ibv_sge good = IN_MEMORY(0, 8), wrong = segment(0, 8, 0);
	struct ibv_send_wr third = { .wr_id = 3, .sg_list = &good, .num_sge = 1 },
			   second = { .wr_id = 2, .next = &third, .sg_list = &wrong, .num_sge = 1 },
			   first = { .wr_id = 1, .next = &second, .sg_list = &good, .num_sge = 1 }, *bad;

	assert_int_equal(ibv_post_send(&qp, &first, &bad), EKEYREJECTED);
	assert_ptr_equal(bad, &second);
	assert_int_equal(posts, 1);
	assert_int_equal(posted[0], 1);
	assert_ptr_equal(first.next, &second);
	refuse = ENOMEM;
	assert_int_equal(ibv_post_send(&qp, &first, &bad), ENOMEM);
	assert_ptr_equal(bad, &first);
}

UNIT_CASE(freed_region_is_refused)
{
	assert_int_equal(hw_segments_dereg(&mr), 0);
	assert_refused(post(IN_MEMORY(0, 1), 0), EKEYREJECTED);
}

UNIT_CASE(region_that_is_not_freed_stays)
{
	dereg_result = EBUSY;
	assert_int_equal(hw_segments_dereg(&mr), EBUSY);
	assert_int_equal(post(IN_MEMORY(0, 1), 0), 0);
	dereg_result = 0;
}

static void provoke(void *of)
{
	log_init("dapl", "DAPL_DBG_TYPE", "DAPL_DBG_LEVEL", "DAPL_DBG_DEST", LOG_BIT_ERROR | LOG_BIT_WARNING);
	post(*(struct ibv_sge *)of, 0);
}

UNIT_CASE(line_names_the_segment)
{
	struct ibv_sge unknown = segment(0x5000, 9, 0xabc), outside = segment(0x6000, 7, KEY + 0x200);
	struct ibv_mr small = { .context = &context, .pd = &pd, .length = 5, .lkey = KEY + 0x200 };

	assert_int_equal(hw_segments_add(&small, 0x6000), 0);
	assert_string_equal(printed_by(provoke, &unknown),
			    "dapl: fake0 QP 17: a request is refused: segment 0 (9 bytes at 0x5000) names LMR context "
			    "0xabc, which no LMR of the endpoint's PZ has\n");
	assert_string_equal(printed_by(provoke, &outside),
			    "dapl: fake0 QP 17: a request is refused: segment 0 (7 bytes at 0x6000) is not within "
			    "the LMR of context 0x1434 (5 bytes at 0x6000)\n");
}

UNIT_MAIN(NULL, NULL)
