/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stream_types.h - the stream of a connection: its parameters, the position of its sender and of its
 * receiver, unexpected messages, and the counters of acknowledgements. Guarded by the lock of the QP that the
 * connection is attached to, and without a QP by the progress lock. */
#ifndef SOFT_OBJ_STREAM_TYPES_H
#define SOFT_OBJ_STREAM_TYPES_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include "dapl/soft/wire/wire.h"

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
	struct soft_answer *answers;	/* ring of reads_in */
	uint32_t answer_tail;		/* counter; head is tx.cursor.answer */
	TAILQ_HEAD(soft_unexpected_head, soft_unexpected) unexpected;
	uint32_t unexpected_bytes;
	bool end_reported;		/* atomic: the end was reported to core */
};

#endif
