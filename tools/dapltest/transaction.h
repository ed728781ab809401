/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* transaction.h - the transaction test: a list of operations, done again and again by threads with
 * several endpoints each, on both sides. The control connection is client.h's and server.h's job. */
#ifndef DAPLTEST_TRANSACTION_H
#define DAPLTEST_TRANSACTION_H
#include "channel.h"
#include "wire.h"
#include <pthread.h>

enum { TRANSACTION_SYNC_OPS = 3 };	/* that -V appends: server, client, server send */

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
	double seconds;			/* that the iterations took */
	bool good;
};

/* Appends the operations that keep validation in step. False: there is no room. */
bool transaction_append_sync(struct transaction *t);
/* Opens the endpoints; a server's listen. Like channel_listen(): `taken` tells that the qualifiers are not free. */
bool runner_prepare(struct runner *r, bool *taken);
/* Connects, runs, disconnects. Sets good. For pthread_create. */
void *runner_run(void *runner);
void runner_free(struct runner *r);

#endif
