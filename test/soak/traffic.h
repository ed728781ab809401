/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* traffic.h - one endpoint with random sends, RDMA writes and RDMA reads, that counts what was posted,
 * what completed, and how the connection ended. For tests in which a connection is cut at any
 * moment: the content of messages is test/soak/conserved's business. */
#ifndef TEST_SOAK_TRAFFIC_H
#define TEST_SOAK_TRAFFIC_H
#include "soak.h"

enum {
	TRAFFIC_LARGEST =
		40 << 10, /* bytes; beyond 16 KiB the software device has other protocols */
	TRAFFIC_RECEIVES = 8,
	TRAFFIC_REQUESTS = 24,
};

/* What the peer needs for its RDMA requests. */
struct traffic_target {
	uint64_t address;
	DAT_RMR_CONTEXT key;
};

struct traffic {
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE recv, request, conn;
	DAT_EP_HANDLE ep;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT local;
	struct traffic_target mine;
	const volatile struct traffic_target *peer;
	uint8_t *memory;
	uint64_t random;
	uint64_t posted, completed, flushed;
	unsigned sends;
	uint64_t receive_of[TRAFFIC_RECEIVES], request_of[TRAFFIC_REQUESTS]; /* cookies; 0: free */
	bool established;
	DAT_EVENT_NUMBER terminal; /* 0: none yet */
	double terminal_time;
	unsigned stream;
};

/* Makes the endpoint, with receives posted. */
void traffic_begin(struct traffic *t, DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, unsigned stream);
/* Posts something, takes events, sleeps at times. */
void traffic_step(struct traffic *t);
/* Takes events without posting. */
void traffic_take(struct traffic *t);
/* After a terminal event, or without a connection: everything completes, no other event comes,
 * and all objects are freed. */
void traffic_end(struct traffic *t);

#endif
