/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* side.c - opens, connects and closes one side of an example (side.h). */
#include "side.h"
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	QUEUE = 64,                  /* requests and receives of an endpoint */
	PATIENCE = 10 * 1000 * 1000, /* us */
	PRIVATE_DATA = 52,           /* bytes; what a request carries on InfiniBand and RoCE */
};

void check(const char *call, DAT_RETURN ret)
{
	const char *type = "?", *subtype = "";

	if (ret == DAT_SUCCESS)
		return;
	dat_strerror(ret, &type, &subtype);
	fprintf(stderr, "%s: %s %s\n", call, type, subtype);
	exit(1);
}

DAT_EVENT wait_for(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER expected)
{
	DAT_EVENT event;
	DAT_COUNT more;

	CHECK(dat_evd_wait(evd, PATIENCE, 1, &event, &more));
	if (event.event_number != expected) {
		fprintf(stderr, "found event 0x%x, expected 0x%x\n", event.event_number, expected);
		exit(1);
	}
	return event;
}

DAT_DTO_COMPLETION_EVENT_DATA check_completion(const DAT_EVENT *event)
{
	DAT_DTO_COMPLETION_EVENT_DATA done = event->event_data.dto_completion_event_data;

	if (done.status != DAT_DTO_SUCCESS) {
		fprintf(stderr, "a transfer completed with status %d\n", done.status);
		exit(1);
	}
	return done;
}

DAT_DTO_COMPLETION_EVENT_DATA wait_for_completion(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event = wait_for(evd, DAT_DTO_COMPLETION_EVENT);

	return check_completion(&event);
}

static DAT_EVD_HANDLE new_evd(const struct side *side, DAT_EVD_FLAGS flags)
{
	DAT_EVD_HANDLE evd;

	CHECK(dat_evd_create(side->ia, QUEUE, DAT_HANDLE_NULL, flags, &evd));
	return evd;
}

static DAT_CONN_QUAL read_port(const char *text)
{
	char *end;
	unsigned long port;

	errno = 0;
	port = strtoul(text, &end, 10);
	if (errno || *end || !port || port > 65535) {
		fprintf(stderr, "found port \"%s\", expected 1 to 65535\n", text);
		exit(2);
	}
	return port;
}

void side_open_ia(struct side *side, int argc, char **argv)
{
	if (argc != 3 && argc != 4) {
		fprintf(stderr, "usage: %s IA PORT [ADDRESS-OF-THE-SERVER]\n", argv[0]);
		exit(2);
	}
	*side = (struct side){ .port = read_port(argv[2]), .address = argc == 4 ? argv[3] : NULL };
	CHECK(dat_ia_open(argv[1], QUEUE, &side->async, &side->ia));
	CHECK(dat_pz_create(side->ia, &side->pz));
	side->requests_of_peers = new_evd(side, DAT_EVD_CR_FLAG);
}

void side_open(struct side *side, int argc, char **argv)
{
	side_open_ia(side, argc, argv);
	side->connection = new_evd(side, DAT_EVD_CONNECTION_FLAG);
	side->receives = new_evd(side, DAT_EVD_DTO_FLAG);
	side->requests = new_evd(side, DAT_EVD_DTO_FLAG);
	CHECK(dat_ep_create(side->ia, side->pz, side->receives, side->requests, side->connection,
			    NULL, &side->ep));
}

DAT_PSP_HANDLE side_listen(struct side *side, DAT_EVD_HANDLE evd)
{
	DAT_PSP_HANDLE psp;

	CHECK(dat_psp_create(side->ia, side->port, evd, DAT_PSP_CONSUMER_FLAG, &psp));
	return psp;
}

void side_dial(struct side *side, DAT_EP_HANDLE ep, const void *mine, size_t size)
{
	struct addrinfo *found;
	int err = getaddrinfo(side->address, NULL, NULL, &found);

	if (err) {
		fprintf(stderr, "%s: %s\n", side->address, gai_strerror(err));
		exit(1);
	}
	CHECK(dat_ep_connect(ep, (DAT_IA_ADDRESS_PTR)found->ai_addr, side->port, PATIENCE,
			     (DAT_COUNT)size, (DAT_PVOID)mine, DAT_QOS_BEST_EFFORT,
			     DAT_CONNECT_DEFAULT_FLAG));
	freeaddrinfo(found);
}

/* The peer may be another program, which sends less than this example needs, or nothing. */
static void take_private_data(void *theirs, size_t size, const void *data, DAT_COUNT length)
{
	if ((size_t)length < size) {
		fprintf(stderr, "found %d bytes of private data, expected %zu\n", length, size);
		exit(1);
	}
	if (size)
		memcpy(theirs, data, size);
}

static void accept_one(struct side *side, const void *mine, void *theirs, size_t size)
{
	DAT_PSP_HANDLE psp = side_listen(side, side->requests_of_peers);
	DAT_EVENT event = wait_for(side->requests_of_peers, DAT_CONNECTION_REQUEST_EVENT);
	DAT_CR_HANDLE cr = event.event_data.cr_arrival_event_data.cr_handle;
	DAT_CR_PARAM param;

	CHECK(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	take_private_data(theirs, size, param.private_data, param.private_data_size);
	CHECK(dat_cr_accept(cr, side->ep, (DAT_COUNT)size, (DAT_PVOID)mine));
	wait_for(side->connection, DAT_CONNECTION_EVENT_ESTABLISHED);
	CHECK(dat_psp_free(psp));
}

void side_connect(struct side *side, const void *mine, void *theirs, size_t size)
{
	DAT_EVENT event;

	if (size > PRIVATE_DATA) {
		fprintf(stderr, "found %zu bytes of private data, expected at most %d\n", size,
			PRIVATE_DATA);
		exit(1);
	}
	if (!side->address) {
		accept_one(side, mine, theirs, size);
		return;
	}
	side_dial(side, side->ep, mine, size);
	event = wait_for(side->connection, DAT_CONNECTION_EVENT_ESTABLISHED);
	take_private_data(theirs, size, event.event_data.connect_event_data.private_data,
			  event.event_data.connect_event_data.private_data_size);
}

/* The client ends the connection. Closing the IA with the abrupt flag frees what it holds. */
void side_close(struct side *side)
{
	if (side->ep) {
		if (side->address)
			CHECK(dat_ep_disconnect(side->ep, DAT_CLOSE_GRACEFUL_FLAG));
		wait_for(side->connection, DAT_CONNECTION_EVENT_DISCONNECTED);
	}
	CHECK(dat_ia_close(side->ia, DAT_CLOSE_ABRUPT_FLAG));
}

struct memory register_memory(const struct side *side, void *at, size_t size)
{
	DAT_REGION_DESCRIPTION region = { .for_va = at };
	struct memory memory = { .at = at };

	CHECK(dat_lmr_create(side->ia, DAT_MEM_TYPE_VIRTUAL, region, size, side->pz,
			     DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, &memory.lmr,
			     &memory.lmr_context, &memory.rmr_context, NULL, NULL));
	return memory;
}

DAT_LMR_TRIPLET segment(const struct memory *memory, size_t offset, size_t length)
{
	return (DAT_LMR_TRIPLET){ .virtual_address = (DAT_VADDR)(uintptr_t)memory->at + offset,
				  .segment_length = length,
				  .lmr_context = memory->lmr_context };
}

DAT_RMR_TRIPLET remote_segment(const struct memory *memory, size_t offset, size_t length)
{
	return (DAT_RMR_TRIPLET){ .virtual_address = (DAT_VADDR)(uintptr_t)memory->at + offset,
				  .segment_length = length,
				  .rmr_context = memory->rmr_context };
}
