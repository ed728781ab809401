/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* evd.c - event dispatchers: creating, dequeueing, enabling, resizing, overflowing. Waiting is in evd_wait.c,
 * races are in race_evd.c, notifications of a CNO in cno.c. */
#include "actors.h"
#include "pair.h"

#define CREATE(qlen, cno, flags) dat_evd_create(ia(), qlen, cno, (DAT_EVD_FLAGS)(flags), &evd)

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
	FAILS(dat_evd_dequeue(an_evd_with_numbers(1), NULL), DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
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
	expect_numbers(an_evd_with_numbers(3), 1, 3);
}

TEST("EVD-16", an_unwaitable_evd_is_dequeued)
{
	DAT_EVD_HANDLE evd = an_evd_with_numbers(1);

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
	DAT_EVD_HANDLE soft = an_evd_with_numbers(1);

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
	DAT_EVD_HANDLE evd = an_evd_with_numbers(3);

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
	OK(dat_evd_free(an_evd_with_numbers(3)));
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

	/* Makes one more failing connection than the EVD holds. */
	for (int i = 0; i <= qlen; i++) {
		OK(dat_ep_create(ia(), pz, recv, request, conn, &attr, &ep));
		dial(ep, nobody);
	}
	DAT_EVENT event = EVENT(async_evd(), DAT_ASYNC_ERROR_EVD_OVERFLOW);
	EQUAL(event.event_data.asynch_error_event_data.dat_handle, conn);
	EQUAL(event.event_data.asynch_error_event_data.reason, DAT_EVD_OVERFLOW_ERROR);
	for (int i = 0; i < qlen; i++)
		EVENT(conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	/* The EVD takes events again, as many as it holds. */
	for (int i = 0; i < qlen; i++) {
		OK(dat_ep_create(ia(), pz, recv, request, conn, &attr, &ep));
		dial(ep, nobody);
	}
	for (int i = 0; i < qlen; i++)
		EVENT(conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	NO_EVENT(conn);
}
