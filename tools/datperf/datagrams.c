/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* datagrams.c - datagram endpoints and their tests (datagrams.h). */
#include "datagrams.h"
#include "connect.h"
#include "exchange.h"
#include "measure.h"
#include "../call.h"
#include "../cli.h"
#include <endian.h>
#include <string.h>

enum {
	HEADER = 40,	/* bytes in front of a received datagram */
	SLOT = 8192,	/* bytes of a receive: the largest datagram has 4096 */
	RECEIVES = 128,	/* posted at a time, at most; their memory is LINK_BLOCK */
	MARK = 4,	/* bytes */
	CHECKS = 20,	/* datagrams that are sent before the first measurement */
	BACK_MS = 250,	/* a datagram that is not back by then is lost; hundreds of round trips of a slow machine */
	LINGER_MS = 20	/* for datagrams that arrive behind the message that ends a stream */
};

size_t datagrams_limit(const struct link *l, size_t of_peer)
{
	size_t own = l->adapter->datagrams ? l->adapter->mtu : 0;

	if (own > SLOT - HEADER)
		own = SLOT - HEADER;
	return own < of_peer ? own : of_peer;
}

/* --- the endpoint ------------------------------------------------------------- */

static unsigned receives(const struct link *l)
{
	return l->adapter->max_dtos < RECEIVES ? (unsigned)l->adapter->max_dtos : RECEIVES;
}

static char *slot_at(struct link *l, uint64_t slot)
{
	return l->in + l->block + slot * SLOT;
}

static void post_receive(struct link *l, uint64_t slot)
{
	DAT_LMR_TRIPLET to = { .virtual_address = (uintptr_t)slot_at(l, slot), .segment_length = SLOT,
			       .lmr_context = l->lmr_context };
	DAT_DTO_COOKIE cookie = { .as_64 = slot };

	good(dat_ep_post_recv(l->datagrams.ep, 1, &to, cookie, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
}

static DAT_EVD_HANDLE create_evd(struct link *l, unsigned length, DAT_EVD_FLAGS flags)
{
	return link_create_evd(l, (DAT_COUNT)length, (DAT_EVD_FLAGS)(flags | DAT_IB_EVD_EXTENSION_FLAG));
}

static void create_endpoint(struct link *l, size_t limit)
{
	struct datagrams *d = &l->datagrams;
	DAT_EP_ATTR attr = { .service_type = (DAT_SERVICE_TYPE)DAT_IB_SERVICE_TYPE_UD,
			     .max_message_size = limit,
			     .qos = DAT_QOS_BEST_EFFORT,
			     .recv_completion_flags = DAT_COMPLETION_DEFAULT_FLAG,
			     .request_completion_flags = DAT_COMPLETION_DEFAULT_FLAG,
			     .max_recv_dtos = (DAT_COUNT)receives(l),
			     .max_request_dtos = (DAT_COUNT)l->most,
			     .max_recv_iov = 1,
			     .max_request_iov = 1 };

	d->limit = limit;
	d->unfinished = 0;
	d->conn = create_evd(l, 8, DAT_EVD_CONNECTION_FLAG);
	d->request = create_evd(l, 2 * l->most, DAT_EVD_DTO_FLAG);
	d->recv = create_evd(l, 2 * receives(l), DAT_EVD_DTO_FLAG);
	good(dat_evd_modify_cno(d->request, l->cno), "dat_evd_modify_cno");
	good(dat_evd_modify_cno(d->recv, l->cno), "dat_evd_modify_cno");
	good_call(dat_ep_create(l->adapter->ia, l->adapter->pz, d->recv, d->request, d->conn, &attr, &d->ep),
		  "dat_ep_create");
	for (unsigned i = 0; i < receives(l); i++)
		post_receive(l, i);
}

void datagrams_close(struct link *l)
{
	struct datagrams *d = &l->datagrams;

	if (d->ep)
		good(dat_ep_free(d->ep), "dat_ep_free");
	d->ep = DAT_HANDLE_NULL;
	link_free_evd(&d->recv);
	link_free_evd(&d->request);
	link_free_evd(&d->conn);
}

/* --- datagrams ------------------------------------------------------------------ */

static void set_mark(char *to, size_t size, uint32_t mark)
{
	mark = htole32(mark);	/* a short datagram has its low bytes */
	memcpy(to, &mark, size < MARK ? size : MARK);
}

static bool has_mark(const char *got, size_t size, uint32_t mark)
{
	mark = htole32(mark);
	return !memcmp(got, &mark, size < MARK ? size : MARK);
}

static void reap(struct link *l, enum wake wake)
{
	struct link_wait w = { 0 };
	DAT_EVENT event;

	while (!link_look(l, l->datagrams.request, wake, &w, &event, "datagram"))
		;
	link_completion(&event, "datagram");
	l->datagrams.unfinished--;
}

static void finish(struct link *l, enum wake wake)
{
	while (l->datagrams.unfinished)
		reap(l, wake);
}

static void post(struct link *l, const char *from, size_t size)
{
	struct datagrams *d = &l->datagrams;
	DAT_LMR_TRIPLET segment = { .virtual_address = (uintptr_t)from, .segment_length = size,
				    .lmr_context = l->lmr_context };
	DAT_DTO_COOKIE cookie = { .as_64 = 0 };

	while (d->unfinished >= l->depth)
		reap(l, WAKE_POLL);
	good(dat_ib_post_send_ud(d->ep, 1, &segment, &d->peer, cookie, DAT_COMPLETION_DEFAULT_FLAG),
	     "dat_ib_post_send_ud");
	d->unfinished++;
}

struct datagram {
	uint64_t slot; /* to be posted again */
	const char *data;
	size_t size;
};

/* Looks for a datagram, and sleeps a moment unless `wake` is to poll. */
static bool next(struct link *l, enum wake wake, struct link_wait *w, struct datagram *g)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *done;
	DAT_EVENT event;

	if (!link_look(l, l->datagrams.recv, wake, w, &event, "datagram"))
		return false;
	done = link_completion(&event, "datagram");
	g->slot = done->user_cookie.as_64;
	g->data = slot_at(l, g->slot) + HEADER;
	g->size = done->transfered_length < HEADER ? 0 : done->transfered_length - HEADER;
	*w = (struct link_wait){ 0 };
	return true;
}

/* --- the client ------------------------------------------------------------------- */

/* Waits for the datagram that was sent from `out`, with the mark. Others, which are late, are dropped. Stores where its
 * bytes first differ, or 0, in *differs unless that is NULL. */
static bool hear(struct link *l, enum wake wake, size_t size, uint32_t mark, double until, size_t *differs)
{
	struct link_wait w = { 0 };
	struct datagram g;
	bool heard = false;

	while (!heard) {
		if (next(l, wake, &w, &g)) {
			heard = g.size == size && has_mark(g.data, size, mark);
			for (size_t i = 0; heard && differs && !*differs && i < size; i++)
				if (g.data[i] != l->out[i])
					*differs = i + 1;
			post_receive(l, g.slot);
		} else if (now() > until) {
			return false;
		}
	}
	return true;
}

static uint64_t command(struct link *l, enum op op, size_t size, enum wake wake, uint32_t mark)
{
	return exchange_command(l, &(struct command){ .op = op, .size = size, .seed = mark, .wake = wake });
}

/* Ends a test of datagrams at the server. Returns how many it received. */
static uint32_t end_run(struct link *l)
{
	return (uint32_t)command(l, OP_DATAGRAMS_RECEIVED, 0, WAKE_POLL, 0);
}

static void check(struct link *l)
{
	const size_t sizes[] = { l->datagrams.limit, 1, l->datagrams.limit < 777 ? l->datagrams.limit : 777 };
	unsigned back = 0;

	command(l, OP_DATAGRAMS_ECHO, l->datagrams.limit, WAKE_POLL, 0);
	for (uint32_t i = 0; i < CHECKS; i++) {
		size_t size = sizes[i % 3], differs = 0;

		exchange_fill(l->out, size, i);
		set_mark(l->out, size, i);
		post(l, l->out, size);
		back += hear(l, WAKE_POLL, size, i, now() + BACK_MS / 1e3, &differs);
		finish(l, WAKE_POLL);
		if (differs)
			fail("datagram of %zu bytes: byte %zu is wrong", size, differs - 1);
	}
	end_run(l);
	if (!back)
		fail("none of %d datagrams came back: does a firewall drop them (UDP)?", CHECKS);
}

bool datagrams_open(struct link *l, const struct sockaddr *to, DAT_CONN_QUAL port)
{
	size_t limit = command(l, OP_DATAGRAMS_OPEN, datagrams_limit(l, SLOT), WAKE_POLL, 0);

	if (!limit)
		return false;
	create_endpoint(l, limit);
	connect_datagrams(l, to, port);
	check(l);
	return true;
}

void datagrams_end(struct link *l)
{
	command(l, OP_DATAGRAMS_CLOSE, 0, WAKE_POLL, 0);
	datagrams_close(l);
}

void datagrams_ping(struct link *l, const struct setting *s, double *took, uint32_t rounds)
{
	command(l, OP_DATAGRAMS_ECHO, s->size, s->wake, 0);
	l->datagrams.lost = 0;
	for (uint32_t i = 0; i < rounds; i++) {
		double start;

		set_mark(l->out, s->size, i);
		start = now();
		post(l, l->out, s->size);
		if (hear(l, s->wake, s->size, i, start + BACK_MS / 1e3, NULL)) {
			took[i] = (now() - start) / 2;
		} else {
			took[i] = DATAGRAM_LOST;
			l->datagrams.lost++;
		}
		finish(l, s->wake);
	}
	end_run(l);
}

double datagrams_stream(struct link *l, const struct setting *s, uint32_t count)
{
	uint32_t mark = ++l->datagrams.runs;
	double start, sent, arrived;
	uint32_t received;

	command(l, OP_DATAGRAMS_TAKE, s->size, s->wake, mark);
	set_mark(l->out, s->size, mark);
	start = now();
	for (uint32_t i = 0; i < count; i++)
		post(l, l->out, s->size);
	finish(l, WAKE_POLL);
	sent = now() - start;
	received = end_run(l);
	l->datagrams.lost = received < count ? count - received : 0;	/* networks can double datagrams */
	arrived = command(l, OP_DATAGRAMS_TIME, 0, WAKE_POLL, 0) / 1e6;
	return arrived > sent ? arrived : sent;
}

/* --- the server ------------------------------------------------------------------- */

void datagrams_accept(struct link *l, size_t limit)
{
	create_endpoint(l, limit);
	connect_accept_datagrams(l);
}

void datagrams_take(struct link *l, enum wake wake, bool echo, uint32_t mark)
{
	double start = now(), last = start, end = 0;
	struct datagrams *d = &l->datagrams;
	struct link_wait w = { 0 };
	struct datagram g;

	d->received = 0;
	while (!end || now() < end) {
		if (next(l, wake, &w, &g)) {
			if (echo) {
				post(l, g.data, g.size);
				finish(l, wake);
			}
			if (echo || has_mark(g.data, g.size, mark)) {
				d->received++;
				last = now();
			}
			post_receive(l, g.slot);
		} else if (!end && link_has_message(l)) {
			end = now() + (echo ? 0 : LINGER_MS / 1e3);
		}
	}
	d->microseconds = (uint64_t)((last - start) * 1e6);
}
