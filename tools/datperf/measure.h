/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* measure.h - what datperf measures over the links of a group, client and server side. */
#ifndef DATPERF_MEASURE_H
#define DATPERF_MEASURE_H
#include "group.h"
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
	TESTS
};

enum kind { KIND_LATENCY, KIND_BANDWIDTH, KIND_CONNECT };

struct test_info {
	const char *name;  /* of the option: "send-lat" */
	const char *verbs; /* in a chart: the same with raw verbs */
	const char *title;
	enum kind kind;
	size_t fixed_size; /* bytes; 0: any size */
	bool polls_memory; /* the target polls memory: there is no completion to wait for */
};
extern const struct test_info tests[TESTS];

struct setting {
	enum test test;
	size_t size;     /* bytes of a transfer */
	double seconds;  /* about, if rounds is 0 */
	uint32_t rounds; /* of each thread */
	enum wake wake;
	const struct sockaddr *to; /* the server, for TEST_CONNECT */
	DAT_CONN_QUAL port;
};

/* Of all threads: their rounds together, and their rates, until the last one has ended. */
struct result {
	/* Half of a round trip for a message and its echo, the whole time for a read, an atomic and a
	 * connection. Bandwidth has the count alone. */
	struct stats latency;
	struct histogram histogram;
	double bytes, messages; /* a second; of KIND_BANDWIDTH, and messages of KIND_CONNECT */
};

/* Serves a thread of the client until it ends the service. For group_run(). */
void serve(struct link *l, void *unused);

/* Ends the program when a byte that arrived differs from what was sent. */
void check_data(struct group *g);
struct result measure(struct group *g, const struct setting *s);
/* Why the IA cannot do the test; NULL if it can. */
const char *test_missing(const struct adapter *a, enum test test);
void end_service(struct group *g);

#endif
