/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* srq-server.c - one pool of receive buffers for many connections: the server answers
 * CLIENTS endpoints from a shared receive queue, one EVD and one loop; the client opens them
 * all. Shows SRQs and an EVD that several endpoints share. See side.h for the arguments.
 *
 *	cc -D_GNU_SOURCE -o srq-server srq-server.c side.c -ldat2 */
#include "side.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLIENTS = 4, MESSAGES = 8, BUFFERS = 16, SIZE = 32 };

static char buffers[BUFFERS][SIZE];
static DAT_EP_HANDLE eps[CLIENTS];

static void post_buffer(DAT_SRQ_HANDLE srq, const struct memory *memory, unsigned i)
{
	DAT_LMR_TRIPLET into = segment(memory, i * SIZE, SIZE);

	CHECK(dat_srq_post_recv(srq, 1, &into, (DAT_DTO_COOKIE){ .as_64 = i }));
}

static void make_evds(struct side *side)
{
	const int size = CLIENTS * MESSAGES;

	CHECK(dat_evd_create(side->ia, CLIENTS, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG,
			     &side->connection));
	CHECK(dat_evd_create(side->ia, size, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &side->receives));
	CHECK(dat_evd_create(side->ia, size, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &side->requests));
}

static void serve(struct side *side, const struct memory *memory)
{
	DAT_SRQ_ATTR attr = { .max_recv_dtos = BUFFERS,
			      .max_recv_iov = 1,
			      .low_watermark = DAT_SRQ_LW_DEFAULT };
	DAT_EP_ATTR ep_attr = { .service_type = DAT_SERVICE_TYPE_RC,
				.max_message_size = SIZE,
				.qos = DAT_QOS_BEST_EFFORT,
				.max_recv_dtos = BUFFERS,
				.max_request_dtos = 1,
				.max_recv_iov = 1,
				.max_request_iov = 1,
				.recv_completion_flags = DAT_COMPLETION_DEFAULT_FLAG,
				.request_completion_flags = DAT_COMPLETION_DEFAULT_FLAG };
	unsigned messages[CLIENTS] = { 0 };
	DAT_SRQ_HANDLE srq;

	CHECK(dat_srq_create(side->ia, side->pz, &attr, &srq));
	for (unsigned i = 0; i < BUFFERS; i++)
		post_buffer(srq, memory, i);
	side_listen(side, side->requests_of_peers);
	for (int i = 0; i < CLIENTS; i++) {
		DAT_EVENT event = wait_for(side->requests_of_peers, DAT_CONNECTION_REQUEST_EVENT);

		CHECK(dat_ep_create_with_srq(side->ia, side->pz, side->receives, side->requests,
					     side->connection, srq, &ep_attr, &eps[i]));
		CHECK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, eps[i], 0,
				    NULL));
		wait_for(side->connection, DAT_CONNECTION_EVENT_ESTABLISHED);
	}
	for (int n = 0; n < CLIENTS * MESSAGES; n++) {
		DAT_DTO_COMPLETION_EVENT_DATA done = wait_for_completion(side->receives);

		for (int i = 0; i < CLIENTS; i++)
			messages[i] += eps[i] == done.ep_handle;
		post_buffer(srq, memory, (unsigned)done.user_cookie.as_64);
	}
	for (int i = 0; i < CLIENTS; i++) {
		printf("client %d: %u messages\n", i, messages[i]);
		if (messages[i] != MESSAGES)
			exit(1);
		CHECK(dat_ep_disconnect(eps[i], DAT_CLOSE_GRACEFUL_FLAG));
	}
}

static void send_messages(struct side *side, const struct memory *memory)
{
	DAT_LMR_TRIPLET from = segment(memory, 0, SIZE);

	strcpy(buffers[0], "hello");
	for (int i = 0; i < CLIENTS; i++) {
		CHECK(dat_ep_create(side->ia, side->pz, side->receives, side->requests,
				    side->connection, NULL, &eps[i]));
		side_dial(side, eps[i], NULL, 0);
		wait_for(side->connection, DAT_CONNECTION_EVENT_ESTABLISHED);
	}
	/* At most one message of each client is under way, so that BUFFERS receives suffice. */
	for (int n = 0; n < MESSAGES; n++) {
		for (int i = 0; i < CLIENTS; i++)
			CHECK(dat_ep_post_send(eps[i], 1, &from, (DAT_DTO_COOKIE){ 0 },
					       DAT_COMPLETION_DEFAULT_FLAG));
		for (int i = 0; i < CLIENTS; i++)
			wait_for_completion(side->requests);
	}
}

int main(int argc, char **argv)
{
	struct memory memory;
	struct side side;

	side_open_ia(&side, argc, argv);
	make_evds(&side);
	memory = register_memory(&side, buffers, sizeof buffers);
	if (side.address)
		send_messages(&side, &memory);
	else
		serve(&side, &memory);
	for (int i = 0; i < CLIENTS; i++)
		wait_for(side.connection, DAT_CONNECTION_EVENT_DISCONNECTED);
	side_close(&side);
	return 0;
}
