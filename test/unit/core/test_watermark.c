/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_watermark.c - the high watermarks of an endpoint on an SRQ: when they are passed, and what is reported. */
#include "dapl/core/event/event.h"
#include "dapl/core/event/watermark.h"
#include "test/unit/core/core_device.h"
#include "test/unit/unit.h"

static struct dapl_ia *ia;
static struct dapl_evd *async_evd;
static struct dapl_ep *ep;
static unsigned broken;

static void note_broken(struct dapl_ep *of, enum dapl_code_kind kind, unsigned code, const char *text)
{
	assert_ptr_equal(of, ep);
	assert_int_equal(kind, DAPL_CODE_NONE);
	assert_int_equal(code, 0);
	assert_string_equal(text, "it holds more SRQ buffers than its hard high watermark");
	assert_true(dapl_service_here());
	broken++;
}

UNIT_FIXTURE(set_up)
{
	broken = 0;
	dapl_conn_hooks = (struct dapl_conn_hooks){ .broken = note_broken };
	assert_int_equal(dapl_service_get(), 0);
	ia = core_ia_new();
	async_evd = core_async_evd_new(ia);
	ep = core_ep_new(ia, NULL, 16);
}

UNIT_FIXTURE(tear_down)
{
	assert_int_equal(ep->obj.refs, 1);	/* each report has given its reference back */
	core_ep_free(ep);
	ia->async_evd = NULL;
	core_evd_free(async_evd);
	core_ia_free(ia);
	dapl_service_put();
}

/* The reports of the soft watermark since the last call. */
static unsigned soft_reports(void)
{
	DAT_ASYNCH_ERROR_EVENT_DATA error;
	DAT_EVENT_NUMBER number;
	unsigned n = 0;

	dapl_service_flush();
	while (core_async_error(async_evd, &error, &number)) {
		assert_int_equal(number, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR);
		assert_int_equal(error.reason, DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT);
		assert_ptr_equal(error.dat_handle, ep);
		n++;
	}
	return n;
}

static void take(int buffers)
{
	while (buffers--)
		dapl_watermark_took_buffer(ep);
}

UNIT_CASE(soft_watermark_is_reported_once_when_it_is_exceeded)
{
	ep->soft_hw = 3;
	take(3);
	assert_int_equal(soft_reports(), 0);
	take(1);
	assert_int_equal(soft_reports(), 1);
	take(10);
	assert_int_equal(soft_reports(), 0);
	assert_int_equal(ep->srq_polled, 14);
	assert_int_equal(broken, 0);
}

UNIT_CASE(watermark_of_zero_allows_no_buffer)
{
	ep->soft_hw = ep->hard_hw = 0;
	take(1);
	assert_int_equal(soft_reports(), 1);
	assert_int_equal(broken, 1);
}

UNIT_CASE(hard_watermark_breaks_the_connection_when_it_is_exceeded)
{
	ep->hard_hw = 2;
	take(2);
	assert_int_equal(soft_reports(), 0);
	assert_int_equal(broken, 0);
	take(1);
	assert_int_equal(soft_reports(), 0);
	assert_int_equal(broken, 1);
}

static bool set_watermarks(int soft, int hard)
{
	bool fits;

	dapl_mutex_lock(&ep->lock);
	fits = dapl_watermark_set(ep, ep->recv_evd, soft, hard);
	dapl_mutex_unlock(&ep->lock);
	return fits;
}

UNIT_CASE(soft_watermark_that_is_set_late_can_be_reported)
{
	take(5);
	for (int i = 0; i < 2; i++) {
		assert_true(set_watermarks(4, 5));
		assert_int_equal(soft_reports(), 1);
	}
	take(1);
	assert_int_equal(soft_reports(), 0);
	assert_int_equal(broken, 1);
}

UNIT_CASE(hard_watermark_below_what_is_held_is_refused)
{
	take(5);
	assert_false(set_watermarks(1, 4));
	assert_int_equal(soft_reports(), 0);
	take(1);
	assert_int_equal(broken, 0);
	assert_int_equal(ep->srq_polled, 6);
	dapl_mutex_lock(&ep->lock);
	dapl_watermark_forget(ep, ep->recv_evd);
	dapl_mutex_unlock(&ep->lock);
	assert_int_equal(ep->srq_polled, 0);
	assert_true(set_watermarks(1, 4));
}

/* The service thread is kept busy while both are passed, several times: one report of each. */
static int pipe_fds[2];

static void keep_busy(struct dapl_task *task)
{
	char byte;

	assert_int_equal(read(pipe_fds[0], &byte, 1), 1);
}

UNIT_CASE(marks_that_are_passed_together_are_reported_together)
{
	struct dapl_task busy = { .run = NULL };

	assert_int_equal(pipe(pipe_fds), 0);
	dapl_task_queue(&busy, keep_busy);
	ep->soft_hw = ep->hard_hw = 1;
	take(5);
	assert_int_equal(ep->obj.refs, 2);
	assert_int_equal(write(pipe_fds[1], "", 1), 1);
	assert_int_equal(soft_reports(), 1);
	assert_int_equal(broken, 1);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
}

UNIT_MAIN(NULL, NULL)
