/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* steady.c - hours of random work in two processes, each with an adapter all the time: connections with
 * random traffic that end in different ways, objects that are made and freed, a second adapter at times. All
 * DTOs complete once with the right bytes. The processes do not use more and more descriptors, threads,
 * mappings or resident memory. --seconds sets the time: 86400 is a day. */
#include "traffic.h"
#include "test/own_network.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum {
	STEPS = 400,      /* most steps of a connection */
	WARM = 10,        /* rounds before the first comparison */
	GROWTH = 4 << 20, /* bytes of resident memory: caches of malloc */
	STALL = 60,       /* s */
};

static struct board {
	volatile struct traffic_target at[2];
	volatile DAT_CONN_QUAL qual;
	volatile unsigned round[2]; /* that a side is ready for */
	volatile unsigned last;	 /* round; 0: not known yet */
	volatile uint64_t dtos[2], connections;
	volatile long first[2], most[2]; /* resident bytes */
} *board;

struct side_of_work {
	int me;
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE async, cr;
	DAT_PSP_HANDLE psp;
	uint64_t random;
	struct soak_held held;
};

static void await_round(const struct side_of_work *w, unsigned round)
{
	double begin = life_now();

	while (board->round[!w->me] < round) {
		if (life_now() - begin > STALL)
			fail("seed %u, side %d: the other side does not come to round %u",
			     soak_seed, w->me, round);
		usleep(100);
	}
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static void open_adapter(struct side_of_work *w)
{
	DAT_CONN_QUAL qual;

	OK(dat_ia_open((DAT_NAME_PTR)LIFE_IA, 8, &w->async, &w->ia));
	OK(dat_pz_create(w->ia, &w->pz));
	OK(dat_evd_create(w->ia, 8, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &w->cr));
	if (w->me == 0) {
		OK(dat_psp_create_any(w->ia, &qual, w->cr, DAT_PSP_CONSUMER_FLAG, &w->psp));
		board->qual = qual;
	}
}

static void connect_side(struct side_of_work *w, struct traffic *t)
{
	double begin = life_now();
	DAT_IA_ATTR attr;
	DAT_EVENT event;

	if (w->me == 0) {
		OK(await(w->cr, DAT_CONNECTION_REQUEST_EVENT, MOMENT * SLOWER, &event));
		OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, t->ep, 0, NULL));
	} else {
		OK(dat_ia_query(w->ia, NULL, DAT_IA_FIELD_IA_ADDRESS_PTR, &attr, 0, NULL));
		OK(dat_ep_connect(t->ep, attr.ia_address_ptr, board->qual, MOMENT * SLOWER, 0, NULL,
				  DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	}
	while (!t->established) {
		if (t->terminal || life_now() - begin > STALL)
			fail("seed %u, side %d: not connected, event 0x%x", soak_seed, w->me,
			     t->terminal);
		traffic_take(t);
	}
	t->peer = &board->at[!w->me];
}

/* Makes and frees objects that nothing uses. */
static void churn(struct side_of_work *w)
{
	static char memory[1 << 20];
	DAT_REGION_DESCRIPTION region = { .for_va = memory };
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL, evd;
	DAT_LMR_HANDLE lmr;
	DAT_IA_HANDLE ia;

	OK(dat_evd_create(w->ia, 16, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &evd));
	OK(dat_evd_resize(evd, 16 + (DAT_COUNT)soak_below(&w->random, 2000)));
	OK(dat_evd_free(evd));
	OK(dat_lmr_create(w->ia, DAT_MEM_TYPE_VIRTUAL, region,
			  1 + soak_below(&w->random, sizeof memory), w->pz, DAT_MEM_PRIV_ALL_FLAG,
			  DAT_VA_TYPE_VA, &lmr, NULL, NULL, NULL, NULL));
	OK(dat_lmr_free(lmr));
	if (soak_below(&w->random, 16))
		return;
	OK(dat_ia_open((DAT_NAME_PTR)LIFE_IA, 8, &async, &ia));
	OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
}

static void end_connection(struct side_of_work *w, struct traffic *t)
{
	double begin = life_now();

	if (soak_below(&w->random, 2))
		dat_ep_disconnect(t->ep, soak_below(&w->random, 2) ? DAT_CLOSE_ABRUPT_FLAG
								   : DAT_CLOSE_GRACEFUL_FLAG);
	while (!t->terminal) {
		traffic_step(t);
		/* Each side may have left the disconnect to the other. */
		if (life_now() - begin > 0.05)
			dat_ep_disconnect(t->ep, DAT_CLOSE_ABRUPT_FLAG);
		if (life_now() - begin > STALL)
			fail("seed %u, side %d: no terminal event", soak_seed, w->me);
	}
}

static void work(struct side_of_work *w, unsigned round)
{
	struct traffic t;

	traffic_begin(&t, w->ia, w->pz, 2 * round + (unsigned)w->me);
	board->at[w->me] = t.mine;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	board->round[w->me] = round;
	await_round(w, round);
	connect_side(w, &t);
	for (unsigned n = soak_below(&w->random, STEPS); n > 0 && !t.terminal; n--)
		traffic_step(&t);
	end_connection(w, &t);
	traffic_end(&t);
	churn(w);
	board->dtos[w->me] += t.completed;
	board->connections += w->me;
}

/* Descriptors, threads and mappings must be as before. Resident memory may be a little more. */
static void compare(struct side_of_work *w, unsigned round)
{
	long resident = soak_resident();

	if (round == WARM) {
		w->held = soak_hold();
		w->held.sockets = w->held.files =
			1 << 30; /* includes those of the other process */
		board->first[w->me] = resident;
	}
	if (round < WARM)
		return;
	soak_expect_held(&w->held, "after a round", NULL);
	if (resident > board->most[w->me])
		board->most[w->me] = resident;
	if (!SANITIZED && resident > board->first[w->me] + GROWTH)
		fail("seed %u, side %d, round %u: %ld bytes are resident, %ld were after round %d",
		     soak_seed, w->me, round, resident, board->first[w->me], WARM);
}

static void work_for(int me, double seconds)
{
	struct side_of_work w = { .me = me, .random = soak_stream(1000 + (uint64_t)me) };
	double begin = life_now();
	unsigned round = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	open_adapter(&w);
	do {
		round++;
		/* The first side announces the last round before it begins. */
		if (me == 0 && !board->last && round > 2 * WARM && life_now() - begin > seconds)
			board->last = round;
		work(&w, round);
		compare(&w, round);
	} while (!board->last || round < board->last);
	OK(dat_ia_close(w.ia, DAT_CLOSE_ABRUPT_FLAG));
}

static void steady(const char *name)
{
	double seconds = soak_seconds(1), begin = life_now();
	int status;
	pid_t pid;

	own_network();
	board = soak_shared(sizeof *board);
	pid = fork();
	if (!pid) {
		work_for(1, seconds);
		exit(0);
	}
	work_for(0, seconds);
	EXPECT(waitpid(pid, &status, 0) == pid);
	if (status)
		fail("seed %u: the other side ends with status 0x%x", soak_seed, status);
	soak_figure("%s: %.0f s, %llu connections, %llu DTOs; resident memory after %d connections "
		    "%ld and %ld KiB, at most "
		    "%ld and %ld KiB; descriptors, threads and mappings are constant",
		    name, life_now() - begin, (unsigned long long)board->connections,
		    (unsigned long long)(board->dtos[0] + board->dtos[1]), WARM,
		    board->first[0] / 1024, board->first[1] / 1024, board->most[0] / 1024,
		    board->most[1] / 1024);
}

static void work_leaves_nothing(void)
{
	steady("shared memory");
}

static void work_leaves_nothing_over_tcp(void)
{
	setenv("DAPL_SOFT_SHM", "0", 1);
	steady("TCP");
}

static const struct life_case cases[] = {
	CASE(work_leaves_nothing),
	CASE(work_leaves_nothing_over_tcp),
};

int main(int argc, char **argv)
{
	return soak_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
