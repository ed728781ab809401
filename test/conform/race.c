/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* race.c - what must hold whatever the timing: no event lost or doubled, no wake-up lost,
 * no handle used after its end. Many threads, many rounds, no sleeps; a lost wake-up shows
 * as a hang. Also which calls may be made at once (MT). */
#include "actors.h"
#include "pair.h"
#include <poll.h>
#include <signal.h>
#include <string.h>

#define FOR_EVER DAT_TIMEOUT_INFINITE
#define THREADS 4
#define EACH 500	/* events of one thread */

/* --- software events: the common part ------------------------------------------------------- */

struct queue {
	DAT_EVD_HANDLE evd;
	DAT_CNO_HANDLE cno;
	_Atomic int seen[THREADS][EACH];
	_Atomic int taken;		/* of all */
	_Atomic bool stop;
};

/* Poster `me` posts its numbers; a full queue is waited out. */
static void post_all(struct queue *q, int me)
{
	for (int i = 0; i < EACH; i++) {
		struct patience p = { 0 };
		DAT_RETURN ret;
		while ((ret = post_number(q->evd, me * EACH + i)) != DAT_SUCCESS) {
			FAILS(ret, DAT_QUEUE_FULL);
			if (!waiting(&p))
				fail("expected room on the EVD, waited %.0f s without it", patience());
		}
	}
}

static void take(struct queue *q, const DAT_EVENT *event)
{
	uintptr_t n = NUMBER(*event);

	EQUAL(event->event_number, DAT_SOFTWARE_EVENT);
	HOLDS(n < THREADS * EACH);
	if (q->seen[n / EACH][n % EACH]++)
		fail("expected every event once, found number %zu twice", (size_t)n);
	q->taken++;
}

/* Dequeues what there is. */
static void drain(struct queue *q)
{
	DAT_EVENT event;

	while (dat_evd_dequeue(q->evd, &event) == DAT_SUCCESS)
		take(q, &event);
}

static struct queue *a_queue(DAT_COUNT qlen, DAT_CNO_HANDLE cno)
{
	struct queue *q = lasting(sizeof(*q));

	q->cno = cno;
	q->evd = an_evd_of(qlen, cno, DAT_EVD_SOFTWARE_FLAG);
	return q;
}

static bool all_taken(struct queue *q)
{
	return q->taken == THREADS * EACH;
}

/* One more look at a count that grows: patience begins anew whenever it has grown. */
struct look {
	struct patience patience;
	int count;
};

static void look_again(struct look *look, int count)
{
	if (count != look->count)
		look->patience.looks = 0;
	look->count = count;
	if (!waiting(&look->patience))
		fail("expected all events, found %d and no more in %.0f s", count, patience());
}

/* Threads below THREADS post, the others do `consume` until all is taken. */
struct roles {
	struct queue *q;
	void (*consume)(struct queue *q);
};

static void post_or_consume(void *arg, int me)
{
	struct roles *roles = arg;

	if (me < THREADS)
		post_all(roles->q, me);
	else
		roles->consume(roles->q);
}

static void run_queue(struct queue *q, int consumers, void (*consume)(struct queue *q))
{
	struct roles roles = { q, consume };

	crew(THREADS + consumers, post_or_consume, &roles);
	drain(q);
	EQUAL(q->taken, THREADS * EACH);
	FAILS(dat_evd_free(q->evd), DAT_SUCCESS);
}

/* --- EVD --------------------------------------------------------------------------------------- */

static void dequeue_until_done(struct queue *q)
{
	struct look look = { 0 };

	while (!all_taken(q)) {
		drain(q);
		look_again(&look, q->taken);
	}
}

TEST("EVD-R1", many_threads_post_and_many_dequeue)
{
	run_queue(a_queue(64, DAT_HANDLE_NULL), THREADS, dequeue_until_done);
}

static void wait_in_order(struct queue *q)
{
	int next[THREADS] = { 0 };
	DAT_COUNT more;
	DAT_EVENT event;

	while (!all_taken(q)) {
		OK(dat_evd_wait(q->evd, FOR_EVER, 1, &event, &more));
		EQUAL(NUMBER(event) % EACH, next[NUMBER(event) / EACH]++);
		take(q, &event);
	}
}

TEST("EVD-R2", one_waits_and_finds_the_events_of_each_poster_in_order)
{
	run_queue(a_queue(16, DAT_HANDLE_NULL), 1, wait_in_order);
}

/* Of several threads one waits; the others get an error, and try again. */
static void wait_among_others(struct queue *q)
{
	struct look look = { 0 };
	DAT_COUNT more;
	DAT_EVENT event;

	while (!all_taken(q)) {
		DAT_RETURN ret = dat_evd_wait(q->evd, 1000, 1, &event, &more);
		if (ret == DAT_SUCCESS)
			take(q, &event);
		else
			FAILS(ret, DAT_TIMEOUT_EXPIRED, DAT_INVALID_STATE | DAT_INVALID_STATE_EVD_WAITER);
		look_again(&look, q->taken);
	}
}

TEST("EVD-R3", several_wait_by_turns)
{
	run_queue(a_queue(64, DAT_HANDLE_NULL), THREADS, wait_among_others);
}

static void wait_in_a_hurry(struct queue *q)
{
	struct look look = { 0 };
	DAT_COUNT more;
	DAT_EVENT event;

	for (unsigned i = 0; !all_taken(q); i++) {
		DAT_RETURN ret = dat_evd_wait(q->evd, i % 30, 1 + i % 3, &event, &more);
		if (ret == DAT_SUCCESS)
			take(q, &event);
		else
			FAILS(ret, DAT_TIMEOUT_EXPIRED);
		/* Less than the threshold may be left at the end. */
		if (ret != DAT_SUCCESS && dat_evd_dequeue(q->evd, &event) == DAT_SUCCESS)
			take(q, &event);
		look_again(&look, q->taken);
	}
}

TEST("EVD-R4", a_timeout_that_races_with_an_event_loses_none)
{
	run_queue(a_queue(64, DAT_HANDLE_NULL), 1, wait_in_a_hurry);
}

static void change_waitability(struct queue *q)
{
	struct look look = { 0 };
	DAT_COUNT more;
	DAT_EVENT event;

	/* One of each pair of consumers waits, the other disturbs it. */
	static _Atomic int turn;
	bool disturb = turn++ % 2;
	while (!all_taken(q)) {
		look_again(&look, q->taken);
		if (disturb) {
			OK(dat_evd_set_unwaitable(q->evd));
			OK(dat_evd_clear_unwaitable(q->evd));
			OK(dat_evd_disable(q->evd));
			OK(dat_evd_enable(q->evd));
			continue;
		}
		DAT_RETURN ret = dat_evd_wait(q->evd, 2000, 1, &event, &more);
		if (ret == DAT_SUCCESS)
			take(q, &event);
		else
			FAILS(ret, DAT_TIMEOUT_EXPIRED, DAT_INVALID_STATE | DAT_INVALID_STATE_EVD_UNWAITABLE);
	}
}

TEST("EVD-R5 MT-3", an_evd_that_becomes_unwaitable_and_waitable_loses_no_event)
{
	run_queue(a_queue(64, DAT_HANDLE_NULL), 2, change_waitability);
}

static void resize_and_dequeue(struct queue *q)
{
	struct look look = { 0 };
	static _Atomic int turn;
	bool resize = turn++ == 0;

	for (unsigned i = 0; !all_taken(q); i++) {
		look_again(&look, q->taken);
		drain(q);
		if (!resize)
			continue;
		DAT_RETURN ret = dat_evd_resize(q->evd, i % 2 ? 8 : 100);
		if (ret != DAT_SUCCESS)
			FAILS(ret, DAT_INVALID_STATE);
	}
}

TEST("EVD-R6", an_evd_is_resized_under_traffic)
{
	run_queue(a_queue(16, DAT_HANDLE_NULL), 2, resize_and_dequeue);
}

TEST("EVD-R7", an_evd_is_freed_under_its_waiter_time_and_again)
{
	for (int i = 0; i < 30; i++) {
		DAT_EVD_HANDLE evd = an_evd(i % 2 ? DAT_EVD_SOFTWARE_FLAG : DAT_EVD_DTO_FLAG);
		struct waiter *w = waiter_on_evd(evd, FOR_EVER, 1);
		OK(dat_evd_free(evd));
		FAILS(released(w), DAT_ABORT);
	}
}

/* The signal falls anywhere: before, in, or after the wait. */
TEST("EVD-R8", signals_lose_no_event)
{
	DAT_EVD_HANDLE evd = an_evd(DAT_EVD_SOFTWARE_FLAG);
	DAT_EVENT event;

	for (int i = 0; i < 100; i++) {
		struct waiter *w = waiter_on_evd(evd, FOR_EVER, 1);
		if (chance(2)) {
			interrupt(w);
			OK(post_number(evd, i));
		} else {
			OK(post_number(evd, i));
			interrupt(w);
		}
		DAT_RETURN ret = released(w);
		if (ret == DAT_SUCCESS) {
			EQUAL(NUMBER(w->event), i);
		} else {
			FAILS(ret, DAT_INTERRUPTED_CALL);
			OK(dat_evd_dequeue(evd, &event));
			EQUAL(NUMBER(event), i);
		}
	}
}

/* Two threads that wake each other with messages: a thread that misses one hangs. */
struct rally {
	struct pair p;
	bool by_cno;
	DAT_CNO_HANDLE cno[2];
};
#define BALLS 200

static void await_completion(struct rally *r, const struct end *end, int me, uint64_t cookie)
{
	DAT_EVD_HANDLE evd;
	DAT_EVENT event;
	DAT_COUNT more;

	if (!r->by_cno) {
		OK(dat_evd_wait(end->recv, FOR_EVER, 1, &event, &more));
	} else {
		while (dat_evd_dequeue(end->recv, &event) != DAT_SUCCESS) {
			OK(dat_cno_wait(r->cno[me], FOR_EVER, &evd));
			EQUAL(evd, end->recv);
		}
	}
	EQUAL(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
	EQUAL(event.event_data.dto_completion_event_data.user_cookie.as_64, cookie);
}

static void play(void *arg, int me)
{
	struct rally *r = arg;
	const struct end *mine = me ? &r->p.b : &r->p.a;
	DAT_EVENT event;

	for (uint64_t i = 0; i < BALLS; i++) {
		if (me)
			await_completion(r, mine, me, i);
		post_recv(mine, 0, 64, i + 1);
		OK(dat_ep_post_send(mine->ep, 1, SEGMENT(&mine->mem, 64, 8), COOKIE(i),
				    i % 8 == 7 ? DAT_COMPLETION_DEFAULT_FLAG : DAT_COMPLETION_SUPPRESS_FLAG));
		if (i % 8 == 7)
			UNTIL(dat_evd_dequeue(mine->request, &event) == DAT_SUCCESS, "the send to complete");
		if (!me)
			await_completion(r, mine, me, i + 1);
	}
}

TEST("EVD-R9", no_completion_is_missed_by_a_waiter)
{
	struct rally r = { .p = CONNECTED_PAIR() };

	post_recv(&r.p.b, 0, 64, 0);
	crew(2, play, &r);
}

/* Completions on one CQ, dequeued by many. */
struct many {
	struct pair p;
	_Atomic int seen[1000];
	_Atomic int taken;
};

static void write_or_dequeue(void *arg, int me)
{
	struct many *m = arg;
	struct look look = { 0 };
	DAT_EVENT event;

	if (!me) {
		for (int i = 0; i < 1000; i++) {
			UNTIL(i - m->taken < 16, "a completion");
			post_write(&m->p.a, 0, 64, &m->p.b.mem, 0, i);
		}
		return;
	}
	while (m->taken < 1000) {
		look_again(&look, m->taken);
		if (dat_evd_dequeue(m->p.a.request, &event) != DAT_SUCCESS)
			continue;
		EQUAL(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
		EQUAL(m->seen[event.event_data.dto_completion_event_data.user_cookie.as_64]++, 0);
		m->taken++;
	}
}

TEST("EVD-R10", many_threads_dequeue_completions)
{
	struct many *m = lasting(sizeof(*m));

	m->p = CONNECTED_PAIR();
	crew(1 + THREADS, write_or_dequeue, m);
	NO_EVENT(m->p.a.request);
}

static void write_or_resize(void *arg, int me)
{
	struct many *m = arg;

	if (me < 2) {
		write_or_dequeue(m, me);
		return;
	}
	struct look look = { 0 };
	for (unsigned i = 0; m->taken < 1000; i++) {
		look_again(&look, m->taken);
		DAT_RETURN ret = dat_evd_resize(m->p.a.request, i % 2 ? 64 : 200);
		if (DAT_GET_TYPE(ret) == DAT_INSUFFICIENT_RESOURCES || DAT_GET_TYPE(ret) == DAT_MODEL_NOT_SUPPORTED)
			skip("dat_evd_resize of completions answers %s", return_name(ret));
		if (ret != DAT_SUCCESS)
			FAILS(ret, DAT_INVALID_STATE);
	}
}

TEST("EVD-R11", completions_survive_resizing)
{
	struct many *m = lasting(sizeof(*m));

	m->p = CONNECTED_PAIR();
	crew(3, write_or_resize, m);
	NO_EVENT(m->p.a.request);
}

/* --- CNO ------------------------------------------------------------------------------------------ */

static void drain_on_trigger(struct queue *q)
{
	DAT_EVD_HANDLE evd;

	/* The last trigger may be another thread's: look again now and then. */
	while (!all_taken(q)) {
		DAT_RETURN ret = dat_cno_wait(q->cno, 100000, &evd);
		if (ret == DAT_SUCCESS)
			EQUAL(evd, q->evd);
		else
			FAILS(ret, DAT_QUEUE_EMPTY);
		drain(q);
	}
}

TEST("CNO-R1", several_wait_for_one_cno_and_find_all_events)
{
	run_queue(a_queue(64, a_cno()), 3, drain_on_trigger);
}

static void drain_on_every_trigger(struct queue *q)
{
	DAT_EVD_HANDLE evd;

	while (!all_taken(q)) {
		OK(dat_cno_wait(q->cno, FOR_EVER, &evd));
		drain(q);
	}
}

TEST("CNO-R2", draining_on_every_trigger_misses_nothing)
{
	run_queue(a_queue(64, a_cno()), 1, drain_on_every_trigger);
}

TEST("CNO-R3", no_completion_is_missed_by_a_waiter_on_a_cno)
{
	struct rally r = { .by_cno = true, .cno = { a_cno(), a_cno() } };
	struct end a = AN_END(.recv = an_evd_of(16, r.cno[0], DAT_EVD_DTO_FLAG));
	struct end b = AN_END(.recv = an_evd_of(16, r.cno[1], DAT_EVD_DTO_FLAG));

	connect_ends(&a, &b);
	r.p = (struct pair){ a, b };
	post_recv(&b, 0, 64, 0);
	crew(2, play, &r);
}

static struct queue *heard_queue;

static void drain_as_agent(DAT_PVOID data, DAT_EVD_HANDLE evd)
{
	EQUAL(data, heard_queue);
	if (!evd)
		return;		/* the IA is being closed */
	EQUAL(evd, heard_queue->evd);
	drain(heard_queue);
}

static void look_on(struct queue *q)
{
	UNTIL(all_taken(q), "the agent to take all events");
}

TEST("CNO-R4", an_agent_that_drains_misses_nothing)
{
	DAT_OS_WAIT_PROXY_AGENT agent = { .proxy_agent_func = drain_as_agent };
	struct queue *q = heard_queue = a_queue(64, DAT_HANDLE_NULL);

	agent.instance_data = q;
	OK(dat_cno_create(ia(), agent, &q->cno));
	OK(dat_evd_modify_cno(q->evd, q->cno));
	/* Beside the agent a waiter is woken, too. */
	struct waiter *w = waiter_on_cno(q->cno, FOR_EVER);
	run_queue(q, 1, look_on);
	OK(released(w));
}

static void poll_descriptor(struct queue *q)
{
	DAT_CNO_PARAM param;
	DAT_EVD_HANDLE evd;

	OK(dat_cno_query(q->cno, (DAT_CNO_PARAM_MASK)7, &param));
	struct pollfd fd = { .fd = param.proxy.fd, .events = POLLIN };
	while (!all_taken(q)) {
		HOLDS(poll(&fd, 1, (int)(patience() * 1000)) == 1);
		DAT_RETURN ret = LATE(dat_cno_trigger)(q->cno, &evd);
		if (ret != DAT_SUCCESS)
			FAILS(ret, DAT_QUEUE_EMPTY);
		drain(q);
	}
}

TEST("CNO-R5", a_descriptor_that_is_polled_misses_nothing)
{
	DAT_CNO_HANDLE cno;
	DAT_FD fd;

	ia();
	OPTIONAL(LATE(dat_cno_fd_create)(ia(), &fd, &cno));
	run_queue(a_queue(64, cno), 1, poll_descriptor);
}

static void move_between(struct queue *q)
{
	DAT_CNO_HANDLE other = a_cno();
	struct look look = { 0 };

	for (unsigned i = 0; !all_taken(q); i++) {
		look_again(&look, q->taken);
		OK(dat_evd_modify_cno(q->evd, i % 3 == 0 ? other : i % 3 == 1 ? DAT_HANDLE_NULL : q->cno));
		drain(q);
	}
	OK(dat_evd_modify_cno(q->evd, q->cno));
	OK(dat_cno_free(other));
}

TEST("CNO-R6", an_evd_changes_its_cno_under_traffic)
{
	struct queue *q = a_queue(64, a_cno());
	DAT_EVD_HANDLE evd;

	run_queue(q, 1, move_between);
	q->evd = an_evd_of(8, q->cno, DAT_EVD_SOFTWARE_FLAG);
	OK(post_number(q->evd, 1));
	do
		OK(dat_cno_wait(q->cno, FOR_EVER, &evd));
	while (evd != q->evd);
}

/* A trigger never names an EVD that is gone by then. */
static void come_and_go(void *arg, int me)
{
	struct queue *q = arg;
	DAT_EVD_HANDLE evd;
	DAT_EVD_PARAM param;

	if (me) {
		for (int i = 0; i < 100; i++) {
			evd = an_evd_of(4, q->cno, DAT_EVD_SOFTWARE_FLAG);
			OK(post_number(evd, 1));
			OK(dat_evd_free(evd));
		}
		q->stop = true;
		return;
	}
	while (!q->stop) {
		DAT_RETURN ret = dat_cno_wait(q->cno, 1000, &evd);
		if (ret != DAT_SUCCESS) {
			FAILS(ret, DAT_QUEUE_EMPTY);
			continue;
		}
		/* It may be freed since: then that is said, and nothing else happens. */
		if (evd && dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param) == DAT_SUCCESS)
			EQUAL(param.ia_handle, ia());
	}
}

TEST("CNO-R7", evds_come_and_go_under_a_waiter)
{
	struct queue q = { .cno = a_cno() };

	crew(2, come_and_go, &q);
	OK(dat_cno_free(q.cno));
}

/* --- connections ------------------------------------------------------------------------------------ */

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

/* What was posted completes once, whenever the connection ends. */
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
	/* Requests that came may be answered still. */
	while (dat_evd_dequeue(listener.evd, &event) == DAT_SUCCESS)
		dat_cr_reject(event.event_data.cr_arrival_event_data.cr_handle, 0, NULL);
	struct end a = AN_END(), b = AN_END();
	connect_ends(&a, &b);
	WORKS(a, b);
}

/* Each small queue is a page or two of a device: they pass any offset that it treats in a
 * way of its own. */
TEST("EVD-R12", two_hundred_evds_exist_at_once)
{
	DAT_EVD_HANDLE evd[200];
	int n = ia_attr()->max_evds < 200 ? ia_attr()->max_evds / 2 : 200;

	for (int i = 0; i < n; i++)
		evd[i] = an_evd_of(8, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG);
	for (int i = 0; i < n; i++)
		OK(dat_evd_free(evd[i]));
}

/* --- calls that may be made at once ------------------------------------------------------------------- */

static void create_everything(void *arg __attribute__((unused)), int me)
{
	for (int i = 0; i < 5; i++) {
		DAT_PZ_HANDLE pz = a_pz();
		DAT_CNO_HANDLE cno = a_cno();
		DAT_EVD_HANDLE evd = an_evd_of(8, cno, DAT_EVD_CR_FLAG);
		struct region region = a_region(pz, 4096, LOCAL_RIGHTS);
		struct end end = AN_END(.pz = pz);
		struct listener listener = a_listener_on(ia(), evd, DAT_PSP_CONSUMER_FLAG);
		struct reservation r = a_reservation(end.ep);
		DAT_SRQ_ATTR srq_attr = { .max_recv_dtos = 8, .max_recv_iov = 1 };
		DAT_RMR_HANDLE rmr = DAT_HANDLE_NULL;
		DAT_SRQ_HANDLE srq = DAT_HANDLE_NULL;

		if (ia_attr()->max_rmrs && dat_rmr_create(pz, &rmr) == DAT_SUCCESS)
			OK(dat_rmr_free(rmr));
		if (ia_attr()->max_srqs && dat_srq_create(ia(), pz, &srq_attr, &srq) == DAT_SUCCESS)
			OK(dat_srq_free(srq));
		if (me % 2)
			continue;	/* the close takes care of the rest */
		OK(dat_rsp_free(r.rsp));
		OK(dat_psp_free(listener.psp));
		OK(dat_ep_free(end.ep));
		OK(dat_lmr_free(end.mem.lmr));
		OK(dat_lmr_free(region.lmr));
		OK(dat_pz_free(pz));
		OK(dat_evd_free(evd));
		OK(dat_cno_free(cno));
	}
}

TEST("MT-1", objects_are_created_by_many_threads)
{
	ia();
	crew(8, create_everything, NULL);
}

static struct zoo shared_zoo;

static void query_everything(void *arg __attribute__((unused)), int me)
{
	for (int i = 0; i < 50; i++) {
		DAT_IA_ATTR attr;
		DAT_PROVIDER_ATTR provider;
		DAT_PZ_PARAM pz;
		DAT_PSP_PARAM psp;
		DAT_RSP_PARAM rsp;
		DAT_COUNT n;
		DAT_PROVIDER_INFO info[4], *list[4] = { &info[0], &info[1], &info[2], &info[3] };
		const char *major, *minor;

		OK(dat_ia_query(ia(), NULL, DAT_IA_FIELD_ALL, &attr, DAT_PROVIDER_FIELD_ALL, &provider));
		EQUAL(attr.max_eps, ia_attr()->max_eps);
		OK(dat_pz_query(shared_zoo.pz, DAT_PZ_FIELD_ALL, &pz));
		OK(dat_psp_query(shared_zoo.psp, DAT_PSP_FIELD_ALL, &psp));
		OK(dat_rsp_query(shared_zoo.rsp, DAT_RSP_FIELD_ALL, &rsp));
		HOLDS(cr_param(shared_zoo.cr).remote_ia_address_ptr != NULL);
		OK(dat_ep_get_status(shared_zoo.ep, NULL, NULL, NULL));
		if (dat_registry_list_providers(4, &n, list) == DAT_SUCCESS)
			HOLDS(n >= 1);
		OK(dat_strerror(DAT_CLASS_ERROR | DAT_INVALID_STATE | (47 + me), &major, &minor));
	}
}

TEST("MT-2", objects_are_queried_by_many_threads)
{
	shared_zoo = a_zoo();
	crew(8, query_everything, NULL);
}

/* On a provider that locks for its consumers, also what the manual calls unsafe. */
static void needs_thread_safety(void)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE instance;

	ia();
	if (dat_ia_openv(ia_name(), 8, &async, &instance, 2, 0, DAT_TRUE) != DAT_SUCCESS &&
	    !provider_attr()->is_thread_safe)
		skip("is_thread_safe is false, and there is no threadsafe entry");
	if (!provider_attr()->is_thread_safe)
		work_on(instance);
}

static void post_on_one(void *arg, int me)
{
	struct many *m = arg;
	DAT_EVENT event;

	for (int i = 0; i < 250;) {
		DAT_RETURN ret = dat_ep_post_rdma_write(m->p.a.ep, 1, SEGMENT(&m->p.a.mem, me * 64, 64),
							COOKIE(me * 250 + i), TARGET(&m->p.b.mem, me * 64, 64),
							DAT_COMPLETION_DEFAULT_FLAG);
		if (ret == DAT_SUCCESS)
			i++;
		else
			FAILS(ret, DAT_INSUFFICIENT_RESOURCES);
		while (dat_evd_dequeue(m->p.a.request, &event) == DAT_SUCCESS) {
			EQUAL(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
			EQUAL(m->seen[event.event_data.dto_completion_event_data.user_cookie.as_64]++, 0);
			m->taken++;
		}
	}
}

TEST("MT-4", many_threads_post_on_one_ep)
{
	needs_thread_safety();
	struct many *m = lasting(sizeof(*m));

	m->p = CONNECTED_PAIR();
	crew(THREADS, post_on_one, m);
	while (m->taken < 1000) {
		DAT_EVENT event = EVENT(m->p.a.request, DAT_DTO_COMPLETION_EVENT);
		EQUAL(m->seen[event.event_data.dto_completion_event_data.user_cookie.as_64]++, 0);
		m->taken++;
	}
	WORKS(m->p.a, m->p.b);
}

static void post_or_hang_up(void *arg, int me)
{
	struct many *m = arg;

	if (me == THREADS) {
		UNTIL(m->taken > (int)chance(300), "some requests");
		hang_up(chance(2) ? &m->p.a : &m->p.b);
		return;
	}
	for (int i = 0; i < 250; i++) {
		DAT_EVENT event;
		if (dat_ep_post_rdma_write(m->p.a.ep, 1, SEGMENT(&m->p.a.mem, 0, 64), COOKIE(me * 250 + i),
					   TARGET(&m->p.b.mem, 0, 64), DAT_COMPLETION_DEFAULT_FLAG) == DAT_SUCCESS)
			m->seen[me * 250 + i]++;
		while (dat_evd_dequeue(m->p.a.request, &event) == DAT_SUCCESS) {
			EQUAL(event.event_number, DAT_DTO_COMPLETION_EVENT);
			m->seen[event.event_data.dto_completion_event_data.user_cookie.as_64] += 10;
			m->taken++;
		}
	}
	m->taken += 1000;	/* do not let the disconnecting thread wait for nothing */
}

TEST("MT-5", a_connection_ends_under_the_posts_of_many_threads)
{
	needs_thread_safety();
	struct many *m = lasting(sizeof(*m));
	DAT_EVENT event;

	m->p = CONNECTED_PAIR();
	crew(THREADS + 1, post_or_hang_up, m);
	ENDS(m->p.a.conn);
	ENDS(m->p.b.conn);
	/* A marker comes behind all others, as soon as there is room for it. */
	bool marked = false;
	for (uint64_t cookie = 0; cookie != 5000;) {
		if (!marked)
			marked = dat_ep_post_rdma_write(m->p.a.ep, 1, SEGMENT(&m->p.a.mem, 0, 64), COOKIE(5000),
							TARGET(&m->p.b.mem, 0, 64),
							DAT_COMPLETION_DEFAULT_FLAG) == DAT_SUCCESS;
		event = EVENT(m->p.a.request, DAT_DTO_COMPLETION_EVENT);
		cookie = event.event_data.dto_completion_event_data.user_cookie.as_64;
		if (cookie != 5000)
			m->seen[cookie] += 10;
	}
	/* Posted and completed, or neither. */
	for (int i = 0; i < 1000; i++)
		HOLDS(m->seen[i] == 0 || m->seen[i] == 11);
}

/* Two threads post on one end, receives and requests, while a third ends the connection. */
enum { POSTS = 16, LAST = POSTS - 1 };
struct ending {
	struct pair p;
	bool by_peer;
	unsigned pause[POSTS], before_end;
};

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

/* In order, each once; but successes that were suppressed are not told. */
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

static void wait_on_cno_forever(void *arg, int me)
{
	struct queue *q = arg;
	DAT_EVD_HANDLE evd = (DAT_EVD_HANDLE)77;

	if (me == THREADS) {
		/* The others are in their waits, or will come too late and are told so. */
		UNTIL(q->taken == THREADS, "threads to start");
		OK(dat_ia_close(ia(), DAT_CLOSE_ABRUPT_FLAG));
		ia_is_gone();
		return;
	}
	q->taken++;
	DAT_RETURN ret = dat_cno_wait(q->cno, FOR_EVER, &evd);
	if (ret == DAT_SUCCESS)
		EQUAL(evd, DAT_HANDLE_NULL);
	else
		FAILS(ret, DAT_INVALID_HANDLE);
}

/* The second is posted while the first fails, has failed, or has been dequeued: whichever then
 * completes it, the device or the provider, it can't have succeeded. */
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

/* More reads than may be out at once: when the connection ends, some are answered, some out, one
 * is about to be sent, others are only posted. */
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

TEST("MT-6", a_close_releases_all_waiters_of_a_cno)
{
	struct queue *q = a_queue(8, a_cno());

	/* Keep the provider loaded: a late call must find it. */
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	open_ia(&async);
	crew(THREADS + 1, wait_on_cno_forever, q);
}
