/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* connect.h - connects the endpoints of two groups, one connection after another. The private data of each
 * side has the place of its memory, and the numbers of threads and endpoints. If the server has other
 * numbers, or no room, it rejects the connection with the reason, and both sides print it. */
#ifndef DATPERF_CONNECT_H
#define DATPERF_CONNECT_H
#include "group.h"

/* Waits for a client, for so many seconds at most unless they are 0, and connects all endpoints. The client must
 * have these numbers of threads and endpoints; 0 allows any number. Rejects a peer that is not datperf, and calls
 * fail(). */
void connect_accept(struct group *g, unsigned threads, unsigned endpoints, unsigned seconds);
void connect_to(struct group *g, const struct sockaddr *to, DAT_CONN_QUAL port, unsigned threads,
		unsigned endpoints);
void connect_end(struct group *g);
/* Cleans up after a failure, so that connect_accept() can be called again: rejects a request that has no
 * answer, and frees the endpoints in any state. */
void connect_drop(struct group *g);

/* A probe is a connection in addition to those of a link, which is made and ended at once. connect_probe()
 * returns the seconds until it was established. Several threads may call connect_accept_probe(); each
 * accepts any probe. */
double connect_probe(struct link *l, const struct sockaddr *to, DAT_CONN_QUAL port);
void connect_accept_probe(struct link *l);

/* Connect the datagram endpoint of a link with that of the peer's link: each side gets an address handle. One link of a
 * group at a time, since a request does not say to which thread it belongs. */
void connect_datagrams(struct link *l, const struct sockaddr *to, DAT_CONN_QUAL port);
void connect_accept_datagrams(struct link *l);

#endif
