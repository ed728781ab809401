/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* race_evd.c - races of software events on one EVD: posting, dequeuing, waiting, resizing and freeing by many
 * threads. What they share is in race.h. */
#include "race.h"

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

/* One of several threads waits. The others get an error, and try again. */
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

	/* One consumer of each pair waits, the other disturbs it. */
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

/* The signal comes at any moment: before, in, or after the wait. */
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
