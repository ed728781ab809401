/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* channel.h - one endpoint of dapltest with its EVDs: connecting, posting, waiting for completions,
 * and memory. A function that fails prints one line and returns false, because a server goes on.
 * What is sent when is the tests' job. */
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
	DAT_COUNT receives, requests;	/* under way at a time */
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
/* True when rc is DAT_SUCCESS; else the line names `call`. */
bool succeeded(DAT_RETURN rc, const char *call);
/* succeeded() of a call whose errors are kept meanwhile (messages.h): the line has the cause that the libraries told
 * instead of the code. */
#define succeeded_call(call, name) (messages_hold(), succeeded_held((call), (name)))
/* The same of a call that came after messages_hold(). */
bool succeeded_held(DAT_RETURN rc, const char *call);

bool adapter_open(struct adapter *a, const char *name);
void adapter_close(struct adapter *a);

bool region_create(struct region *r, const struct adapter *a, size_t length);
void region_free(struct region *r);

/* After a failure, too, channel_close() frees what there is. */
bool channel_open(struct channel *c, const struct adapter *a, const struct channel_options *o);
void channel_close(struct channel *c);

/* `taken`: false was returned because another listener has the qualifier, and no line was printed. */
bool channel_listen(struct channel *c, DAT_CONN_QUAL qualifier, bool reserved, bool *taken);
/* Waits for a request that carries this private data. */
bool channel_accept(struct channel *c, const void *private_data, DAT_COUNT length, DAT_TIMEOUT timeout);
bool channel_connect(struct channel *c, const struct sockaddr *to, DAT_CONN_QUAL qualifier,
		     const void *private_data, DAT_COUNT length);
/* Ends the connection from this side and waits until it has ended. */
bool channel_disconnect(struct channel *c, DAT_CLOSE_FLAGS flags);
/* Makes an endpoint whose connection ended ready for the next one. */
bool channel_reset(struct channel *c);

/* The segments are `size` bytes each, `stride` bytes apart, from the region's start. */
struct layout {
	DAT_COUNT segments;
	size_t size, stride;
};
bool channel_post_receive(struct channel *c, const struct region *r, size_t offset, struct layout l);
bool channel_post_send(struct channel *c, const struct region *r, size_t offset, struct layout l);
bool channel_post_rdma(struct channel *c, const struct region *r, struct layout l, bool write,
		       const DAT_RMR_TRIPLET *remote);
/* One completion, of `length` bytes: a success of the expected length. */
bool channel_wait(struct channel *c, DAT_EVD_HANDLE evd, size_t length, const char *what);

/* A message of one segment. */
bool channel_send(struct channel *c, const struct region *r, size_t offset, size_t length);
bool channel_receive(struct channel *c, size_t length, const char *what);

#endif
