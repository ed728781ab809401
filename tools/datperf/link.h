/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* link.h - the connected endpoints of one thread with their memory, EVDs and receives. It uses only the
 * public DAT interface. A link has one or more endpoints to one thread of the peer; posts go to the endpoint
 * that link_use() or link_next() selects. All endpoints share the memory. If a DAT call fails, the functions
 * call fail() (cli.h) with the name of the call and the DAT code. They also call fail() if an answer does
 * not come within LINK_TIMEOUT seconds. connect.h connects the endpoints, group.h runs the threads. */
#ifndef DATPERF_LINK_H
#define DATPERF_LINK_H
#include "datagrams.h"
#include "target.h"

enum {
	LINK_DEPTH = 32,      /* operations in flight of an endpoint, unless the client wants more */
	LINK_DEPTH_MAX = 4096,
	LINK_BLOCK = 1 << 20, /* bytes of a transfer, unless the client wants more */
	LINK_BLOCK_MAX = 256 << 20, /* a link has three times as much memory, which RDMA devices pin */
	LINK_TIMEOUT = 20,    /* seconds */
	LINK_ENDPOINTS = 1024 /* at most */
};

/* How a side waits for a completion. */
enum wake {
	WAKE_POLL, /* dat_evd_dequeue() in a loop */
	WAKE_WAIT, /* dat_evd_wait() */
	WAKE_CNO   /* dat_cno_wait() */
};

/* The memory of a link. */
enum memory_kind {
	MEMORY_SHARED,  /* shared memory, which peers on this host may map */
	MEMORY_PRIVATE, /* memory of this process */
	MEMORY_DEVICE   /* like MEMORY_PRIVATE; the target is memory of the device */
};

struct endpoint {
	DAT_EP_HANDLE ep;
	unsigned unfinished; /* requests whose completion was not taken */
	uint32_t moved,
		credits; /* of a stream: messages sent or received, credits received */
};

struct link {
	const struct adapter *adapter;
	unsigned index;   /* among the links of the process */
	uint64_t session; /* of the client's process (connect.h) */
	DAT_EVD_HANDLE conn, request, recv, probe_conn;
	DAT_CNO_HANDLE cno;
	DAT_SRQ_HANDLE srq;  /* NULL: each endpoint has receives of its own */
	DAT_EP_HANDLE probe; /* endpoint of the timed connection (connect.h), or NULL */
	struct endpoint *endpoints;
	unsigned count; /* of endpoints; 0: none exist */
	unsigned turn;  /* the endpoint that the next request is posted to */
	unsigned from;  /* the endpoint of the last receive */
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT lmr_context;
	DAT_RMR_CONTEXT rmr_context;
	enum memory_kind kind;
	size_t block;         /* bytes of each of the areas below; of the target at most. A power of two */
	unsigned most;        /* operations in flight of an endpoint, at most; its receives. A power of two */
	char *out;            /* source of sends and RDMA writes */
	char *in;             /* buffer of all receives */
	struct target target; /* while there are endpoints */
	DAT_VADDR peer_target;
	DAT_RMR_CONTEXT peer_context;
	size_t peer_size; /* bytes of the peer's target */
	unsigned unfinished; /* of all endpoints */
	unsigned depth;      /* requests in flight of an endpoint, up to `most` */
	bool shared;         /* the memory is registered as shared memory */
	struct datagrams datagrams;
	DAT_EVENT message; /* of the receive that link_has_message() has found */
	bool has_message;
};

/* A wait for an event or for a write of the peer, which fails after LINK_TIMEOUT. Zero at its begin. */
struct link_wait {
	unsigned long polls;
	double since, checked; /* times in seconds: of the first read of the clock; of the last check */
	DAT_EP_HANDLE lost;    /* its connection has ended; polls once more, for data from before the end */
};

/* Allocates and registers the memory. Creates no endpoint. */
void link_open(struct link *l, const struct adapter *a, unsigned index, enum memory_kind kind, size_t block);
/* Frees the memory. There must be no endpoints. */
void link_close(struct link *l);
/* Creates the target of one of `threads` links, and endpoints for `most` operations in flight. Posts receives, to an
 * SRQ if `srq`. The adapter must have room (group_limit()). */
void link_create_endpoints(struct link *l, unsigned threads, unsigned count, unsigned most, bool srq);
/* Frees the endpoints in any state, and the target. */
void link_free_endpoints(struct link *l);

/* --- transfer.c */

/* Returns the most bytes that RDMA can write or read: in the targets of both sides. */
size_t link_target_size(const struct link *l);

/* Selects the endpoint of the next posts. */
void link_use(struct link *l, unsigned endpoint);
void link_next(struct link *l);

DAT_EVD_HANDLE link_create_evd(struct link *l, DAT_COUNT length, DAT_EVD_FLAGS flags);
void link_free_evd(DAT_EVD_HANDLE *evd); /* if there is one */

/* Posts a receive to the SRQ if there is one, else to the endpoint. */
void link_post_receive(struct link *l, struct endpoint *e);
/* These post a request. If `depth` requests of the endpoint are in flight, they first poll for one to
 * complete. */
void link_send(struct link *l, size_t size);
void link_write(struct link *l, size_t size);
void link_read(struct link *l, size_t size); /* from the peer's target area to this link's */
void link_fetch_add(struct link *l);         /* adds 1 to the first word of the peer's target */
void link_write_immediate(struct link *l, size_t size, uint32_t data);
void link_finish(struct link *l);                    /* polls until all requests are complete */
void link_finish_by(struct link *l, enum wake wake); /* waits as `wake` says */

/* Polls for a message of any endpoint, sets `from`, and posts the receive again. Returns the length. So
 * `most` messages for each endpoint can always arrive before the first is taken. */
size_t link_receive(struct link *l);
size_t link_receive_by(struct link *l, enum wake wake); /* waits as `wake` says */
/* Returns whether there is a message of any endpoint, which link_wait() takes. */
bool link_has_message(struct link *l);
/* Like link_receive(), but sleeps without limit. Returns false if the peer has disconnected. */
bool link_wait(struct link *l, size_t *size);

/* Looks for an event once, for a side that waits for several things: polls, or sleeps for some milliseconds. Returns
 * whether there was one. Without any, calls fail() when the wait has lasted LINK_TIMEOUT, or a connection has ended. */
bool link_look(struct link *l, DAT_EVD_HANDLE evd, enum wake wake, struct link_wait *w, DAT_EVENT *event,
	       const char *what);
/* Returns the data of a completion. Calls fail() if it is not a success. */
const DAT_DTO_COMPLETION_EVENT_DATA *link_completion(const DAT_EVENT *e, const char *what);

/* Spins until byte i of the target, which the peer writes, is value. */
void link_spin_byte(struct link *l, size_t i, uint8_t value);

#endif
