/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* datagram.c - unreliable datagrams: connecting gives an address handle, which any number of
 * sends may use; nothing is retransmitted. Shows UD endpoints of the InfiniBand extension and
 * the 40 bytes before a received datagram. See side.h for the arguments.
 *
 *	cc -D_GNU_SOURCE -o datagram datagram.c side.c -ldat2 */
#include "side.h"
#include <dat/dat_ib_extensions.h>
#include <stdio.h>
#include <string.h>

enum { HEADER = 40, SIZE = 512 }; /* bytes: the routing header, the largest datagram */

static char buffer[HEADER + SIZE];

static DAT_EVD_HANDLE extension_evd(const struct side *side, DAT_EVD_FLAGS flags)
{
	DAT_EVD_HANDLE evd;

	CHECK(dat_evd_create(side->ia, 8, DAT_HANDLE_NULL,
			     (DAT_EVD_FLAGS)(flags | DAT_IB_EVD_EXTENSION_FLAG), &evd));
	return evd;
}

static void make_ud_endpoint(struct side *side)
{
	DAT_EP_ATTR attr = { .service_type = (DAT_SERVICE_TYPE)DAT_IB_SERVICE_TYPE_UD,
			     .max_message_size = SIZE,
			     .max_recv_dtos = 8,
			     .max_request_dtos = 8,
			     .max_recv_iov = 1,
			     .max_request_iov = 1,
			     .qos = DAT_QOS_BEST_EFFORT,
			     .recv_completion_flags = DAT_COMPLETION_DEFAULT_FLAG,
			     .request_completion_flags = DAT_COMPLETION_DEFAULT_FLAG };

	CHECK(dat_evd_free(side->requests_of_peers));
	side->requests_of_peers = extension_evd(side, DAT_EVD_CR_FLAG);
	side->connection = extension_evd(side, DAT_EVD_CONNECTION_FLAG);
	side->receives = extension_evd(side, DAT_EVD_DTO_FLAG);
	side->requests = extension_evd(side, DAT_EVD_DTO_FLAG);
	CHECK(dat_ep_create(side->ia, side->pz, side->receives, side->requests, side->connection,
			    &attr, &side->ep));
}

static void receive_datagram(const struct side *side)
{
	DAT_EVENT event = wait_for(side->receives, (DAT_EVENT_NUMBER)DAT_IB_DTO_EVENT);
	DAT_DTO_COMPLETION_EVENT_DATA done = check_completion(&event);

	printf("received %d bytes: \"%.*s\"\n", (int)(done.transfered_length - HEADER), SIZE,
	       buffer + HEADER); /* the peer may leave out the NUL */
}

static void serve(struct side *side, const struct memory *memory)
{
	DAT_LMR_TRIPLET into = segment(memory, 0, sizeof buffer);
	DAT_EVENT event;

	CHECK(dat_ep_post_recv(side->ep, 1, &into, (DAT_DTO_COOKIE){ 0 },
			       DAT_COMPLETION_DEFAULT_FLAG));
	side_listen(side, side->requests_of_peers);
	event = wait_for(side->requests_of_peers,
			 (DAT_EVENT_NUMBER)DAT_IB_UD_CONNECTION_REQUEST_EVENT);
	CHECK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, side->ep, 0, NULL));
	receive_datagram(side);
}

static void send_datagram(struct side *side, const struct memory *memory)
{
	DAT_IB_EXTENSION_EVENT_DATA established;
	DAT_LMR_TRIPLET from;
	DAT_EVENT event;

	side_dial(side, side->ep, NULL, 0);
	event = wait_for(side->connection,
			 (DAT_EVENT_NUMBER)DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED);
	memcpy(&established, event.event_extension_data, sizeof established);
	from = segment(memory, 0, (size_t)snprintf(buffer, SIZE, "hello, datagram") + 1);
	CHECK(dat_ib_post_send_ud(side->ep, 1, &from, &established.remote_ah, (DAT_DTO_COOKIE){ 0 },
				  DAT_COMPLETION_DEFAULT_FLAG));
	event = wait_for(side->requests, (DAT_EVENT_NUMBER)DAT_IB_DTO_EVENT);
	check_completion(&event);
	printf("sent\n");
	CHECK(dat_ib_ud_ah_free(side->ep, &established.remote_ah));
}

int main(int argc, char **argv)
{
	struct memory memory;
	struct side side;

	side_open_ia(&side, argc, argv);
	make_ud_endpoint(&side);
	memory = register_memory(&side, buffer, sizeof buffer);
	if (side.address)
		send_datagram(&side, &memory);
	else
		serve(&side, &memory);
	/* A datagram endpoint has no connection to end. */
	CHECK(dat_ia_close(side.ia, DAT_CLOSE_ABRUPT_FLAG));
	return 0;
}
