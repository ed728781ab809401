/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_async.c - to which EVD the asynchronous events of an IA go. */
#include "dapl/core/event/async.h"
#include "dapl/core/event/calls.h"
#include "test/unit/core/core_device.h"
#include "test/unit/unit.h"

/* All IAs of core_ia_new() are of one adapter; the last is made one of another. */
enum { FIRST, SECOND, STRANGER, IAS };
static DAT_PROVIDER other_adapter;
static struct dapl_ia *ias[IAS];

UNIT_FIXTURE(set_up)
{
	core_device = (struct core_device){ .polling = NULL };
	for (int i = 0; i < IAS; i++)
		ias[i] = core_ia_new();
	ias[STRANGER]->obj.provider = &other_adapter;
	for (int i = 0; i < IAS; i++)
		dapl_async_join(ias[i]);
}

UNIT_FIXTURE(tear_down)
{
	for (int i = 0; i < IAS; i++) {
		dapl_async_leave(ias[i]);
		core_ia_free(ias[i]);
	}
}

static struct dapl_evd *own_evd(int i, int qlen)
{
	ias[i]->async_ours = true;
	return ias[i]->async_evd = core_evd_new(ias[i], qlen, DAT_EVD_ASYNC_FLAG);
}

static void post(int i) { dapl_async_post(ias[i], DAT_ASYNC_ERROR_EP_BROKEN, (DAT_HANDLE)ias, 5); }

/* The number of errors that the EVD had. */
static unsigned empty(struct dapl_evd *evd)
{
	DAT_ASYNCH_ERROR_EVENT_DATA error;
	DAT_EVENT_NUMBER number;
	unsigned count = 0;

	while (core_async_error(evd, &error, &number)) {
		assert_int_equal(number, DAT_ASYNC_ERROR_EP_BROKEN);
		assert_ptr_equal(error.dat_handle, ias);
		assert_int_equal(error.reason, 5);
		count++;
	}
	return count;
}

UNIT_CASE(own_evd_comes_first)
{
	struct dapl_evd *first = own_evd(FIRST, 8), *second = own_evd(SECOND, 8);

	post(SECOND);
	assert_int_equal(empty(first), 0);
	assert_int_equal(empty(second), 1);
	core_evd_free(first);
	core_evd_free(second);
}

UNIT_CASE(another_open_of_the_adapter_stands_in)
{
	struct dapl_evd *first = own_evd(FIRST, 8);

	post(SECOND);
	assert_int_equal(empty(first), 1);
	post(STRANGER);
	assert_int_equal(empty(first), 0);
	core_evd_free(first);
}

UNIT_CASE(events_without_an_evd_are_counted)
{
	post(FIRST);
	post(FIRST);
	assert_int_equal(ias[FIRST]->counters[DCNT_IA_ASYNC_ERROR], 2);
}

UNIT_CASE(full_evd_refuses_an_offer)
{
	DAT_EVENT event = { .event_number = DAT_ASYNC_ERROR_EP_BROKEN };
	struct dapl_evd *evd;
	DAT_EVENT taken;
	unsigned room = 0;

	assert_true(dapl_async_offer(ias[FIRST], &event));	/* no EVD wants it */
	evd = own_evd(FIRST, 4);
	while (dapl_async_offer(ias[FIRST], &event))
		room++;
	assert_true(room >= 4);
	assert_int_equal(dapl_evd_dequeue((DAT_EVD_HANDLE)evd, &taken), DAT_SUCCESS);
	assert_true(dapl_async_offer(ias[FIRST], &event));
	assert_int_equal(ias[FIRST]->counters[DCNT_IA_ASYNC_ERROR], 0);	/* it is no error */
	core_evd_free(evd);
}

UNIT_CASE(evd_serves_its_adapter_alone)
{
	struct dapl_evd *evd = own_evd(FIRST, 8);

	assert_true(dapl_async_serves(ias[SECOND]->obj.provider, evd));
	assert_false(dapl_async_serves(&other_adapter, evd));
	dapl_async_leave(ias[FIRST]);
	assert_false(dapl_async_serves(ias[SECOND]->obj.provider, evd));
	core_evd_free(evd);
}

UNIT_CASE(owner_that_leaves_takes_the_evd_from_all)
{
	struct dapl_evd *evd = own_evd(FIRST, 8);

	ias[SECOND]->async_evd = evd;		/* opened with it */
	dapl_async_leave(ias[FIRST]);
	assert_null(ias[FIRST]->async_evd);
	assert_null(ias[SECOND]->async_evd);
	assert_ptr_equal(dapl_async_handle(ias[SECOND]), DAT_EVD_OUT_OF_SCOPE);
	core_evd_free(evd);
}

UNIT_CASE(guest_that_leaves_takes_nothing)
{
	struct dapl_evd *evd = own_evd(FIRST, 8);

	ias[SECOND]->async_evd = evd;
	dapl_async_leave(ias[SECOND]);
	assert_null(ias[SECOND]->async_evd);
	assert_ptr_equal(dapl_async_handle(ias[FIRST]), evd);
	core_evd_free(evd);
}

/* The owner may be closed between the look at the EVD and the end of the open. */
UNIT_CASE(evd_that_is_gone_is_not_joined)
{
	struct dapl_evd *evd = own_evd(FIRST, 8);

	dapl_async_leave(ias[SECOND]);
	ias[SECOND]->async_evd = evd;
	dapl_async_join(ias[SECOND]);
	assert_ptr_equal(ias[SECOND]->async_evd, evd);
	dapl_async_leave(ias[SECOND]);
	dapl_async_leave(ias[FIRST]);
	ias[SECOND]->async_evd = evd;
	dapl_async_join(ias[SECOND]);
	assert_null(ias[SECOND]->async_evd);
	core_evd_free(evd);
}

UNIT_CASE(ias_of_a_parent_do_not_count)
{
	struct dapl_object **entered;
	size_t count;

	assert_true(dapl_async_any_ia());
	ias[SECOND]->pid = getppid();
	assert_true(dapl_async_enter_ias(&entered, &count));
	assert_int_equal(count, IAS - 1);
	for (size_t i = 0; i < count; i++) {
		assert_ptr_not_equal(entered[i], &ias[SECOND]->obj);
		assert_int_equal(entered[i]->calls, 1);
		dapl_object_leave(entered[i]);
	}
	free(entered);
	ias[FIRST]->pid = ias[STRANGER]->pid = getppid();
	assert_false(dapl_async_any_ia());
}

UNIT_MAIN(NULL, NULL)
