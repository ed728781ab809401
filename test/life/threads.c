/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* threads.c - many threads open and close the same IA name, make and free objects of every kind, and send,
 * at the same time. Nothing is left at the end. */
#include "life.h"
#include "test/variables.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 8 };
#define SECONDS (SANITIZED ? 4.0 : 1.5)

static double end;
static unsigned seed;

static bool going(void)
{
	return life_now() < end;
}

static void start_clock(void)
{
	seed = variable_seed("LIFE_SEED");
	end = life_now() + SECONDS;
}
/* LIFE_SEED repeats the choices, though not their interleaving. */
#define DO(call) do { DAT_RETURN ret_ = (call); if (ret_ != DAT_SUCCESS) \
		fail("seed %u, line %d: %s gives %s", seed, __LINE__, #call, life_return(ret_)); } while (0)

static void run_threads(void *(*what)(void *), void *arg)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, what, arg);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

/* --- one name --------------------------------------------------------------------------- */

static void *open_and_close(void *arg)
{
	(void)arg;
	while (going()) {
		DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
		DAT_IA_HANDLE ia;
		DAT_IA_ATTR attr;

		DO(dat_ia_open((DAT_NAME_PTR)LIFE_IA, 8, &async, &ia));
		DO(dat_ia_query(ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL));
		if (strcmp(attr.adapter_name, LIFE_IA))
			fail("adapter_name is %s", attr.adapter_name);
		DO(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
	}
	return NULL;
}

static void opens_and_closes_of_one_name(void)
{
	int descriptors = open_descriptors();

	start_clock();
	run_threads(open_and_close, NULL);
	EXPECT(open_descriptors() == descriptors);
}

static void *sessions(void *arg)
{
	(void)arg;
	while (going())
		whole_session();
	return NULL;
}

static void threads_have_sessions_side_by_side(void)
{
	int descriptors = open_descriptors();

	start_clock();
	run_threads(sessions, NULL);
	EXPECT(open_descriptors() == descriptors);
}

/* --- objects of every kind, in one IA ---------------------------------------------------- */

static DAT_IA_HANDLE shared;
static DAT_PZ_HANDLE shared_pz;

static void one_lmr(unsigned choice, char *memory)
{
	DAT_REGION_DESCRIPTION region = { .for_va = memory };
	DAT_LMR_PARAM param;
	DAT_LMR_HANDLE lmr;
	DAT_RMR_HANDLE rmr;

	DO(dat_lmr_create(shared, DAT_MEM_TYPE_VIRTUAL, region, SIDE_MEMORY, shared_pz,
			  DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, &lmr, NULL, NULL, NULL, NULL));
	DO(dat_lmr_query(lmr, DAT_LMR_FIELD_ALL, &param));
	if (choice & 1) {
		DO(dat_rmr_create(shared_pz, &rmr));
		DO(dat_rmr_free(rmr));
	}
	DO(dat_lmr_free(lmr));
}

static void one_evd(unsigned choice)
{
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };
	DAT_CNO_HANDLE cno;
	DAT_EVD_HANDLE evd, woken;
	DAT_COUNT more;

	DO(dat_cno_create(shared, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	DO(dat_evd_create(shared, 16, choice & 1 ? cno : DAT_HANDLE_NULL, DAT_EVD_SOFTWARE_FLAG, &evd));
	DO(dat_evd_post_se(evd, &event));
	if (choice & 1) {
		DO(dat_cno_wait(cno, MOMENT, &woken));
		if (woken != evd)
			fail("seed %u: the CNO names another EVD", seed);
		DO(dat_evd_dequeue(evd, &event));
	} else {
		DO(dat_evd_resize(evd, 32));
		DO(dat_evd_wait(evd, MOMENT, 1, &event, &more));
	}
	DO(dat_evd_free(evd));
	DO(dat_cno_free(cno));
}

static void one_ep(unsigned choice)
{
	DAT_SRQ_ATTR attr = { .max_recv_dtos = 8, .max_recv_iov = 1,
		.low_watermark = DAT_SRQ_LW_DEFAULT };
	DAT_EP_ATTR with_srq = { .max_recv_dtos = 4, .max_request_dtos = 4, .max_request_iov = 1 };
	DAT_SRQ_HANDLE srq = DAT_HANDLE_NULL;
	DAT_EVD_HANDLE evd, cr;
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;
	DAT_EP_HANDLE ep;
	DAT_EP_PARAM param;

	DO(dat_evd_create(shared, 64, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG, &evd));
	if (choice & 1) {
		DO(dat_srq_create(shared, shared_pz, &attr, &srq));
		DO(dat_ep_create_with_srq(shared, shared_pz, evd, evd, evd, srq, &with_srq, &ep));
	} else {
		DO(dat_ep_create(shared, shared_pz, evd, evd, evd, NULL, &ep));
	}
	DO(dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	DO(dat_evd_create(shared, 8, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &cr));
	DO(dat_psp_create_any(shared, &qual, cr, DAT_PSP_CONSUMER_FLAG, &psp));
	if (choice & 2) {	/* connects to itself, and abandons it at once */
		DAT_IA_ATTR ia;

		DO(dat_ia_query(shared, NULL, DAT_IA_FIELD_IA_ADDRESS_PTR, &ia, 0, NULL));
		DO(dat_ep_connect(ep, ia.ia_address_ptr, qual, MOMENT, 0, NULL, DAT_QOS_BEST_EFFORT,
				  DAT_CONNECT_DEFAULT_FLAG));
	}
	DO(dat_ep_free(ep));
	DO(dat_psp_free(psp));
	if (srq)
		DO(dat_srq_free(srq));
	DO(dat_evd_free(evd));
	if (choice & 2) {	/* the request may have come: it is freed with the IA */
		DAT_EVENT event;

		while (dat_evd_dequeue(cr, &event) == DAT_SUCCESS)
			DO(dat_cr_reject(event.event_data.cr_arrival_event_data.cr_handle, 0, NULL));
	}
	DO(dat_evd_free(cr));
}

static void *objects(void *arg)
{
	static unsigned last;
	unsigned choice = seed + __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
	char *memory = malloc(SIDE_MEMORY);
	DAT_PZ_HANDLE pz;

	(void)arg;
	while (going()) {
		unsigned roll = (unsigned)rand_r(&choice);

		switch (roll % 4) {
		case 0: one_lmr(roll >> 4, memory); break;
		case 1: one_evd(roll >> 4); break;
		case 2: one_ep(roll >> 4); break;
		case 3:
			DO(dat_pz_create(shared, &pz));
			DO(dat_pz_free(pz));
			break;
		}
	}
	free(memory);
	return NULL;
}

static void threads_make_objects_of_every_kind(void)
{
	int descriptors = open_descriptors();
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;

	start_clock();
	DO(dat_ia_open((DAT_NAME_PTR)LIFE_IA, 8, &async, &shared));
	DO(dat_pz_create(shared, &shared_pz));
	run_threads(objects, NULL);
	DO(dat_pz_free(shared_pz));
	DO(dat_ia_close(shared, DAT_CLOSE_GRACEFUL_FLAG));
	EXPECT(open_descriptors() == descriptors);
}

/* Threads make and free objects while other objects of the IA are in use. Then the IA is closed. */
static void *at_work(void *arg)
{
	struct session *s = arg;

	for (unsigned i = 0; going(); i++)
		if (!session_exchange(s, i))
			fail("seed %u: exchange %u ended at %s", seed, i, s->step);
	return NULL;
}

static void objects_are_made_beside_traffic(void)
{
	struct session *s = malloc(sizeof *s);
	pthread_t worker;

	start_clock();
	OK(session_open(s, MOMENT));
	shared = s->ia;
	shared_pz = s->a.pz;
	pthread_create(&worker, NULL, at_work, s);
	run_threads(objects, NULL);
	pthread_join(worker, NULL);
	OK(session_close(s));
	free(s);
}

/* --- waiters ------------------------------------------------------------------------------ */

/* Two threads wake each other in turn: a lost wake-up stops both. The time between two wake-ups varies, so
 * that they come to waiters that poll, that are about to sleep, and that sleep. */
enum { PLAYERS = 2, THROWS = SANITIZED ? 5000 : 50000 };
static DAT_EVD_HANDLE player[PLAYERS];

static void throw_to(unsigned other)
{
	DAT_EVENT ball = { .event_number = DAT_SOFTWARE_EVENT };

	DO(dat_evd_post_se(player[other], &ball));
}

static void *plays(void *arg)
{
	unsigned me = (unsigned)(uintptr_t)arg, random = seed + me;
	DAT_EVENT ball;
	DAT_COUNT more;

	for (int i = 0; i < THROWS; i++) {
		DO(dat_evd_wait(player[me], MOMENT, 1, &ball, &more));
		for (volatile int held = rand_r(&random) % 16384; held > 0; held--)
			;
		throw_to(me ^ 1);
	}
	return NULL;
}

static void no_waiter_is_forgotten(void)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	pthread_t threads[PLAYERS];
	DAT_IA_HANDLE ia;

	start_clock();
	DO(dat_ia_open((DAT_NAME_PTR)LIFE_IA, 8, &async, &ia));
	for (int i = 0; i < PLAYERS; i++)
		DO(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_SOFTWARE_FLAG, &player[i]));
	for (uintptr_t i = 0; i < PLAYERS; i++)
		pthread_create(&threads[i], NULL, plays, (void *)i);
	throw_to(0);
	for (int i = 0; i < PLAYERS; i++)
		pthread_join(threads[i], NULL);
	DO(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
}

/* --- one object, many threads ------------------------------------------------------------- */

static DAT_EVD_HANDLE moved;
static DAT_CNO_HANDLE cnos[2];

static void *moves_the_evd(void *arg)
{
	unsigned random = seed + (unsigned)(uintptr_t)arg;

	while (going())
		DO(dat_evd_modify_cno(moved, rand_r(&random) & 64 ? cnos[rand_r(&random) / 64 % 2] :
				      DAT_HANDLE_NULL));
	return NULL;
}

static void an_evd_changes_its_cno_in_many_threads(void)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;

	start_clock();
	DO(dat_ia_open((DAT_NAME_PTR)LIFE_IA, 8, &async, &ia));
	for (int i = 0; i < 2; i++)
		DO(dat_cno_create(ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cnos[i]));
	DO(dat_evd_create(ia, 8, cnos[0], DAT_EVD_DTO_FLAG, &moved));
	run_threads(moves_the_evd, NULL);
	DO(dat_evd_modify_cno(moved, DAT_HANDLE_NULL));
	for (int i = 0; i < 2; i++)	/* each attachment has been undone once */
		DO(dat_cno_free(cnos[i]));
	DO(dat_evd_free(moved));
	DO(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

static const struct life_case cases[] = {
	CASE(opens_and_closes_of_one_name),
	CASE(threads_have_sessions_side_by_side),
	CASE(threads_make_objects_of_every_kind),
	CASE(objects_are_made_beside_traffic),
	CASE(no_waiter_is_forgotten),
	CASE(an_evd_changes_its_cno_in_many_threads),
};

int main(int argc, char **argv)
{
	return life_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
