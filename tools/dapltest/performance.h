/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* performance.h - the performance test: the client posts one RDMA operation again and again, and
 * prints rates and times. The server offers a buffer. */
#ifndef DAPLTEST_PERFORMANCE_H
#define DAPLTEST_PERFORMANCE_H
#include "channel.h"
#include "wire.h"

struct performer {
	const struct adapter *adapter;
	struct performance p;
	bool client;
	struct sockaddr_storage to;	/* client: where the server is */
	DAT_CONN_QUAL qualifier;
	struct channel channel;
	struct region place;		/* buffers of two messages: one to send, one to receive */
	struct region buffer;
	bool good;
};

/* Opens the endpoint. On the server, also listens; *taken is that of channel_listen(). */
bool performer_prepare(struct performer *p, bool *taken);
/* Connects, runs the test, disconnects, and sets `good`. Its type is that of a thread function. */
void *performer_run(void *performer);
void performer_free(struct performer *p);

#endif
