/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_evd.c - event dispatchers as objects: which streams and lengths are accepted, what a query tells, and what a
 * free does with the events that are left (evd.c). */
#include "dapl/core/event/event.h"
#include "dapl/core/event/evd.h"
#include "dapl/core/event/evd_notify.h"
#include "test/unit/core/core_device.h"
#include "test/unit/unit.h"

static struct dapl_ia *ia;
static char request;		/* its address is the handle of a connection request */
static unsigned refused;

static void note_refusal(DAT_CR_HANDLE cr)
{
	assert_ptr_equal(cr, &request);
	refused++;
}

UNIT_FIXTURE(set_up)
{
	refused = 0;
	dapl_conn_hooks = (struct dapl_conn_hooks){ .refuse_request = note_refusal };
	core_device = (struct core_device){ .polling = NULL };
	ia = core_ia_new();
}

UNIT_FIXTURE(tear_down)
{
	assert_int_equal(core_device.cqs, 0);
	assert_null(ia->objects[DAPL_EVD]);
	assert_int_equal(ia->obj.calls, 0);
	core_ia_free(ia);
}

static DAT_RETURN create(DAT_COUNT qlen, int flags, DAT_EVD_HANDLE *evd)
{
	return dapl_evd_create((DAT_IA_HANDLE)ia, qlen, DAT_HANDLE_NULL, (DAT_EVD_FLAGS)flags, evd);
}

static struct dapl_evd *evd_new(int flags)
{
	DAT_EVD_HANDLE evd;

	assert_int_equal(create(8, flags, &evd), DAT_SUCCESS);
	return (struct dapl_evd *)evd;
}

static void end(struct dapl_evd *evd) { assert_int_equal(dapl_evd_free((DAT_EVD_HANDLE)evd), DAT_SUCCESS); }

static DAT_EVD_PARAM param_of(struct dapl_evd *evd)
{
	DAT_EVD_PARAM param = { .evd_qlen = -1 };

	assert_int_equal(dapl_evd_query((DAT_EVD_HANDLE)evd, DAT_EVD_FIELD_ALL, &param), DAT_SUCCESS);
	return param;
}

UNIT_CASE(only_completions_need_a_queue_of_the_device)
{
	struct dapl_evd *events = evd_new(DAT_EVD_CONNECTION_FLAG | DAT_EVD_ASYNC_FLAG), *completions;

	assert_int_equal(core_device.cqs, 0);
	assert_int_equal(param_of(events).evd_flags, DAT_EVD_CONNECTION_FLAG);	/* the other bit is dropped */
	completions = evd_new(DAT_EVD_DTO_FLAG);
	assert_int_equal(core_device.cqs, 1);
	assert_int_equal(param_of(completions).evd_qlen, 8);
	end(events);
	end(completions);
	assert_int_equal(ia->counters[DCNT_IA_EVD_CREATE], 2);
	assert_int_equal(ia->counters[DCNT_IA_EVD_FREE], 2);
}

UNIT_CASE(query_tells_the_state)
{
	struct dapl_evd *evd = evd_new(DAT_EVD_DTO_FLAG);
	DAT_EVD_HANDLE handle = (DAT_EVD_HANDLE)evd;

	assert_int_equal(param_of(evd).evd_state,
			 DAT_EVD_STATE_ENABLED | DAT_EVD_STATE_WAITABLE | DAT_EVD_STATE_CONFIG_NOTIFY);
	assert_int_equal(dapl_evd_disable(handle), DAT_SUCCESS);
	assert_int_equal(dapl_evd_set_unwaitable(handle), DAT_SUCCESS);
	evd->feeds.threshold = 1;
	assert_int_equal(param_of(evd).evd_state,
			 DAT_EVD_STATE_DISABLED | DAT_EVD_STATE_UNWAITABLE | DAT_EVD_STATE_CONFIG_THRESHOLD);
	evd->feeds.unsignaled = 1;
	assert_int_equal(dapl_evd_enable(handle), DAT_SUCCESS);
	assert_int_equal(dapl_evd_clear_unwaitable(handle), DAT_SUCCESS);
	assert_int_equal(param_of(evd).evd_state,
			 DAT_EVD_STATE_ENABLED | DAT_EVD_STATE_WAITABLE | DAT_EVD_STATE_CONFIG_NOTIFY);
	evd->feeds.solicited = 1;
	assert_int_equal(param_of(evd).evd_state,
			 DAT_EVD_STATE_ENABLED | DAT_EVD_STATE_WAITABLE | DAT_EVD_STATE_CONFIG_SOLICITED);
	end(evd);
}

/* No call can answer them any more. */
UNIT_CASE(free_refuses_the_requests_that_are_left)
{
	static const int numbers[] = { DAT_SOFTWARE_EVENT, DAT_CONNECTION_REQUEST_EVENT,
		DAT_IB_UD_CONNECTION_REQUEST_EVENT };
	struct dapl_evd *evd = evd_new(DAT_EVD_CR_FLAG | DAT_EVD_SOFTWARE_FLAG);

	for (int i = 0; i < 3; i++) {
		DAT_EVENT event = { .event_number = (DAT_EVENT_NUMBER)numbers[i] };

		event.event_data.cr_arrival_event_data.cr_handle = (DAT_CR_HANDLE)&request;
		assert_true(dapl_evd_post(evd, &event));
	}
	end(evd);
	assert_int_equal(refused, 2);
}

UNIT_MAIN(NULL, NULL)
