/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* transaction.h - the transaction test: on both sides, threads with several endpoints each repeat a list of
 * operations. client.h and server.h use the control connection. */
#ifndef DAPLTEST_TRANSACTION_H
#define DAPLTEST_TRANSACTION_H
#include "channel.h"
#include "wire.h"
#include <pthread.h>

enum { TRANSACTION_SYNC_OPS = 3 };	/* appended by -V: sends of server, client, server */

/* One thread of the test, on one side. */
struct runner {
	const struct adapter *adapter;
	const struct transaction *t;
	bool client;
	bool cno;			/* wait with a CNO */
	struct sockaddr_storage to;	/* client: where the server is */
	DAT_CONN_QUAL qualifier;	/* of the first endpoint */
	struct end *ends;		/* t->eps of them */
	pthread_t thread;
	double seconds;			/* duration of the iterations */
	bool good;
};

/* Appends the operations that synchronise validation. Returns false if there is no room. */
bool transaction_append_sync(struct transaction *t);
/* Opens the endpoints. On the server, also listens; *taken is that of channel_listen(). */
bool runner_prepare(struct runner *r, bool *taken);
/* Connects, runs the test, disconnects, and sets `good`. Its type is that of a thread function. */
void *runner_run(void *runner);
void runner_free(struct runner *r);

#endif
