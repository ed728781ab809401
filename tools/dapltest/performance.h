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
	struct region place;		/* messages: one to send, one to receive */
	struct region buffer;
	bool good;
};

/* Opens the endpoint; a server's listens. Like channel_listen() for `taken`. */
bool performer_prepare(struct performer *p, bool *taken);
/* Connects, runs, disconnects. Sets good. For pthread_create. */
void *performer_run(void *performer);
void performer_free(struct performer *p);

#endif
