/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* race_cno.c - races of CNOs, agents and descriptors with the events of their EVDs. */
#include "race.h"
#include <poll.h>

static void drain_on_trigger(struct queue *q)
{
	DAT_EVD_HANDLE evd;

	/* Another thread may get the last trigger, so the wait is short. */
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

/* A trigger must not name an EVD that was freed before it. */
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
		/* It may have been freed since: then the call fails, without other effect. */
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
