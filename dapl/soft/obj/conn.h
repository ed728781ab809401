/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn.h - a connection as all folders know it: identity, state, the upcalls that it owes, the cause of its
 * end, and its stream: parameters, the position of its sender and of its receiver, unexpected messages, counters of
 * acknowledgements. The progress lock guards what cm/ and progress/ use. The lock of the QP that the connection is
 * attached to guards the stream, and without a QP the progress lock. cm/conn.h has the handshake. */
#ifndef SOFT_OBJ_CONN_H
#define SOFT_OBJ_CONN_H
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include "dapl/core/base/service.h"
#include "dapl/core/device.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/wire/wire.h"

struct shm_conn;
struct soft_cm_conn;
struct soft_qp;

/* --- the stream --------------------------------------------------------------------------------- */

/* The credit window, which both peers must agree on. */
enum {
	SOFT_WINDOW = 1 << 20,		/* bytes of Sends that may wait for a receive, for each QP */
	SOFT_CHARGE = 64,		/* bytes of the window that a Send takes beyond its payload */
};

/* An unexpected message: it came before its receive. */
struct soft_unexpected {
	TAILQ_ENTRY(soft_unexpected) link;
	uint8_t op;
	bool complete;
	uint32_t word;			/* immediate data, or STag to invalidate */
	uint32_t length, capacity;	/* bytes of data that have come; bytes allocated */
	uint32_t write_length;		/* of the write that the immediate belongs to */
	uint32_t writes_after;		/* writes that completed after it */
	uint8_t *data;
};

/* A read or an atomic of the peer that this side answers. */
struct soft_answer {
	bool atomic;
	uint32_t stag, length;		/* source */
	uint64_t from;
	uint32_t sink_stag;		/* atomic: request id */
	uint64_t sink_to;		/* atomic: the value before */
	uint32_t msn;
};

/* The position of the sender. Framing works on a copy, which becomes valid when the socket took the
 * bytes. All are counters that wrap. */
struct soft_tx_cursor {
	uint64_t charged;		/* bytes of the credit window used, if peer_is_dapl */
	uint64_t acked_consumed;
	uint32_t wqe;			/* the request to frame next */
	uint32_t offset;		/* bytes of it framed */
	uint32_t msn_send, msn_read, msn_atomic, msn_dapl;
	uint32_t seq;			/* messages framed that the peer acknowledges */
	uint32_t reads;			/* reads and atomics framed */
	uint32_t answer, answered;	/* the answer to frame next, bytes of it framed */
	uint32_t acked_seq;
	bool second;			/* write with immediate: the write is framed */
	bool first_sent, terminate_sent, close_sent;
};

struct soft_tx {
	struct soft_tx_cursor cursor;
	uint8_t *rest;			/* a copy of what the socket did not take */
	size_t rest_length, rest_sent;
	bool blocked;			/* waits for EPOLLOUT */
	bool open;			/* FPDUs may be sent */
	bool first;			/* active: a zero-length write comes first (peer_is_dapl) */
	bool ack_now;			/* an acknowledgement does not wait for a message to ride on */
	bool close_notice, terminate;	/* to be sent, and nothing after it */
	bool shut;			/* FIN sent, or nothing can be sent any more */
	bool busy, again;		/* soft_conn_send() runs; it was called meanwhile */
	uint8_t term[WIRE_TERMINATE_LENGTH + WIRE_TERMINATE_EXTRA];	/* payload of the Terminate */
	uint8_t term_length;
};

enum soft_sink { SOFT_SINK_NONE, SOFT_SINK_RECV, SOFT_SINK_UNEXPECTED, SOFT_SINK_WRITE,
	SOFT_SINK_READ };

enum soft_rx_phase { SOFT_RX_HEAD, SOFT_RX_PAYLOAD, SOFT_RX_TRAILER, SOFT_RX_WHOLE };

struct soft_rx {
	enum soft_rx_phase phase;
	uint32_t part_length, part_need;	/* bytes that are in `part`; bytes that it needs */
	uint8_t part[WIRE_HEAD_MAX + WIRE_BODY_MAX];	/* headers, and a body that is no payload */
	uint8_t *whole;			/* CRC: a whole FPDU is collected here */
	uint32_t whole_length, whole_size;
	struct wire_segment seg;
	uint32_t payload_left, payload_done;	/* of the segment */
	uint32_t trailer_left;
	bool bulk;			/* recent messages were large */

	enum soft_sink sink;
	uint8_t tail[8];		/* last bytes of a write, placed last */
	uint32_t tail_length;		/* of this segment; 0: none */
	char *tail_at;			/* where they go; valid while they are placed */

	uint32_t msn_send, msn_read, msn_atomic, msn_dapl;	/* expected next */
	bool send_open;			/* a Send's last segment has not come */
	uint8_t send_op;
	uint32_t send_offset, send_word;
	struct soft_unexpected *unexpected;	/* where the Send is collected; NULL: in qp->taken */
	bool write_open;
	uint32_t write_stag;
	uint64_t write_to;
	uint32_t write_length;		/* of the last write, for its immediate */
	uint32_t read_wqe, read_offset;	/* response under way */
	bool read_open;
	bool close_notice;
	bool paused;			/* backpressure: waits for EPOLLRDHUP instead of EPOLLIN */
};

struct soft_stream {
	bool peer_is_dapl;		/* the peer is of this implementation */
	bool swaps;			/* the peer is siw (Terminate's bit order) */
	bool crc;
	uint8_t reads_out, reads_in;
	uint32_t mulpdu;
	int io_error;			/* errno of the socket, until the end is noticed; 0: none */
	struct soft_tx tx;
	struct soft_rx rx;
	uint32_t delivered;		/* messages delivered, to be acknowledged */
	uint64_t consumed;		/* bytes of the window consumed, to be acknowledged */
	uint64_t peer_consumed;		/* acknowledged by the peer */
	uint32_t peer_delivered;
	uint32_t peer_ready;		/* reported by the peer: Sends up to this one have a receive */
	uint32_t reads_done;		/* reads and atomics of this side that were answered */
	uint32_t sink_key;		/* makes the STags of read sinks */
	uint32_t arrived;		/* messages received that are to be acknowledged */
	struct soft_answer *answers;	/* ring of reads_in; NULL: none was received yet */
	uint32_t answer_tail;		/* counter; head is tx.cursor.answer */
	TAILQ_HEAD(soft_unexpected_head, soft_unexpected) unexpected;
	uint32_t unexpected_bytes;
	bool end_reported;		/* atomic: the end was reported to core */
};

/* --- the connection ----------------------------------------------------------------------------- */

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

/* struct dapl_conn_cause without the addresses. */
struct soft_conn_cause {
	enum dapl_conn_step step;
	int err;
	enum dapl_code_kind code_kind;
	unsigned code;
	const char *text;
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
	struct soft_conn_cause cause;	/* first cause of its end */
	bool caused;			/* cause is set */
	struct soft_stream stream;
};

/* Queues an upcall (SOFT_UP_*), which the service thread makes. Any locks may be held. */
void soft_conn_queue_upcall(struct dapl_conn *conn, uint32_t what);
/* The functions from here on are called with the progress lock or qp->lock held. */
/* Records why the connection fails or breaks; the first cause stays. */
void soft_conn_caused(struct dapl_conn *conn, int err, enum dapl_code_kind kind, unsigned code,
		      const char *text);
/* Fills in the cause, or the step if there is none, and the addresses. */
void soft_conn_explain(const struct dapl_conn *conn, struct dapl_conn_cause *cause);
/* Records the error of the socket as the cause. */
void soft_conn_socket_error(struct dapl_conn *conn);
/* The step that the connection is at. */
enum dapl_conn_step soft_conn_step(const struct dapl_conn *conn);

/* Updates the events that epoll reports of the connection's socket. */
void soft_conn_interest(struct dapl_conn *conn);

#endif
