/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ends.h - a server and a client in two processes, with a connection, and checked messages, writes and reads
 * between them. The tests make the network. */
#ifndef TEST_NET_ENDS_H
#define TEST_NET_ENDS_H
#include "test/life/life.h"
#include <sys/types.h>

enum {
	PORT = 7000, BLOCK = 65536, BLOCKS = 4, MEMORY = BLOCK * BLOCKS,
	DEATH = 60000000,	/* us; the provider detects the end of a peer within this time */
};

struct server {		/* shared by the two processes */
	bool ready;	/* atomic; the server listens */
	bool connected;	/* atomic; the server has accepted the connection */
	DAT_RMR_CONTEXT remote;
	DAT_VADDR at;
};
extern struct server *server;
void make_server(void);		/* makes the shared memory; called before the fork */

void open_end(struct end *e, const char *library, const char *netdev);
void close_end(struct end *e);

/* Memory is BLOCKS blocks, which calls name by number. */
void post_receive(struct end *e, int number);
void post_send(struct end *e, int number, unsigned length);
void post_rdma(struct end *e, int from, int to, unsigned length, bool read);
/* Waits for a completion. Returns its status, and its length unless `length` is NULL. */
DAT_DTO_COMPLETION_STATUS done(DAT_EVD_HANDLE evd, unsigned *length);

/* The server: posts a receive into block 0, listens, and accepts a connection. echo() checks and sends back
 * what comes, until the connection ends. */
void accept_one(struct end *e);
void echo(struct end *e);
/* The client: connects and waits for the event `expected`. exchange() sends messages that come back, writes,
 * and reads what it wrote. */
DAT_RETURN connect_to(struct end *e, const char *address, DAT_TIMEOUT timeout,
		      DAT_EVENT_NUMBER expected);
void exchange(struct end *e, unsigned rounds);

void await_server(pid_t pid);		/* waits until the server is ready */
void expect_good_end(pid_t pid);	/* the process exits with status 0 */
bool try_quietly(const char *command);	/* runs a shell command without output; returns whether it succeeded */
void must(const char *command);		/* runs a shell command, which must succeed */

#endif
