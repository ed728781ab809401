/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_evd_feed.c - which streams may feed one EVD together, and how it notifies because of them. */
#include "dapl/core/event/evd.h"
#include "dapl/core/event/evd_feed.h"
#include "test/unit/core/core_device.h"
#include "test/unit/unit.h"

static struct dapl_ia *ia;
static struct dapl_evd *evd;

UNIT_FIXTURE(set_up)
{
	core_device = (struct core_device){ .polling = NULL };
	ia = core_ia_new();
	evd = core_evd_new(ia, 8, (DAT_EVD_FLAGS)(DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG));
}

UNIT_FIXTURE(tear_down)
{
	core_evd_free(evd);
	core_ia_free(ia);
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

UNIT_CASE(solicited_receives_share_no_evd_with_events_of_the_ring)
{
	static const int kinds[] = { DAT_EVD_SOFTWARE_FLAG, DAT_EVD_CR_FLAG, DAT_EVD_CONNECTION_FLAG };

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		struct dapl_evd *mixed = core_evd_new(ia, 8, (DAT_EVD_FLAGS)(kinds[i] | DAT_EVD_DTO_FLAG));

		expect_refusal(mixed, DAT_COMPLETION_SOLICITED_WAIT_FLAG,
			       "SOLICITED_WAIT receives share no EVD with other kinds of events");
		core_evd_free(mixed);
	}
}

UNIT_CASE(completions_of_the_extension_are_no_other_kind)
{
	struct dapl_evd *mixed =
		core_evd_new(ia, 8, (DAT_EVD_FLAGS)((int)DAT_IB_EVD_EXTENSION_FLAG | DAT_EVD_DTO_FLAG));
	const char *why;

	assert_int_equal(dapl_evd_feed(mixed, DAT_COMPLETION_SOLICITED_WAIT_FLAG, &why), DAT_SUCCESS);
	dapl_evd_unfeed(mixed, DAT_COMPLETION_SOLICITED_WAIT_FLAG);
	core_evd_free(mixed);
}

/* What was polled before counts when inspection begins, once. */
UNIT_CASE(inspection_counts_what_was_polled_before)
{
	struct dapl_dto dto = { .op = DAT_DTO_SEND }, silent = { .op = DAT_DTO_SEND, .flags = REQ_NO_NOTIFY };

	evd->wc[0] = (struct ibv_wc){ .wr_id = (uintptr_t)&dto };
	evd->wc[1] = (struct ibv_wc){ .wr_id = (uintptr_t)&silent };
	evd->wc_tail = 2;
	feed(DAT_COMPLETION_UNSIGNALLED_FLAG);
	assert_int_equal(evd->notices, 1);
	feed(DAT_COMPLETION_UNSIGNALLED_FLAG);
	assert_int_equal(evd->notices, 1);
	evd->wc_tail = 0;
}

UNIT_CASE(evd_that_is_being_freed_takes_no_stream)
{
	struct dapl_evd *dying = core_evd_new(ia, 8, DAT_EVD_DTO_FLAG);
	const char *why = NULL;

	assert_true(dapl_object_kill(&dying->obj));
	assert_int_equal(DAT_GET_TYPE(dapl_evd_feed(dying, DAT_COMPLETION_DEFAULT_FLAG, &why)),
			 DAT_INVALID_HANDLE);
	assert_string_equal(why, "the EVD is being freed");
	assert_int_equal(dying->feeds.all, 0);
	dapl_evd_destroy(dying);
}

UNIT_MAIN(NULL, NULL)
