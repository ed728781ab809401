/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn.h - a connection as all folders know it: identity, state, the upcalls that it owes, the cause of its
 * end. The progress lock guards what cm/ and progress/ use. obj/stream_types.h has the stream, cm/conn.h
 * the handshake. */
#ifndef SOFT_OBJ_CONN_H
#define SOFT_OBJ_CONN_H
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include "dapl/core/base/service.h"
#include "dapl/core/device.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/stream_types.h"

struct shm_conn;
struct soft_cm_conn;
struct soft_qp;

enum soft_conn_state {
	SOFT_NEW,		/* neither listed nor connecting */
	SOFT_CONNECTING,	/* active: TCP is not up yet */
	SOFT_WAIT_REPLY,	/* active: Request sent */
	SOFT_ATTACHING,		/* active: has the Reply, attaches shared memory */
	SOFT_WAIT_REQUEST,	/* passive: TCP is up */
	SOFT_REQUESTED,		/* passive: core has the Request and has not answered */
	SOFT_WAIT_FIRST,	/* passive: Reply sent; first FPDU of a peer_is_dapl is due */
	SOFT_OPEN,		/* both streams carry FPDUs */
	SOFT_CLOSING,		/* this side's last frame is queued or sent */
	SOFT_CLOSED,		/* the socket is closed */
};

/* Upcalls that the service thread owes to core, in this order. */
enum {
	SOFT_UP_ESTABLISHED = 1, SOFT_UP_FAILED = 2, SOFT_UP_CLOSED = 4, SOFT_UP_BROKEN = 8,
	SOFT_UP_RELEASED = 16, SOFT_UP_DEAD = 32, SOFT_UP_CLOSE_SENT = 64,
};

/* What connection management does for the layers below it. */
struct soft_conn_events {
	void (*work)(struct dapl_task *task);		/* makes the upcalls owed; conn->task */
	void (*ended)(struct dapl_conn *conn);		/* the stream of the peer has ended. Progress
							 * lock and qp->lock held */
};

/* What the threads that drive progress keep of a connection (progress/). Guarded by the progress lock. */
struct soft_conn_progress {
	bool in_data;			/* data_epoll has fd, or the ring is polled */
	bool unwatched;			/* no epoll set took its socket: its input is not noticed */
	uint32_t interest;		/* EPOLL* that data_epoll reports */
	struct soft_input input;	/* fd in data_epoll */
	bool ack_listed;
	TAILQ_ENTRY(dapl_conn) ack_link;	/* dev->progress.acks */
};

struct dapl_conn {
	struct dapl_device *dev;
	const struct soft_conn_events *events;
	struct soft_cm_conn *cm;	/* what connection management keeps (cm/conn.h); constant */
	/* guarded by the progress lock */
	enum soft_conn_state state;
	int fd;
	struct soft_qp *qp;
	struct shm_conn *shm;		/* data goes through its rings, not over TCP; constant when
					 * open */
	void *owner;
	bool passive;
	struct sockaddr_storage local, remote;
	uint32_t tap_shown;		/* the capture that has these addresses (core/base/tap.h); qp->lock */
	struct soft_conn_progress progress;
	LIST_ENTRY(dapl_conn) link;	/* dev->cm.conns */

	/* upcalls owed, which the service thread makes */
	uint32_t up;			/* atomic: SOFT_UP_* */
	struct dapl_task task;

	/* guarded as the stream */
	struct dapl_conn_cause cause;	/* first cause of its end, without addresses */
	bool caused;			/* cause is set */
	struct soft_stream stream;
};

/* Queues an upcall (SOFT_UP_*), which the service thread makes. Any locks may be held. */
void soft_conn_queue_upcall(struct dapl_conn *conn, uint32_t what);
/* The functions from here on are called with the progress lock or qp->lock held. */
/* Records why the connection fails or breaks; the first cause stays. */
void soft_conn_caused(struct dapl_conn *conn, int err, enum dapl_code_kind kind, unsigned code,
		      const char *text);
/* Records the error of the socket as the cause. */
void soft_conn_socket_error(struct dapl_conn *conn);
/* The step that the connection is at. */
enum dapl_conn_step soft_conn_step(const struct dapl_conn *conn);

/* Updates the events that epoll reports of the connection's socket. */
void soft_conn_interest(struct dapl_conn *conn);

#endif
