/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* connect.h - connects the endpoints of two groups, one connection after another. The private data of each
 * side says where its memory is, and how many threads and endpoints there are. A server that has
 * other numbers, or no room, says why when it rejects; both sides print it. */
#ifndef DATPERF_CONNECT_H
#define DATPERF_CONNECT_H
#include "group.h"

/* Waits, without limit, for a client; all endpoints are connected on return. `threads` and `endpoints`
 * are what the client must have; 0: any number. A peer that is not datperf is rejected, and fail() called. */
void connect_accept(struct group *g, unsigned threads, unsigned endpoints);
void connect_to(struct group *g, const struct sockaddr *to, DAT_CONN_QUAL port, unsigned threads,
		unsigned endpoints);
void connect_end(struct group *g);
/* After a failure: rejects a request that has no answer, and frees the endpoints whatever their state, so that
 * connect_accept() can be called again. */
void connect_drop(struct group *g);

/* A probe is one more connection, beside those of a link: made and ended. connect_probe() returns the
 * seconds until it was established. Several threads may accept; each takes any probe. */
double connect_probe(struct link *l, const struct sockaddr *to, DAT_CONN_QUAL port);
void connect_accept_probe(struct link *l);

#endif
