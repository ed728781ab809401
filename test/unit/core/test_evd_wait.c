/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_evd_wait.c - what a wait without an event takes, returns and leaves. */
#include "dapl/core/event/evd.h"
#include "dapl/core/event/calls.h"
#include "test/unit/core/core_endpoint.h"
#include "test/unit/unit.h"

UNIT_FIXTURE(set_up) { core_endpoint_open(8, DAT_EVD_DTO_FLAG, 16); }

static void complete(unsigned flags)
{
	core_complete(evd, &(struct ibv_wc){ .status = IBV_WC_SUCCESS, .opcode = IBV_WC_SEND,
		.wr_id = (uintptr_t)core_post(ep, DAT_DTO_SEND, flags, 1) });
}

static DAT_RETURN look(DAT_COUNT threshold, DAT_COUNT *more)
{
	DAT_EVENT event;

	return dapl_evd_wait((DAT_EVD_HANDLE)evd, 0, threshold, &event, more);
}

#define CASE(name) UNIT_TEST_WITH(name, set_up, core_endpoint_close)

/* Their records are given back, or the endpoint runs out of them. */
CASE(completions_without_an_event_are_taken)
{
	DAT_COUNT more = -1;

	complete(REQ_SUPPRESS);
	complete(REQ_MARKER);
	assert_int_equal(DAT_GET_TYPE(look(1, &more)), DAT_TIMEOUT_EXPIRED);
	assert_int_equal(more, 0);
	assert_int_equal(dapl_queue_count(&ep->sq), 0);
}

CASE(event_behind_completions_without_one_is_found)
{
	DAT_COUNT more = -1;

	complete(REQ_SUPPRESS);
	complete(0);
	complete(0);
	assert_int_equal(look(1, &more), DAT_SUCCESS);
	assert_int_equal(more, 1);
	assert_int_equal(dapl_queue_count(&ep->sq), 1);
}

CASE(thresholds_need_every_completion_to_notify)
{
	DAT_COUNT more = -1;

	evd->solicited = true;
	assert_int_equal(look(2, &more), BAD_STATE(EVD_CONFIG_SOLICITED));
	evd->solicited = false;
	evd->skip_unsignaled = true;
	assert_int_equal(look(2, &more), BAD_STATE(EVD_CONFIG_NOTIFY));
	assert_false(evd->waiting);
	evd->skip_unsignaled = false;
	assert_int_equal(DAT_GET_TYPE(look(2, &more)), DAT_TIMEOUT_EXPIRED);
}

enum { LATE = 40, MOMENT = 1000 };	/* polls: more than a wait makes without wait_spin.h; us */

static unsigned polls;

static void complete_late(struct ibv_cq *cq)
{
	if (++polls == LATE)
		complete(0);
}

static DAT_RETURN wait_for_late_completion(void)
{
	DAT_COUNT more = -1;
	DAT_EVENT event;

	polls = 0;
	core_device.polling = complete_late;
	return dapl_evd_wait((DAT_EVD_HANDLE)evd, MOMENT, 1, &event, &more);
}

CASE(completion_that_comes_soon_is_taken_without_blocking)
{
	assert_int_equal(wait_for_late_completion(), DAT_SUCCESS);
	assert_in_range(polls, LATE, LATE + 2);
	assert_int_equal(evd->counters[DCNT_EVD_WAIT_BLOCKED], 0);
}

CASE(wait_that_does_not_look_blocks)
{
	evd->spin.left = 1;
	assert_int_equal(DAT_GET_TYPE(wait_for_late_completion()), DAT_TIMEOUT_EXPIRED);
	assert_in_range(polls, 1, LATE - 1);
	assert_int_equal(evd->counters[DCNT_EVD_WAIT_BLOCKED], 1);
	assert_int_equal(evd->spin.left, 0);
}

UNIT_MAIN(NULL, NULL)
