/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* race_conn.c - races of connections: connecting, disconnecting, freeing and posting while a connection ends. */
#include "race.h"

static void connect_and_part(void *arg, int me)
{
	struct pair *pairs = arg;
	struct pair *p = &pairs[me];

	for (int i = 0; i < 5; i++) {
		connect_ends(&p->a, &p->b);
		WORKS(p->a, p->b);
		hang_up(i % 2 ? &p->a : &p->b);
		ENDS(p->a.conn);
		ENDS(p->b.conn);
		OK(dat_ep_reset(p->a.ep));
		OK(dat_ep_reset(p->b.ep));
	}
}

TEST("CONN-R1", threads_connect_and_disconnect_side_by_side)
{
	struct pair pairs[THREADS];

	for (int i = 0; i < THREADS; i++)
		pairs[i] = (struct pair){ AN_END(), AN_END() };
	crew(THREADS, connect_and_part, pairs);
}

static void hang_up_one(void *arg, int me)
{
	struct pair *p = arg;

	hang_up(me ? &p->a : &p->b);
}

TEST("CONN-R2", both_sides_disconnect_at_once)
{
	struct pair p = { AN_END(), AN_END() };

	for (int i = 0; i < 20; i++) {
		connect_ends(&p.a, &p.b);
		post_recv(&p.a, 0, 64, 1);
		post_recv(&p.b, 0, 64, 2);
		crew(2, hang_up_one, &p);
		ENDS(p.a.conn);
		ENDS(p.b.conn);
		COMPLETES(p.a.recv, 1, DAT_DTO_ERR_FLUSHED);
		COMPLETES(p.b.recv, 2, DAT_DTO_ERR_FLUSHED);
		STATE(p.a.ep, DAT_EP_STATE_DISCONNECTED);
		STATE(p.b.ep, DAT_EP_STATE_DISCONNECTED);
		OK(dat_ep_reset(p.a.ep));
		OK(dat_ep_reset(p.b.ep));
	}
	NO_EVENT(p.a.conn);
	NO_EVENT(p.b.conn);
}

/* Each post completes once, whenever the connection ends. */
TEST("CONN-R3", a_disconnect_at_any_moment_leaves_no_request_behind)
{
	struct pair p = { AN_END(), AN_END() };
	DAT_EVENT event;

	for (int round = 0; round < 20; round++) {
		uint64_t posted = 0, done = 0, limit = 20 + chance(200);
		connect_ends(&p.a, &p.b);
		while (posted < limit) {
			if (posted - done < 12)
				post_write(&p.a, 0, 512, &p.b.mem, 0, posted++);
			if (dat_evd_dequeue(p.a.request, &event) == DAT_SUCCESS)
				EQUAL(event.event_data.dto_completion_event_data.user_cookie.as_64, done++);
		}
		hang_up(chance(2) ? &p.a : &p.b);
		for (int i = 0; i < 3 && state_of(p.a.ep) == DAT_EP_STATE_DISCONNECTED; i++)
			post_write(&p.a, 0, 512, &p.b.mem, 0, posted++);
		while (done < posted) {
			event = EVENT(p.a.request, DAT_DTO_COMPLETION_EVENT);
			EQUAL(event.event_data.dto_completion_event_data.user_cookie.as_64, done++);
		}
		ENDS(p.a.conn);
		ENDS(p.b.conn);
		NO_EVENT(p.a.request);
		OK(dat_ep_reset(p.a.ep));
		OK(dat_ep_reset(p.b.ep));
	}
}

TEST("CONN-R4", connecting_eps_are_freed_at_any_moment)
{
	struct listener listener = a_listener();
	DAT_PZ_HANDLE pz = a_pz();
	DAT_EVD_HANDLE recv = an_evd(DAT_EVD_DTO_FLAG), request = an_evd(DAT_EVD_DTO_FLAG);
	DAT_EVD_HANDLE conn = an_evd(DAT_EVD_CONNECTION_FLAG);
	DAT_EP_ATTR attr = ep_attr();
	DAT_EVENT event;
	double end = now() + 15;	/* siw takes 10 s for an ep whose request has arrived */

	for (int i = 0; i < 20 && now() < end; i++) {
		DAT_EP_HANDLE ep;
		OK(dat_ep_create(ia(), pz, recv, request, conn, &attr, &ep));
		dial(ep, listener.qual);
		for (unsigned spin = chance(20000); spin; spin--)
			__asm__ volatile("");
		OK(dat_ep_free(ep));
	}
	/* Requests that have come can still be answered. */
	while (dat_evd_dequeue(listener.evd, &event) == DAT_SUCCESS)
		dat_cr_reject(event.event_data.cr_arrival_event_data.cr_handle, 0, NULL);
	struct end a = AN_END(), b = AN_END();
	connect_ends(&a, &b);
	WORKS(a, b);
}

/* Two threads post on one end, receives and requests, while a third ends the connection. */
enum { POSTS = 16, LAST = POSTS - 1 };
struct ending {
	struct pair p;
	bool by_peer;
	unsigned pause[POSTS], before_end;
};

/* Passes time without a call. */
static void spin(unsigned n)
{
	while (n--)
		__asm__ volatile("");
}

static bool is_suppressed(int cookie)
{
	return cookie % 3 == 1 && cookie != LAST;
}

static void post_under_the_end(void *arg, int me)
{
	struct ending *e = arg;

	if (me == 2) {
		spin(e->before_end);
		hang_up(e->by_peer ? &e->p.b : &e->p.a);
		return;
	}
	for (int i = 0; i < POSTS; i++) {
		spin(e->pause[i]);
		if (me)
			OK(dat_ep_post_rdma_write(e->p.a.ep, 1, SEGMENT(&e->p.a.mem, 0, 64), COOKIE(i),
						  TARGET(&e->p.b.mem, 0, 64), is_suppressed(i) ?
						  DAT_COMPLETION_SUPPRESS_FLAG :
						  DAT_COMPLETION_DEFAULT_FLAG));
		else
			post_recv(&e->p.a, 0, 64, i);
	}
}

/* Requests must complete in order, each once, except suppressed ones that succeed. */
static void expect_requests(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;

	for (int next = 0, cookie; next < POSTS; next = cookie + 1) {
		event = EVENT(evd, DAT_DTO_COMPLETION_EVENT);
		cookie = event.event_data.dto_completion_event_data.user_cookie.as_64;
		HOLDS(cookie >= next && cookie < POSTS);
		for (int i = next; i < cookie; i++)
			HOLDS(is_suppressed(i));
	}
}

TEST("CONN-R5", posts_while_the_connection_ends_complete_once_and_in_order)
{
	needs_thread_safety();
	struct ending *e = lasting(sizeof(*e));

	e->p = (struct pair){ AN_END(), AN_END() };
	for (int round = 0; round < 30; round++) {
		connect_ends(&e->p.a, &e->p.b);
		e->by_peer = chance(2);
		e->before_end = chance(200000);
		for (int i = 0; i < POSTS; i++)
			e->pause[i] = chance(30000);
		crew(3, post_under_the_end, e);
		ENDS(e->p.a.conn);
		ENDS(e->p.b.conn);
		for (int i = 0; i < POSTS; i++)
			COMPLETES(e->p.a.recv, i, DAT_DTO_ERR_FLUSHED);
		expect_requests(e->p.a.request);
		NO_EVENT(e->p.a.recv);
		NO_EVENT(e->p.a.request);
		OK(dat_ep_reset(e->p.a.ep));
		OK(dat_ep_reset(e->p.b.ep));
	}
}

static struct pair an_ended_pair(DAT_EVD_HANDLE recv, DAT_EVD_HANDLE request)
{
	struct pair p = { AN_END(.recv = recv, .request = request), AN_END() };

	connect_ends(&p.a, &p.b);
	hang_up(&p.b);
	ENDS(p.a.conn);
	ENDS(p.b.conn);
	return p;
}

TEST("CONN-R6", a_post_after_the_end_wakes_the_waiter)
{
	struct pair p = an_ended_pair(an_evd(DAT_EVD_DTO_FLAG), an_evd(DAT_EVD_DTO_FLAG));
	struct waiter *w = waiter_on_evd(p.a.recv, DAT_TIMEOUT_INFINITE, 1);

	post_recv(&p.a, 0, 64, 1);
	OK(released(w));
	EQUAL(w->event.event_data.dto_completion_event_data.user_cookie.as_64, 1);
	w = waiter_on_evd(p.a.request, DAT_TIMEOUT_INFINITE, 1);
	post_write(&p.a, 0, 64, &p.b.mem, 0, 2);
	OK(released(w));
	EQUAL(w->event.event_data.dto_completion_event_data.user_cookie.as_64, 2);

	DAT_CNO_HANDLE cno = a_cno();
	DAT_EVD_HANDLE evd = an_evd_of(64, cno, DAT_EVD_DTO_FLAG);
	p = an_ended_pair(evd, evd);
	w = waiter_on_cno(cno, DAT_TIMEOUT_INFINITE);
	post_recv(&p.a, 0, 64, 3);
	OK(released(w));
	EQUAL(w->woken_by, evd);
	COMPLETES(evd, 3, DAT_DTO_ERR_FLUSHED);
	w = waiter_on_cno(cno, DAT_TIMEOUT_INFINITE);
	post_write(&p.a, 0, 64, &p.b.mem, 0, 4);
	OK(released(w));
	COMPLETES(evd, 4, DAT_DTO_ERR_FLUSHED);
}

TEST("CONN-R7", what_was_posted_after_the_end_does_not_outlive_a_reset)
{
	struct pair p = an_ended_pair(DAT_HANDLE_NULL, DAT_HANDLE_NULL);

	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < POSTS; i++) {
			post_recv(&p.a, 0, 64, i);
			post_write(&p.a, 0, 64, &p.b.mem, 0, i);
		}
		FAILS(dat_ep_post_recv(p.a.ep, 1, SEGMENT(&p.a.mem, 0, 64), COOKIE(99),
				       DAT_COMPLETION_DEFAULT_FLAG), DAT_INSUFFICIENT_RESOURCES);
		for (int i = 0; i < 5 * round; i++) {
			COMPLETES(p.a.recv, i, DAT_DTO_ERR_FLUSHED);
			COMPLETES(p.a.request, i, DAT_DTO_ERR_FLUSHED);
		}
		OK(dat_ep_reset(p.a.ep));
		OK(dat_ep_reset(p.b.ep));
		NO_EVENT(p.a.recv);
		NO_EVENT(p.a.request);
		connect_ends(&p.a, &p.b);
		WORKS(p.a, p.b);
		hang_up(&p.a);
		ENDS(p.a.conn);
		ENDS(p.b.conn);
	}
}

/* The second is posted while the first fails, has failed, or has been dequeued. It must not succeed, whether
 * the device or the provider completes it. */
TEST("CONN-R8", a_suppressed_request_behind_one_that_failed_is_told_of)
{
	struct pair p = { AN_END(), AN_END() };
	struct region nobodys = forged(&p.b.mem);

	for (int round = 0; round < 30; round++) {
		connect_ends(&p.a, &p.b);
		post_read(&p.a, 0, 64, &nobodys, 0, 1);
		spin(chance(500000));
		OK(dat_ep_post_send(p.a.ep, 1, SEGMENT(&p.a.mem, 0, 64), COOKIE(2),
				    DAT_COMPLETION_SUPPRESS_FLAG));
		EVENT(p.a.request, DAT_DTO_COMPLETION_EVENT);
		COMPLETES(p.a.request, 2, DAT_DTO_ERR_FLUSHED);
		ENDS(p.a.conn);
		ENDS(p.b.conn);
		OK(dat_ep_reset(p.a.ep));
		OK(dat_ep_reset(p.b.ep));
	}
}

/* Posts more reads than may be in progress. When the connection ends, some have completed, some are in
 * progress, one is about to be sent, and others are only posted. */
TEST("CONN-R9", reads_that_are_under_way_at_the_end_complete_once)
{
	enum { READS = POSTS / 2 };
	struct pair p = { AN_END(), AN_END() };

	for (int round = 0; round < 30; round++) {
		connect_ends(&p.a, &p.b);
		for (int i = 0; i < READS; i++)
			post_read(&p.a, 0, 4096, &p.b.mem, 0, i);
		spin(chance(500000));
		OK(dat_ep_disconnect(p.b.ep, DAT_CLOSE_ABRUPT_FLAG));
		for (int i = 0; i < READS; i++) {
			DAT_EVENT event = EVENT(p.a.request, DAT_DTO_COMPLETION_EVENT);
			EQUAL(event.event_data.dto_completion_event_data.user_cookie.as_64, i);
		}
		ENDS(p.a.conn);
		ENDS(p.b.conn);
		NO_EVENT(p.a.request);
		OK(dat_ep_reset(p.a.ep));
		OK(dat_ep_reset(p.b.ep));
	}
}
