/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_conn_step.c - a step of a connection is made whole, with its event and its consequences, or not at all;
 * the endpoint's timer has a reference of the endpoint. */
#include "dapl/core/conn/conn_step.h"
#include "dapl/core/conn/ep_free.h"
#include "dapl/core/event/evd.h"
#include "test/unit/core/core_objects.h"
#include "test/unit/unit.h"

enum { NEVER = 1000 * 1000000 };	/* us; longer than any test */

static struct dapl_ep *ep;
static unsigned errors;
static bool fired;		/* atomic */

static void note_error(struct ibv_qp *qp) { errors++; }

UNIT_FIXTURE(set_up)
{
	assert_int_equal(core_objects_open(state), 0);
	core_device.error_qp = note_error;
	errors = 0;
	fired = false;
	ep = core_objects_ep(NULL, NULL);
}

static int tear_down(void **state)
{
	dapl_timer_drain(&ep->timer);
	assert_int_equal(ep->obj.refs, 1);
	assert_int_equal(dapl_ep_free((DAT_EP_HANDLE)ep), DAT_SUCCESS);
	return core_objects_close(state);
}

static bool happened(enum dapl_ep_event event, const struct dapl_conn_cause *cause)
{
	bool yes;

	dapl_mutex_lock(&ep->lock);
	yes = dapl_ep_make_step(ep, event, cause);
	dapl_mutex_unlock(&ep->lock);
	return yes;
}

static int next_event(void)
{
	DAT_EVENT event;

	return core_next_event(core_conn_evd, &event);
}

static void connect_as_yet(void) { ep->state = DAT_EP_STATE_ACTIVE_CONNECTION_PENDING; }

static void fire(struct dapl_timer *timer)
{
	struct dapl_ep *of = container_of(timer, struct dapl_ep, timer);

	__atomic_store_n(&fired, true, __ATOMIC_RELEASE);
	dapl_object_put(&of->obj);
}

static void arm(uint64_t delay_us)
{
	dapl_mutex_lock(&ep->lock);
	dapl_ep_arm(ep, delay_us, fire);
	dapl_mutex_unlock(&ep->lock);
}

static void disarm(void)
{
	dapl_mutex_lock(&ep->lock);
	dapl_ep_disarm(ep);
	dapl_mutex_unlock(&ep->lock);
}

/* --- steps ----------------------------------------------------------------------------------------- */

UNIT_CASE(establishment_is_told_and_opens_the_fast_path)
{
	connect_as_yet();
	assert_true(happened(EP_ESTABLISHED, NULL));
	assert_int_equal(ep->state, DAT_EP_STATE_CONNECTED);
	assert_true(ep->up);
	assert_int_equal(next_event(), DAT_CONNECTION_EVENT_ESTABLISHED);
	assert_int_equal(next_event(), 0);
	assert_int_equal(errors, 0);
}

/* A receive that completed before ESTABLISHED was told waits in its EVD. */
UNIT_CASE(establishment_releases_held_receives)
{
	connect_as_yet();
	core_dto_evd->awaits_established = true;
	assert_true(happened(EP_ESTABLISHED, NULL));
	assert_false(core_dto_evd->awaits_established);
	assert_int_equal(next_event(), DAT_CONNECTION_EVENT_ESTABLISHED);
}

UNIT_CASE(end_of_a_connection_stops_the_timer)
{
	connect_as_yet();
	arm(NEVER);
	assert_int_equal(ep->obj.refs, 2);
	assert_true(happened(EP_REFUSED, NULL));
	assert_int_equal(ep->timer.due_ns, 0);
	assert_int_equal(ep->obj.refs, 1);
	assert_int_equal(next_event(), DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
}

UNIT_CASE(step_without_a_cause_is_no_failure)
{
	connect_as_yet();
	assert_true(happened(EP_REFUSED, NULL));
	assert_int_equal(ep->failure.event, 0);
	assert_int_equal(next_event(), DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
}

UNIT_CASE(step_that_the_state_forbids_does_nothing)
{
	const struct dapl_conn_cause cause = { .err = ECONNRESET };

	assert_false(happened(EP_ESTABLISHED, NULL));
	assert_false(happened(EP_BROKEN, &cause));
	assert_int_equal(ep->state, DAT_EP_STATE_UNCONNECTED);
	assert_false(ep->up);
	assert_int_equal(ep->failure.event, 0);
	assert_int_equal(errors, 0);
	assert_int_equal(next_event(), 0);
}

/* --- the timer --------------------------------------------------------------------------------------- */

UNIT_CASE(timer_holds_the_endpoint_until_it_fires)
{
	arm(1000);
	while (!__atomic_load_n(&fired, __ATOMIC_ACQUIRE))
		usleep(1000);	/* the alarm ends it */
	dapl_service_flush();
	assert_int_equal(ep->obj.refs, 1);
	disarm();		/* it has fired: nothing is left to be put */
	assert_int_equal(ep->obj.refs, 1);
}

UNIT_CASE(stopped_timer_does_not_fire)
{
	arm(NEVER);
	assert_int_equal(ep->obj.refs, 2);
	disarm();
	assert_int_equal(ep->obj.refs, 1);
	assert_int_equal(ep->timer.due_ns, 0);
	assert_false(__atomic_load_n(&fired, __ATOMIC_ACQUIRE));
	disarm();
	assert_int_equal(ep->obj.refs, 1);
}

UNIT_CASE(timer_that_is_started_again_has_one_reference)
{
	uint64_t due;

	arm(NEVER);
	due = ep->timer.due_ns;
	arm(2 * (uint64_t)NEVER);
	assert_true(ep->timer.due_ns > due);
	assert_int_equal(ep->obj.refs, 2);
	disarm();
}

UNIT_MAIN(NULL, NULL)
