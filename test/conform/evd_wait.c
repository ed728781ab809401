/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* evd_wait.c - waiting on an event dispatcher, and which completions notify a waiter or a CNO. Other calls are
 * in evd.c, races in race_evd.c, waiting on a CNO in cno.c. */
#include "actors.h"
#include "pair.h"

TEST("EVD-19", a_waiter_waits_for_at_least_one_event)
{
	DAT_EVD_HANDLE evd = an_evd_with_numbers(1);
	DAT_EVENT event;
	DAT_COUNT more;

	FAILS(dat_evd_wait(evd, 0, 0, &event, &more), DAT_INVALID_PARAMETER | DAT_INVALID_ARG3);
	FAILS(dat_evd_wait(evd, 0, -1, &event, &more), DAT_INVALID_PARAMETER | DAT_INVALID_ARG3);
}

TEST("EVD-20", a_waiter_does_not_wait_for_more_than_the_queue_holds)
{
	DAT_EVD_HANDLE evd = an_evd_with_numbers(1);
	DAT_EVENT event;
	DAT_COUNT more;

	FAILS(dat_evd_wait(evd, 0, evd_param(evd).evd_qlen + 1, &event, &more),
	      DAT_INVALID_PARAMETER | DAT_INVALID_ARG3);
}

TEST("EVD-21", a_wait_wants_room_for_its_answers)
{
	DAT_EVD_HANDLE evd = an_evd_with_numbers(1);
	DAT_EVENT event;
	DAT_COUNT more;

	FAILS(dat_evd_wait(evd, 0, 1, NULL, &more), DAT_INVALID_PARAMETER | DAT_INVALID_ARG4);
	FAILS(dat_evd_wait(evd, 0, 1, &event, NULL), DAT_INVALID_PARAMETER | DAT_INVALID_ARG5);
}

TEST("EVD-22", a_wait_lasts_until_its_timeout)
{
	DAT_EVD_HANDLE evd = an_evd(DAT_EVD_SOFTWARE_FLAG);
	DAT_EVENT event;
	DAT_COUNT more = 77;
	double begin = now();

	FAILS(dat_evd_wait(evd, 10000, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
	HOLDS(now() - begin >= 0.010);
	EQUAL(more, 0);
}

TEST("EVD-23", a_wait_of_no_time_does_not_block)
{
	DAT_EVENT event;
	DAT_COUNT more = 77;

	FAILS(dat_evd_wait(an_evd(DAT_EVD_SOFTWARE_FLAG), 0, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
	EQUAL(more, 0);
	FAILS(dat_evd_wait(an_evd(DAT_EVD_DTO_FLAG), 0, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
}

TEST("EVD-24", a_wait_of_no_time_takes_an_event)
{
	DAT_EVENT event;
	DAT_COUNT more = 77;

	OK(dat_evd_wait(an_evd_with_numbers(1), 0, 1, &event, &more));
	EQUAL(NUMBER(event), 1);
	EQUAL(more, 0);
}

TEST("EVD-25", below_the_threshold_a_wait_takes_nothing)
{
	DAT_EVD_HANDLE evd = an_evd_with_numbers(2);
	DAT_EVENT event;
	DAT_COUNT more = 77;

	FAILS(dat_evd_wait(evd, 10000, 3, &event, &more), DAT_TIMEOUT_EXPIRED);
	EQUAL(more, 2);
	expect_numbers(evd, 1, 2);
}

TEST("EVD-26", at_the_threshold_a_wait_takes_the_oldest_event)
{
	DAT_EVD_HANDLE evd = an_evd_with_numbers(3);
	DAT_EVENT event;
	DAT_COUNT more = 77;

	OK(dat_evd_wait(evd, DAT_TIMEOUT_INFINITE, 3, &event, &more));
	EQUAL(NUMBER(event), 1);
	EQUAL(more, 2);
	expect_numbers(evd, 2, 3);
}

TEST("EVD-27", an_infinite_wait_ends_with_an_event)
{
	DAT_EVD_HANDLE evd = an_evd(DAT_EVD_SOFTWARE_FLAG);
	struct waiter *w = waiter_on_evd(evd, DAT_TIMEOUT_INFINITE, 1);

	OK(post_number(evd, 5));
	OK(released(w));
	EQUAL(NUMBER(w->event), 5);
	EQUAL(w->nmore, 0);
}

TEST("EVD-28", one_thread_waits_at_a_time)
{
	DAT_EVD_HANDLE evd = an_evd(DAT_EVD_SOFTWARE_FLAG);
	struct waiter *w = waiter_on_evd(evd, DAT_TIMEOUT_INFINITE, 1);
	DAT_EVENT event;
	DAT_COUNT more;

	FAILS(dat_evd_wait(evd, 0, 1, &event, &more), DAT_INVALID_STATE | DAT_INVALID_STATE_EVD_WAITER);
	OK(post_number(evd, 1));
	OK(released(w));
}

TEST("EVD-29", an_unwaitable_evd_is_not_waited_for)
{
	DAT_EVD_HANDLE evd = an_evd_with_numbers(1);
	DAT_EVENT event;
	DAT_COUNT more;

	OK(dat_evd_set_unwaitable(evd));
	EQUAL(evd_param(evd).evd_state & 0xc, DAT_EVD_STATE_UNWAITABLE);
	FAILS(dat_evd_wait(evd, 0, 1, &event, &more),
	      DAT_INVALID_STATE | DAT_INVALID_STATE_EVD_UNWAITABLE);
}

TEST("EVD-30", a_waiter_is_released_when_the_evd_becomes_unwaitable)
{
	DAT_EVD_HANDLE evd = an_evd(DAT_EVD_SOFTWARE_FLAG);
	struct waiter *w = waiter_on_evd(evd, DAT_TIMEOUT_INFINITE, 1);

	OK(dat_evd_set_unwaitable(evd));
	FAILS(released(w), DAT_INVALID_STATE | DAT_INVALID_STATE_EVD_UNWAITABLE);
}

TEST("EVD-31", an_evd_becomes_waitable_again)
{
	DAT_EVD_HANDLE evd = an_evd_with_numbers(1);
	DAT_EVENT event;
	DAT_COUNT more;

	OK(dat_evd_set_unwaitable(evd));
	OK(dat_evd_clear_unwaitable(evd));
	EQUAL(evd_param(evd).evd_state & 0xc, DAT_EVD_STATE_WAITABLE);
	OK(dat_evd_wait(evd, 0, 1, &event, &more));
}

TEST("EVD-32", an_evd_is_made_unwaitable_twice)
{
	DAT_EVD_HANDLE evd = an_evd(DAT_EVD_SOFTWARE_FLAG);

	OK(dat_evd_set_unwaitable(evd));
	OK(dat_evd_set_unwaitable(evd));
	OK(dat_evd_clear_unwaitable(evd));
	OK(dat_evd_clear_unwaitable(evd));
}

TEST("EVD-33", a_signal_interrupts_a_wait)
{
	DAT_EVD_HANDLE evd = an_evd_with_numbers(2);
	struct waiter *w = waiter_on_evd(evd, DAT_TIMEOUT_INFINITE, 3);

	interrupt(w);
	FAILS(released(w), DAT_INTERRUPTED_CALL);
	EQUAL(w->nmore, 2);
	expect_numbers(evd, 1, 2);
}

TEST("EVD-34", freeing_an_evd_aborts_its_waiter)
{
	DAT_EVD_HANDLE evd = an_evd(DAT_EVD_SOFTWARE_FLAG);
	struct waiter *w = waiter_on_evd(evd, DAT_TIMEOUT_INFINITE, 1);

	OK(dat_evd_free(evd));
	FAILS(released(w), DAT_ABORT);
}

/* --- what a completion does depends on how its endpoint is configured ------------------- */

static DAT_EP_ATTR with_flags(DAT_COMPLETION_FLAGS recv, DAT_COMPLETION_FLAGS request)
{
	DAT_EP_ATTR attr = ep_attr();

	if (recv)
		needs_completion_flag(recv);
	if (request)
		needs_completion_flag(request);
	attr.recv_completion_flags = recv;
	attr.request_completion_flags = request;
	return attr;
}

TEST("EVD-35", without_notification_of_all_there_is_no_threshold)
{
	DAT_EP_ATTR attr = with_flags(DAT_COMPLETION_DEFAULT_FLAG, DAT_COMPLETION_UNSIGNALLED_FLAG);
	struct end end = AN_END(.attr = &attr);
	DAT_EVENT event;
	DAT_COUNT more;

	FAILS(dat_evd_wait(end.request, 0, 2, &event, &more), DAT_INVALID_STATE);
}

static void send_with(const struct end *end, uint64_t cookie, DAT_COMPLETION_FLAGS flags)
{
	OK(dat_ep_post_send(end->ep, 1, SEGMENT(&end->mem, 0, 64), COOKIE(cookie), flags));
}

TEST("EVD-36", a_threshold_of_four_is_reached_by_the_fourth_completion)
{
	DAT_EP_ATTR attr = with_flags(DAT_COMPLETION_EVD_THRESHOLD_FLAG, DAT_COMPLETION_EVD_THRESHOLD_FLAG);
	struct pair p = CONNECTED_PAIR(.attr = &attr);

	for (int i = 1; i <= 4; i++)
		post_recv(&p.b, i * 64, 64, i);
	struct waiter *w = waiter_on_evd(p.b.recv, DAT_TIMEOUT_INFINITE, 4);
	for (int i = 1; i <= 3; i++) {
		post_send(&p.a, 0, 64, i);
		COMPLETES(p.a.request, i, DAT_DTO_SUCCESS);
	}
	BLOCKED(w);
	post_send(&p.a, 0, 64, 4);
	OK(released(w));
	EQUAL(w->event.event_data.dto_completion_event_data.user_cookie.as_64, 1);
	EQUAL(w->nmore, 3);
	for (int i = 2; i <= 4; i++)
		COMPLETES(p.b.recv, i, DAT_DTO_SUCCESS);
}

TEST("EVD-37", an_unsignaled_completion_wakes_no_thread)
{
	DAT_EP_ATTR attr = with_flags(DAT_COMPLETION_DEFAULT_FLAG, DAT_COMPLETION_UNSIGNALLED_FLAG);
	struct pair p = CONNECTED_PAIR(.attr = &attr);

	for (int i = 1; i <= 2; i++)
		post_recv(&p.b, i * 64, 64, i);
	struct waiter *w = waiter_on_evd(p.a.request, DAT_TIMEOUT_INFINITE, 1);
	send_with(&p.a, 1, DAT_COMPLETION_UNSIGNALLED_FLAG);
	COMPLETES(p.b.recv, 1, DAT_DTO_SUCCESS);
	BLOCKED(w);
	/* The second completion wakes the waiter, which gets the first. */
	send_with(&p.a, 2, DAT_COMPLETION_DEFAULT_FLAG);
	OK(released(w));
	EQUAL(w->event.event_data.dto_completion_event_data.user_cookie.as_64, 1);
	EQUAL(w->nmore, 1);
	COMPLETES(p.a.request, 2, DAT_DTO_SUCCESS);
	COMPLETES(p.b.recv, 2, DAT_DTO_SUCCESS);
	/* Without a waiter, an unsignaled completion is dequeued as any other. */
	post_recv(&p.b, 0, 64, 3);
	send_with(&p.a, 3, DAT_COMPLETION_UNSIGNALLED_FLAG);
	COMPLETES(p.a.request, 3, DAT_DTO_SUCCESS);
}

/* One EVD for receives and requests, whose flags differ; its peer has EVDs of its own. */
static struct pair a_mixed_pair(DAT_EVD_HANDLE evd, DAT_COMPLETION_FLAGS recv)
{
	DAT_EP_ATTR attr = with_flags(recv, DAT_COMPLETION_UNSIGNALLED_FLAG);
	struct pair p = { AN_END(.attr = &attr, .recv = evd, .request = evd), AN_END() };

	connect_ends(&p.a, &p.b);
	return p;
}

/* Sends a message each way. The first completion at a does not notify, the second does. */
static void send_quietly_then_receive(const struct pair *p, const char *what, struct waiter *w)
{
	post_recv(&p->a, 0, 64, 1);
	post_recv(&p->b, 0, 64, 2);
	send_with(&p->a, 3, DAT_COMPLETION_UNSIGNALLED_FLAG);
	COMPLETES(p->b.recv, 2, DAT_DTO_SUCCESS);
	expect_blocked(what, w);
	post_send(&p->b, 0, 64, 4);
	OK(released(w));
	COMPLETES(p->b.request, 4, DAT_DTO_SUCCESS);
}

TEST("EVD-53", streams_that_share_an_evd_notify_each_by_its_own_flags)
{
	static const DAT_COMPLETION_FLAGS recv[] = { DAT_COMPLETION_DEFAULT_FLAG,
		DAT_COMPLETION_EVD_THRESHOLD_FLAG };

	for (int i = 0; i < 2; i++) {
		DAT_EVD_HANDLE evd = an_evd(DAT_EVD_DTO_FLAG);
		struct pair p = a_mixed_pair(evd, recv[i]);
		struct waiter *w = waiter_on_evd(evd, DAT_TIMEOUT_INFINITE, 1);

		send_quietly_then_receive(&p, "dat_evd_wait", w);
		EQUAL(w->event.event_data.dto_completion_event_data.user_cookie.as_64, 3);
		COMPLETES(evd, 1, DAT_DTO_SUCCESS);
		/* a request that is to notify does */
		post_recv(&p.b, 0, 64, 5);
		w = waiter_on_evd(evd, DAT_TIMEOUT_INFINITE, 1);
		send_with(&p.a, 6, DAT_COMPLETION_DEFAULT_FLAG);
		OK(released(w));
		EQUAL(w->event.event_data.dto_completion_event_data.user_cookie.as_64, 6);
		COMPLETES(p.b.recv, 5, DAT_DTO_SUCCESS);
	}
}

TEST("EVD-54", streams_that_share_an_evd_trigger_its_cno_each_by_its_own_flags)
{
	DAT_CNO_HANDLE cno = a_cno();
	DAT_EVD_HANDLE evd = an_evd_of(64, cno, DAT_EVD_DTO_FLAG);
	struct pair p = a_mixed_pair(evd, DAT_COMPLETION_DEFAULT_FLAG);
	struct waiter *w = waiter_on_cno(cno, DAT_TIMEOUT_INFINITE);

	send_quietly_then_receive(&p, "dat_cno_wait", w);
	EQUAL(w->woken_by, evd);
	COMPLETES(evd, 3, DAT_DTO_SUCCESS);
	COMPLETES(evd, 1, DAT_DTO_SUCCESS);
}

TEST("EVD-55", the_last_unsignaled_stream_leaves_an_evd_that_always_notifies)
{
	DAT_EVD_HANDLE evd = an_evd(DAT_EVD_DTO_FLAG);
	struct pair quiet = a_mixed_pair(evd, DAT_COMPLETION_DEFAULT_FLAG);
	struct pair p = { AN_END(.recv = evd, .request = evd), AN_END() };
	struct waiter *w;
	DAT_EVENT event;
	DAT_COUNT more;

	connect_ends(&p.a, &p.b);
	FAILS(dat_evd_wait(evd, 0, 2, &event, &more), DAT_INVALID_STATE);
	/* beside a quiet endpoint, another notifies of all */
	post_recv(&p.b, 0, 64, 1);
	w = waiter_on_evd(evd, DAT_TIMEOUT_INFINITE, 1);
	post_send(&p.a, 0, 64, 2);
	OK(released(w));
	COMPLETES(p.b.recv, 1, DAT_DTO_SUCCESS);
	OK(dat_ep_free(quiet.a.ep));
	FAILS(dat_evd_wait(evd, 0, 2, &event, &more), DAT_TIMEOUT_EXPIRED);
	for (int i = 1; i <= 2; i++)
		post_recv(&p.b, 0, 64, i);
	w = waiter_on_evd(evd, DAT_TIMEOUT_INFINITE, 2);
	for (int i = 3; i <= 4; i++)
		post_send(&p.a, 0, 64, i);
	OK(released(w));
	COMPLETES(evd, 4, DAT_DTO_SUCCESS);
	for (int i = 1; i <= 2; i++)
		COMPLETES(p.b.recv, i, DAT_DTO_SUCCESS);
}

/* dat_evd_resize polls the completions to count them, without a notification. */
TEST("EVD-56", a_completion_that_another_call_has_polled_triggers_the_cno)
{
	DAT_CNO_HANDLE cno = a_cno();
	DAT_EVD_HANDLE evd = an_evd_of(64, cno, DAT_EVD_DTO_FLAG), by = DAT_HANDLE_NULL;
	struct pair p = a_mixed_pair(evd, DAT_COMPLETION_DEFAULT_FLAG);

	for (int i = 1; i <= 2; i++) {
		post_recv(&p.b, 0, 64, i);
		send_with(&p.a, i + 2, DAT_COMPLETION_DEFAULT_FLAG);
	}
	UNTIL(dat_evd_resize(evd, 1) != DAT_SUCCESS, "two completions on the EVD");
	OK(dat_cno_wait(cno, AMPLE_TIME, &by));
	EQUAL(by, evd);
	for (int i = 1; i <= 2; i++) {
		COMPLETES(evd, i + 2, DAT_DTO_SUCCESS);
		COMPLETES(p.b.recv, i, DAT_DTO_SUCCESS);
	}
}

static struct pair a_solicited_pair(void)
{
	DAT_EP_ATTR attr = with_flags(DAT_COMPLETION_SOLICITED_WAIT_FLAG, DAT_COMPLETION_DEFAULT_FLAG);
	struct pair p = CONNECTED_PAIR(.attr = &attr);

	for (int i = 1; i <= 3; i++)
		post_recv(&p.b, i * 64, 64, i);
	return p;
}

TEST("EVD-38", an_unsolicited_message_wakes_no_thread)
{
	struct pair p = a_solicited_pair();
	struct waiter *w = waiter_on_evd(p.b.recv, DAT_TIMEOUT_INFINITE, 1);

	post_send(&p.a, 0, 64, 1);
	COMPLETES(p.a.request, 1, DAT_DTO_SUCCESS);
	BLOCKED(w);
	send_with(&p.a, 2, DAT_COMPLETION_SOLICITED_WAIT_FLAG);
	OK(released(w));
}

TEST("EVD-39", a_solicited_message_wakes_the_waiter_which_finds_the_older_ones)
{
	struct pair p = a_solicited_pair();
	struct waiter *w = waiter_on_evd(p.b.recv, DAT_TIMEOUT_INFINITE, 1);

	for (int i = 1; i <= 2; i++)
		post_send(&p.a, 0, 64, i);
	send_with(&p.a, 3, DAT_COMPLETION_SOLICITED_WAIT_FLAG);
	OK(released(w));
	EQUAL(w->event.event_data.dto_completion_event_data.user_cookie.as_64, 1);
	COMPLETES(p.b.recv, 2, DAT_DTO_SUCCESS);
	COMPLETES(p.b.recv, 3, DAT_DTO_SUCCESS);
}
