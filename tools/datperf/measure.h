/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* measure.h - the measurements over the links of a group, on the client and on the server. */
#ifndef DATPERF_MEASURE_H
#define DATPERF_MEASURE_H
#include "group.h"
#include "side.h"
#include "stats.h"

enum test {
	TEST_SEND_LAT,
	TEST_WRITE_LAT,
	TEST_IMMED_LAT,
	TEST_READ_LAT,
	TEST_ATOMIC_LAT,
	TEST_SEND_BW,
	TEST_WRITE_BW,
	TEST_READ_BW,
	TEST_CONNECT,
	TEST_UD_LAT,
	TEST_UD_BW,
	TESTS
};

enum kind { KIND_LATENCY, KIND_BANDWIDTH, KIND_CONNECT };

struct test_info {
	const char *name;  /* in --test: "send-lat" */
	const char *verbs; /* name of its comparison with raw verbs in a chart */
	const char *title;
	enum kind kind;
	size_t fixed_size; /* bytes; 0: any size */
	bool polls_memory; /* the target polls memory: there is no completion to wait for */
	bool rdma;         /* its data is in the targets, which may be smaller than LINK_BLOCK */
	bool datagrams;    /* which can be lost; measure_open_datagrams() before */
};
extern const struct test_info tests[TESTS];

struct setting {
	enum test test;
	size_t size;     /* bytes of a transfer */
	double seconds;  /* approximate duration, if `rounds` is 0 */
	uint32_t rounds; /* of each thread */
	enum wake wake;
	unsigned depth; /* requests in flight of an endpoint, for bandwidth */
	bool both_ways; /* the server writes or reads at the same time */
	const struct sockaddr *to; /* the server, for TEST_CONNECT and comparisons */
	DAT_CONN_QUAL port;
};

/* The rounds of all threads together, and their rates until the last thread has ended. */
struct result {
	/* Half of a round trip for a message and its echo, the whole time for a read, an atomic and a
	 * connection. For KIND_BANDWIDTH only `count` is set. `count` includes what was lost. */
	struct stats latency;
	uint32_t lost; /* datagrams that did not arrive, or not come back */
	struct histogram histogram;
	uint64_t client_preempted, server_preempted; /* usage.h */
	bool shared; /* a side shared its processor */
	double client_load, server_load; /* processors that the threads of a side used, on average */
	double bytes, messages; /* that arrived, a second, both ways; rounds of other kinds count as messages */
};

/* Serves a thread of the client until it ends the service. For group_run(). */
void serve(struct link *l, void *unused);

/* Transfers data of several sizes. Ends the program if a byte that arrives differs from the byte sent. */
void check_data(struct group *g);
struct result measure(struct group *g, const struct setting *s);
/* Returns NULL, or the reason why the IA cannot do the test. */
const char *test_missing(const struct adapter *a, enum test test);
/* Opens the datagram endpoints of all links. Returns the largest datagram; 0: the server's adapter has none. */
size_t measure_open_datagrams(struct group *g, const struct sockaddr *to, DAT_CONN_QUAL port);
void measure_close_datagrams(struct group *g);
/* Asks the server where it runs. */
struct side measure_server_side(struct group *g);
void end_service(struct group *g);

#endif
