/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* server.c - the server of datping: reads the client's data from the address in a message, and writes it to
 * the address in the next message. With -P it serves many clients at a time, in one thread. The cookie or
 * the endpoint of an event tells to which client it belongs. */
#include "options.h"
#include "../call.h"
#include "../cli.h"
#include "../messages.h"
#include "../names.h"
#include "adapter.h"
#include "peer.h"
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLIENTS = 64 }; /* at a time, with -P; each has 128 KiB of registered memory */

enum state {
	STATE_FREE,      /* no client */
	STATE_ACCEPTING, /* its connection is not established */
	STATE_SOURCE,    /* waiting for the message with the address of the data */
	STATE_READING,
	STATE_SINK, /* waiting for the message with the address for the echo */
	STATE_WRITING,
	STATE_CLOSING, /* disconnected by the server */
};

struct client {
	enum state state;
	struct peer peer;
	bool heard;    /* a message came before the connection was established */
	uint32_t size; /* bytes of the data of this round */
	unsigned long rounds;
	char address[ADDRESS_TEXT];
};

struct service {
	const struct options *o;
	struct adapter adapter;
	struct client clients[CLIENTS];
	unsigned limit; /* clients at a time */
	bool ended;     /* without -P: the client has ended */
	int result;
};

/* --- reports -------------------------------------------------------------------- */

static void report_service(const struct service *s)
{
	char address[ADDRESS_TEXT];

	address_text((const struct sockaddr *)&s->adapter.address, address);
	if (s->o->json) {
		printf("{ \"ia\": ");
		cli_print_json_string(s->adapter.name);
		printf(", \"address\": \"%s\", \"port\": %" PRIu64 " }\n", address, s->o->port);
	} else {
		printf("serving on %s, address %s, port %" PRIu64 "\n", s->adapter.name, address,
		       s->o->port);
	}
	fflush(stdout);
}

static void report_client(const struct service *s, const struct client *c, bool whole)
{
	if (s->o->json)
		printf("{ \"peer\": \"%s\", \"rounds\": %lu, \"whole\": %s }\n", c->address,
		       c->rounds, whole ? "true" : "false");
	else
		printf("%s: %lu round%s%s\n", c->address, c->rounds, c->rounds == 1 ? "" : "s",
		       whole ? "" : ", and one that did not end");
	fflush(stdout);
}

/* --- clients -------------------------------------------------------------------- */

static struct client *client_of_number(struct service *s, uint64_t number)
{
	for (unsigned i = 0; i < s->limit; i++)
		if (s->clients[i].state != STATE_FREE && s->clients[i].peer.number == number)
			return &s->clients[i];
	return NULL;
}

static struct client *client_of_endpoint(struct service *s, DAT_EP_HANDLE ep)
{
	for (unsigned i = 0; i < s->limit; i++)
		if (s->clients[i].state != STATE_FREE && s->clients[i].peer.ep == ep)
			return &s->clients[i];
	return NULL;
}

static struct client *free_client(struct service *s)
{
	for (unsigned i = 0; i < s->limit; i++)
		if (s->clients[i].state == STATE_FREE)
			return &s->clients[i];
	return NULL;
}

static void end_client(struct service *s, struct client *c)
{
	bool whole = c->state == STATE_SOURCE;
	char cause[CAUSE_TEXT] = "the connection was not established";
	bool failed = connection_cause(c->peer.ep, cause);

	/* if the server disconnected the client, it has printed the reason */
	if (c->state == STATE_ACCEPTING || (failed && c->state != STATE_CLOSING))
		fprintf(stderr, "datping: %s: %s\n", c->address, cause);
	if (c->state != STATE_ACCEPTING) {
		report_client(s, c, whole);
		s->ended = !s->o->persistent;
		if (s->ended && (!whole || !c->rounds))
			s->result = CLI_FAILURE;
	}
	peer_close(&c->peer);
	*c = (struct client){ .state = STATE_FREE };
}

/* Disconnects a client that breaks the protocol. */
static void refuse(struct client *c, const char *fault, unsigned long found)
{
	fprintf(stderr, "datping: %s: %s (%lu found); disconnected\n", c->address, fault, found);
	c->state = STATE_CLOSING;
	/* the call fails if the connection has ended already; its event follows */
	dat_ep_disconnect(c->peer.ep, DAT_CLOSE_ABRUPT_FLAG);
}

/* --- connections ------------------------------------------------------------------ */

struct request {
	struct service *service;
	struct client *client;
	DAT_CR_HANDLE handle;
};

static void accept_request(void *arg)
{
	struct request *r = arg;

	peer_open(&r->client->peer, &r->service->adapter, false);
	good_call(dat_cr_accept(r->handle, r->client->peer.ep, 0, NULL), "dat_cr_accept");
	r->client->state = STATE_ACCEPTING;
}

static void take_request(struct service *s, DAT_CR_HANDLE handle)
{
	struct request r = { s, free_client(s), handle };
	char address[ADDRESS_TEXT];
	DAT_CR_PARAM cr;

	good(dat_cr_query(handle, DAT_CR_FIELD_ALL, &cr), "dat_cr_query");
	address_text((const struct sockaddr *)cr.remote_ia_address_ptr, address);
	debug(s->o, "%s: connection request", address);
	if (!r.client) {
		fprintf(stderr, "datping: %s: rejected: %u %s served already\n", address, s->limit,
			s->limit == 1 ? "client is" : "clients are");
		dat_cr_reject(handle, 0, NULL);
		return;
	}
	memcpy(r.client->address, address, sizeof address);
	if (!cli_attempt(accept_request, &r)) {
		dat_cr_reject(handle, 0, NULL);
		peer_close(&r.client->peer);
	}
}

/* --- rounds ------------------------------------------------------------------------ */

static void take_message(struct service *s, struct client *c)
{
	struct message m = message_decode(c->peer.memory->heard);

	debug(s->o, "%s: message: %u bytes at 0x%" PRIx64 ", key 0x%x", c->address, m.size,
	      m.address, m.key);
	peer_receive(&c->peer);
	if (c->state == STATE_SOURCE && (m.size < 1 || m.size > DATA_MAX)) {
		refuse(c, "from 1 to 65535 bytes of data expected", m.size);
	} else if (c->state == STATE_SOURCE) {
		c->size = m.size;
		c->state = STATE_READING;
		peer_read(&c->peer, &m, c->size);
	} else if (c->state == STATE_SINK && m.size < c->size) {
		refuse(c, "memory for the whole echo expected", m.size);
	} else if (c->state == STATE_SINK) {
		c->state = STATE_WRITING;
		peer_write(&c->peer, &m, c->size);
	} else {
		refuse(c, "a message during a transfer", m.size);
	}
}

static void answer(struct service *s, struct client *c, enum operation done)
{
	const char *data = c->peer.memory->data;

	if (done == OPERATION_READ && s->o->show) {
		printf("server ping data: %.*s\n", (int)c->size, data);
		fflush(stdout);
	}
	c->rounds += done == OPERATION_WRITE;
	c->state = done == OPERATION_READ ? STATE_SINK : STATE_SOURCE;
	peer_send(&c->peer);
}

static void take_completion(struct service *s, const DAT_EVENT *event)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	static const char *const names[] = { "receive", "send", "RDMA read", "RDMA write" };
	char cause[CAUSE_TEXT];
	enum operation operation;
	struct client *c = client_of_number(s, peer_number_of(event, &operation));

	/* the client has ended; or the request was flushed, and the connection's event follows */
	if (!c || c->state == STATE_CLOSING || dto->status == DAT_DTO_ERR_FLUSHED)
		return;
	if (dto->status != DAT_DTO_SUCCESS) {
		fprintf(stderr, "datping: %s: %s failed: %s%s; disconnected\n", c->address,
			names[operation], dto_status_name(dto->status), completion_cause(event, cause));
		c->state = STATE_CLOSING;
		dat_ep_disconnect(c->peer.ep, DAT_CLOSE_ABRUPT_FLAG);
	} else if (operation == OPERATION_READ || operation == OPERATION_WRITE) {
		answer(s, c, operation);
	} else if (operation == OPERATION_RECEIVE) {
		if (dto->transfered_length != MESSAGE_SIZE)
			refuse(c, "a message of 16 bytes expected",
			       (unsigned long)dto->transfered_length);
		else if (c->state == STATE_ACCEPTING)
			c->heard = true;
		else
			take_message(s, c);
	}
}

static void take_connection_event(struct service *s, const DAT_EVENT *event)
{
	struct client *c = client_of_endpoint(s, event->event_data.connect_event_data.ep_handle);

	if (!c)
		return;
	debug(s->o, "%s: %s", c->address, event_name(event->event_number));
	if (event->event_number != DAT_CONNECTION_EVENT_ESTABLISHED) {
		end_client(s, c);
		return;
	}
	if (c->state != STATE_ACCEPTING)
		return; /* refused meanwhile */
	c->state = STATE_SOURCE;
	if (c->heard)
		take_message(s, c);
}

static void take_event(struct service *s, const DAT_EVENT *event)
{
	switch (event->event_number) {
	case DAT_CONNECTION_REQUEST_EVENT:
		take_request(s, event->event_data.cr_arrival_event_data.cr_handle);
		break;
	case DAT_DTO_COMPLETION_EVENT: take_completion(s, event); break;
	default: take_connection_event(s, event);
	}
}

/* --- the service ----------------------------------------------------------------------- */

/* Checks -a of a server: the adapter has one address, and listens on it. */
static void check_address(const struct service *s)
{
	char own[ADDRESS_TEXT], given[ADDRESS_TEXT];
	struct sockaddr_storage address;

	if (!s->o->address)
		return;
	resolve_for(s->adapter.ia, s->o->address, &address);
	address_text((const struct sockaddr *)&s->adapter.address, own);
	address_text((const struct sockaddr *)&address, given);
	if (strcmp(given, own) && strcmp(given, "0.0.0.0") && strcmp(given, "::"))
		fail("-a: %s found, but the address of %s is %s", given, s->adapter.name, own);
}

static void listen_for_clients(struct service *s)
{
	DAT_PSP_HANDLE psp;
	good_listener(dat_psp_create(s->adapter.ia, s->o->port, s->adapter.cr,
				     DAT_PSP_CONSUMER_FLAG, &psp), s->o->port, "-p N");
}

int run_server(const struct options *o)
{
	struct service *s = calloc(1, sizeof *s);
	double until = o->seconds ? now() + o->seconds : 0;
	enum arrival arrival = ARRIVED_EVENT;
	DAT_EVENT event;
	int result;

	if (!s)
		fail("no memory");
	s->o = o;
	s->limit = o->persistent ? CLIENTS : 1;
	adapter_open(&s->adapter, o->device, (DAT_COUNT)s->limit);
	check_address(s);
	listen_for_clients(s);
	report_service(s);
	while (!s->ended && (arrival = adapter_next(&s->adapter, until, &event)) == ARRIVED_EVENT)
		take_event(s, &event);
	result = s->result;
	if (arrival == ARRIVED_LATE && !o->persistent) {
		fprintf(stderr, "datping: no client has come and gone in %g s\n", o->seconds);
		result = CLI_FAILURE;
	}
	for (unsigned i = 0; i < s->limit; i++)
		if (s->clients[i].state > STATE_ACCEPTING)
			end_client(s, &s->clients[i]);
	adapter_close(&s->adapter);
	free(s);
	return result;
}
