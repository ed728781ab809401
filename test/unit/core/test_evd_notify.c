/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_evd_notify.c - events that are queued: room, overflow, and whether the CNO is triggered. The thread
 * that waits is test_evd_wait's. */
#include <sys/eventfd.h>
#include "dapl/core/event/cno.h"
#include "dapl/core/event/calls.h"
#include "dapl/core/event/evd.h"
#include "dapl/core/event/evd_notify.h"
#include "test/unit/core/core_device.h"
#include "test/unit/unit.h"

static struct dapl_ia *ia;
static struct dapl_evd *evd;
static struct dapl_cno cno;

static int set_up(void **state)
{
	core_device = (struct core_device){ .polling = NULL };
	ia = core_ia_new();
	evd = core_evd_new(ia, 8, DAT_EVD_SOFTWARE_FLAG);
	cno = (struct dapl_cno){ .last = &cno.first, .wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
	dapl_mutex_init(&cno.mutex, RANK_CNO);
	return cno.wake_fd < 0;
}

UNIT_FIXTURE(tear_down)
{
	evd->cno = NULL;
	core_evd_free(evd);
	core_ia_free(ia);
	close(cno.wake_fd);
}

static DAT_EVENT event(int number)
{
	DAT_EVENT is;

	memset(&is, 0xee, sizeof is);
	is.event_number = (DAT_EVENT_NUMBER)number;
	return is;
}

static DAT_RETURN post_software(void *pointer)
{
	DAT_EVENT is = event(DAT_SOFTWARE_EVENT);

	is.event_data.software_event_data.pointer = pointer;
	return dapl_evd_post_se((DAT_EVD_HANDLE)evd, &is);
}

/* The IA of a connect EVD may be closed before that of the endpoint, which holds the EVD: no event is put, and
 * that is no overflow to report to the closed IA. */
UNIT_CASE(evd_that_has_ended_takes_no_event)
{
	struct dapl_evd *async = core_async_evd_new(ia), *ended = core_evd_new(ia, 8, DAT_EVD_CONNECTION_FLAG);
	DAT_EVENT is = event(DAT_CONNECTION_EVENT_BROKEN);
	DAT_ASYNCH_ERROR_EVENT_DATA error;
	DAT_EVENT_NUMBER number;

	dapl_evd_pin(ended);
	core_evd_free(ended);
	assert_false(dapl_evd_post(ended, &is));
	assert_int_equal(evq_count(&ended->evq), 0);
	assert_false(core_async_error(async, &error, &number));
	dapl_evd_unpin(ended);
	ia->async_evd = NULL;
	core_evd_free(async);
}

/* Posts until the EVD is full. Returns how many fitted. */
static unsigned fill(void)
{
	unsigned count = 0;

	while (post_software(NULL) == DAT_SUCCESS)
		count++;
	return count;
}

UNIT_CASE(room_is_what_fits)
{
	DAT_EVENT is;
	unsigned all;

	all = evd->evq.size;
	assert_true(all >= 8);
	assert_true(dapl_evd_has_room(evd, all));
	assert_false(dapl_evd_has_room(evd, all + 1));
	assert_int_equal(fill(), all);
	assert_true(dapl_evd_has_room(evd, 0));
	assert_false(dapl_evd_has_room(evd, 1));
	dapl_evd_dequeue((DAT_EVD_HANDLE)evd, &is);
	assert_true(dapl_evd_has_room(evd, 1));
}

/* It could be reported to itself only. */
UNIT_CASE(overflow_of_the_asynchronous_evd_is_not_reported)
{
	DAT_EVENT is = event(DAT_ASYNC_ERROR_EP_BROKEN);

	ia->async_evd = evd;
	fill();
	assert_false(dapl_evd_post(evd, &is));
	assert_int_equal(ia->counters[DCNT_IA_ASYNC_ERROR], 0);
}

/* By dat_evd_disable, by its end, or because the thread in dat_evd_wait gets the event. */
UNIT_CASE(evd_may_trigger_no_cno)
{
	evd->cno = &cno;
	evd->disabled = true;
	post_software(NULL);
	assert_null(cno.first);
	evd->disabled = false;
	evd->dying = true;
	post_software(NULL);
	assert_null(cno.first);
	evd->dying = false;
	evd->waiting = true;
	post_software(NULL);
	assert_null(cno.first);
	assert_true(evd->notified);
	evd->waiting = false;
}

UNIT_CASE(receive_that_was_held_back_is_told)
{
	evd->cno = &cno;
	dapl_evd_release(evd);
	assert_null(cno.first);
	evd->awaits_established = true;
	dapl_evd_release(evd);
	assert_ptr_equal(cno.first, evd);
	assert_false(evd->awaits_established);
}

UNIT_MAIN(NULL, NULL)
