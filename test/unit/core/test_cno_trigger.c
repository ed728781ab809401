/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_cno_trigger.c - triggered EVDs of a CNO: their order, and when the CNO's descriptor is readable. */
#include <poll.h>
#include <sys/eventfd.h>
#include "dapl/core/event/cno_trigger.h"
#include "test/unit/core/core_device.h"
#include "test/unit/unit.h"

static struct dapl_cno cno;
static struct dapl_evd evds[3];
static unsigned agent_calls;
static DAT_EVD_HANDLE agent_evd;

static int set_up(void **state)
{
	cno = (struct dapl_cno){ .wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .last = &cno.first,
		.sleepers = 1 };
	dapl_mutex_init(&cno.mutex, RANK_CNO);
	for (int i = 0; i < 3; i++)
		evds[i] = (struct dapl_evd){ .triggered = false };
	agent_calls = 0;
	agent_evd = NULL;
	return cno.wake_fd < 0;
}

UNIT_FIXTURE(tear_down) { close(cno.wake_fd); }

static bool is_readable(void)
{
	struct pollfd fd = { .fd = cno.wake_fd, .events = POLLIN };

	return poll(&fd, 1, 0) == 1;
}

static struct dapl_evd *take(void)
{
	struct dapl_evd *evd;

	dapl_mutex_lock(&cno.mutex);
	evd = dapl_cno_take(&cno);
	dapl_mutex_unlock(&cno.mutex);
	return evd;
}

static void forget(struct dapl_evd *evd)
{
	dapl_mutex_lock(&cno.mutex);
	dapl_cno_forget(&cno, evd);
	dapl_mutex_unlock(&cno.mutex);
}

static void agent(DAT_PVOID context, DAT_EVD_HANDLE handle)
{
	assert_ptr_equal(context, &agent_calls);
	agent_calls++;
	agent_evd = handle;
}

UNIT_CASE(triggers_are_taken_in_their_order)
{
	assert_null(take());
	dapl_cno_trigger(&cno, &evds[1]);
	dapl_cno_trigger(&cno, &evds[0]);
	assert_ptr_equal(take(), &evds[1]);
	dapl_cno_trigger(&cno, &evds[2]);
	assert_ptr_equal(take(), &evds[0]);
	assert_ptr_equal(take(), &evds[2]);
	assert_null(take());
}

UNIT_CASE(triggered_evd_is_listed_once)
{
	dapl_cno_trigger(&cno, &evds[0]);
	dapl_cno_trigger(&cno, &evds[1]);
	dapl_cno_trigger(&cno, &evds[0]);
	assert_ptr_equal(take(), &evds[0]);
	assert_ptr_equal(take(), &evds[1]);
	assert_null(take());
	dapl_cno_trigger(&cno, &evds[0]);	/* after it was taken, it is news */
	assert_ptr_equal(take(), &evds[0]);
}

/* It polls the list; the descriptor of an fd CNO is the consumer's. */
UNIT_CASE(descriptor_is_not_raised_for_a_waiter_that_polls)
{
	cno.sleepers = 0;
	dapl_cno_trigger(&cno, &evds[0]);
	assert_false(is_readable());
	assert_ptr_equal(take(), &evds[0]);
	cno.proxy = DAT_PROXY_TYPE_FD;
	dapl_cno_trigger(&cno, &evds[0]);
	assert_true(is_readable());
	take();
	assert_false(is_readable());
}

UNIT_CASE(closing_cno_stays_readable)
{
	dapl_cno_trigger(&cno, &evds[0]);
	cno.closing = true;
	take();
	assert_true(is_readable());
	cno.closing = false;
	dapl_cno_trigger(&cno, &evds[0]);
	cno.closing = true;
	forget(&evds[0]);
	assert_true(is_readable());
}

/* The first, the middle and the last; the list goes on behind each. */
UNIT_CASE(forgotten_evd_leaves_the_others)
{
	for (int gone = 0; gone < 3; gone++) {
		for (int i = 0; i < 3; i++)
			dapl_cno_trigger(&cno, &evds[i]);
		forget(&evds[gone]);
		assert_false(evds[gone].triggered);
		dapl_cno_trigger(&cno, &evds[gone]);
		for (int i = 0; i < 3; i++)
			if (i != gone)
				assert_ptr_equal(take(), &evds[i]);
		assert_ptr_equal(take(), &evds[gone]);
		assert_null(take());
	}
}

UNIT_CASE(agent_is_told_the_latest_evd_once)
{
	cno.proxy = DAT_PROXY_TYPE_AGENT;
	cno.agent = (DAT_OS_WAIT_PROXY_AGENT){ &agent_calls, agent };
	dapl_cno_trigger(&cno, &evds[0]);
	dapl_cno_trigger(&cno, &evds[1]);
	dapl_cno_call_agent(&cno.agent_task);
	assert_int_equal(agent_calls, 1);
	assert_ptr_equal(agent_evd, &evds[1]);
	dapl_cno_call_agent(&cno.agent_task);
	assert_int_equal(agent_calls, 1);
}

UNIT_CASE(agent_is_not_told_a_forgotten_evd)
{
	cno.proxy = DAT_PROXY_TYPE_AGENT;
	cno.agent = (DAT_OS_WAIT_PROXY_AGENT){ &agent_calls, agent };
	dapl_cno_trigger(&cno, &evds[0]);
	forget(&evds[0]);
	dapl_cno_call_agent(&cno.agent_task);
	assert_int_equal(agent_calls, 0);
	cno.closing = true;		/* which it is told with no EVD */
	dapl_cno_call_agent(&cno.agent_task);
	assert_int_equal(agent_calls, 1);
	assert_null(agent_evd);
	cno.agent.proxy_agent_func = NULL;
	dapl_cno_call_agent(&cno.agent_task);
	assert_int_equal(agent_calls, 1);
}

UNIT_MAIN(NULL, NULL)
