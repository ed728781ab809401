/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* race.c - see race.h. */
#include "race.h"

/* Poster `me` posts its numbers. It waits while the queue is full. */
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

void take(struct queue *q, const DAT_EVENT *event)
{
	uintptr_t n = NUMBER(*event);

	EQUAL(event->event_number, DAT_SOFTWARE_EVENT);
	HOLDS(n < THREADS * EACH);
	if (q->seen[n / EACH][n % EACH]++)
		fail("expected every event once, found number %zu twice", (size_t)n);
	q->taken++;
}

void drain(struct queue *q)
{
	DAT_EVENT event;

	while (dat_evd_dequeue(q->evd, &event) == DAT_SUCCESS)
		take(q, &event);
}

struct queue *a_queue(DAT_COUNT qlen, DAT_CNO_HANDLE cno)
{
	struct queue *q = lasting(sizeof(*q));

	q->cno = cno;
	q->evd = an_evd_of(qlen, cno, DAT_EVD_SOFTWARE_FLAG);
	return q;
}

bool all_taken(struct queue *q)
{
	return q->taken == THREADS * EACH;
}

void look_again(struct look *look, int count)
{
	if (count != look->count)
		look->patience.looks = 0;
	look->count = count;
	if (!waiting(&look->patience))
		fail("expected all events, found %d and no more in %.0f s", count, patience());
}

/* Threads below THREADS post. The others call `consume` until all events are taken. */
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

void run_queue(struct queue *q, int consumers, void (*consume)(struct queue *q))
{
	struct roles roles = { q, consume };

	crew(THREADS + consumers, post_or_consume, &roles);
	drain(q);
	EQUAL(q->taken, THREADS * EACH);
	FAILS(dat_evd_free(q->evd), DAT_SUCCESS);
}

/* --- messages ---------------------------------------------------------------------------------- */

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

void play(void *arg, int me)
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

void needs_thread_safety(void)
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
