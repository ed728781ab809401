/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* remote_chores.c - see remote_chores.h. */
#include "sock/remote_chores.h"
#include "common/clock.h"
#include "sock/link.h"
#include "sock/remote_back.h"
#include "sock/remote_in.h"
#include "sock/remote_out.h"
#include "sock/remote_stream.h"
#include "sock/remote_types.h"
#include "sock/service.h"

/* What is done again after each period while a stream needs it. */
struct chore {
	bool wanted; /* atomic */
	uint64_t next; /* monotonic ns */
	unsigned period_ms;
	bool (*run)(uint64_t now); /* returns whether it is needed again */
};

/* Each does all that it can, so that none hides another. */
static bool run_tick(uint64_t now)
{
	bool again = false;

	for (struct remote *r = remote_stream_all(), *next; r; r = next) {
		next = r->next_all;
		if (LOAD(&r->state) == CLOSING && link_is_over(r->link)) {
			remote_stream_destroy(r);
			continue;
		}
		again |= remote_out_tick(r, now);
		again |= remote_in_tick(r);
		again |= remote_back_tick(r);
	}
	return again;
}

/* Asks the peers of streams that wait for a sign of life. */
static bool run_look(uint64_t now)
{
	bool again = false;

	for (struct remote *r = remote_stream_all(); r; r = r->next_all)
		if (remote_out_waits(r)) {
			again = true;
			remote_out_look(r);
			if (!link_watch(r->link, now))
				break; /* streams may be gone */
		}
	return again;
}

static struct chore tick = { .period_ms = 2, .run = run_tick };
static struct chore look = { .period_ms = 1000, .run = run_look }; /* bounds messages to peers */

static void want(struct chore *c)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&c->wanted, __ATOMIC_RELAXED) && !__atomic_exchange_n(&c->wanted, true, __ATOMIC_SEQ_CST))
		service_wake();
}

void remote_chores_want_tick(void)
{
	want(&tick);
}

void remote_chores_want_look(void)
{
	want(&look);
}

/* Returns the time until it is due again in ms, -1: it is not wanted. */
static int run(struct chore *c)
{
	uint64_t now;

	if (!__atomic_load_n(&c->wanted, __ATOMIC_SEQ_CST))
		return -1;
	now = clock_now_ns();
	if (now >= c->next) {
		c->next = now + c->period_ms * 1000000ull;
		/* What program's threads want from now on is not lost. */
		__atomic_store_n(&c->wanted, false, __ATOMIC_SEQ_CST);
		if (c->run(now))
			__atomic_store_n(&c->wanted, true, __ATOMIC_SEQ_CST);
	}
	return __atomic_load_n(&c->wanted, __ATOMIC_SEQ_CST) ? (int)((c->next - now + 999999) / 1000000) : -1;
}

static int earlier(int a, int b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

int remote_chores_run(void)
{
	int due;

	link_pause();
	due = earlier(run(&tick), run(&look));
	link_resume();
	return earlier(due, link_run());
}

void remote_chores_after_fork(void)
{
	tick.wanted = look.wanted = false;
}
