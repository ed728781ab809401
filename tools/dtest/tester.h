/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tester.h - one side of dtest: its options, DAT objects and memory, the connection, posting and
 * waiting. phases.h decides what is sent and when. A call that fails calls fail() (cli.h). */
#ifndef DTEST_TESTER_H
#define DTEST_TESTER_H
#include <dat/udat.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum {
	DTEST_QUALIFIER = 45248,	/* the server's connection qualifier */
	DTEST_MESSAGES = 100,		/* of the message ping-pong */
	DTEST_NOTES = 3,		/* receives for notes that are posted before the connection */
	DTEST_PATIENCE = 60,		/* seconds without a completion after which the peer counts as stuck */
};

struct dtest_options {
	const char *ia;
	const char *host;		/* NULL: serve */
	size_t length;			/* bytes of an operation */
	unsigned burst;			/* operations in a burst */
	unsigned signal_rate;		/* each n-th RDMA write is signaled */
	unsigned delay;			/* seconds before the server accepts */
	unsigned step;			/* sizes around the multiples of this one; 0: around powers of two */
	bool one_way, write_only, write_pingpong, validate, all_sizes, times, cno, poll, verbose;
};

/* How long calls took, in seconds. */
struct dtest_times {
	double open, close, pz_create, pz_free, lmr_create, lmr_free, evd_create, evd_free;
	double ep_create, ep_free, connect;
};

/* On the wire, in network byte order: where the sender lets its peer write and read. */
struct note {
	uint64_t address;
	uint32_t length;
	uint32_t context;
};

struct tester {
	const struct dtest_options *o;
	struct dtest_times times;
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async, cr, conn, request, recv;
	DAT_CNO_HANDLE cno;
	DAT_PZ_HANDLE pz;
	DAT_EP_HANDLE ep;
	DAT_PSP_HANDLE psp;
	DAT_CR_HANDLE arrived;		/* the connection request of the client */
	DAT_LMR_HANDLE in_lmr, out_lmr, note_lmr;
	DAT_LMR_CONTEXT in_context, out_context, note_context;
	DAT_RMR_CONTEXT in_remote;
	volatile char *in;		/* the target of receives, and of the peer's writes and reads */
	char *out;			/* source of sends and writes, sink of reads */
	struct note *notes;		/* DTEST_NOTES received notes, then the note to send */
	DAT_RMR_TRIPLET peer;		/* the peer's `in` */
	bool immediate;			/* the adapter has RDMA writes with immediate data */
	unsigned long empty_polls;
};

void tester_open(struct tester *t, const struct dtest_options *o);
void tester_close(struct tester *t);
/* Stores the adapter's own address. */
void tester_address(struct tester *t, struct sockaddr_storage *address);

void tester_listen(struct tester *t);
/* Waits up to `ms` for the connection request of a client. Returns whether it has arrived. */
bool tester_requested(struct tester *t, unsigned ms);
void tester_accept(struct tester *t);	/* accepts that request */
void tester_connect(struct tester *t, const struct sockaddr *address);
/* The client disconnects, and the server waits for that. */
void tester_disconnect(struct tester *t);

/* Waits for the next completion and returns it. fail() names `what` if it is not a success. */
DAT_EVENT tester_wait(struct tester *t, DAT_EVD_HANDLE evd, const char *what);
/* Takes a completion if there is one, with the check of tester_wait(). Returns whether there was one. */
bool tester_poll(struct tester *t, DAT_EVD_HANDLE evd, const char *what);

/* Sends `length` bytes from the start of `out`. */
void tester_send(struct tester *t, size_t length);
void tester_post_receive(struct tester *t);
void tester_write(struct tester *t, size_t length, bool signaled);
void tester_write_immediate(struct tester *t, size_t length);
void tester_read(struct tester *t, size_t length);
/* Notes tell the peer where `in` is, and synchronise the two sides. The peer's first note is kept in
 * t->peer. */
void tester_send_note(struct tester *t, bool signaled);
void tester_receive_note(struct tester *t);

#endif
