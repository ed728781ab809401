/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_evd_feed.c - which streams may feed one EVD together, and how it notifies because of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "dapl/core/event/evd.h"
#include "dapl/core/event/evd_feed.h"
#include "test/unit/core/core_device.h"

static struct dapl_ia *ia;
static struct dapl_evd *evd;

static int set_up(void **state)
{
	(void)state;
	core_device = (struct core_device){ .polling = NULL };
	ia = core_ia_new();
	evd = core_evd_new(ia, 8, (DAT_EVD_FLAGS)(DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG));
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	core_evd_free(evd);
	core_ia_free(ia);
	return 0;
}

static void feed(DAT_COMPLETION_FLAGS flags)
{
	const char *why = "unchanged";

	assert_int_equal(dapl_evd_feed(evd, flags, &why), DAT_SUCCESS);
	assert_null(why);
}

static void expect_refusal(struct dapl_evd *of, DAT_COMPLETION_FLAGS flags, const char *reason)
{
	uint32_t users = of->obj.users;
	const char *why = NULL;
	int all = of->feeds.all;

	assert_int_equal(DAT_GET_TYPE(dapl_evd_feed(of, flags, &why)), DAT_INVALID_PARAMETER);
	assert_string_equal(why, reason);
	assert_int_equal(of->obj.users, users);
	assert_int_equal(of->feeds.all, all);
}

static void solicited_receives_share_no_evd_with_other_completions(void **state)
{
	(void)state;
	feed(DAT_COMPLETION_DEFAULT_FLAG);
	expect_refusal(evd, DAT_COMPLETION_SOLICITED_WAIT_FLAG,
		       "SOLICITED_WAIT receives share no EVD with other completions");
	assert_false(evd->solicited);
	dapl_evd_unfeed(evd, DAT_COMPLETION_DEFAULT_FLAG);
	feed(DAT_COMPLETION_SOLICITED_WAIT_FLAG);
	assert_true(evd->solicited);
}

static void other_completions_share_no_evd_with_solicited_receives(void **state)
{
	static const DAT_COMPLETION_FLAGS others[] = { DAT_COMPLETION_DEFAULT_FLAG,
		DAT_COMPLETION_UNSIGNALLED_FLAG, DAT_COMPLETION_EVD_THRESHOLD_FLAG };

	(void)state;
	feed(DAT_COMPLETION_SOLICITED_WAIT_FLAG);
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		expect_refusal(evd, others[i],
			       "the EVD takes SOLICITED_WAIT receives, and no other completions");
	dapl_evd_unfeed(evd, DAT_COMPLETION_SOLICITED_WAIT_FLAG);
	assert_false(evd->solicited);
	feed(DAT_COMPLETION_DEFAULT_FLAG);
}

static void solicited_receives_of_many_endpoints_share_an_evd(void **state)
{
	(void)state;
	feed(DAT_COMPLETION_SOLICITED_WAIT_FLAG);
	feed(DAT_COMPLETION_SOLICITED_WAIT_FLAG);
	dapl_evd_unfeed(evd, DAT_COMPLETION_SOLICITED_WAIT_FLAG);
	assert_true(evd->solicited);	/* of the other */
	expect_refusal(evd, DAT_COMPLETION_DEFAULT_FLAG,
		       "the EVD takes SOLICITED_WAIT receives, and no other completions");
}

static void solicited_receives_share_no_evd_with_events_of_the_ring(void **state)
{
	static const int kinds[] = { DAT_EVD_SOFTWARE_FLAG, DAT_EVD_CR_FLAG, DAT_EVD_CONNECTION_FLAG };

	(void)state;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		struct dapl_evd *mixed = core_evd_new(ia, 8, (DAT_EVD_FLAGS)(kinds[i] | DAT_EVD_DTO_FLAG));

		expect_refusal(mixed, DAT_COMPLETION_SOLICITED_WAIT_FLAG,
			       "SOLICITED_WAIT receives share no EVD with other kinds of events");
		core_evd_free(mixed);
	}
}

static void completions_of_the_extension_are_no_other_kind(void **state)
{
	struct dapl_evd *mixed =
		core_evd_new(ia, 8, (DAT_EVD_FLAGS)((int)DAT_IB_EVD_EXTENSION_FLAG | DAT_EVD_DTO_FLAG));
	const char *why;

	(void)state;
	assert_int_equal(dapl_evd_feed(mixed, DAT_COMPLETION_SOLICITED_WAIT_FLAG, &why), DAT_SUCCESS);
	dapl_evd_unfeed(mixed, DAT_COMPLETION_SOLICITED_WAIT_FLAG);
	core_evd_free(mixed);
}

static void one_unsignaled_stream_suffices(void **state)
{
	(void)state;
	feed(DAT_COMPLETION_DEFAULT_FLAG);
	assert_false(evd->skip_unsignaled || evd->inspect);
	feed(DAT_COMPLETION_UNSIGNALLED_FLAG);
	feed(DAT_COMPLETION_UNSIGNALLED_FLAG);
	assert_true(evd->skip_unsignaled && evd->inspect);
	dapl_evd_unfeed(evd, DAT_COMPLETION_UNSIGNALLED_FLAG);
	assert_true(evd->skip_unsignaled);
	dapl_evd_unfeed(evd, DAT_COMPLETION_UNSIGNALLED_FLAG);
	assert_false(evd->skip_unsignaled);
	assert_int_equal(evd->feeds.all, 1);
}

/* What was polled before counts when inspection begins, once. */
static void inspection_counts_what_was_polled_before(void **state)
{
	struct dapl_dto dto = { .op = DAT_DTO_SEND }, silent = { .op = DAT_DTO_SEND, .flags = REQ_NO_NOTIFY };

	(void)state;
	evd->wc[0] = (struct ibv_wc){ .wr_id = (uintptr_t)&dto };
	evd->wc[1] = (struct ibv_wc){ .wr_id = (uintptr_t)&silent };
	evd->wc_tail = 2;
	feed(DAT_COMPLETION_UNSIGNALLED_FLAG);
	assert_int_equal(evd->notices, 1);
	feed(DAT_COMPLETION_UNSIGNALLED_FLAG);
	assert_int_equal(evd->notices, 1);
	evd->wc_tail = 0;
}

static void streams_are_users_of_their_evd(void **state)
{
	(void)state;
	feed(DAT_COMPLETION_EVD_THRESHOLD_FLAG);
	assert_true(dapl_in_use(&evd->obj));
	assert_int_equal(evd->feeds.threshold, 1);
	dapl_evd_unfeed(evd, DAT_COMPLETION_EVD_THRESHOLD_FLAG);
	assert_false(dapl_in_use(&evd->obj));
	assert_int_equal(evd->feeds.threshold, 0);
}

static void evd_that_is_being_freed_takes_no_stream(void **state)
{
	struct dapl_evd *dying = core_evd_new(ia, 8, DAT_EVD_DTO_FLAG);
	const char *why = NULL;

	(void)state;
	assert_true(dapl_object_kill(&dying->obj));
	assert_int_equal(DAT_GET_TYPE(dapl_evd_feed(dying, DAT_COMPLETION_DEFAULT_FLAG, &why)),
			 DAT_INVALID_HANDLE);
	assert_string_equal(why, "the EVD is being freed");
	assert_int_equal(dying->feeds.all, 0);
	dapl_evd_destroy(dying);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(solicited_receives_share_no_evd_with_other_completions),
		CASE(other_completions_share_no_evd_with_solicited_receives),
		CASE(solicited_receives_of_many_endpoints_share_an_evd),
		CASE(solicited_receives_share_no_evd_with_events_of_the_ring),
		CASE(completions_of_the_extension_are_no_other_kind),
		CASE(one_unsignaled_stream_suffices),
		CASE(inspection_counts_what_was_polled_before),
		CASE(streams_are_users_of_their_evd),
		CASE(evd_that_is_being_freed_takes_no_stream),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
