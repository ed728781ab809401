/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* link.h - one connected endpoint with its memory, on the public DAT interface
 * alone. A call that fails calls fail() (cli.h) with the call's name and the DAT code;
 * so does an answer that does not come within LINK_TIMEOUT seconds. */
#ifndef DATPERF_LINK_H
#define DATPERF_LINK_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <dat/udat.h>
#include <sys/socket.h>

enum {
	LINK_DEPTH = 32,      /* operations under way at a time */
	LINK_BLOCK = 1 << 20, /* bytes of each of the three areas below */
	LINK_TIMEOUT = 20,    /* seconds */
	LINK_READS = 16,      /* RDMA reads and atomics under way, if the IA can */
};

/* How a side learns of a completion. */
enum wake {
	WAKE_POLL, /* dat_evd_dequeue() in a loop */
	WAKE_WAIT, /* dat_evd_wait() */
	WAKE_CNO   /* dat_cno_wait() */
};

/* What the areas of a link are. */
enum memory_kind {
	MEMORY_SHARED,	/* a mapping that peers on this host may have, too */
	MEMORY_PRIVATE, /* memory of this process */
	MEMORY_DEVICE	/* memory of the device */
};

struct link {
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async, cr, conn, request, recv, probe_conn;
	DAT_CNO_HANDLE cno;
	DAT_PZ_HANDLE pz;
	DAT_PSP_HANDLE psp;
	DAT_EP_HANDLE ep;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT lmr_context;
	DAT_RMR_CONTEXT rmr_context;
	DAT_HANDLE dm;   /* MEMORY_DEVICE, else NULL */
	uintptr_t base;  /* what addresses in requests count from */
	char *out;    /* what we send and write from */
	char *in;     /* where every receive lands */
	char *target; /* what the peer writes to and reads from */
	DAT_VADDR peer_target;
	DAT_RMR_CONTEXT peer_context;
	unsigned unfinished;     /* requests posted, completion not taken */
	const char *name;        /* of the IA */
	bool atomics, immediate; /* the IA has them */
	bool shared;		 /* the memory is registered as shared memory */
	DAT_COUNT reads;         /* RDMA reads under way at a time */
};

/* Calls fail() when rc is not DAT_SUCCESS, naming the call and the code. */
void good(DAT_RETURN rc, const char *call);
/* The same for a wait: names `what` did not come within LINK_TIMEOUT when it ended by time. */
void timed_out(DAT_RETURN rc, const char *call, const char *what);
double now(void); /* seconds, monotonic */

void link_open(struct link *l, const char *ia, enum memory_kind kind);
/* The IA's own address, as a peer would name it. */
void link_address(struct link *l, struct sockaddr_storage *address);
void link_close(struct link *l);

void link_listen(struct link *l, DAT_CONN_QUAL port);
/* Waits, without limit, for a peer; connected on return. A peer that is not datperf is rejected, and
 * fail() called. */
void link_accept(struct link *l);
void link_connect(struct link *l, const struct sockaddr *to, DAT_CONN_QUAL port);
void link_disconnect(struct link *l);
/* After a failure: frees the endpoint whatever its state, so that link_accept can be called again. */
void link_drop(struct link *l);

void link_post_receive(struct link *l);
/* Posting waits (polling) while LINK_DEPTH requests are under way. */
void link_send(struct link *l, size_t size);
void link_write(struct link *l, size_t size);
void link_read(struct link *l, size_t size); /* the peer's target into ours */
void link_fetch_add(struct link *l);         /* adds 1 to the first word of the peer's target */
void link_write_immediate(struct link *l, size_t size, uint32_t data);
void link_finish(struct link *l);                    /* polls until all requests are complete */
void link_finish_by(struct link *l, enum wake wake); /* learns of them so */

/* Polls for a receive and posts the next one; returns the length. Up to LINK_DEPTH
 * receives are posted always. */
size_t link_receive(struct link *l);
size_t link_receive_by(struct link *l, enum wake wake); /* learns of it so */
/* The same, but sleeps, without limit. False when the peer has disconnected. */
bool link_wait(struct link *l, size_t *size);

/* One more connection, beside the link: made and ended. link_probe() returns the seconds until it
 * was established. */
double link_probe(struct link *l, const struct sockaddr *to, DAT_CONN_QUAL port);
void link_accept_probe(struct link *l);

/* Spins until *byte, which the peer writes, is value. */
void link_spin_byte(const volatile uint8_t *byte, uint8_t value);

#endif
