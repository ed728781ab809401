/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* traffic.h - an endpoint that sends, writes and reads at random and counts what was posted, what completed,
 * and how its connection ended. For tests that cut connections at any moment. The content of messages is not
 * checked: test/soak/conserved does that. */
#ifndef TEST_SOAK_TRAFFIC_H
#define TEST_SOAK_TRAFFIC_H
#include "soak.h"

enum {
	TRAFFIC_LARGEST =
		40 << 10, /* bytes; beyond 16 KiB the software device has other protocols */
	TRAFFIC_RECEIVES = 8,
	TRAFFIC_REQUESTS = 24,
};

/* The memory that the peer may access. */
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
	unsigned sends;			/* posted; each needs a receive of the peer */
	uint64_t receive_of[TRAFFIC_RECEIVES], request_of[TRAFFIC_REQUESTS]; /* cookies; 0: free */
	bool established;
	DAT_EVENT_NUMBER terminal; /* 0: none yet */
	double terminal_time;		/* of life_now() */
	unsigned stream;		/* of its random numbers */
};

/* Makes the endpoint, with receives posted. */
void traffic_begin(struct traffic *t, DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, unsigned stream);
/* Posts something, takes events, sleeps at times. */
void traffic_step(struct traffic *t);
/* Takes events without posting. */
void traffic_take(struct traffic *t);
/* Called after a terminal event, or without a connection. Fails unless all posts complete and no other event
 * comes. Frees all objects. */
void traffic_end(struct traffic *t);

#endif
