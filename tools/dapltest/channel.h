/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* channel.h - one endpoint of dapltest with its EVDs: connecting, posting, waiting for completions,
 * and memory. A function that fails prints one line and returns false, because a server
 * continues after a failure. The tests decide what is sent, and when. */
#ifndef DAPLTEST_CHANNEL_H
#define DAPLTEST_CHANNEL_H
#include "../messages.h"
#include <dat/udat.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

enum {
	PATIENCE = 60,		/* seconds without a completion after which the peer counts as stuck */
	MAX_SEGMENTS = 32,	/* of one operation */
};

struct adapter {
	const char *name;
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async;
	DAT_PZ_HANDLE pz;
	DAT_IA_ATTR attr;
};

enum wait { WAIT_BLOCK, WAIT_POLL, WAIT_CNO };

struct channel_options {
	DAT_COUNT receives, requests;	/* in flight at a time */
	DAT_COUNT segments;		/* of an operation */
	DAT_QOS qos;
	enum wait wait;
};

struct channel {
	const struct adapter *adapter;
	struct channel_options options;
	DAT_EVD_HANDLE cr, conn, request, recv;
	DAT_CNO_HANDLE cno;
	DAT_EP_HANDLE ep;
	DAT_PSP_HANDLE psp;
	DAT_RSP_HANDLE rsp;
	bool connected;
	int patience;		/* seconds to wait for a completion; 0: without limit */
};

struct region {
	char *start;
	size_t length;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT context;
	DAT_RMR_CONTEXT remote;
};

/* Prints "dapltest: text" on stderr and returns false. */
bool complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Returns whether rc is DAT_SUCCESS. If it is not, prints a line that names `call`. */
bool succeeded(DAT_RETURN rc, const char *call);
/* succeeded() of a call during which errors are kept (messages.h): if the libraries reported a cause, the
 * line has it instead of the code. */
#define succeeded_call(call, name) (messages_hold(), succeeded_held((call), (name)))
/* succeeded_call() without messages_hold(), which the caller has called before `call`. */
bool succeeded_held(DAT_RETURN rc, const char *call);

bool adapter_open(struct adapter *a, const char *name);
void adapter_close(struct adapter *a);

bool region_create(struct region *r, const struct adapter *a, size_t length);
void region_free(struct region *r);

/* channel_close() frees what was created, also after channel_open() has failed. */
bool channel_open(struct channel *c, const struct adapter *a, const struct channel_options *o);
void channel_close(struct channel *c);

/* Stores in *taken whether another listener has the qualifier. If it has, returns false without printing a
 * line. */
bool channel_listen(struct channel *c, DAT_CONN_QUAL qualifier, bool reserved, bool *taken);
/* Waits for a connection request, and accepts it. Rejects it and fails if it has other private data. */
bool channel_accept(struct channel *c, const void *private_data, DAT_COUNT length, DAT_TIMEOUT timeout);
bool channel_connect(struct channel *c, const struct sockaddr *to, DAT_CONN_QUAL qualifier,
		     const void *private_data, DAT_COUNT length);
/* Disconnects, and waits until the connection has ended. Returns true at once if it is not connected. */
bool channel_disconnect(struct channel *c, DAT_CLOSE_FLAGS flags);
/* Makes an endpoint ready for another connection after its connection has ended. */
bool channel_reset(struct channel *c);

/* A buffer in a region: segments of `size` bytes each, whose starts are `stride` bytes apart. */
struct layout {
	DAT_COUNT segments;
	size_t size, stride;
};
bool channel_post_receive(struct channel *c, const struct region *r, size_t offset, struct layout l);
bool channel_post_send(struct channel *c, const struct region *r, size_t offset, struct layout l);
bool channel_post_rdma(struct channel *c, const struct region *r, struct layout l, bool write,
		       const DAT_RMR_TRIPLET *remote);
/* Waits for one completion, and checks that it is a success of `length` bytes. */
bool channel_wait(struct channel *c, DAT_EVD_HANDLE evd, size_t length, const char *what);

/* Sends a message of one segment, or waits for the completion of a posted receive. */
bool channel_send(struct channel *c, const struct region *r, size_t offset, size_t length);
bool channel_receive(struct channel *c, size_t length, const char *what);

#endif
