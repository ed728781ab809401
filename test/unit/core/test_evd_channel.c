/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_evd_channel.c - a completion channel that cannot be read any more is reported once, and ends waits. */
#include "dapl/core/event/evd.h"
#include "dapl/core/event/evd_channel.h"
#include "dapl/core/event/calls.h"
#include "test/unit/core/core_device.h"
#include "test/unit/unit.h"

static struct dapl_ia *ia;
static struct dapl_evd *evd, *async_evd;

UNIT_FIXTURE(set_up)
{
	core_device = (struct core_device){ .polling = NULL };
	ia = core_ia_new();
	evd = core_evd_new(ia, 8, DAT_EVD_DTO_FLAG);
	async_evd = core_async_evd_new(ia);
}

UNIT_FIXTURE(tear_down)
{
	ia->async_evd = NULL;
	core_evd_free(async_evd);
	core_evd_free(evd);
	core_ia_free(ia);
}

static unsigned reports(DAT_HANDLE handle)
{
	DAT_ASYNCH_ERROR_EVENT_DATA error;
	DAT_EVENT_NUMBER number;
	unsigned n = 0;

	while (core_async_error(async_evd, &error, &number)) {
		assert_int_equal(number, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR);
		assert_int_equal(error.reason, DAT_EVD_OTHER_ERROR);
		assert_ptr_equal(error.dat_handle, handle);
		n++;
	}
	return n;
}

UNIT_CASE(empty_channel_is_no_failure)
{
	static const int errors[] = { EAGAIN, EINTR };

	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
		core_device.channel_error = errors[i];
		assert_true(dapl_evd_cq_event(evd, NULL));
		assert_false(evd->channel_lost);
	}
	assert_int_equal(reports(evd), 0);
}

UNIT_CASE(lost_channel_is_reported_once)
{
	core_device.channel_error = EIO;
	assert_false(dapl_evd_cq_event(evd, NULL));
	assert_true(evd->channel_lost);
	assert_int_equal(reports(evd), 1);
	assert_false(dapl_evd_cq_event(evd, NULL));
	assert_int_equal(reports(evd), 0);
}

UNIT_CASE(lost_channel_of_a_discard_evd_names_no_handle)
{
	evd->discard = true;
	dapl_evd_lose_channel(evd, EIO);
	assert_int_equal(reports(NULL), 1);
	evd->discard = false;
}

UNIT_CASE(lost_channel_wakes_the_waiter_each_time)
{
	evd->waiting = true;
	for (int i = 0; i < 2; i++) {
		evd->notified = false;
		dapl_evd_lose_channel(evd, EIO);
		assert_true(evd->notified);
	}
	evd->waiting = false;
	assert_int_equal(reports(evd), 1);
}

UNIT_CASE(wait_without_a_channel_does_not_block)
{
	DAT_COUNT more = -1;
	DAT_EVENT event;

	dapl_evd_lose_channel(evd, EIO);
	assert_int_equal(DAT_GET_TYPE(dapl_evd_wait((DAT_EVD_HANDLE)evd, DAT_TIMEOUT_INFINITE, 1, &event, &more)),
			 DAT_INTERNAL_ERROR);
	assert_int_equal(more, 0);
	assert_false(evd->waiting);
	reports(evd);
}

UNIT_MAIN(NULL, NULL)
