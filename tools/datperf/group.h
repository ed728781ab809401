/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* group.h - the links of this process, one for each thread, and the threads. A server makes its links
 * for each client anew, but keeps their memory. Connecting them is connect.h's job. */
#ifndef DATPERF_GROUP_H
#define DATPERF_GROUP_H
#include "link.h"

enum { GROUP_THREADS = 64 }; /* at most */

struct group {
	struct adapter adapter;
	enum memory_kind memory;
	bool srq; /* one for each link */
	struct link links[GROUP_THREADS];
	unsigned opened;             /* links that have memory */
	unsigned threads, endpoints; /* links in use; endpoints of each */
	DAT_CR_HANDLE request;       /* of a connection; neither accepted nor rejected yet */
};

/* Opens the adapter and the first link. */
void group_open(struct group *g, const char *ia, enum memory_kind memory, bool srq);
/* There are no endpoints. */
void group_close(struct group *g);

/* Why the adapter has no room for so many: text that is valid until the next call; NULL if it has. */
const char *group_limit(const struct group *g, unsigned threads, unsigned endpoints);
/* Opens the links and creates their endpoints. */
void group_create_endpoints(struct group *g, unsigned threads, unsigned endpoints);
/* Whatever their state. */
void group_free_endpoints(struct group *g);

/* Calls work(link, arg) for each link: each in a thread of its own, if there are several, and all begin
 * at the same time. Returns when all have ended. The first failure breaks the connections of all
 * links, and ends the caller as fail() does. */
void group_run(struct group *g, void (*work)(struct link *l, void *arg), void *arg);
/* For cli_on_failure(): another thread of the group has failed, and has printed why. */
bool group_has_failed(void);

#endif
