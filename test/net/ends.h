/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ends.h - the two ends of a connection in two processes: one serves, one calls; messages,
 * writes and reads between them, checked. What network is between is the tests' business. */
#ifndef TEST_NET_ENDS_H
#define TEST_NET_ENDS_H
#include "test/life/life.h"
#include <sys/types.h>

enum {
	PORT = 7000, BLOCK = 65536, BLOCKS = 4, MEMORY = BLOCK * BLOCKS,
	DEATH = 60000000,	/* us: until the end of a peer is noticed, at most */
};

struct end {
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE async, cr, recv, request, conn;
	DAT_EP_HANDLE ep;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT local;
	DAT_RMR_CONTEXT remote;
	char *memory;
};

struct server {		/* shared by the two processes */
	bool ready;	/* atomic: it listens */
	bool connected;	/* atomic: its end is */
	DAT_RMR_CONTEXT remote;
	DAT_VADDR at;
};
extern struct server *server;
void make_server(void);		/* the shared part, before the fork */

void open_end(struct end *e, const char *library, const char *netdev);
void close_end(struct end *e);

/* Memory is BLOCKS blocks, which calls name by number. */
void post_receive(struct end *e, int number);
void post_send(struct end *e, int number, unsigned length);
void post_rdma(struct end *e, int from, int to, unsigned length, bool read);
DAT_DTO_COMPLETION_STATUS done(DAT_EVD_HANDLE evd, unsigned *length);

/* The server: listens, with a receive posted into block 0, and accepts one; sends back,
 * checked, what comes till the end of the connection. */
void accept_one(struct end *e);
void echo(struct end *e);
/* The client: connects and awaits that event; messages and back, writes, and reads of what
 * was written. */
DAT_RETURN connect_to(struct end *e, const char *address, DAT_TIMEOUT timeout,
		      DAT_EVENT_NUMBER expected);
void exchange(struct end *e, unsigned rounds);

void await_server(pid_t pid);		/* till it is ready */
void expect_good_end(pid_t pid);
bool try_quietly(const char *command);
void must(const char *command);

#endif
