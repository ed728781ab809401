/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_rq.c - receive rings: their size, which posts are refused, and what is kept of a receive. */
#include "dapl/soft/obj/rq.h"
#include "test/unit/unit.h"

enum { SIZE = 4, SEGMENTS = 3 };

static struct soft_rq rq;
static struct ibv_sge sge[SEGMENTS + 1] = {
	{ 0x1000, 0xffffffff, 7 }, { 0x2000, 0xffffffff, 8 }, { 0x3000, 2, 9 }, { 0x4000, 1, 10 },
};

static int set_up(void **state)
{
	rq = (struct soft_rq){ .head = 0 };
	return soft_rq_init(&rq, SIZE, SEGMENTS);
}

UNIT_FIXTURE(tear_down) { free(rq.ring); }

static int post(uint64_t id, int segments)
{
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = sge, .num_sge = segments };

	return rq_post(&rq, &wr);
}

UNIT_CASE(size_is_a_power_of_2_and_at_least_what_was_asked_for)
{
	static const uint32_t asked[] = { 0, 1, 2, 3, 5, 64, 65 }, given[] = { 1, 1, 2, 4, 8, 64, 128 };

	for (int i = 0; i < 7; i++) {
		struct soft_rq sized = { .head = 0 };

		assert_int_equal(soft_rq_init(&sized, asked[i], 1), 0);
		assert_int_equal(sized.size, given[i]);
		free(sized.ring);
	}
}

UNIT_CASE(receive_without_room_for_segments_holds_one)
{
	struct soft_rq none = { .head = 0 };

	assert_int_equal(soft_rq_init(&none, 1, 0), 0);
	assert_int_equal(none.max_sge, 1);
	free(none.ring);
}

UNIT_CASE(too_many_segments_are_refused)
{
	assert_int_equal(post(1, SEGMENTS + 1), EINVAL);
	assert_int_equal(post(1, -1), EINVAL);
	assert_int_equal(rq.tail, 0);
	assert_int_equal(post(1, SEGMENTS), 0);
	assert_int_equal(post(1, 0), 0);
}

UNIT_CASE(full_ring_refuses_a_receive_until_one_is_taken)
{
	for (int i = 0; i < SIZE; i++)
		assert_int_equal(post(i, 1), 0);
	assert_int_equal(post(SIZE, 1), ENOMEM);
	assert_int_equal(soft_rwqe(&rq, rq.head)->wr_id, 0);
	rq.head++;
	assert_int_equal(post(SIZE, 1), 0);
	for (int i = 1; i <= SIZE; i++)
		assert_int_equal(soft_rwqe(&rq, rq.head++)->wr_id, i);
	assert_int_equal(rq.head, rq.tail);
}

UNIT_CASE(counters_wrap)
{
	rq.head = rq.tail = UINT32_MAX - 1;
	for (int i = 0; i < SIZE; i++)
		assert_int_equal(post(i, 1), 0);
	assert_int_equal(post(SIZE, 1), ENOMEM);
	for (int i = 0; i < SIZE; i++)
		assert_int_equal(soft_rwqe(&rq, rq.head++)->wr_id, i);
}

/* Two segments of 4 GiB less a byte do not fit 32 bits. */
UNIT_CASE(receive_keeps_its_segments_and_their_length)
{
	const struct soft_rwqe *first;

	assert_int_equal(post(5, SEGMENTS), 0);
	assert_int_equal(post(6, SEGMENTS), 0);
	first = soft_rwqe(&rq, 0);
	assert_int_equal(first->wr_id, 5);
	assert_int_equal(first->sges, SEGMENTS);
	assert_true(first->length == 0x200000000);
	assert_memory_equal(first->sge, sge, SEGMENTS * sizeof *sge);
}

UNIT_CASE(copy_has_all_segments)
{
	struct soft_rwqe *copy = calloc(1, sizeof *copy + SEGMENTS * sizeof *sge);

	assert_int_equal(post(5, SEGMENTS), 0);
	rwqe_copy(copy, soft_rwqe(&rq, 0));
	assert_int_equal(copy->wr_id, 5);
	assert_int_equal(copy->sges, SEGMENTS);
	assert_memory_equal(copy->sge, sge, SEGMENTS * sizeof *sge);
	free(copy);
}

UNIT_MAIN(NULL, NULL)
