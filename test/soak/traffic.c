/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* traffic.c - an endpoint with random traffic (traffic.h). */
#include "traffic.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The memory: a guard page, the registered part, a guard page. */
enum {
	GUARD = 4096, /* bytes: a page */
	RECEIVE_AT = 0,
	TARGET_AT = TRAFFIC_RECEIVES * TRAFFIC_LARGEST,
	SOURCE_AT = TARGET_AT + TRAFFIC_LARGEST,
	SINK_AT = SOURCE_AT + TRAFFIC_LARGEST,
	REGISTERED = SINK_AT + TRAFFIC_LARGEST,
	MAPPED = REGISTERED + 2 * GUARD,
	GUARD_BYTE = 0x5a,
	MESSAGE_BYTE = 0x33,
};

static uint8_t *inside(const struct traffic *t)
{
	return t->memory + GUARD;
}

/* --- objects ------------------------------------------------------------------------------- */

static uint64_t *free_place(uint64_t *places, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (!places[i])
			return &places[i];
	return NULL;
}

static void post_receives(struct traffic *t)
{
	uint64_t *place;

	while ((place = free_place(t->receive_of, TRAFFIC_RECEIVES))) {
		DAT_LMR_TRIPLET iov = { .lmr_context = t->local,
					.segment_length = TRAFFIC_LARGEST,
					.virtual_address = (uintptr_t)inside(t) + RECEIVE_AT +
							   (uint64_t)(place - t->receive_of) *
								   TRAFFIC_LARGEST };
		DAT_DTO_COOKIE cookie = { .as_64 = t->posted + 1 };

		if (dat_ep_post_recv(t->ep, 1, &iov, cookie, DAT_COMPLETION_DEFAULT_FLAG) !=
		    DAT_SUCCESS)
			return;
		*place = ++t->posted;
	}
}

static void make_memory(struct traffic *t)
{
	DAT_REGION_DESCRIPTION region;

	t->memory = mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT(t->memory != MAP_FAILED);
	memset(t->memory, GUARD_BYTE, GUARD);
	memset(inside(t) + REGISTERED, GUARD_BYTE, GUARD);
	memset(inside(t) + SOURCE_AT, MESSAGE_BYTE, TRAFFIC_LARGEST);
	region.for_va = inside(t);
	OK(dat_lmr_create(t->ia, DAT_MEM_TYPE_VIRTUAL, region, REGISTERED, t->pz,
			  DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, &t->lmr, &t->local, &t->mine.key,
			  NULL, NULL));
	t->mine.address = (uintptr_t)inside(t);
}

void traffic_begin(struct traffic *t, DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, unsigned stream)
{
	DAT_EP_ATTR attr = {
		.service_type = DAT_SERVICE_TYPE_RC,
		.qos = DAT_QOS_BEST_EFFORT,
		.max_message_size = TRAFFIC_LARGEST,
		.max_rdma_size = TRAFFIC_LARGEST,
		.max_recv_dtos = TRAFFIC_RECEIVES,
		.max_request_dtos = TRAFFIC_REQUESTS,
		.max_recv_iov = 1,
		.max_request_iov = 1,
		.max_rdma_read_iov = 1,
		.max_rdma_write_iov = 1,
		.max_rdma_read_in = 4,
		.max_rdma_read_out = 4,
	};

	memset(t, 0, sizeof *t);
	t->ia = ia;
	t->pz = pz;
	t->stream = stream;
	t->random = soak_stream(stream);
	make_memory(t);
	OK(dat_evd_create(ia, 64, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &t->recv));
	OK(dat_evd_create(ia, 64, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &t->request));
	OK(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &t->conn));
	OK(dat_ep_create(ia, pz, t->recv, t->request, t->conn, &attr, &t->ep));
	post_receives(t);
	for (unsigned i = 0; i < TRAFFIC_RECEIVES; i++)
		EXPECT(t->receive_of[i]);
}

/* --- posting --------------------------------------------------------------------------------- */

static DAT_LMR_TRIPLET here(const struct traffic *t, unsigned at, unsigned length)
{
	return (DAT_LMR_TRIPLET){ .lmr_context = t->local,
				  .segment_length = length,
				  .virtual_address = (uintptr_t)inside(t) + at };
}

static DAT_RMR_TRIPLET there(const struct traffic *t, unsigned at, unsigned length)
{
	return (DAT_RMR_TRIPLET){ .rmr_context = t->peer->key,
				  .segment_length = length,
				  .virtual_address = t->peer->address + at };
}

/* Most are short, some use the protocols for large payloads. */
static unsigned length(struct traffic *t)
{
	unsigned r = soak_below(&t->random, 16);

	return r < 10 ? soak_below(&t->random, 257)
		      : 1 + soak_below(&t->random, r < 14 ? 4096 : TRAFFIC_LARGEST);
}

/* siw ends a connection when a message finds no receive, so no more messages are sent than receives were
 * posted at the begin. */
static bool may_send_more(const struct traffic *t)
{
	const char *device = getenv("LIFE_DEVICE");

	return !device || !strstr(device, "siw") || t->sends < TRAFFIC_RECEIVES;
}

/* A post that fails because the connection has ended is not counted. */
static void post_request(struct traffic *t)
{
	uint64_t *place = free_place(t->request_of, TRAFFIC_REQUESTS);
	DAT_DTO_COOKIE cookie = { .as_64 = t->posted + 1 };
	unsigned n = length(t), kind = may_send_more(t) ? soak_below(&t->random, 4)
							: 2 + soak_below(&t->random, 2);
	DAT_LMR_TRIPLET from = here(t, SOURCE_AT, n), to = here(t, SINK_AT, n);
	DAT_RMR_TRIPLET remote = there(t, kind == 3 ? SOURCE_AT : TARGET_AT, n);
	DAT_RETURN ret;

	if (!place)
		return;
	if (kind < 2)
		ret = dat_ep_post_send(t->ep, 1, &from, cookie, DAT_COMPLETION_DEFAULT_FLAG);
	else if (kind == 2)
		ret = dat_ep_post_rdma_write(t->ep, 1, &from, cookie, &remote,
					     DAT_COMPLETION_DEFAULT_FLAG);
	else
		ret = dat_ep_post_rdma_read(t->ep, 1, &to, cookie, &remote,
					    DAT_COMPLETION_DEFAULT_FLAG);
	t->sends += kind < 2;
	if (ret == DAT_SUCCESS)
		*place = ++t->posted;
	else if (DAT_GET_TYPE(ret) != DAT_INVALID_STATE)
		fail("seed %u, stream %u: a request of kind %u gives %s", soak_seed, t->stream,
		     kind, life_return(ret));
}

/* --- events ------------------------------------------------------------------------------------ */

/* All that is sent and read consists of one byte. */
static void check_bytes(const struct traffic *t, const uint8_t *at, uint64_t length)
{
	for (uint64_t i = 0; i < length; i++)
		if (at[i] != MESSAGE_BYTE)
			fail("seed %u, stream %u: byte %llu of %llu is 0x%02x, expected 0x%02x",
			     soak_seed, t->stream, (unsigned long long)i,
			     (unsigned long long)length, at[i], MESSAGE_BYTE);
}

static void check_payload(struct traffic *t, const DAT_DTO_COMPLETION_EVENT_DATA *dto,
			  unsigned place)
{
	uint8_t *at = inside(t) + RECEIVE_AT + place * TRAFFIC_LARGEST;

	if (dto->status != DAT_DTO_SUCCESS || dto->operation != DAT_DTO_RECEIVE)
		return;
	check_bytes(t, at, dto->transfered_length);
	memset(at, 0, dto->transfered_length);
}

/* There must be one completion for each post, and no other. */
static void complete(struct traffic *t, const DAT_EVENT *event, uint64_t *places, unsigned n)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;

	if (event->event_number != DAT_DTO_COMPLETION_EVENT)
		fail("seed %u, stream %u: event 0x%x on the EVD of DTOs", soak_seed, t->stream,
		     event->event_number);
	for (unsigned i = 0; i < n; i++)
		if (places[i] == dto->user_cookie.as_64) {
			check_payload(t, dto, i);
			places[i] = 0;
			t->completed++;
			t->flushed += dto->status != DAT_DTO_SUCCESS;
			return;
		}
	fail("seed %u, stream %u: DTO %llu completes (status %d), which is not posted or completed "
	     "before",
	     soak_seed, t->stream, (unsigned long long)dto->user_cookie.as_64, dto->status);
}

static void connection_event(struct traffic *t, DAT_EVENT_NUMBER number)
{
	if (number == DAT_CONNECTION_EVENT_ESTABLISHED && !t->established && !t->terminal) {
		t->established = true;
		return;
	}
	if (t->terminal)
		fail("seed %u, stream %u: event 0x%x after the connection ended with 0x%x",
		     soak_seed, t->stream, number, t->terminal);
	if ((number == DAT_CONNECTION_EVENT_DISCONNECTED ||
	     number == DAT_CONNECTION_EVENT_BROKEN) != t->established)
		fail("seed %u, stream %u: event 0x%x on a connection that %s established",
		     soak_seed, t->stream, number, t->established ? "is" : "was not");
	t->terminal = number;
	t->terminal_time = life_now();
}

void traffic_take(struct traffic *t)
{
	DAT_EVENT event;

	while (dat_evd_dequeue(t->recv, &event) == DAT_SUCCESS)
		complete(t, &event, t->receive_of, TRAFFIC_RECEIVES);
	while (dat_evd_dequeue(t->request, &event) == DAT_SUCCESS)
		complete(t, &event, t->request_of, TRAFFIC_REQUESTS);
	while (dat_evd_dequeue(t->conn, &event) == DAT_SUCCESS)
		connection_event(t, event.event_number);
}

void traffic_step(struct traffic *t)
{
	unsigned r = soak_below(&t->random, 128);
	DAT_EVENT event;
	DAT_COUNT n;

	if (t->established && t->peer) {
		post_receives(t);
		post_request(t);
	}
	if (r == 0 && dat_evd_wait(t->recv, 1000, 1, &event, &n) == DAT_SUCCESS)
		complete(t, &event, t->receive_of, TRAFFIC_RECEIVES);
	traffic_take(t);
}

/* --- the end ------------------------------------------------------------------------------------ */

static void check_guards(const struct traffic *t)
{
	for (unsigned i = 0; i < GUARD; i++)
		if (t->memory[i] != GUARD_BYTE || inside(t)[REGISTERED + i] != GUARD_BYTE)
			fail("seed %u, stream %u: memory beside the registered region has changed",
			     soak_seed, t->stream);
}

static uint64_t outstanding_requests(const struct traffic *t)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < TRAFFIC_REQUESTS; i++)
		n += t->request_of[i] != 0;
	return n;
}

void traffic_end(struct traffic *t)
{
	double begin = life_now();

	/* Receives of an endpoint that was never connected stay posted. */
	while (t->established ? t->completed < t->posted : outstanding_requests(t) > 0) {
		if (life_now() - begin > MOMENT / 1e6 * SLOWER)
			fail("seed %u, stream %u: %llu of %llu DTOs complete", soak_seed, t->stream,
			     (unsigned long long)t->completed, (unsigned long long)t->posted);
		traffic_take(t);
		usleep(100);
	}
	OK(dat_ep_free(t->ep));
	traffic_take(t);
	OK(dat_lmr_free(t->lmr));
	OK(dat_evd_free(t->recv));
	OK(dat_evd_free(t->request));
	OK(dat_evd_free(t->conn));
	check_guards(t);
	munmap(t->memory, MAPPED);
}
