/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* many.c - many endpoints of one IA, more than a poll examines. Messages go over random endpoints, while
 * connections end and begin, and all completions are found by polling, also those of seldom used endpoints
 * beside busy ones. LIFE_SEED repeats the choices. */
#include "life.h"
#include "test/variables.h"
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAIRS = 48, ROUNDS = 1500, LENGTH = 64 };

static unsigned seed, state;

static unsigned below(unsigned n)
{
	state = state * 1664525 + 1013904223;
	return (state >> 8) % n;
}

struct many {
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async, cr, conn, dto;
	DAT_PZ_HANDLE pz;
	DAT_PSP_HANDLE psp;
	DAT_CONN_QUAL qual;
	DAT_LMR_CONTEXT lmr;
	DAT_EP_HANDLE ep[2 * PAIRS];	/* i connects to PAIRS + i */
	char out[LENGTH], in[2 * PAIRS][LENGTH];
};

static void connect_pair(struct many *m, unsigned i)
{
	DAT_IA_ATTR attr;
	DAT_EVENT event;

	OK(dat_ia_query(m->ia, NULL, DAT_IA_FIELD_IA_ADDRESS_PTR, &attr, 0, NULL));
	for (int side = 0; side < 2; side++)
		OK(dat_ep_create(m->ia, m->pz, m->dto, m->dto, m->conn, NULL, &m->ep[side * PAIRS + i]));
	OK(dat_ep_connect(m->ep[i], attr.ia_address_ptr, m->qual, MOMENT * SLOWER, 0, NULL,
			  DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	OK(await(m->cr, DAT_CONNECTION_REQUEST_EVENT, MOMENT * SLOWER, &event));
	OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, m->ep[PAIRS + i], 0, NULL));
	for (int side = 0; side < 2; side++)
		OK(await(m->conn, DAT_CONNECTION_EVENT_ESTABLISHED, MOMENT * SLOWER, &event));
}

static void end_pair(struct many *m, unsigned i)
{
	DAT_EVENT event;

	OK(dat_ep_disconnect(m->ep[i], DAT_CLOSE_GRACEFUL_FLAG));
	for (int side = 0; side < 2; side++)
		OK(await(m->conn, DAT_CONNECTION_EVENT_DISCONNECTED, MOMENT * SLOWER, &event));
	for (int side = 0; side < 2; side++)
		OK(dat_ep_free(m->ep[side * PAIRS + i]));
}

static void begin(struct many *m)
{
	DAT_REGION_DESCRIPTION region = { .for_va = m };
	DAT_LMR_HANDLE lmr;
	DAT_RMR_CONTEXT rmr;
	DAT_VADDR start;
	DAT_VLEN length;

	state = seed = variable_seed("LIFE_SEED");
	memset(m, 0, sizeof *m);
	m->async = DAT_HANDLE_NULL;
	OK(dat_ia_open((DAT_NAME_PTR)LIFE_IA, 8, &m->async, &m->ia));
	OK(dat_pz_create(m->ia, &m->pz));
	OK(dat_evd_create(m->ia, 8, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &m->cr));
	OK(dat_evd_create(m->ia, 4 * PAIRS, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &m->conn));
	OK(dat_evd_create(m->ia, 4 * PAIRS, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &m->dto));
	OK(dat_psp_create_any(m->ia, &m->qual, m->cr, DAT_PSP_CONSUMER_FLAG, &m->psp));
	OK(dat_lmr_create(m->ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof *m, m->pz, DAT_MEM_PRIV_ALL_FLAG,
			  DAT_VA_TYPE_VA, &lmr, &m->lmr, &rmr, &length, &start));
	for (unsigned i = 0; i < PAIRS; i++)
		connect_pair(m, i);
}

/* Takes the next completion, by polling alone. */
static DAT_DTO_COMPLETION_EVENT_DATA polled(struct many *m)
{
	double end = life_now() + MOMENT / 1e6 * SLOWER;
	DAT_EVENT event;

	while (dat_evd_dequeue(m->dto, &event) != DAT_SUCCESS)
		if (life_now() > end)
			fail("seed %u: a completion does not come", seed);
	EXPECT(event.event_number == DAT_DTO_COMPLETION_EVENT);
	EXPECT(event.event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS);
	return event.event_data.dto_completion_event_data;
}

/* Sends a message from endpoint `from` to its other end, and takes both completions. */
static void message(struct many *m, unsigned from, unsigned n)
{
	unsigned to = (from + PAIRS) % (2 * PAIRS);
	DAT_LMR_TRIPLET out = { .virtual_address = (uintptr_t)m->out, .segment_length = LENGTH,
		.lmr_context = m->lmr };
	DAT_LMR_TRIPLET in = { .virtual_address = (uintptr_t)m->in[to], .segment_length = LENGTH,
		.lmr_context = m->lmr };
	DAT_DTO_COOKIE cookie = { .as_64 = n };

	memset(m->out, (int)n, LENGTH);
	memset(m->in[to], ~(int)n, LENGTH);
	OK(dat_ep_post_recv(m->ep[to], 1, &in, cookie, DAT_COMPLETION_DEFAULT_FLAG));
	OK(dat_ep_post_send(m->ep[from], 1, &out, cookie, DAT_COMPLETION_DEFAULT_FLAG));
	for (int i = 0; i < 2; i++) {
		DAT_DTO_COMPLETION_EVENT_DATA dto = polled(m);

		EXPECT(dto.user_cookie.as_64 == n);
		EXPECT(dto.ep_handle == m->ep[dto.operation == DAT_DTO_RECEIVE ? to : from]);
		EXPECT(dto.transfered_length == LENGTH);
	}
	if (memcmp(m->in[to], m->out, LENGTH))
		fail("seed %u: message %u: not the data that were sent", seed, n);
}

static void messages_arrive_over_any_of_many_connections(void)
{
	struct many *m = malloc(sizeof *m);

	begin(m);
	for (unsigned n = 0; n < ROUNDS; n++) {
		if (!below(50)) {
			unsigned i = below(PAIRS);

			end_pair(m, i);
			connect_pair(m, i);
		}
		message(m, below(2 * PAIRS), n);
	}
	OK(dat_ia_close(m->ia, DAT_CLOSE_ABRUPT_FLAG));
	free(m);
}

/* Twenty endpoints that are always busy do not keep the others from being polled. */
static void seldom_used_beside_busy_ones(void)
{
	struct many *m = malloc(sizeof *m);

	begin(m);
	for (unsigned n = 0; n < ROUNDS; n++)
		message(m, n % 50 ? below(20) : 20 + below(2 * PAIRS - 20), n);
	OK(dat_ia_close(m->ia, DAT_CLOSE_ABRUPT_FLAG));
	free(m);
}

/* There a thread that polls takes the processor from the thread that would make the progress it polls for.
 * */
static void messages_arrive_on_one_processor(void)
{
	cpu_set_t all, one;
	int cpu = 0;

	EXPECT(!sched_getaffinity(0, sizeof all, &all));
	while (!CPU_ISSET(cpu, &all))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	EXPECT(!sched_setaffinity(0, sizeof one, &one));
	messages_arrive_over_any_of_many_connections();
}

static const struct life_case cases[] = {
	CASE(messages_arrive_over_any_of_many_connections),
	CASE(messages_arrive_on_one_processor),
	CASE(seldom_used_beside_busy_ones),
};

int main(int argc, char **argv)
{
	return life_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
