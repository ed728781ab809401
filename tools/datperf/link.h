/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* link.h - the connected endpoints of one thread with their memory, EVDs and receives, on the public
 * DAT interface alone. A link has one or more endpoints to one thread of the peer; posts go to the
 * endpoint that link_use() or link_next() selects. All endpoints share the memory. A call that fails
 * calls fail() (cli.h) with the call's name and the DAT code; so does an answer that does not come within
 * LINK_TIMEOUT seconds. Connections are connect.h's job, threads group.h's. */
#ifndef DATPERF_LINK_H
#define DATPERF_LINK_H
#include "adapter.h"

enum {
	LINK_DEPTH = 32,      /* operations of an endpoint under way at a time */
	LINK_BLOCK = 1 << 20, /* bytes of each of the three areas below */
	LINK_TIMEOUT = 20,    /* seconds */
	LINK_ENDPOINTS = 1024 /* at most */
};

/* How a side learns of a completion. */
enum wake {
	WAKE_POLL, /* dat_evd_dequeue() in a loop */
	WAKE_WAIT, /* dat_evd_wait() */
	WAKE_CNO   /* dat_cno_wait() */
};

/* What the areas of a link are. */
enum memory_kind {
	MEMORY_SHARED,  /* a mapping that peers on this host may have, too */
	MEMORY_PRIVATE, /* memory of this process */
	MEMORY_DEVICE   /* memory of the device */
};

struct endpoint {
	DAT_EP_HANDLE ep;
	unsigned unfinished; /* requests posted, completion not taken */
	uint32_t moved,
		credits; /* of a stream: messages sent or taken, credits heard (measure.c) */
};

struct link {
	const struct adapter *adapter;
	unsigned index;   /* among the links of the process */
	uint64_t session; /* of the client's process (connect.h) */
	DAT_EVD_HANDLE conn, request, recv, probe_conn;
	DAT_CNO_HANDLE cno;
	DAT_SRQ_HANDLE srq;  /* NULL: each endpoint has receives of its own */
	DAT_EP_HANDLE probe; /* of the connection that is timed, if there is one (connect.h) */
	struct endpoint *endpoints;
	unsigned count; /* of endpoints; 0: none exist */
	unsigned turn;  /* the endpoint that the next request is posted to */
	unsigned from;  /* the endpoint of the last receive */
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT lmr_context;
	DAT_RMR_CONTEXT rmr_context;
	DAT_HANDLE dm;  /* MEMORY_DEVICE, else NULL */
	uintptr_t base; /* what addresses in requests count from */
	char *out;      /* what we send and write from */
	char *in;       /* where every receive lands */
	char *target;   /* what the peer writes to and reads from */
	DAT_VADDR peer_target;
	DAT_RMR_CONTEXT peer_context;
	unsigned unfinished; /* of all endpoints */
	bool shared;         /* the memory is registered as shared memory */
};

/* Registers the memory; there is no endpoint yet. */
void link_open(struct link *l, const struct adapter *a, unsigned index, enum memory_kind kind);
/* There are no endpoints. */
void link_close(struct link *l);
/* With receives posted, from one SRQ if `srq`. The adapter has room for them (group.h). */
void link_create_endpoints(struct link *l, unsigned count, bool srq);
/* Whatever their state. */
void link_free_endpoints(struct link *l);

/* --- transfer.c */

/* Selects the endpoint of the next posts. */
void link_use(struct link *l, unsigned endpoint);
void link_next(struct link *l);

/* For the endpoint; for the SRQ if there is one. */
void link_post_receive(struct link *l, struct endpoint *e);
/* Posting waits (polling) while LINK_DEPTH requests of the endpoint are under way. */
void link_send(struct link *l, size_t size);
void link_write(struct link *l, size_t size);
void link_read(struct link *l, size_t size); /* the peer's target area into this link's */
void link_fetch_add(struct link *l);         /* adds 1 to the first word of the peer's target */
void link_write_immediate(struct link *l, size_t size, uint32_t data);
void link_finish(struct link *l);                    /* polls until all requests are complete */
void link_finish_by(struct link *l, enum wake wake); /* learns of them so */

/* Polls for a receive of any endpoint, sets `from`, and posts the next receive; returns the length.
 * Up to LINK_DEPTH receives for each endpoint are posted always. */
size_t link_receive(struct link *l);
size_t link_receive_by(struct link *l, enum wake wake); /* learns of it so */
/* Receives as well, but sleeps, without limit. False when the peer has disconnected. */
bool link_wait(struct link *l, size_t *size);

/* Spins until *byte, which the peer writes, is value. */
void link_spin_byte(struct link *l, const volatile uint8_t *byte, uint8_t value);

#endif
