/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cno.c - consumer notification objects: what triggers them, which threads wake. */
#include "actors.h"
#include "pair.h"
#include <poll.h>

static DAT_EVD_HANDLE evd_of(DAT_CNO_HANDLE cno)
{
	return an_evd_of(8, cno, DAT_EVD_SOFTWARE_FLAG);
}

/* The CNO must be triggered by this EVD. The wait ends the trigger. */
static void expect_trigger(DAT_CNO_HANDLE cno, DAT_EVD_HANDLE by)
{
	DAT_EVD_HANDLE evd = (DAT_EVD_HANDLE)77;

	OK(dat_cno_wait(cno, (DAT_TIMEOUT)(patience() * 1e6), &evd));
	EQUAL(evd, by);
}

static void expect_no_trigger(DAT_CNO_HANDLE cno)
{
	DAT_EVD_HANDLE evd = (DAT_EVD_HANDLE)77;

	FAILS(dat_cno_wait(cno, 20000, &evd), DAT_QUEUE_EMPTY);
	EQUAL(evd, DAT_HANDLE_NULL);
}

TEST("CNO-1", a_cno_without_agent_says_so)
{
	DAT_CNO_PARAM param = { .proxy_type = (DAT_PROXY_TYPE)77, .proxy.none = &param };

	OK(dat_cno_query(a_cno(), (DAT_CNO_PARAM_MASK)7, &param));
	EQUAL(param.proxy_type, DAT_PROXY_TYPE_NONE);
	EQUAL(param.proxy.agent.proxy_agent_func, NULL);
}

static struct heard {
	DAT_PVOID data;
	DAT_EVD_HANDLE evd;
	_Atomic int calls;
} heard;

static void listen_in(DAT_PVOID data, DAT_EVD_HANDLE evd)
{
	heard.data = data;
	heard.evd = evd;
	heard.calls++;
}

static DAT_CNO_HANDLE with_agent(void)
{
	DAT_OS_WAIT_PROXY_AGENT agent = { .instance_data = &heard, .proxy_agent_func = listen_in };
	DAT_CNO_HANDLE cno;

	OK(dat_cno_create(ia(), agent, &cno));
	return cno;
}

TEST("CNO-2", an_agent_is_called_on_a_trigger)
{
	DAT_EVD_HANDLE evd = evd_of(with_agent());

	OK(post_number(evd, 1));
	UNTIL(heard.calls > 0, "a call of the agent");
	EQUAL(heard.data, &heard);
	EQUAL(heard.evd, evd);
}

TEST("CNO-3", a_wait_for_nothing_ends_at_its_timeout)
{
	DAT_EVD_HANDLE evd = (DAT_EVD_HANDLE)77;
	double begin = now();

	FAILS(dat_cno_wait(a_cno(), 10000, &evd), DAT_QUEUE_EMPTY);
	HOLDS(now() - begin >= 0.010);
	EQUAL(evd, DAT_HANDLE_NULL);
}

TEST("CNO-4", a_wait_of_no_time_does_not_block)
{
	DAT_EVD_HANDLE evd = (DAT_EVD_HANDLE)77;

	FAILS(dat_cno_wait(a_cno(), 0, &evd), DAT_QUEUE_EMPTY);
	EQUAL(evd, DAT_HANDLE_NULL);
}

TEST("CNO-5", a_wait_tells_the_evd_with_the_event)
{
	DAT_CNO_HANDLE cno = a_cno();
	DAT_EVD_HANDLE evd = evd_of(cno);
	struct waiter *w = waiter_on_cno(cno, DAT_TIMEOUT_INFINITE);

	OK(post_number(evd, 1));
	OK(released(w));
	EQUAL(w->woken_by, evd);
	EVENT(evd, DAT_SOFTWARE_EVENT);
}

TEST("CNO-6", a_trigger_waits_for_the_waiter)
{
	DAT_CNO_HANDLE cno = a_cno();
	DAT_EVD_HANDLE evd = evd_of(cno);

	OK(post_number(evd, 1));
	expect_trigger(cno, evd);
}

TEST("CNO-7", a_trigger_is_consumed_once)
{
	DAT_CNO_HANDLE cno = a_cno();
	DAT_EVD_HANDLE evd = evd_of(cno);

	OK(post_number(evd, 1));
	expect_trigger(cno, evd);
	FAILS(dat_cno_wait(cno, 0, &evd), DAT_QUEUE_EMPTY);
}

TEST("CNO-8", a_trigger_wakes_one_of_two_waiters)
{
	DAT_CNO_HANDLE cno = a_cno();
	DAT_EVD_HANDLE evd = evd_of(cno);
	struct waiter *w[2] = { waiter_on_cno(cno, DAT_TIMEOUT_INFINITE),
				waiter_on_cno(cno, DAT_TIMEOUT_INFINITE) };

	OK(post_number(evd, 1));
	UNTIL(w[0]->done || w[1]->done, "one of two waiters to wake");
	BLOCKED(w[w[0]->done]);
	EVENT(evd, DAT_SOFTWARE_EVENT);
	OK(post_number(evd, 2));
	for (int i = 0; i < 2; i++) {
		OK(released(w[i]));
		EQUAL(w[i]->woken_by, evd);
	}
}

TEST("CNO-9", a_disabled_evd_does_not_trigger)
{
	DAT_CNO_HANDLE cno = a_cno();
	DAT_EVD_HANDLE evd = evd_of(cno);

	OK(dat_evd_disable(evd));
	OK(post_number(evd, 1));
	expect_no_trigger(cno);
}

TEST("CNO-10", an_evd_with_a_waiter_does_not_trigger)
{
	DAT_CNO_HANDLE cno = a_cno();
	DAT_EVD_HANDLE evd = evd_of(cno);
	struct waiter *w = waiter_on_evd(evd, DAT_TIMEOUT_INFINITE, 1);

	OK(post_number(evd, 1));
	OK(released(w));
	expect_no_trigger(cno);
}

TEST("CNO-11", a_signal_interrupts_a_wait)
{
	DAT_CNO_HANDLE cno = a_cno();

	evd_of(cno);
	struct waiter *w = waiter_on_cno(cno, DAT_TIMEOUT_INFINITE);
	interrupt(w);
	FAILS(released(w), DAT_INTERRUPTED_CALL);
}

TEST("CNO-12", a_cno_of_an_evd_is_in_use)
{
	DAT_CNO_HANDLE cno = a_cno();
	DAT_EVD_HANDLE evd = evd_of(cno);

	FAILS(dat_cno_free(cno), DAT_INVALID_STATE | DAT_INVALID_STATE_CNO_IN_USE);
	OK(dat_evd_free(evd));
	OK(dat_cno_free(cno));
}

TEST("CNO-13", a_cno_with_a_waiter_is_in_use)
{
	DAT_CNO_HANDLE cno = a_cno();
	struct waiter *w = waiter_on_cno(cno, DAT_TIMEOUT_INFINITE);

	FAILS(dat_cno_free(cno), DAT_INVALID_STATE | DAT_INVALID_STATE_CNO_IN_USE);
	BLOCKED(w);
	OK(post_number(evd_of(cno), 1));
	OK(released(w));
}

TEST("CNO-14", a_freed_cno_is_not_waited_for)
{
	DAT_CNO_HANDLE cno = a_cno();
	DAT_EVD_HANDLE evd;

	OK(dat_cno_free(cno));
	FAILS(dat_cno_wait(cno, 0, &evd), DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_CNO);
}

TEST("CNO-15", freeing_the_last_evd_releases_the_waiter)
{
	DAT_CNO_HANDLE cno = a_cno();
	DAT_EVD_HANDLE evd = evd_of(cno);
	struct waiter *w = waiter_on_cno(cno, DAT_TIMEOUT_INFINITE);

	OK(dat_evd_free(evd));
	OK(released(w));
	EQUAL(w->woken_by, DAT_HANDLE_NULL);
}

TEST("CNO-16", an_evd_moves_to_another_cno)
{
	DAT_CNO_HANDLE first = a_cno(), second = a_cno();
	DAT_EVD_HANDLE evd = evd_of(first);

	OK(dat_evd_modify_cno(evd, second));
	EQUAL(evd_param(evd).cno_handle, second);
	OK(post_number(evd, 1));
	expect_trigger(second, evd);
	expect_no_trigger(first);
	OK(dat_cno_free(first));
}

TEST("CNO-17", an_evd_leaves_its_cno)
{
	DAT_CNO_HANDLE cno = a_cno();
	DAT_EVD_HANDLE evd = evd_of(cno);

	OK(dat_evd_modify_cno(evd, DAT_HANDLE_NULL));
	OK(post_number(evd, 1));
	expect_no_trigger(cno);
	OK(dat_cno_free(cno));
}

TEST("CNO-18", an_agent_that_was_removed_is_not_called)
{
	DAT_CNO_HANDLE cno = with_agent();
	DAT_EVD_HANDLE evd = evd_of(cno);

	OK(dat_cno_modify_agent(cno, DAT_OS_WAIT_PROXY_AGENT_NULL));
	OK(post_number(evd, 1));
	expect_trigger(cno, evd);
	EQUAL(heard.calls, 0);
}

TEST("CNO-19", the_fields_of_a_cno_overlap)
{
	DAT_CNO_HANDLE cno = a_cno();
	DAT_CNO_PARAM param;

	for (int mask = 0; mask <= 7; mask++)
		OK(dat_cno_query(cno, (DAT_CNO_PARAM_MASK)mask, &param));
}

TEST("CNO-20", a_cno_has_three_mask_bits)
{
	DAT_CNO_PARAM param;

	FAILS(dat_cno_query(a_cno(), (DAT_CNO_PARAM_MASK)8, &param), DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
}

TEST("CNO-21", cno_query_wants_room)
{
	FAILS(dat_cno_query(a_cno(), DAT_CNO_FIELD_ALL, NULL), DAT_INVALID_PARAMETER | DAT_INVALID_ARG3);
}

static bool readable(DAT_FD fd, int milliseconds)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, milliseconds) == 1;
}

TEST("CNO-22", a_descriptor_is_readable_while_its_cno_is_triggered)
{
	DAT_CNO_HANDLE cno = DAT_HANDLE_NULL;
	DAT_CNO_PARAM param;
	DAT_FD fd = -1;

	ia();
	OPTIONAL(LATE(dat_cno_fd_create)(ia(), &fd, &cno));
	HOLDS(fd >= 0);
	OK(dat_cno_query(cno, (DAT_CNO_PARAM_MASK)7, &param));
	EQUAL(param.proxy_type, DAT_PROXY_TYPE_FD);
	EQUAL(param.proxy.fd, fd);

	DAT_EVD_HANDLE evd = evd_of(cno), found = DAT_HANDLE_NULL;
	HOLDS(!readable(fd, 0));
	OK(post_number(evd, 1));
	HOLDS(readable(fd, (int)(patience() * 1000)));
	OK(LATE(dat_cno_trigger)(cno, &found));
	EQUAL(found, evd);
	HOLDS(!readable(fd, 0));
	/* Completions trigger it as well. */
	struct end a = AN_END(.request = an_evd_of(8, cno, DAT_EVD_DTO_FLAG)), b = AN_END();
	connect_ends(&a, &b);
	post_recv(&b, 0, 64, 1);
	post_send(&a, 0, 64, 2);
	HOLDS(readable(fd, (int)(patience() * 1000)));
	OK(LATE(dat_cno_trigger)(cno, &found));
	EQUAL(found, a.request);
}

TEST("CNO-23", an_untriggered_cno_has_no_evd_to_tell)
{
	DAT_EVD_HANDLE evd = (DAT_EVD_HANDLE)77;
	DAT_CNO_HANDLE cno = a_cno();
	DAT_RETURN ret = LATE(dat_cno_trigger)(cno, &evd);

	if (DAT_GET_TYPE(ret) == DAT_NOT_IMPLEMENTED)
		skip("dat_cno_trigger answers %s", return_name(ret));
	FAILS(ret, DAT_QUEUE_EMPTY);
	EQUAL(evd, DAT_HANDLE_NULL);
}
