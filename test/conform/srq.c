/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* srq.c - shared receive queues. */
#include "pair.h"
#include <string.h>

static DAT_RETURN try_srq(DAT_PZ_HANDLE pz, DAT_COUNT dtos, DAT_COUNT iov, DAT_COUNT low,
			  DAT_SRQ_HANDLE *srq)
{
	DAT_SRQ_ATTR attr = { .max_recv_dtos = dtos, .max_recv_iov = iov, .low_watermark = low };

	return dat_srq_create(ia(), pz, &attr, srq);
}

/* Makes an SRQ of ten buffers, and their memory. */
struct shared {
	DAT_SRQ_HANDLE srq;
	struct region mem;
	DAT_PZ_HANDLE pz;
};

static struct shared a_srq(void)
{
	struct shared s = { .pz = a_pz() };

	needs_srq();
	OK(try_srq(s.pz, 10, 1, DAT_SRQ_LW_DEFAULT, &s.srq));
	s.mem = a_region(s.pz, 65536, ALL_RIGHTS);
	return s;
}

static void post(struct shared *s, uint64_t first, uint64_t last)
{
	for (uint64_t i = first; i <= last; i++)
		OK(dat_srq_post_recv(s->srq, 1, SEGMENT(&s->mem, i * 64, 64), COOKIE(i)));
}

static DAT_SRQ_PARAM srq_param(DAT_SRQ_HANDLE srq)
{
	DAT_SRQ_PARAM param;

	memset(&param, 0xee, sizeof(param));
	OK(dat_srq_query(srq, DAT_SRQ_FIELD_ALL, &param));
	return param;
}

/* Makes an EP that receives from the SRQ, and one that sends to it. */
static struct pair pair_on(struct shared *s)
{
	struct pair p = { AN_END(), AN_END(.pz = s->pz, .srq = s->srq) };

	connect_ends(&p.a, &p.b);
	return p;
}

static void expect_counts(DAT_SRQ_HANDLE srq, DAT_COUNT available, DAT_COUNT outstanding)
{
	DAT_SRQ_PARAM param = srq_param(srq);

	HOLDS(param.max_recv_dtos >= 10);
	if (param.available_dto_count != DAT_VALUE_UNKNOWN)
		EQUAL(param.available_dto_count, available);
	if (param.outstanding_dto_count != DAT_VALUE_UNKNOWN)
		EQUAL(param.outstanding_dto_count, outstanding);
}

TEST("SRQ-1", an_srq_is_created)
{
	struct shared s = a_srq();
	DAT_SRQ_PARAM param = srq_param(s.srq);

	EQUAL(param.ia_handle, ia());
	EQUAL(param.pz_handle, s.pz);
	EQUAL(param.srq_state, DAT_SRQ_STATE_OPERATIONAL);
	HOLDS(param.max_recv_dtos >= 10);
	HOLDS(param.max_recv_iov >= 1);
	EQUAL(param.low_watermark, DAT_SRQ_LW_DEFAULT);
	FAILS(dat_srq_query(s.srq, (DAT_SRQ_PARAM_MASK)0x100, &param), DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
	OK(dat_srq_free(s.srq));
}

TEST("SRQ-2", an_srq_starts_without_low_watermark)
{
	DAT_SRQ_HANDLE srq;

	needs_srq();
	FAILS(try_srq(a_pz(), 10, 1, 5, &srq), DAT_INVALID_PARAMETER | DAT_INVALID_ARG3);
}

TEST("SRQ-3", an_srq_has_room)
{
	DAT_SRQ_HANDLE srq;

	needs_srq();
	FAILS(try_srq(a_pz(), 0, 1, 0, &srq), DAT_INVALID_PARAMETER | DAT_INVALID_ARG3);
	FAILS(try_srq(a_pz(), -1, 1, 0, &srq), DAT_INVALID_PARAMETER | DAT_INVALID_ARG3);
	FAILS(try_srq(a_pz(), 10, 0, 0, &srq), DAT_INVALID_PARAMETER | DAT_INVALID_ARG3);
	FAILS(dat_srq_create(ia(), a_pz(), NULL, &srq), DAT_INVALID_PARAMETER | DAT_INVALID_ARG3);
}

TEST("SRQ-4", an_srq_is_in_a_pz)
{
	DAT_SRQ_HANDLE srq;

	needs_srq();
	FAILS(try_srq(DAT_HANDLE_NULL, 10, 1, 0, &srq), DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_PZ);
}

TEST("SRQ-5", an_ep_with_an_srq_has_attributes)
{
	struct shared s = a_srq();
	DAT_EP_HANDLE ep;

	FAILS(dat_ep_create_with_srq(ia(), s.pz, an_evd(DAT_EVD_DTO_FLAG), an_evd(DAT_EVD_DTO_FLAG),
				     an_evd(DAT_EVD_CONNECTION_FLAG), s.srq, NULL, &ep),
	      DAT_INVALID_PARAMETER | DAT_INVALID_ARG7);
}

TEST("SRQ-6", an_ep_with_an_srq_takes_no_receives_of_its_own)
{
	struct shared s = a_srq();
	struct end end = AN_END(.pz = s.pz, .srq = s.srq);

	FAILS(dat_ep_post_recv(end.ep, 1, SEGMENT(&end.mem, 0, 64), COOKIE(1), DAT_COMPLETION_DEFAULT_FLAG),
	      DAT_INVALID_STATE, DAT_INVALID_PARAMETER);
}

TEST("SRQ-7", buffers_of_an_srq_are_counted)
{
	struct shared s = a_srq();

	expect_counts(s.srq, 0, 0);
	post(&s, 1, 3);
	expect_counts(s.srq, 3, 3);
}

TEST("SRQ-8", a_buffer_that_was_taken_is_outstanding)
{
	struct shared s = a_srq();
	struct pair p = pair_on(&s);

	post(&s, 1, 3);
	post_send(&p.a, 0, 64, 1);
	COMPLETES(p.a.request, 1, DAT_DTO_SUCCESS);
	expect_counts(s.srq, 2, 3);
}

TEST("SRQ-9", a_buffer_whose_completion_was_dequeued_is_free)
{
	struct shared s = a_srq();
	struct pair p = pair_on(&s);

	post(&s, 1, 3);
	post_send(&p.a, 0, 64, 1);
	EVENT(p.b.recv, DAT_DTO_COMPLETION_EVENT);
	expect_counts(s.srq, 2, 2);
	/* All of the queue can be used repeatedly. */
	for (int i = 0; i < 40; i++) {
		post(&s, 1, 1);
		post_send(&p.a, 0, 64, i);
		EVENT(p.b.recv, DAT_DTO_COMPLETION_EVENT);
		EVENT(p.a.request, DAT_DTO_COMPLETION_EVENT);
	}
}

TEST("SRQ-10", an_srq_with_an_ep_is_in_use)
{
	struct shared s = a_srq();
	struct end end = AN_END(.pz = s.pz, .srq = s.srq);

	EQUAL(ep_param(end.ep).srq_handle, s.srq);
	FAILS(dat_srq_free(s.srq), DAT_INVALID_STATE | DAT_INVALID_STATE_SRQ_IN_USE);
	FAILS(dat_pz_free(s.pz), DAT_INVALID_STATE | DAT_INVALID_STATE_PZ_IN_USE);
	OK(dat_ep_free(end.ep));
	post(&s, 1, 2);
	OK(dat_srq_free(s.srq));
}

static void needs_watermarks(void)
{
	needs_srq();
	if (!provider_attr()->srq_watermarks_supported)
		skip("srq_watermarks_supported is 0");
}

TEST("SRQ-11", a_low_watermark_is_not_above_the_queue)
{
	needs_watermarks();
	struct shared s = a_srq();

	FAILS(dat_srq_set_lw(s.srq, srq_param(s.srq).max_recv_dtos + 1), DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
	FAILS(dat_srq_set_lw(s.srq, -1), DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
}

TEST("SRQ-12", crossing_the_low_watermark_is_told_once)
{
	needs_watermarks();
	struct shared s = a_srq();
	struct pair p = pair_on(&s);

	post(&s, 1, 6);
	OK(dat_srq_set_lw(s.srq, 4));
	for (int i = 0; i < 2; i++) {	/* 6 to 4: not below */
		post_send(&p.a, 0, 64, i);
		EVENT(p.b.recv, DAT_DTO_COMPLETION_EVENT);
	}
	NO_EVENT(async_evd());
	for (int i = 0; i < 3; i++) {
		post_send(&p.a, 0, 64, i);
		EVENT(p.b.recv, DAT_DTO_COMPLETION_EVENT);
	}
	DAT_EVENT event = next_event(async_evd());
	EQUAL(event.event_data.asynch_error_event_data.dat_handle, s.srq);
	EQUAL(event.event_data.asynch_error_event_data.reason, DAT_SRQ_LOW_WATERMARK_EVENT);
	NO_EVENT(async_evd());
}

TEST("SRQ-13", an_srq_does_not_shrink_below_its_buffers)
{
	struct shared s = a_srq();

	post(&s, 1, 8);
	DAT_RETURN ret = dat_srq_resize(s.srq, 4);
	if (DAT_GET_TYPE(ret) == DAT_MODEL_NOT_SUPPORTED || DAT_GET_TYPE(ret) == DAT_NOT_IMPLEMENTED)
		skip("dat_srq_resize answers %s", return_name(ret));
	FAILS(ret, DAT_INVALID_STATE);
	expect_counts(s.srq, 8, 8);
	OK(dat_srq_resize(s.srq, 20));
	HOLDS(srq_param(s.srq).max_recv_dtos >= 20);
	post(&s, 9, 20);
}

TEST("SRQ-14", a_completion_names_the_ep_that_took_the_buffer)
{
	struct shared s = a_srq();
	DAT_EVD_HANDLE recv = an_evd(DAT_EVD_DTO_FLAG);
	struct end to[2], from[2];

	for (int i = 0; i < 2; i++) {
		to[i] = AN_END(.pz = s.pz, .srq = s.srq, .recv = recv);
		from[i] = AN_END();
		connect_ends(&from[i], &to[i]);
	}
	post(&s, 1, 2);
	uint64_t cookies = 0;
	for (int i = 1; i >= 0; i--) {
		fill(from[i].mem.at, 64, i);
		post_send(&from[i], 0, 64, 9);
		DAT_EVENT event = EVENT(recv, DAT_DTO_COMPLETION_EVENT);
		DAT_DTO_COMPLETION_EVENT_DATA *done = &event.event_data.dto_completion_event_data;
		EQUAL(done->status, DAT_DTO_SUCCESS);
		EQUAL(done->ep_handle, to[i].ep);
		HOLDS(is_filled(s.mem.at + done->user_cookie.as_64 * 64, 64, i));
		cookies += done->user_cookie.as_64;
	}
	EQUAL(cookies, 3);
}

TEST("SRQ-15", receives_complete_in_the_order_of_the_sends)
{
	struct shared s = a_srq();
	struct pair p = pair_on(&s);

	post(&s, 1, 8);
	for (int i = 0; i < 8; i++) {
		*(int *)(p.a.mem.at + i * 64) = i;
		post_send(&p.a, i * 64, 64, i);
	}
	for (int i = 0; i < 8; i++) {
		DAT_EVENT event = EVENT(p.b.recv, DAT_DTO_COMPLETION_EVENT);
		uint64_t cookie = event.event_data.dto_completion_event_data.user_cookie.as_64;
		EQUAL(*(int *)(s.mem.at + cookie * 64), i);
	}
}

static void send_some(struct pair *p, int n)
{
	for (int i = 0; i < n; i++)
		post_send(&p->a, i * 64, 64, i);
}

static void expect_soft_mark(const struct pair *p)
{
	DAT_EVENT event = EVENT(async_evd(), DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR);

	EQUAL(event.event_data.asynch_error_event_data.dat_handle, p->b.ep);
	EQUAL(event.event_data.asynch_error_event_data.reason, DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT);
}

TEST("SRQ-17", an_ep_that_takes_more_than_its_soft_watermark_is_told_once)
{
	struct shared s = a_srq();
	struct pair p = pair_on(&s);

	OPTIONAL(dat_ep_set_watermark(p.b.ep, 2, DAT_WATERMARK_INFINITE));
	post(&s, 1, 8);
	send_some(&p, 2);
	COMPLETES(p.a.request, 0, DAT_DTO_SUCCESS);
	COMPLETES(p.a.request, 1, DAT_DTO_SUCCESS);
	NO_EVENT(async_evd());
	send_some(&p, 3);
	expect_soft_mark(&p);
	NO_EVENT(async_evd());
	/* The endpoint holds five receives, more than the watermark: setting the watermark again reports it
	 * at once. */
	OK(dat_ep_set_watermark(p.b.ep, 1, DAT_WATERMARK_INFINITE));
	expect_soft_mark(&p);
	FAILS(dat_ep_set_watermark(p.b.ep, DAT_WATERMARK_INFINITE, 1),
	      DAT_INVALID_STATE | DAT_INVALID_STATE_EP_RECV_WATERMARK);
	FAILS(dat_ep_set_watermark(p.b.ep, -2, 1), DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
	FAILS(dat_ep_set_watermark(p.b.ep, 1, -2), DAT_INVALID_PARAMETER | DAT_INVALID_ARG3);
}

TEST("SRQ-18", an_ep_that_takes_more_than_its_hard_watermark_loses_its_connection)
{
	struct shared s = a_srq();
	struct pair p = pair_on(&s);

	OPTIONAL(dat_ep_set_watermark(p.b.ep, DAT_WATERMARK_INFINITE, 2));
	post(&s, 1, 8);
	send_some(&p, 2);
	COMPLETES(p.a.request, 0, DAT_DTO_SUCCESS);
	COMPLETES(p.a.request, 1, DAT_DTO_SUCCESS);
	EQUAL(ep_param(p.b.ep).ep_state, DAT_EP_STATE_CONNECTED);
	send_some(&p, 1);
	EVENT(p.b.conn, DAT_CONNECTION_EVENT_BROKEN);
	EQUAL(ep_param(p.b.ep).ep_state, DAT_EP_STATE_DISCONNECTED);
}

TEST("SRQ-16", without_srqs_none_is_created)
{
	DAT_SRQ_HANDLE srq;

	if (ia_attr()->max_srqs && provider_attr()->srq_supported)
		skip("max_srqs is %d", ia_attr()->max_srqs);
	FAILS(try_srq(a_pz(), 10, 1, 0, &srq), DAT_NOT_IMPLEMENTED, DAT_MODEL_NOT_SUPPORTED);
}

static DAT_COUNT buffers_of(DAT_EP_HANDLE ep)
{
	DAT_COUNT n = 77, span = 77;

	OPTIONAL(dat_ep_recv_query(ep, &n, &span));
	HOLDS(span >= n);
	return n;
}

TEST("EP-30 SRQ-19", an_ep_tells_how_many_buffers_it_has_taken)
{
	if (!provider_attr()->ep_recv_info_supported)
		skip("ep_recv_info_supported is 0");
	struct shared s = a_srq();
	struct pair p = pair_on(&s);
	struct end idle = AN_END(.pz = s.pz, .srq = s.srq, .recv = p.b.recv);

	post(&s, 1, 5);
	EQUAL(buffers_of(p.b.ep), 0);
	for (int i = 1; i <= 3; i++)
		post_send(&p.a, 0, 64, i);
	for (int i = 1; i <= 3; i++)
		COMPLETES(p.a.request, i, DAT_DTO_SUCCESS);
	UNTIL(buffers_of(p.b.ep) == 3, "three buffers taken");
	EQUAL(buffers_of(idle.ep), 0);
	for (int left = 2; left >= 0; left--) {
		EVENT(p.b.recv, DAT_DTO_COMPLETION_EVENT);
		EQUAL(buffers_of(p.b.ep), left);
	}
}
