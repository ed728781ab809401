/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* measure.h - what datperf measures over a link, client and server side. */
#ifndef TOOLS_MEASURE_H
#define TOOLS_MEASURE_H
#include "link.h"

enum way { WAY_SEND, WAY_WRITE };

/* Half round trips, in microseconds. */
struct latency {
	double min, median, most;	/* most: what 99 of 100 stay below */
	unsigned rounds;
};
struct bandwidth {
	double bytes, messages;		/* a second */
};

/* Serves one client until it ends the service. */
void serve(struct link *l);

/* Each ends the program when a byte that arrived differs from what was sent. */
void check_data(struct link *l, size_t size);
struct latency measure_latency(struct link *l, enum way way, double seconds);
struct bandwidth measure_bandwidth(struct link *l, enum way way, size_t size, double seconds);
void end_service(struct link *l);
#endif
