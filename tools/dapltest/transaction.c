/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* transaction.c - see transaction.h. Each operation is started on all endpoints of a thread before it is
 * awaited on any of them. Receives are posted before the peer can send: the first ones before the
 * synchronisation at the start, each later one when the receive before it has completed. */
#include "transaction.h"
#include "../call.h"
#include "op.h"
#include <stdlib.h>
#include <string.h>

enum {
	PLACES = WIRE_OPS * WIRE_PLACE,		/* bytes of the message with the places of buffers */
	/* the region for messages: places to send and to receive, then two pairs of synchronisations */
	PLACES_OUT = 0, PLACES_IN = PLACES, SYNC_OUT = 2 * PLACES, SYNC_IN = SYNC_OUT + WIRE_SYNC,
	LAST_SYNC_IN = SYNC_IN + WIRE_SYNC, MESSAGES = LAST_SYNC_IN + WIRE_SYNC,
	EXTRA_DTOS = 4,				/* messages in addition to the operations */
};

/* An endpoint with the buffers of its operations. */
struct end {
	struct channel channel;
	struct region messages;
	struct region buffer[WIRE_OPS];
	struct place remote[WIRE_OPS];
};

bool transaction_append_sync(struct transaction *t)
{
	for (int i = 0; i < TRANSACTION_SYNC_OPS; i++) {
		if (t->ops == WIRE_OPS)
			return false;
		t->op[t->ops++] = (struct op){
			.by_server = i != 1, .transfer = TRANSFER_SEND, .segments = 1, .size = 4096,
		};
	}
	return true;
}

static bool initiates(const struct runner *r, const struct op *op)
{
	return op->by_server != r->client;
}

static bool receives(const struct runner *r, const struct op *op)
{
	return op->transfer == TRANSFER_SEND && !initiates(r, op);
}

/* --- endpoints ---------------------------------------------------------------- */

static struct channel_options options_of(const struct runner *r)
{
	struct channel_options o = { .receives = EXTRA_DTOS, .requests = EXTRA_DTOS, .segments = 4,
				     .qos = (DAT_QOS)r->t->qos };

	o.wait = r->cno ? WAIT_CNO : r->t->poll ? WAIT_POLL : WAIT_BLOCK;
	for (unsigned i = 0; i < r->t->ops; i++) {
		const struct op *op = &r->t->op[i];

		if ((DAT_COUNT)op->segments > o.segments)
			o.segments = (DAT_COUNT)op->segments;
		if (initiates(r, op))
			o.requests++;
		else if (op->transfer == TRANSFER_SEND)
			o.receives += 2;
	}
	return o;
}

static struct layout one(size_t length)
{
	return (struct layout){ 1, length, length };
}

bool runner_prepare(struct runner *r, bool *taken)
{
	struct channel_options o = options_of(r);

	*taken = false;
	r->ends = calloc(r->t->eps, sizeof *r->ends);
	if (!r->ends)
		return complain("no memory for %u endpoints", r->t->eps);
	for (unsigned e = 0; e < r->t->eps; e++) {
		struct end *end = &r->ends[e];

		if (!channel_open(&end->channel, r->adapter, &o) ||
		    !region_create(&end->messages, r->adapter, MESSAGES) ||
		    !channel_post_receive(&end->channel, &end->messages, PLACES_IN, one(PLACES)) ||
		    !channel_post_receive(&end->channel, &end->messages, SYNC_IN, one(WIRE_SYNC)))
			return false;
		if (!r->client && !channel_listen(&end->channel, r->qualifier + e, r->t->reserved, taken))
			return false;
	}
	return true;
}

void runner_free(struct runner *r)
{
	for (unsigned e = 0; r->ends && e < r->t->eps; e++) {
		struct end *end = &r->ends[e];

		channel_close(&end->channel);
		region_free(&end->messages);
		for (unsigned i = 0; i < r->t->ops; i++)
			region_free(&end->buffer[i]);
	}
	free(r->ends);
	r->ends = NULL;
}

/* Creates the buffers. Puts the places of those that the peer writes or reads into the message to it; the
 * places of the others stay 0. */
static bool create_buffers(const struct runner *r, struct end *end)
{
	for (unsigned i = 0; i < r->t->ops; i++) {
		const struct op *op = &r->t->op[i];
		struct layout l = op_layout(op);
		struct place place;

		if (!region_create(&end->buffer[i], r->adapter, l.stride * op->segments))
			return false;
		place = (struct place){ end->buffer[i].remote, (DAT_VADDR)(uintptr_t)end->buffer[i].start };
		if (op->transfer != TRANSFER_SEND && !initiates(r, op))
			wire_put_place(end->messages.start + PLACES_OUT + (size_t)i * WIRE_PLACE, &place);
	}
	return true;
}

static bool connect_end(const struct runner *r, struct end *end, unsigned e)
{
	DAT_COUNT length = sizeof WIRE_PRIVATE_DATA - 1;

	if (r->client)
		return channel_connect(&end->channel, (const struct sockaddr *)&r->to, r->qualifier + e,
				       WIRE_PRIVATE_DATA, length);
	return channel_accept(&end->channel, WIRE_PRIVATE_DATA, length, PATIENCE * 1000000);
}

static bool exchange_places(const struct runner *r, struct end *end)
{
	struct channel *c = &end->channel;

	if (r->client && !channel_send(c, &end->messages, PLACES_OUT, PLACES))
		return false;
	if (!channel_receive(c, PLACES, "the places of the peer's buffers"))
		return false;
	for (unsigned i = 0; i < r->t->ops; i++)
		end->remote[i] = wire_get_place(end->messages.start + PLACES_IN + (size_t)i * WIRE_PLACE);
	return r->client || channel_send(c, &end->messages, PLACES_OUT, PLACES);
}

static bool connect_all(const struct runner *r)
{
	for (unsigned e = 0; e < r->t->eps; e++) {
		struct end *end = &r->ends[e];

		if (!connect_end(r, end, e) || !create_buffers(r, end) || !exchange_places(r, end))
			return false;
	}
	return true;
}

static bool disconnect_all(const struct runner *r)
{
	for (unsigned e = 0; e < r->t->eps; e++)
		if (!channel_disconnect(&r->ends[e].channel, DAT_CLOSE_DEFAULT))
			return false;
	return true;
}

/* --- validation --------------------------------------------------------------- */

static char pattern(unsigned iteration)
{
	return (char)(iteration + 1);
}

/* Returns whether the buffer is a source: this side sends or writes from it, or the peer reads it. */
static bool is_source(const struct runner *r, const struct op *op)
{
	return op->transfer == TRANSFER_READ ? !initiates(r, op) : initiates(r, op);
}

static unsigned checked_ops(const struct transaction *t)
{
	return t->validate && t->ops >= TRANSACTION_SYNC_OPS ? t->ops - TRANSACTION_SYNC_OPS : 0;
}

static void fill_sources(const struct runner *r, unsigned iteration)
{
	for (unsigned e = 0; e < r->t->eps; e++)
		for (unsigned i = 0; i < checked_ops(r->t); i++)
			if (is_source(r, &r->t->op[i]))
				memset(r->ends[e].buffer[i].start, pattern(iteration), r->ends[e].buffer[i].length);
}

static bool check_bytes(const char *start, size_t length, char expected, unsigned op, unsigned iteration)
{
	for (size_t i = 0; i < length; i++)
		if (start[i] != expected)
			return complain("operation %u, iteration %u, byte %zu: 0x%02x found, 0x%02x expected", op,
					iteration, i, (unsigned char)start[i], (unsigned char)expected);
	return true;
}

/* Checks the data that arrived. A write of the peer is in one piece; received and read data are in
 * segments. */
static bool check_sinks(const struct runner *r, unsigned iteration)
{
	for (unsigned e = 0; e < r->t->eps; e++)
		for (unsigned i = 0; i < checked_ops(r->t); i++) {
			const struct op *op = &r->t->op[i];
			struct layout l = op_layout(op);

			if (is_source(r, op))
				continue;
			if (op->transfer == TRANSFER_WRITE)
				l = one(op_total(op));
			for (DAT_COUNT s = 0; s < l.segments; s++)
				if (!check_bytes(r->ends[e].buffer[i].start + (size_t)s * l.stride, l.size,
						 pattern(iteration), i, iteration))
					return false;
		}
	return true;
}

/* --- the operations ----------------------------------------------------------- */

static bool post(const struct runner *r, struct end *end, unsigned i)
{
	const struct op *op = &r->t->op[i];
	DAT_RMR_TRIPLET remote = {
		.virtual_address = end->remote[i].address,
		.segment_length = op_total(op),
		.rmr_context = end->remote[i].context,
	};

	if (op->transfer == TRANSFER_SEND)
		return channel_post_send(&end->channel, &end->buffer[i], 0, op_layout(op));
	return channel_post_rdma(&end->channel, &end->buffer[i], op_layout(op), op->transfer == TRANSFER_WRITE,
				 &remote);
}

static const char *name_of(const struct op *op)
{
	return op->transfer == TRANSFER_SEND ? "send" : op->transfer == TRANSFER_WRITE ? "RDMA write" : "RDMA read";
}

/* Waits for the completions of operation `i`. They come in the order of the requests, so those of unreaped
 * sends come first. */
static bool reap(const struct runner *r, unsigned i)
{
	for (unsigned e = 0; e < r->t->eps; e++) {
		struct end *end = &r->ends[e];

		if (!channel_wait(&end->channel, end->channel.request, op_total(&r->t->op[i]), name_of(&r->t->op[i])))
			return false;
	}
	return true;
}

static bool initiate(const struct runner *r, unsigned i)
{
	for (unsigned e = 0; e < r->t->eps; e++)
		if (!post(r, &r->ends[e], i))
			return false;
	return r->t->op[i].reap_on_receive || reap(r, i);
}

/* Reaps the unreaped sends of operations from *next to before `i`. */
static bool reap_sends(const struct runner *r, unsigned *next, unsigned i)
{
	for (; *next < i; ++*next)
		if (r->t->op[*next].reap_on_receive && initiates(r, &r->t->op[*next]) && !reap(r, *next))
			return false;
	return true;
}

static bool post_receives(const struct runner *r, unsigned i)
{
	for (unsigned e = 0; e < r->t->eps; e++)
		if (!channel_post_receive(&r->ends[e].channel, &r->ends[e].buffer[i], 0, op_layout(&r->t->op[i])))
			return false;
	return true;
}

static bool receive(const struct runner *r, unsigned i)
{
	for (unsigned e = 0; e < r->t->eps; e++)
		if (!channel_receive(&r->ends[e].channel, op_total(&r->t->op[i]), "receive"))
			return false;
	return true;
}

/* Checks the data when message `i` shows that the peer is ready for that, and then prepares the next
 * iteration. The server's first appended message shows that its operations of this iteration are done; the
 * client's appended message shows that the client has checked its data. */
static bool validate(const struct runner *r, unsigned i, unsigned iteration)
{
	if (!r->t->validate || i != r->t->ops - (r->client ? 3 : 2))
		return true;
	if (!check_sinks(r, iteration))
		return false;
	fill_sources(r, iteration + 1);
	return true;
}

static bool iterate(const struct runner *r, unsigned iteration)
{
	bool last = iteration + 1 == r->t->iterations;
	unsigned unreaped = 0;

	for (unsigned i = 0; i < r->t->ops; i++) {
		const struct op *op = &r->t->op[i];

		if (initiates(r, op)) {
			if (!op->reap_on_receive && !reap_sends(r, &unreaped, i))
				return false;
			if (!initiate(r, i))
				return false;
		} else if (op->transfer == TRANSFER_SEND) {
			if (!receive(r, i) || !reap_sends(r, &unreaped, i) || (!last && !post_receives(r, i)) ||
			    !validate(r, i, iteration))
				return false;
		}
	}
	return reap_sends(r, &unreaped, r->t->ops);
}

/* Exchanges a message on each endpoint. The server sends first. */
static bool synchronise(const struct runner *r)
{
	for (int step = 0; step < 2; step++)
		for (unsigned e = 0; e < r->t->eps; e++) {
			struct end *end = &r->ends[e];
			bool sends = r->client == (step == 1);

			if (sends ? !channel_send(&end->channel, &end->messages, SYNC_OUT, WIRE_SYNC) :
				    !channel_receive(&end->channel, WIRE_SYNC, "synchronising with the peer"))
				return false;
		}
	return true;
}

static bool post_last_sync(const struct runner *r)
{
	for (unsigned e = 0; e < r->t->eps; e++)
		if (!channel_post_receive(&r->ends[e].channel, &r->ends[e].messages, LAST_SYNC_IN, one(WIRE_SYNC)))
			return false;
	return true;
}

static bool run(struct runner *r)
{
	double start;

	if (!connect_all(r))
		return false;
	if (r->t->validate)
		fill_sources(r, 0);
	for (unsigned i = 0; i < r->t->ops; i++)
		if (receives(r, &r->t->op[i]) && !post_receives(r, i))
			return false;
	if (!synchronise(r))
		return false;
	start = now();
	for (unsigned iteration = 0; iteration < r->t->iterations; iteration++)
		if ((iteration + 1 == r->t->iterations && !post_last_sync(r)) || !iterate(r, iteration))
			return false;
	r->seconds = now() - start;
	return synchronise(r) && disconnect_all(r);
}

void *runner_run(void *runner)
{
	struct runner *r = runner;

	r->good = run(r);
	if (!r->good)
		for (unsigned e = 0; e < r->t->eps; e++)
			if (r->ends[e].channel.connected)
				dat_ep_disconnect(r->ends[e].channel.ep, DAT_CLOSE_ABRUPT_FLAG);
	return NULL;
}
