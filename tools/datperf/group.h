/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* group.h - the links of this process, one for each thread, and the threads. A server creates the endpoints
 * of its links anew for each client, but keeps their memory. connect.h connects them. */
#ifndef DATPERF_GROUP_H
#define DATPERF_GROUP_H
#include "link.h"

enum { GROUP_THREADS = 64 }; /* at most */

struct group {
	struct adapter adapter;
	enum memory_kind memory;
	bool srq; /* each link has an SRQ */
	size_t block;  /* of the links that are opened next: see struct link */
	unsigned most;
	char carrier[32]; /* of a client: "memory", "tcp, MTU 1500", "rdma, MTU 1024"; "": not known */
	struct link links[GROUP_THREADS];
	unsigned opened;             /* links that have memory */
	unsigned threads, endpoints; /* links in use; endpoints of each */
	DAT_CR_HANDLE request;       /* a connection request that has no answer yet */
};

/* Opens the adapter and the first link. */
void group_open(struct group *g, const char *ia, enum memory_kind memory, bool srq);
/* Sets the bytes of a transfer and the operations in flight of an endpoint. Frees memory of another size. There must be
 * no endpoints. */
void group_shape(struct group *g, size_t block, unsigned most);
/* Closes the links and the adapter. There must be no endpoints. */
void group_close(struct group *g);

/* Returns NULL, or the reason why the adapter has no room for so many: text that is valid until the next
 * call. */
const char *group_limit(const struct group *g, unsigned threads, unsigned endpoints);
/* Opens the links and creates their endpoints. */
void group_create_endpoints(struct group *g, unsigned threads, unsigned endpoints);
/* Frees the endpoints in any state. */
void group_free_endpoints(struct group *g);

/* Calls work(link, arg) for each link. If there are several, each has a thread, and all threads begin at the
 * same time. Returns when all have ended. The first failure breaks the connections of all links, and ends
 * the caller like fail(). */
void group_run(struct group *g, void (*work)(struct link *l, void *arg), void *arg);
/* For cli_on_failure(). Returns whether another thread of the group has already failed, and printed the
 * reason. */
bool group_has_failed(void);

#endif
