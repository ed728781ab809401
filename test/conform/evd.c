/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* evd.c - event dispatchers: creating, dequeueing, waiting, resizing, overflowing. Their
 * races are in race_evd.c, what they tell a CNO in cno.c. */
#include "actors.h"
#include "pair.h"

#define CREATE(qlen, cno, flags) dat_evd_create(ia(), qlen, cno, (DAT_EVD_FLAGS)(flags), &evd)

/* A software EVD with numbers 1 to n on it. */
static DAT_EVD_HANDLE with_numbers(int n)
{
	DAT_EVD_HANDLE evd = an_evd(DAT_EVD_SOFTWARE_FLAG);

	for (int i = 1; i <= n; i++)
		OK(post_number(evd, i));
	return evd;
}

/* The numbers first to last come out, in order. */
static void expect_numbers(DAT_EVD_HANDLE evd, uintptr_t first, uintptr_t last)
{
	DAT_EVENT event;

	for (uintptr_t i = first; i <= last; i++) {
		OK(dat_evd_dequeue(evd, &event));
		EQUAL(event.event_number, DAT_SOFTWARE_EVENT);
		EQUAL(NUMBER(event), i);
	}
	FAILS(dat_evd_dequeue(evd, &event), DAT_QUEUE_EMPTY);
}

TEST("EVD-1", an_evd_has_a_length)
{
	DAT_EVD_HANDLE evd;

	FAILS(CREATE(0, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG), DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
	FAILS(CREATE(-5, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG), DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
}

TEST("EVD-2", an_evd_is_not_longer_than_max_evd_qlen)
{
	DAT_EVD_HANDLE evd;

	if (ia_attr()->max_evd_qlen == 0x7fffffff)
		skip("max_evd_qlen is 0x7fffffff");
	FAILS(CREATE(ia_attr()->max_evd_qlen + 1, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG),
	      DAT_INSUFFICIENT_RESOURCES);
}

TEST("EVD-3", an_evd_notifies_a_cno_and_nothing_else)
{
	DAT_EVD_HANDLE evd;

	FAILS(CREATE(8, a_pz(), DAT_EVD_DTO_FLAG), DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_CNO);
}

TEST("EVD-4", an_evd_has_streams_that_exist)
{
	DAT_EVD_HANDLE evd;

	FAILS(CREATE(8, DAT_HANDLE_NULL, 0), DAT_INVALID_PARAMETER | DAT_INVALID_ARG4);
	FAILS(CREATE(8, DAT_HANDLE_NULL, 0x80000), DAT_INVALID_PARAMETER | DAT_INVALID_ARG4);
	FAILS(CREATE(8, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG | 0x2), DAT_INVALID_PARAMETER | DAT_INVALID_ARG4);
}

TEST("EVD-5", only_opening_an_ia_makes_an_async_evd)
{
	DAT_EVD_HANDLE evd;

	FAILS(CREATE(8, DAT_HANDLE_NULL, DAT_EVD_ASYNC_FLAG), DAT_INVALID_PARAMETER | DAT_INVALID_ARG4,
	      DAT_MODEL_NOT_SUPPORTED);
}

/* In the order of evd_stream_merging_supported. */
static const DAT_EVD_FLAGS streams[] = {
	DAT_EVD_SOFTWARE_FLAG, DAT_EVD_CR_FLAG, DAT_EVD_DTO_FLAG, DAT_EVD_CONNECTION_FLAG,
	DAT_EVD_RMR_BIND_FLAG,
};

TEST("EVD-6", an_evd_of_each_stream_is_created)
{
	for (int i = 0; i < 5; i++)
		OK(dat_evd_free(an_evd(streams[i])));
}

/* Creates EVDs of all pairs of streams that the matrix allows, or forbids. */
static int create_pairs(bool allowed)
{
	DAT_EVD_HANDLE evd;
	int n = 0;

	for (int i = 0; i < 5; i++)
		for (int j = 0; j < i; j++) {
			if (provider_attr()->evd_stream_merging_supported[i][j] != allowed)
				continue;
			n++;
			if (allowed)
				OK(CREATE(8, DAT_HANDLE_NULL, streams[i] | streams[j]));
			else
				FAILS(CREATE(8, DAT_HANDLE_NULL, streams[i] | streams[j]),
				      DAT_INVALID_PARAMETER | DAT_INVALID_ARG4);
		}
	return n;
}

TEST("EVD-7", streams_that_merge_share_an_evd)
{
	create_pairs(true);
}

TEST("EVD-8", streams_that_do_not_merge_share_no_evd)
{
	if (!create_pairs(false))
		skip("evd_stream_merging_supported is all true");
}

TEST("EVD-9", evd_create_wants_room_for_the_handle)
{
	FAILS(dat_evd_create(ia(), 8, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, NULL),
	      DAT_INVALID_PARAMETER | DAT_INVALID_ARG5);
}

TEST("EVD-10", a_new_evd_is_enabled_and_waitable)
{
	DAT_CNO_HANDLE cno = a_cno();
	DAT_EVD_HANDLE evd = an_evd_of(17, cno, DAT_EVD_SOFTWARE_FLAG);
	DAT_EVD_PARAM param = evd_param(evd);

	EQUAL(param.evd_state & 0xf, DAT_EVD_STATE_ENABLED | DAT_EVD_STATE_WAITABLE);
	HOLDS(param.evd_qlen >= 17);
	EQUAL(param.cno_handle, cno);
	EQUAL(param.evd_flags, DAT_EVD_SOFTWARE_FLAG);
}

TEST("EVD-11", an_evd_has_five_fields)
{
	DAT_EVD_PARAM param;

	FAILS(dat_evd_query(an_evd(DAT_EVD_DTO_FLAG), (DAT_EVD_PARAM_MASK)0x20, &param),
	      DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
}

TEST("EVD-12", an_empty_evd_has_no_event)
{
	DAT_EVENT event;

	FAILS(dat_evd_dequeue(an_evd(DAT_EVD_SOFTWARE_FLAG), &event), DAT_QUEUE_EMPTY);
	/* without the error class: see DOUBTS.md */
	EQUAL(DAT_GET_TYPE(dat_evd_dequeue(an_evd(DAT_EVD_DTO_FLAG), &event)), DAT_QUEUE_EMPTY);
	FAILS(dat_evd_dequeue(async_evd(), &event), DAT_QUEUE_EMPTY);
}

TEST("EVD-13", dequeue_wants_room_for_the_event)
{
	FAILS(dat_evd_dequeue(with_numbers(1), NULL), DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
}

TEST("EVD-14", dequeue_is_refused_while_a_thread_waits)
{
	DAT_EVD_HANDLE evd = an_evd(DAT_EVD_SOFTWARE_FLAG);
	struct waiter *w = waiter_on_evd(evd, DAT_TIMEOUT_INFINITE, 1);
	DAT_EVENT event;

	FAILS(dat_evd_dequeue(evd, &event), DAT_INVALID_STATE | DAT_INVALID_STATE_EVD_WAITER);
	OK(post_number(evd, 1));
	OK(released(w));
}

TEST("EVD-15", events_are_dequeued_in_order)
{
	expect_numbers(with_numbers(3), 1, 3);
}

TEST("EVD-16", an_unwaitable_evd_is_dequeued)
{
	DAT_EVD_HANDLE evd = with_numbers(1);

	OK(dat_evd_set_unwaitable(evd));
	expect_numbers(evd, 1, 1);
}

TEST("EVD-17", a_disabled_evd_is_dequeued)
{
	DAT_EVD_HANDLE evd = an_evd(DAT_EVD_SOFTWARE_FLAG);

	OK(dat_evd_disable(evd));
	OK(post_number(evd, 1));
	expect_numbers(evd, 1, 1);
}

TEST("EVD-18", an_event_tells_the_evd_it_came_from)
{
	struct listener listener = a_listener();
	struct end a = AN_END(), b = AN_END();
	DAT_EVD_HANDLE soft = with_numbers(1);

	EQUAL(EVENT(soft, DAT_SOFTWARE_EVENT).evd_handle, soft);
	post_recv(&b, 0, 64, 1);
	dial(a.ep, listener.qual);
	DAT_EVENT request = EVENT(listener.evd, DAT_CONNECTION_REQUEST_EVENT);
	EQUAL(request.evd_handle, listener.evd);
	OK(dat_cr_accept(request.event_data.cr_arrival_event_data.cr_handle, b.ep, 0, NULL));
	EQUAL(EVENT(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED).evd_handle, a.conn);
	EQUAL(EVENT(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED).evd_handle, b.conn);
	post_send(&a, 0, 64, 2);
	EQUAL(EVENT(a.request, DAT_DTO_COMPLETION_EVENT).evd_handle, a.request);
	EQUAL(EVENT(b.recv, DAT_DTO_COMPLETION_EVENT).evd_handle, b.recv);
}

TEST("EVD-19", a_waiter_waits_for_at_least_one_event)
{
	DAT_EVD_HANDLE evd = with_numbers(1);
	DAT_EVENT event;
	DAT_COUNT more;

	FAILS(dat_evd_wait(evd, 0, 0, &event, &more), DAT_INVALID_PARAMETER | DAT_INVALID_ARG3);
	FAILS(dat_evd_wait(evd, 0, -1, &event, &more), DAT_INVALID_PARAMETER | DAT_INVALID_ARG3);
}

TEST("EVD-20", a_waiter_does_not_wait_for_more_than_the_queue_holds)
{
	DAT_EVD_HANDLE evd = with_numbers(1);
	DAT_EVENT event;
	DAT_COUNT more;

	FAILS(dat_evd_wait(evd, 0, evd_param(evd).evd_qlen + 1, &event, &more),
	      DAT_INVALID_PARAMETER | DAT_INVALID_ARG3);
}

TEST("EVD-21", a_wait_wants_room_for_its_answers)
{
	DAT_EVD_HANDLE evd = with_numbers(1);
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

	OK(dat_evd_wait(with_numbers(1), 0, 1, &event, &more));
	EQUAL(NUMBER(event), 1);
	EQUAL(more, 0);
}

TEST("EVD-25", below_the_threshold_a_wait_takes_nothing)
{
	DAT_EVD_HANDLE evd = with_numbers(2);
	DAT_EVENT event;
	DAT_COUNT more = 77;

	FAILS(dat_evd_wait(evd, 10000, 3, &event, &more), DAT_TIMEOUT_EXPIRED);
	EQUAL(more, 2);
	expect_numbers(evd, 1, 2);
}

TEST("EVD-26", at_the_threshold_a_wait_takes_the_oldest_event)
{
	DAT_EVD_HANDLE evd = with_numbers(3);
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
	DAT_EVD_HANDLE evd = with_numbers(1);
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
	DAT_EVD_HANDLE evd = with_numbers(1);
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
	DAT_EVD_HANDLE evd = with_numbers(2);
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

TEST("EVD-37", an_unsignalled_completion_wakes_no_thread)
{
	DAT_EP_ATTR attr = with_flags(DAT_COMPLETION_DEFAULT_FLAG, DAT_COMPLETION_UNSIGNALLED_FLAG);
	struct pair p = CONNECTED_PAIR(.attr = &attr);

	for (int i = 1; i <= 2; i++)
		post_recv(&p.b, i * 64, 64, i);
	struct waiter *w = waiter_on_evd(p.a.request, DAT_TIMEOUT_INFINITE, 1);
	send_with(&p.a, 1, DAT_COMPLETION_UNSIGNALLED_FLAG);
	COMPLETES(p.b.recv, 1, DAT_DTO_SUCCESS);
	BLOCKED(w);
	/* The waiter woken by the second finds the first. */
	send_with(&p.a, 2, DAT_COMPLETION_DEFAULT_FLAG);
	OK(released(w));
	EQUAL(w->event.event_data.dto_completion_event_data.user_cookie.as_64, 1);
	EQUAL(w->nmore, 1);
	COMPLETES(p.a.request, 2, DAT_DTO_SUCCESS);
	COMPLETES(p.b.recv, 2, DAT_DTO_SUCCESS);
	/* And without a waiter, an unsignalled completion is dequeued as any other. */
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

/* Two messages, one each way: the first completion at a does not notify, the second does. */
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

TEST("EVD-55", the_last_unsignalled_stream_leaves_an_evd_that_always_notifies)
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

/* dat_evd_resize polls the completions, to count them, and tells nothing. */
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

TEST("EVD-40", an_evd_is_enabled_and_disabled_at_will)
{
	DAT_EVD_HANDLE evd = an_evd(DAT_EVD_SOFTWARE_FLAG);

	OK(dat_evd_enable(evd));
	EQUAL(evd_param(evd).evd_state & 3, DAT_EVD_STATE_ENABLED);
	OK(dat_evd_disable(evd));
	OK(dat_evd_disable(evd));
	EQUAL(evd_param(evd).evd_state & 3, DAT_EVD_STATE_DISABLED);
	OK(dat_evd_enable(evd));
	OK(dat_evd_enable(evd));
	EQUAL(evd_param(evd).evd_state & 3, DAT_EVD_STATE_ENABLED);
}

TEST("EVD-41", an_evd_does_not_shrink_below_its_events)
{
	DAT_EVD_HANDLE evd = with_numbers(3);

	FAILS(dat_evd_resize(evd, 2), DAT_INVALID_STATE);
	expect_numbers(evd, 1, 3);
}

TEST("EVD-42", an_evd_grows_around_its_events)
{
	DAT_EVD_HANDLE evd = an_evd_of(4, DAT_HANDLE_NULL, DAT_EVD_SOFTWARE_FLAG);

	for (int i = 1; i <= 3; i++)
		OK(post_number(evd, i));
	OK(dat_evd_resize(evd, 10));
	HOLDS(evd_param(evd).evd_qlen >= 10);
	for (int i = 4; i <= 10; i++)
		OK(post_number(evd, i));
	expect_numbers(evd, 1, 10);
}

TEST("EVD-43", an_evd_is_not_resized_to_nothing)
{
	FAILS(dat_evd_resize(an_evd(DAT_EVD_SOFTWARE_FLAG), 0), DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
}

TEST("EVD-44", a_software_event_carries_its_pointer)
{
	DAT_EVD_HANDLE evd = an_evd(DAT_EVD_SOFTWARE_FLAG);
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };
	int here;

	event.event_data.software_event_data.pointer = &here;
	OK(dat_evd_post_se(evd, &event));
	event.event_data.software_event_data.pointer = NULL;	/* it was copied */
	OK(dat_evd_dequeue(evd, &event));
	EQUAL(event.event_number, DAT_SOFTWARE_EVENT);
	EQUAL(event.event_data.software_event_data.pointer, &here);
	EQUAL(event.evd_handle, evd);
}

TEST("EVD-45", a_software_event_needs_a_software_evd)
{
	FAILS(post_number(an_evd(DAT_EVD_DTO_FLAG), 1), DAT_INVALID_PARAMETER | DAT_INVALID_ARG1);
}

TEST("EVD-46", only_software_events_are_posted)
{
	DAT_EVENT event = { .event_number = DAT_DTO_COMPLETION_EVENT };

	FAILS(dat_evd_post_se(an_evd(DAT_EVD_SOFTWARE_FLAG), &event),
	      DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
}

TEST("EVD-47", a_full_evd_refuses_software_events)
{
	DAT_EVD_HANDLE evd = an_evd_of(4, DAT_HANDLE_NULL, DAT_EVD_SOFTWARE_FLAG);
	DAT_COUNT qlen = evd_param(evd).evd_qlen;

	for (int i = 1; i <= qlen; i++)
		OK(post_number(evd, i));
	FAILS(post_number(evd, qlen + 1), DAT_QUEUE_FULL);
	NO_EVENT(async_evd());
	expect_numbers(evd, 1, qlen);
}

TEST("EVD-48", there_is_no_software_event_without_an_event)
{
	FAILS(dat_evd_post_se(an_evd(DAT_EVD_SOFTWARE_FLAG), NULL), DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
}

TEST("EVD-49", an_evd_that_an_ep_feeds_is_in_use)
{
	struct end end = AN_END();

	FAILS(dat_evd_free(end.recv), DAT_INVALID_STATE | DAT_INVALID_STATE_EVD_IN_USE);
	FAILS(dat_evd_free(end.request), DAT_INVALID_STATE | DAT_INVALID_STATE_EVD_IN_USE);
	FAILS(dat_evd_free(end.conn), DAT_INVALID_STATE | DAT_INVALID_STATE_EVD_IN_USE);
	OK(dat_ep_free(end.ep));
	OK(dat_evd_free(end.recv));
	OK(dat_evd_free(end.request));
	OK(dat_evd_free(end.conn));
}

TEST("EVD-50", an_evd_that_a_psp_feeds_is_in_use)
{
	struct listener listener = a_listener();

	FAILS(dat_evd_free(listener.evd), DAT_INVALID_STATE | DAT_INVALID_STATE_EVD_IN_USE);
	OK(dat_psp_free(listener.psp));
	OK(dat_evd_free(listener.evd));
}

TEST("EVD-51", an_evd_with_events_is_freed)
{
	OK(dat_evd_free(with_numbers(3)));
}

TEST("EVD-52", an_overflow_is_told_on_the_async_evd)
{
	DAT_EVD_HANDLE conn = an_evd_of(1, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG);
	DAT_EVD_HANDLE recv = an_evd(DAT_EVD_DTO_FLAG), request = an_evd(DAT_EVD_DTO_FLAG);
	DAT_PZ_HANDLE pz = a_pz();
	DAT_CONN_QUAL nobody = new_qual();
	DAT_COUNT qlen = evd_param(conn).evd_qlen;
	DAT_EP_ATTR attr = ep_attr();
	DAT_EP_HANDLE ep;

	/* One more failing connection than it holds. */
	for (int i = 0; i <= qlen; i++) {
		OK(dat_ep_create(ia(), pz, recv, request, conn, &attr, &ep));
		dial(ep, nobody);
	}
	DAT_EVENT event = EVENT(async_evd(), DAT_ASYNC_ERROR_EVD_OVERFLOW);
	EQUAL(event.event_data.asynch_error_event_data.dat_handle, conn);
	EQUAL(event.event_data.asynch_error_event_data.reason, DAT_EVD_OVERFLOW_ERROR);
	for (int i = 0; i < qlen; i++)
		EVENT(conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	/* It takes events again, as many as it holds. */
	for (int i = 0; i < qlen; i++) {
		OK(dat_ep_create(ia(), pz, recv, request, conn, &attr, &ep));
		dial(ep, nobody);
	}
	for (int i = 0; i < qlen; i++)
		EVENT(conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	NO_EVENT(conn);
}
