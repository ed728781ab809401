/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* datagrams.h - the datagram endpoint (UD) of a link, and what both sides do in tests of datagrams. Commands and
 * answers stay on the link's connections. The endpoint exists during one test; its peer is that of the link. Receives
 * are in the link's memory for RDMA. A datagram begins with a mark of at most 4 bytes, which tells late ones. */
#ifndef DATPERF_DATAGRAMS_H
#define DATPERF_DATAGRAMS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <dat/udat.h>
#include <dat/dat_ib_extensions.h>

struct link;
struct setting;
enum wake;

struct datagrams {
	DAT_EP_HANDLE ep; /* NULL: none exists */
	DAT_EVD_HANDLE conn, request, recv;
	DAT_IB_ADDR_HANDLE peer;
	size_t limit;        /* bytes of a datagram, at both sides */
	unsigned unfinished; /* sends whose completion was not taken */
	uint32_t runs;       /* of a client: streams so far */
	uint32_t received;   /* of a server: datagrams of the last command */
	uint64_t microseconds; /* of a server: until the last of them came */
	uint32_t lost;         /* of a client: datagrams of the last run */
};

/* Returns the largest datagram of both sides, given the peer's; 0 if an adapter has none. */
size_t datagrams_limit(const struct link *l, size_t of_peer);
/* Frees the endpoint in any state, if there is one. */
void datagrams_close(struct link *l);

/* --- the client */

/* Connects an endpoint with the server's, and compares the bytes of datagrams that come back. Calls fail() if none
 * does. Returns false if the server's adapter has no datagrams. */
bool datagrams_open(struct link *l, const struct sockaddr *to, DAT_CONN_QUAL port);
void datagrams_end(struct link *l); /* closes the endpoints of both sides */
/* Sends datagrams that the server sends back, one after another, and stores the seconds of half a round trip in `took`.
 * DATAGRAM_LOST: it did not come back in time. */
void datagrams_ping(struct link *l, const struct setting *s, double *took, uint32_t rounds);
/* Sends `count` datagrams. Returns the seconds until the last one was sent, or has arrived. */
double datagrams_stream(struct link *l, const struct setting *s, uint32_t count);

#define DATAGRAM_LOST (-1.0)

/* --- the server */

/* Creates an endpoint and accepts the client's. */
void datagrams_accept(struct link *l, size_t limit);
/* Takes datagrams until the client's next command, which link_wait() returns then. `echo`: sends each back; else
 * counts those with this mark. */
void datagrams_take(struct link *l, enum wake wake, bool echo, uint32_t mark);

#endif
