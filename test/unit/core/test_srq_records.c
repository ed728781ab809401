/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_srq_records.c - the records of an SRQ: as many as the consumer's limit, in any order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "dapl/core/base/srq_records.h"

static struct dapl_srq srq;

static int set_up(void **state)
{
	(void)state;
	srq = (struct dapl_srq){ .max = 4 };
	dapl_spin_init(&srq.lock, RANK_SRQ);
	return dapl_srq_add_records(&srq, 4);
}

static int tear_down(void **state)
{
	(void)state;
	dapl_srq_free_records(&srq);
	return 0;
}

static struct dapl_dto *take(void)
{
	struct dapl_dto *dto;

	dapl_spin_lock(&srq.lock);
	dto = dapl_srq_take(&srq);
	dapl_spin_unlock(&srq.lock);
	if (dto)
		dto->srq = &srq;
	return dto;
}

static void all_records_are_different_and_no_more_than_the_limit(void **state)
{
	struct dapl_dto *dto[4];

	(void)state;
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

static void more_records_may_come_while_some_are_posted(void **state)
{
	struct dapl_dto *first = take();

	(void)state;
	assert_int_equal(dapl_srq_add_records(&srq, 2), 0);
	srq.max = 6;
	for (int i = 0; i < 5; i++)
		assert_ptr_not_equal(take(), first);
	assert_null(take());
	assert_int_equal(srq.records, 6);
}

static void a_smaller_limit_holds_before_records_return(void **state)
{
	struct dapl_dto *dto = take();

	(void)state;
	srq.max = 1;
	assert_null(take());
	dapl_srq_give_back(dto);
	assert_non_null(take());
}

static void nothing_is_taken_after_the_end(void **state)
{
	struct dapl_dto *dto = take();

	(void)state;
	dapl_srq_shut_records(&srq);
	assert_null(take());
	dapl_srq_give_back(dto);	/* a late completion */
	assert_null(take());
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(all_records_are_different_and_no_more_than_the_limit),
		CASE(more_records_may_come_while_some_are_posted),
		CASE(a_smaller_limit_holds_before_records_return),
		CASE(nothing_is_taken_after_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
