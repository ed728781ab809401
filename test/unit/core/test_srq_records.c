/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_srq_records.c - the records of an SRQ: as many as the consumer's limit, in any order. */
#include "dapl/core/base/srq_records.h"
#include "test/unit/unit.h"

static struct dapl_srq srq;

static int set_up(void **state)
{
	srq = (struct dapl_srq){ .max = 4 };
	dapl_post_lock_init(&srq.lock, RANK_SRQ, true);
	return dapl_srq_add_records(&srq, 4);
}

UNIT_FIXTURE(tear_down) { dapl_srq_free_records(&srq); }

static struct dapl_dto *take(void)
{
	struct dapl_dto *dto;

	dapl_post_lock(&srq.lock);
	dto = dapl_srq_take(&srq);
	dapl_post_unlock(&srq.lock);
	if (dto)
		dto->srq = &srq;
	return dto;
}

UNIT_CASE(all_records_are_different_and_no_more_than_the_limit)
{
	struct dapl_dto *dto[4];

	for (int i = 0; i < 4; i++) {
		assert_non_null(dto[i] = take());
		for (int j = 0; j < i; j++)
			assert_ptr_not_equal(dto[i], dto[j]);
	}
	assert_null(take());
	assert_int_equal(srq.posted, 4);
	dapl_srq_give_back(dto[2]);
	assert_ptr_equal(take(), dto[2]);
	assert_null(take());
}

UNIT_CASE(more_records_may_come_while_some_are_posted)
{
	struct dapl_dto *first = take();

	assert_int_equal(dapl_srq_add_records(&srq, 2), 0);
	srq.max = 6;
	for (int i = 0; i < 5; i++)
		assert_ptr_not_equal(take(), first);
	assert_null(take());
	assert_int_equal(srq.records, 6);
}

UNIT_CASE(a_smaller_limit_holds_before_records_return)
{
	struct dapl_dto *dto = take();

	srq.max = 1;
	assert_null(take());
	dapl_srq_give_back(dto);
	assert_non_null(take());
}

UNIT_CASE(nothing_is_taken_after_the_end)
{
	struct dapl_dto *dto = take();

	dapl_srq_shut_records(&srq);
	assert_null(take());
	dapl_srq_give_back(dto);	/* a late completion */
	assert_null(take());
}

UNIT_MAIN(NULL, NULL)
