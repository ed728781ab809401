/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cm.h - what cm.c (the event channel, listeners) and conn.c (one connection) share.
 * Locks and lifetimes: cm.c. */
#ifndef HW_CM_H
#define HW_CM_H
#include "hw.h"
#include "pdata.h"

/* What an rdma_cm_id's context points to: the head of a listener or of a connection. */
struct cm_target {
	bool is_listener;
};

struct dapl_listener {
	struct cm_target target;
	struct dapl_device *dev;
	struct rdma_cm_id *id;
	void *sp;
	bool ud;
	bool dead;			/* atomic: unlisten has begun */
};

enum conn_state {
	CONN_REQUESTED,			/* passive: came in, not answered */
	CONN_RESOLVING_ADDRESS, CONN_RESOLVING_ROUTE, CONN_CONNECTING,	/* active */
	CONN_ACCEPTING,			/* passive: answered, waiting for the peer */
	CONN_ESTABLISHED,
	CONN_PEER_CLOSED,		/* the peer disconnected, we did not yet */
	CONN_DISCONNECTING,		/* we disconnected, the peer did not yet */
	CONN_OVER,
};

struct dapl_conn {
	struct cm_target target;
	struct dapl_device *dev;
	struct rdma_cm_id *id;		/* changed and destroyed on the service thread only */
	struct dapl_conn *next, **prev;	/* dev->lock */
	bool ud;
	enum hw_wire wire;

	struct dapl_mutex lock;		/* guards all that follows */
	enum conn_state state;
	struct sockaddr_storage local, remote;	/* with ports, as far as known */
	struct dapl_conn_cause cause;	/* of its end, without addresses */
	bool caused;			/* the first cause stays */
	bool request_sent;		/* CONNECTING: what is missing is the peer's answer */
	bool released;
	bool lingering;			/* service thread only: released, its id kept */
	void *owner;			/* core's; NULL: a request that was not accepted */
	struct ibv_qp *qp;		/* NULL once released */
	bool srq;
	uint8_t reads_out, reads_in;
	uint8_t tos;			/* 0: leave it alone */
	uint8_t peer_mtu;		/* enum ibv_mtu; 0: the peer told no limit */
	unsigned retries, restarts;	/* left */
	uint8_t pdata_len;		/* of the request we send */
	uint8_t pdata[256];
	struct hw_ud_self peer_self;	/* passive UD: where the peer says it is */

	/* Upcalls that a call found to be due: made by the task, on the service thread. */
	enum { LATE_NOTHING, LATE_FAILED, LATE_ESTABLISHED } late;
	enum dapl_conn_failure why;
	struct dapl_ud_peer late_peer;

	struct dapl_task task;
	struct dapl_timer linger;
};

/* A connection for an id that a request brought. The id is the caller's on failure. */
int hw_conn_from_request(struct dapl_device *dev, struct rdma_cm_id *id, bool ud,
			 const struct hw_pdata *pdata, const struct rdma_cm_event *event,
			 struct dapl_conn **conn);
/* Service thread. `pdata` holds the event's private data. */
void hw_conn_event(struct dapl_conn *conn, const struct rdma_cm_event *event,
		   const uint8_t *pdata, size_t len);
/* Service thread: its id goes, and it. */
void hw_conn_destroy(struct dapl_conn *conn);
/* Refuses a request on the provider's behalf. */
void hw_refuse(struct rdma_cm_id *id, enum hw_wire wire);

#endif
