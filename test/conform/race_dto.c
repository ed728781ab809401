/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* race_dto.c - races of completions on one EVD: no completion is missed by a waiter, nor lost by dequeuing or
 * resizing in many threads. */
#include "race.h"

TEST("EVD-R9", no_completion_is_missed_by_a_waiter)
{
	struct rally r = { .p = CONNECTED_PAIR() };

	post_recv(&r.p.b, 0, 64, 0);
	crew(2, play, &r);
}

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
