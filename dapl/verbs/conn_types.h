/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn_types.h - connections and listeners. Types only: cm.c has the event channel and listeners, conn.c the life of a
 * connection, initiator.c and acceptor.c its sides. Locks and lifetimes: cm.c. */
#ifndef HW_CONN_TYPES_H
#define HW_CONN_TYPES_H
#include "common/lock.h"
#include "dapl/core/device.h"
#include "dapl/core/base/service.h"
#include "pdata.h"
#include <rdma/rdma_cma.h>

/* What an rdma_cm_id's context points to: the head of one of these. */
struct cm_target {
	enum cm_kind { CM_CONN, CM_LISTENER, CM_MEMBERSHIP } kind;
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
	CONN_REQUESTED,			/* passive: the request came in, there is no answer yet */
	CONN_RESOLVING_ADDRESS, CONN_RESOLVING_ROUTE, CONN_CONNECTING,	/* active */
	CONN_ACCEPTING,			/* passive: answered, waiting for the peer */
	CONN_ESTABLISHED,
	CONN_PEER_CLOSED,		/* the peer disconnected, this side has not yet */
	CONN_DISCONNECTING,		/* this side disconnected, the peer has not yet */
	CONN_CLOSED,
	CONN_STATES
};

struct dapl_conn {
	struct cm_target target;
	struct dapl_device *dev;
	struct rdma_cm_id *id;		/* changed and destroyed on the service thread only */
	struct dapl_conn *next, **prev;	/* dev->lock */
	bool ud;
	bool active;			/* this side connects, the other accepts */
	enum hw_wire wire;

	struct dapl_mutex lock;		/* guards all that follows */
	enum conn_state state;
	struct sockaddr_storage local, remote;	/* with ports, as far as known */
	struct dapl_conn_cause cause;	/* of the failure; its addresses are not used */
	bool caused;			/* `cause` is set: later causes are ignored */
	bool request_sent;		/* CONNECTING: waiting for the peer's answer */
	bool released;
	bool lingering;			/* service thread only: released, its id kept */
	void *owner;			/* core's; NULL: a request that was not accepted */
	struct ibv_qp *qp;		/* NULL once released */
	bool srq;
	uint8_t reads_out, reads_in;
	int tos;			/* ToS byte or traffic class; -1: the system's or the peer's */
	struct dapl_conn_tuning tuning;
	uint8_t peer_mtu;		/* enum ibv_mtu; 0: the peer sent no limit */
	unsigned retries, restarts;	/* left */
	uint8_t pdata_len;		/* of the request we send */
	uint8_t pdata[256];
	struct hw_ud_self peer_self;	/* passive UD: the address that the peer sent */

	/* An upcall that became due in a call of core's. The task makes it, on the service thread. */
	enum { LATE_NOTHING, LATE_FAILED, LATE_ESTABLISHED } late;
	enum dapl_conn_failure why;
	struct dapl_ud_peer late_peer;

	struct dapl_task task;
	struct dapl_timer linger;
};

#endif
