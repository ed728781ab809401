/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* connect.c - connects the endpoints of a group, and probes (connect.h). */
#include "connect.h"
#include "../call.h"
#include "../cli.h"
#include "../messages.h"
#include "../names.h"
#include <endian.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

/* The private data of both sides, in network byte order when sent. */
struct hello {
	uint32_t magic;
	uint32_t context;
	uint64_t target;
	uint64_t session; /* a random number of the client's process */
	uint8_t threads, thread; /* all, and that of this connection */
	uint8_t log2_size;       /* of the target's bytes */
	uint8_t shape;           /* see shape_of(); 0 of versions without */
	uint16_t endpoints, endpoint; /* the same; `endpoint` of a probe is PROBE */
};

/* The private data of a rejection. */
struct refusal {
	uint32_t magic;
	uint16_t reason, value;
};

enum { BUSY_SECONDS = 2 }; /* without an answer to the first request, before a line says so */
enum { MAGIC = 0x64706636, PROBE = 0xffff };

enum reason {
	REFUSED_OTHER,
	REFUSED_ENDPOINTS, /* value: those that the server has */
	REFUSED_THREADS,   /* value: those that the server has */
	REFUSED_ROOM,
	REFUSED_BUSY
};

/* --- private data ------------------------------------------------------------ */

/* Returns the bytes of a transfer and the operations in flight of an endpoint: powers of two above the usual ones, in
 * four bits each. */
static uint8_t shape_of(size_t block, unsigned most)
{
	return (uint8_t)(__builtin_ctzl(block / LINK_BLOCK) << 4 | __builtin_ctz(most / LINK_DEPTH));
}

static size_t block_of(const struct hello *h)
{
	return (size_t)LINK_BLOCK << (h->shape >> 4);
}

static unsigned most_of(const struct hello *h)
{
	return LINK_DEPTH << (h->shape & 15);
}

static struct hello our_hello(const struct link *l, unsigned threads, unsigned endpoint)
{
	return (struct hello){ .magic = htobe32(MAGIC),
			       .context = htobe32(l->target.rmr_context),
			       .target = htobe64(l->target.address),
			       .session = htobe64(l->session),
			       .threads = (uint8_t)threads,
			       .thread = (uint8_t)l->index,
			       .log2_size = (uint8_t)__builtin_ctzl(l->target.size),
			       .shape = shape_of(l->block, l->most),
			       .endpoints = htobe16((uint16_t)l->count),
			       .endpoint = htobe16((uint16_t)endpoint) };
}

/* Reads the peer's private data. Returns NULL, or the reason why it is not that of a datperf. */
static const char *read_hello(struct hello *h, const void *data, DAT_COUNT size)
{
	if (!data || size < (DAT_COUNT)sizeof *h)
		return "the peer is not datperf: its private data is too short";
	memcpy(h, data, sizeof *h);
	*h = (struct hello){ .magic = be32toh(h->magic),
			     .context = be32toh(h->context),
			     .target = be64toh(h->target),
			     .session = be64toh(h->session),
			     .threads = h->threads,
			     .thread = h->thread,
			     .log2_size = h->log2_size,
			     .shape = h->shape,
			     .endpoints = be16toh(h->endpoints),
			     .endpoint = be16toh(h->endpoint) };
	if (h->magic != MAGIC || h->log2_size >= 32 || 1u << h->log2_size > block_of(h) ||
	    block_of(h) > LINK_BLOCK_MAX || most_of(h) > LINK_DEPTH_MAX)
		return "the peer is not datperf, or another version of it";
	return NULL;
}

static void take_hello(struct link *l, const struct hello *h)
{
	l->peer_context = h->context;
	l->peer_target = h->target;
	l->peer_size = (size_t)1 << h->log2_size;
}

static DAT_RETURN reject_request(DAT_CR_HANDLE request, enum reason reason, unsigned value)
{
	struct refusal r = { .magic = htobe32(MAGIC),
			     .reason = htobe16((uint16_t)reason),
			     .value = htobe16((uint16_t)value) };

	return dat_cr_reject(request, sizeof r, &r);
}

static void reject(struct group *g, enum reason reason, unsigned value)
{
	DAT_CR_HANDLE request = g->request;

	g->request = DAT_HANDLE_NULL;
	good(reject_request(request, reason, value), "dat_cr_reject");
}

/* Calls fail() with the reason that the server has sent with a rejection. Returns if it has sent none. */
static void explain_rejection(const struct group *g, const DAT_CONNECTION_EVENT_DATA *data,
			      const char *what)
{
	struct refusal r = { 0 };
	unsigned value;

	if (data->private_data && data->private_data_size >= (DAT_COUNT)sizeof r)
		memcpy(&r, data->private_data, sizeof r);
	value = be16toh(r.value);
	switch (be32toh(r.magic) == MAGIC ? be16toh(r.reason) : REFUSED_OTHER) {
	case REFUSED_ENDPOINTS:
		fail("%s: the server has --endpoints %u, this client %u", what, value,
		     g->endpoints);
	case REFUSED_THREADS:
		fail("%s: the server has --threads %u, this client %u", what, value, g->threads);
	case REFUSED_ROOM:
		fail("%s: the server has no room for --threads %u, --endpoints %u; it prints why",
		     what, g->threads, g->endpoints);
	case REFUSED_BUSY: fail("%s: the server serves another client", what);
	default: break;
	}
}

/* --- both sides -------------------------------------------------------------- */

/* If `what` is the first request to a server, a line says that the server is busy while there is no answer. */
static DAT_EVENT wait_answer(DAT_EVD_HANDLE conn, const char *what, bool first)
{
	DAT_EVENT event;
	DAT_COUNT more;
	DAT_RETURN rc = dat_evd_wait(conn, (first ? BUSY_SECONDS : LINK_TIMEOUT) * 1000000, 1, &event, &more);

	if (first && DAT_GET_TYPE(rc) == DAT_TIMEOUT_EXPIRED) {
		cli_warn("%s: no answer yet; the server is busy, or does not answer: waiting, up to %d s", what,
			 LINK_TIMEOUT);
		rc = dat_evd_wait(conn, LINK_TIMEOUT * 1000000, 1, &event, &more);
	}

	if (DAT_GET_TYPE(rc) == DAT_TIMEOUT_EXPIRED)
		fail("%s: no answer within %d s", what, LINK_TIMEOUT);
	good(rc, what);
	return event;
}

static DAT_EVENT wait_event(DAT_EVD_HANDLE conn, const char *what)
{
	return wait_answer(conn, what, false);
}

static void expect_event(const DAT_EVENT *event, DAT_EVENT_NUMBER expected, const char *what)
{
	char failure[CAUSE_TEXT];

	if (event->event_number != expected)
		fail("%s", connection_failure(event, what, failure));
}

static void wait_on(DAT_EVD_HANDLE conn, DAT_EVENT_NUMBER expected, const char *what)
{
	DAT_EVENT event = wait_event(conn, what);

	expect_event(&event, expected, what);
}

void connect_end(struct group *g)
{
	for (unsigned i = 0; i < g->threads; i++) {
		struct link *l = &g->links[i];

		for (unsigned e = 0; e < l->count; e++)
			good(dat_ep_disconnect(l->endpoints[e].ep, DAT_CLOSE_ABRUPT_FLAG),
			     "dat_ep_disconnect");
		for (unsigned e = 0; e < l->count; e++)
			wait_on(l->conn, DAT_CONNECTION_EVENT_DISCONNECTED, "disconnect");
	}
	group_free_endpoints(g);
}

void connect_drop(struct group *g)
{
	if (g->request)
		(void)reject_request(g->request, REFUSED_ROOM, 0);
	g->request = DAT_HANDLE_NULL;
	group_free_endpoints(g);
}

/* --- the server -------------------------------------------------------------- */

/* Waits for the next request of a datperf, and stores it in g->request. */
static void next_request(struct group *g, DAT_TIMEOUT timeout, struct hello *h,
			 char address[ADDRESS_TEXT])
{
	DAT_CR_PARAM cr;
	DAT_EVENT event;
	DAT_COUNT more;
	DAT_RETURN rc = dat_evd_wait(g->adapter.requests, timeout, 1, &event, &more);
	const char *fault;

	if (DAT_GET_TYPE(rc) == DAT_TIMEOUT_EXPIRED && !g->threads)
		fail("accept: no client has come within %u s (--once)", timeout / 1000000);
	if (DAT_GET_TYPE(rc) == DAT_TIMEOUT_EXPIRED)
		fail("accept: the client makes no more connections, though it has %u endpoints in "
		     "%u "
		     "threads",
		     g->endpoints, g->threads);
	good(rc, "dat_evd_wait");
	g->request = event.event_data.cr_arrival_event_data.cr_handle;
	good(dat_cr_query(g->request, DAT_CR_FIELD_ALL, &cr), "dat_cr_query");
	address_text((const struct sockaddr *)cr.remote_ia_address_ptr, address);
	fault = read_hello(h, cr.private_data, cr.private_data_size);
	if (fault) {
		reject(g, REFUSED_OTHER, 0);
		fail("request from %s rejected: %s", address, fault);
	}
}

/* Checks the numbers of threads and endpoints, which the first request decides. If they do not suit, rejects
 * the request and calls fail(). */
static void check_shape(struct group *g, const struct hello *h, unsigned threads,
			unsigned endpoints, const char *address)
{
	const char *limit;

	if (endpoints && endpoints != h->endpoints) {
		reject(g, REFUSED_ENDPOINTS, endpoints);
		fail("request from %s rejected: the client has --endpoints %u, this server %u",
		     address, h->endpoints, endpoints);
	}
	if (threads && threads != h->threads) {
		reject(g, REFUSED_THREADS, threads);
		fail("request from %s rejected: the client has --threads %u, this server %u",
		     address, h->threads, threads);
	}
	if (!h->threads || h->threads > GROUP_THREADS || !h->endpoints ||
	    h->endpoints > LINK_ENDPOINTS) {
		reject(g, REFUSED_ROOM, 0);
		fail("request from %s rejected: %u endpoints in %u threads, up to %d and %d "
		     "expected",
		     address, h->endpoints, h->threads, LINK_ENDPOINTS, GROUP_THREADS);
	}
	group_shape(g, block_of(h), most_of(h));
	limit = group_limit(g, h->threads, h->endpoints);
	if (limit) {
		reject(g, REFUSED_ROOM, 0);
		fail("request from %s rejected: it has %u endpoint%s in %u thread%s, but %s", address, h->endpoints,
		     h->endpoints == 1 ? "" : "s", h->threads, h->threads == 1 ? "" : "s", limit);
	}
}

static void accept_request(struct group *g, const struct hello *h)
{
	struct link *l = &g->links[h->thread];
	struct hello ours = our_hello(l, g->threads, h->endpoint);
	DAT_CR_HANDLE request = g->request;

	take_hello(l, h);
	g->request = DAT_HANDLE_NULL;
	good_call(dat_cr_accept(request, l->endpoints[h->endpoint].ep, sizeof ours, &ours),
		  "dat_cr_accept");
	wait_on(l->conn, DAT_CONNECTION_EVENT_ESTABLISHED, "accept");
}

/* Checks that this is request `i` of the client, which connects its endpoints in order. */
static void expect_turn(struct group *g, const struct hello *h, unsigned i, const char *address)
{
	unsigned endpoints = g->endpoints ? g->endpoints : 1; /* 0 before the first request */

	if (h->thread == i / endpoints && h->endpoint == i % endpoints)
		return;
	reject(g, REFUSED_OTHER, 0);
	fail("request from %s rejected: it belongs to a client that is not served any more",
	     address);
}

void connect_accept(struct group *g, unsigned threads, unsigned endpoints, unsigned seconds)
{
	char address[ADDRESS_TEXT];
	struct hello h;
	uint64_t session;

	next_request(g, seconds ? seconds * 1000000 : DAT_TIMEOUT_INFINITE, &h, address);
	expect_turn(g, &h, 0, address);
	check_shape(g, &h, threads, endpoints, address);
	group_create_endpoints(g, h.threads, h.endpoints);
	session = h.session;
	for (unsigned i = 0; i < g->threads; i++)
		g->links[i].session = session;
	accept_request(g, &h);
	for (unsigned i = 1; i < g->threads * g->endpoints; i++) {
		next_request(g, LINK_TIMEOUT * 1000000, &h, address);
		for (; h.session != session; next_request(g, LINK_TIMEOUT * 1000000, &h, address))
			reject(g, REFUSED_BUSY, 0);
		expect_turn(g, &h, i, address);
		accept_request(g, &h);
	}
}

/* --- the client -------------------------------------------------------------- */

static void connect_endpoint(struct group *g, struct link *l, unsigned endpoint,
			     const struct sockaddr *to, DAT_CONN_QUAL port)
{
	struct hello ours = our_hello(l, g->threads, endpoint), theirs;
	char address[ADDRESS_TEXT], what[ADDRESS_TEXT + 64];
	const DAT_CONNECTION_EVENT_DATA *data;
	const char *fault;
	DAT_EVENT event;

	snprintf(what, sizeof what, "connect to %s port %llu", address_text(to, address),
		 (unsigned long long)port);
	good_call(dat_ep_connect(l->endpoints[endpoint].ep, (DAT_IA_ADDRESS_PTR)to, port,
				 LINK_TIMEOUT * 1000000, sizeof ours, &ours, DAT_QOS_BEST_EFFORT,
				 DAT_CONNECT_DEFAULT_FLAG),
		  "dat_ep_connect");
	event = wait_answer(l->conn, what, !l->index && !endpoint);
	data = &event.event_data.connect_event_data;
	if (event.event_number == DAT_CONNECTION_EVENT_PEER_REJECTED)
		explain_rejection(g, data, what);
	expect_event(&event, DAT_CONNECTION_EVENT_ESTABLISHED, what);
	fault = read_hello(&theirs, data->private_data, data->private_data_size);
	if (fault)
		fail("%s: %s", what, fault);
	if (theirs.shape != ours.shape)
		fail("%s: the server is an older datperf, which has no sizes above 1M and no depth above %d", what,
		     LINK_DEPTH);
	take_hello(l, &theirs);
}

void connect_to(struct group *g, const struct sockaddr *to, DAT_CONN_QUAL port, unsigned threads,
		unsigned endpoints)
{
	const char *limit = group_limit(g, threads, endpoints);
	uint64_t session;

	if (limit)
		fail("--threads %u, --endpoints %u: %s", threads, endpoints, limit);
	if (getrandom(&session, sizeof session, 0) != sizeof session)
		fail("getrandom: %m");
	group_create_endpoints(g, threads, endpoints);
	for (unsigned i = 0; i < threads; i++) {
		g->links[i].session = session;
		for (unsigned e = 0; e < endpoints; e++)
			connect_endpoint(g, &g->links[i], e, to, port);
	}
}

/* --- probes ------------------------------------------------------------------ */

static void create_probe(struct link *l)
{
	good_call(dat_ep_create(l->adapter->ia, l->adapter->pz, DAT_HANDLE_NULL, DAT_HANDLE_NULL,
				l->probe_conn, NULL, &l->probe),
		  "dat_ep_create");
}

static void free_probe(struct link *l)
{
	DAT_EP_HANDLE probe = l->probe;

	l->probe = DAT_HANDLE_NULL;
	good(dat_ep_free(probe), "dat_ep_free");
}

double connect_probe(struct link *l, const struct sockaddr *to, DAT_CONN_QUAL port)
{
	struct hello ours = our_hello(l, 0, PROBE);
	double start, took;

	create_probe(l);
	start = now();
	good_call(dat_ep_connect(l->probe, (DAT_IA_ADDRESS_PTR)to, port, LINK_TIMEOUT * 1000000,
				 sizeof ours, &ours, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
		  "dat_ep_connect");
	wait_on(l->probe_conn, DAT_CONNECTION_EVENT_ESTABLISHED, "connect");
	took = now() - start;
	good(dat_ep_disconnect(l->probe, DAT_CLOSE_GRACEFUL_FLAG), "dat_ep_disconnect");
	wait_on(l->probe_conn, DAT_CONNECTION_EVENT_DISCONNECTED, "disconnect");
	free_probe(l);
	return took;
}

/* Returns whether the request is a probe of the client that is served. */
static bool is_probe(const struct link *l, DAT_CR_HANDLE request)
{
	DAT_CR_PARAM cr;
	struct hello h;

	good(dat_cr_query(request, DAT_CR_FIELD_ALL, &cr), "dat_cr_query");
	return !read_hello(&h, cr.private_data, cr.private_data_size) && h.session == l->session &&
	       h.endpoint == PROBE;
}

/* Waits for the next request. A lock is needed, since only one thread may wait on an EVD. */
static DAT_RETURN next_probe(struct link *l, DAT_EVENT *event)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	DAT_COUNT more;
	DAT_RETURN rc;

	pthread_mutex_lock(&lock);
	rc = dat_evd_wait(l->adapter->requests, LINK_TIMEOUT * 1000000, 1, event, &more);
	pthread_mutex_unlock(&lock);
	return rc;
}

/* Waits for a probe of this client. */
static DAT_CR_HANDLE take_probe(struct link *l)
{
	DAT_CR_HANDLE request;
	DAT_EVENT event;

	for (;;) {
		DAT_RETURN rc = next_probe(l, &event);

		if (DAT_GET_TYPE(rc) == DAT_TIMEOUT_EXPIRED)
			fail("connection request: nothing came within %d s", LINK_TIMEOUT);
		good(rc, "dat_evd_wait");
		request = event.event_data.cr_arrival_event_data.cr_handle;
		if (is_probe(l, request))
			return request;
		good(reject_request(request, REFUSED_BUSY, 0), "dat_cr_reject");
	}
}

void connect_accept_probe(struct link *l)
{
	create_probe(l);
	good_call(dat_cr_accept(take_probe(l), l->probe, 0, NULL), "dat_cr_accept");
	wait_on(l->probe_conn, DAT_CONNECTION_EVENT_ESTABLISHED, "accept");
	wait_on(l->probe_conn, DAT_CONNECTION_EVENT_DISCONNECTED, "disconnect");
	free_probe(l);
}

/* --- datagram endpoints ------------------------------------------------------ */

static void take_address_handle(struct link *l, const char *what)
{
	DAT_EVENT event = wait_event(l->datagrams.conn, what);
	DAT_IB_EXTENSION_EVENT_DATA data;

	expect_event(&event, (DAT_EVENT_NUMBER)DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED, what);
	memcpy(&data, event.event_extension_data, sizeof data);
	l->datagrams.peer = data.remote_ah;
}

void connect_datagrams(struct link *l, const struct sockaddr *to, DAT_CONN_QUAL port)
{
	struct hello ours = our_hello(l, 0, PROBE);

	good_call(dat_ep_connect(l->datagrams.ep, (DAT_IA_ADDRESS_PTR)to, port, LINK_TIMEOUT * 1000000, sizeof ours,
				 &ours, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
		  "dat_ep_connect");
	take_address_handle(l, "connect for datagrams");
}

void connect_accept_datagrams(struct link *l)
{
	good_call(dat_cr_accept(take_probe(l), l->datagrams.ep, 0, NULL), "dat_cr_accept");
	take_address_handle(l, "accept for datagrams");
}
