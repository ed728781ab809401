/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* client.c - the client of datping: connects, does rounds one after the other, counts them and
 * prints the closing lines. */
#include "options.h"
#include "../call.h"
#include "../cli.h"
#include "../messages.h"
#include "../names.h"
#include "adapter.h"
#include "peer.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
	ANSWER_SECONDS = 20, /* a peer that does not answer for so long is lost */
	GRACE_SECONDS = 2,   /* for a round under way, after the end of the run */
};

struct run {
	const struct options *o;
	struct adapter adapter;
	struct peer peer;
	struct sockaddr_storage to;
	char address[ADDRESS_TEXT];
	double start, end;            /* as of now(); end 0: no limit */
	bool stopping;                /* no further round begins */
	bool broken;                  /* the connection has ended */
	unsigned awaited[OPERATIONS]; /* operations posted and not complete */
	unsigned long started, completed, wrong;
	double least, most, sum; /* seconds of round trips */
};

/* --- events -------------------------------------------------------------------- */

static void lose_connection(struct run *r, const char *what)
{
	if (!r->broken)
		fprintf(stderr, "datping: round %lu: %s\n", r->started, what);
	r->broken = true;
}

static void end_connection(struct run *r, const DAT_EVENT *event)
{
	char round[32], failure[CAUSE_TEXT];

	snprintf(round, sizeof round, "round %lu", r->started);
	if (!r->broken)
		fprintf(stderr, "datping: %s\n", connection_failure(event, round, failure));
	r->broken = true;
}

static void take_completion(struct run *r, const DAT_EVENT *event)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	char what[CAUSE_TEXT + 128], cause[CAUSE_TEXT];
	enum operation operation;

	peer_number_of(event, &operation);
	if (dto->status == DAT_DTO_ERR_FLUSHED)
		return; /* the connection's event follows */
	if (dto->status != DAT_DTO_SUCCESS) {
		snprintf(what, sizeof what, "a %s failed: %s%s",
			 operation == OPERATION_RECEIVE ? "receive" : "send",
			 dto_status_name(dto->status), completion_cause(event, cause));
		lose_connection(r, what);
	} else if (operation == OPERATION_RECEIVE && dto->transfered_length != MESSAGE_SIZE) {
		snprintf(what, sizeof what, "a message of %" PRIu64 " bytes found, %d expected",
			 (uint64_t)dto->transfered_length, MESSAGE_SIZE);
		lose_connection(r, what);
	}
	r->awaited[operation]--;
}

static void take_event(struct run *r, const DAT_EVENT *event)
{
	if (event->event_number == DAT_DTO_COMPLETION_EVENT)
		take_completion(r, event);
	else
		end_connection(r, event);
}

/* Waits until the operations are complete. Returns false if the connection ended, or no answer came in
 * time. */
static bool await_completions(struct run *r)
{
	double until = now() + ANSWER_SECONDS;
	DAT_EVENT event;

	while (!r->broken && r->awaited[OPERATION_RECEIVE] + r->awaited[OPERATION_SEND] > 0) {
		if (r->end && until > r->end + GRACE_SECONDS)
			until = r->end + GRACE_SECONDS;
		switch (adapter_next(&r->adapter, until, &event)) {
		case ARRIVED_EVENT: take_event(r, &event); break;
		case ARRIVED_LATE: lose_connection(r, "no answer in time"); break;
		case ARRIVED_SIGNAL:
			/* the descriptor stays readable, so it is not polled any more */
			r->stopping = true;
			r->adapter.signal_fd = -1;
			r->end = now();
			break;
		}
	}
	return !r->broken;
}

/* --- a round -------------------------------------------------------------------- */

/* Sends the server the address of memory, and waits for its answer. */
static bool exchange(struct run *r, const char *memory)
{
	struct message m = { .address = (uintptr_t)memory,
			     .key = r->peer.rmr_context,
			     .size = (uint32_t)r->o->size };

	message_encode(&m, r->peer.memory->said);
	r->awaited[OPERATION_RECEIVE]++;
	r->awaited[OPERATION_SEND]++;
	peer_send(&r->peer);
	if (!await_completions(r))
		return false;
	peer_receive(&r->peer);
	return true;
}

static void check_echo(struct run *r)
{
	const struct memory *m = r->peer.memory;

	for (size_t i = 0; i < r->o->size; i++)
		if (m->echo[i] != m->data[i]) {
			fprintf(stderr,
				"datping: round %lu: byte %zu of %zu is 0x%02x, 0x%02x expected\n",
				r->started, i, r->o->size, (uint8_t)m->echo[i],
				(uint8_t)m->data[i]);
			r->wrong++;
			r->stopping = true;
			return;
		}
}

static void count_time(struct run *r, double seconds)
{
	if (!r->completed || seconds < r->least)
		r->least = seconds;
	if (seconds > r->most)
		r->most = seconds;
	r->sum += seconds;
	r->completed++;
}

static void do_round(struct run *r)
{
	struct memory *m = r->peer.memory;
	double start;

	make_data(m->data, r->o->size, r->started++);
	memset(m->echo, 0, r->o->size);
	start = now();
	debug(r->o, "round %lu: %zu bytes at %p", r->started, r->o->size, (void *)m->data);
	if (!exchange(r, m->data))
		return;
	debug(r->o, "round %lu: the server has read; the echo goes to %p", r->started,
	      (void *)m->echo);
	if (!exchange(r, m->echo))
		return;
	debug(r->o, "round %lu: the server has written", r->started);
	count_time(r, now() - start);
	if (r->o->verify)
		check_echo(r);
	if (r->o->show) {
		printf("ping data: %.*s\n", (int)r->o->size, m->echo);
		fflush(stdout);
	}
}

static bool is_done(const struct run *r)
{
	return r->broken || r->stopping || (r->o->count && r->started == r->o->count) ||
	       (r->end && now() >= r->end);
}

/* --- the connection --------------------------------------------------------------- */

static void connect_peer(struct run *r)
{
	double until = now() + ANSWER_SECONDS;
	char what[ADDRESS_TEXT + 64], failure[CAUSE_TEXT];
	DAT_EVENT event;

	snprintf(what, sizeof what, "connect to %s port %" PRIu64, r->address, r->o->port);
	debug(r->o, "%s", what);
	peer_open(&r->peer, &r->adapter, true);
	good_call(dat_ep_connect(r->peer.ep, (DAT_IA_ADDRESS_PTR)&r->to, r->o->port,
				 ANSWER_SECONDS * 1000000, 0, NULL, DAT_QOS_BEST_EFFORT,
				 DAT_CONNECT_DEFAULT_FLAG),
		  "dat_ep_connect");
	if (r->end && until > r->end)
		until = r->end;
	do /* the receive of an endpoint that does not connect is flushed */
		switch (adapter_next(&r->adapter, until, &event)) {
		case ARRIVED_SIGNAL: fail("%s: interrupted", what);
		case ARRIVED_LATE: fail("%s: no answer in time", what);
		case ARRIVED_EVENT: break;
		}
	while (event.event_number == DAT_DTO_COMPLETION_EVENT);
	if (event.event_number != DAT_CONNECTION_EVENT_ESTABLISHED)
		fail("%s", connection_failure(&event, what, failure));
	debug(r->o, "connected");
}

static void disconnect_peer(struct run *r)
{
	double until = now() + GRACE_SECONDS;
	DAT_EVENT event;

	/* the call fails if the endpoint is disconnected already */
	if (!r->broken && dat_ep_disconnect(r->peer.ep, DAT_CLOSE_GRACEFUL_FLAG) == DAT_SUCCESS)
		while (adapter_next(&r->adapter, until, &event) == ARRIVED_EVENT &&
		       event.event_number == DAT_DTO_COMPLETION_EVENT)
			;
	peer_close(&r->peer);
}

/* --- results ------------------------------------------------------------------------ */

/* Returns microseconds. There must be a completed round. */
static double mean_rtt(const struct run *r)
{
	return r->sum / r->completed * 1e6;
}

static void print_json(const struct run *r, double seconds)
{
	printf("{ \"ia\": ");
	cli_print_json_string(r->adapter.name);
	printf(", \"peer\": \"%s\", \"port\": %" PRIu64
	       ", \"bytes\": %zu, \"started\": %lu, \"completed\": %lu, "
	       "\"lost\": %lu, ",
	       r->address, r->o->port, r->o->size, r->started, r->completed,
	       r->started - r->completed);
	if (r->o->verify)
		printf("\"wrong\": %lu, ", r->wrong);
	if (r->completed)
		printf("\"min_us\": %.3f, \"avg_us\": %.3f, \"max_us\": %.3f, ", r->least * 1e6,
		       mean_rtt(r), r->most * 1e6);
	printf("\"seconds\": %.6f }\n", seconds);
}

static void print_text(const struct run *r, double seconds)
{
	printf("--- %s datping statistics ---\n%lu round%s of %zu bytes, %lu completed, %lu lost",
	       r->address, r->started, r->started == 1 ? "" : "s", r->o->size, r->completed,
	       r->started - r->completed);
	if (r->o->verify)
		printf(", %lu with wrong data", r->wrong);
	printf(", time %.0f ms\n", seconds * 1e3);
	if (r->completed)
		printf("round trip min/avg/max = %.1f/%.1f/%.1f us\n", r->least * 1e6,
		       mean_rtt(r), r->most * 1e6);
}

static int result_of(const struct run *r)
{
	if (!r->completed || r->completed < r->started || r->wrong)
		return CLI_FAILURE;
	/* like ping, fails if -w ended the run before all rounds of -C were complete */
	if (r->o->seconds && r->o->count && r->completed != r->o->count) {
		cli_warn("-w: %lu of %lu rounds completed in %g s", r->completed, r->o->count, r->o->seconds);
		return CLI_FAILURE;
	}
	if (r->o->max_rtt > 0 && mean_rtt(r) > r->o->max_rtt) {
		cli_warn("--max-rtt: the mean round trip is %.1f us, at most %.10g us expected", mean_rtt(r),
			 r->o->max_rtt);
		return CLI_OUTSIDE;
	}
	return 0;
}

int run_client(const struct options *o)
{
	struct run r = { .o = o };
	double seconds;

	r.start = now();
	r.end = o->seconds ? r.start + o->seconds : 0;
	adapter_open(&r.adapter, o->device, 1);
	resolve_for(r.adapter.ia, o->address, &r.to);
	address_text((const struct sockaddr *)&r.to, r.address);
	connect_peer(&r);
	r.start = now();
	while (!is_done(&r))
		do_round(&r);
	seconds = now() - r.start;
	disconnect_peer(&r);
	o->json ? print_json(&r, seconds) : print_text(&r, seconds);
	adapter_close(&r.adapter);
	return result_of(&r);
}
