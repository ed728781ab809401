/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tap.h - the ring through which a program with open IAs hands copies of its RDMA messages to `datcap rdma`
 * (CONTROL_TAP of control.h). It lies in a memory file of the program, whose descriptor the answer
 * names; the client opens it as /proc/PID/fd/N.
 *
 * Entries of whole cache lines are written behind each other from `head` on, modulo the size; an entry does not wrap:
 * one of the kind TAP_FILL fills the end. `head` is published behind whole entries. An entry becomes TAP_VOID when its
 * request is refused, at once. The client reads from `tail` on, and leaves an entry for some milliseconds. A
 * message that does not fit counts as lost: the program never waits.
 *
 * The program stores what it has at hand, in one line for a short message; all else is the client's work: the
 * time that a count of ticks stands for, and the connection of a message. The addresses of a connection come once,
 * before its first message. */
#ifndef COMMON_TAP_H
#define COMMON_TAP_H
#include <stdint.h>

enum {
	TAP_MAGIC = 0x70617431, TAP_VERSION = 5,
	TAP_HEAD = 4096,		/* bytes before the records */
	TAP_SIZE = 8 << 20,		/* bytes of records: some 100 ms of a program that does nothing but send */
	TAP_LINE = 64,			/* bytes; entries are multiples of it */
	TAP_INLINE = 24,		/* bytes of payload that fit into the line of a message */
	TAP_SNAP_MAX = 65536,		/* bytes of payload in a record */
	TAP_LEASE_MS = 3000,		/* the capture ends if the client does not ask again for so long */
};

struct tap_ring {			/* at the start of the file */
	uint32_t magic, version;
	uint64_t size;			/* bytes of records */
	uint64_t began;			/* ns, monotonic: which capture it is; the answer has it, too */
	uint32_t clock;			/* enum tap_clock */
	uint64_t head __attribute__((aligned(64)));	/* written by the program; counts bytes */
	uint64_t lost;			/* records that did not fit */
	uint64_t tail __attribute__((aligned(64)));	/* written by the client */
};

enum tap_clock { TAP_REALTIME, TAP_TICKS };	/* of entries: ns since 1970, or ticks.h */

enum tap_state { TAP_VALID = 1, TAP_VOID };

enum tap_kind {
	TAP_POSTED,			/* a request of this side, just before it was posted */
	TAP_RECEIVED,			/* a message of the peer, in a receive of this side */
	TAP_ANSWERED,			/* a read or an atomic of this side has completed */
	TAP_ENDS,			/* the ends of a connection, before its first message */
	TAP_FILL,			/* up to the end of the ring */
};

/* Numbers of enum ibv_wr_opcode, and of IBV_SEND_SOLICITED: a post stores them as they are. */
enum tap_op { TAP_WRITE = 0, TAP_SEND = 2, TAP_READ = 4, TAP_CMP_SWAP = 5, TAP_FETCH_ADD = 6 };

enum tap_flag {
	TAP_IMMEDIATE = 1, TAP_INVALIDATE = 2, TAP_SOLICITED = 4,
	/* of a connection, with its ends */
	TAP_MEMORY = 8,			/* carried by shared memory, else by TCP */
	TAP_ACTIVE = 16,		/* this side connected, the other accepted */
	TAP_ROCE = 32,			/* carried by an RDMA device with InfiniBand's transport, not by iWARP */
};

struct tap_address {
	uint8_t family;			/* 4 or 6 */
	uint8_t reserved;
	uint16_t port;			/* host byte order */
	uint8_t ip[16];			/* IPv4: the first four bytes */
};

struct tap_ends {
	struct tap_address local, remote;
	uint32_t remote_qpn, mtu;	/* of TAP_ROCE: the peer's QP, bytes of payload in a packet */
};

struct tap_message {
	uint32_t length;		/* bytes of the message */
	uint32_t captured;		/* of these */
	uint32_t word;			/* immediate data, or STag to invalidate; read and atomic: STag of `sink` */
	uint32_t stag;			/* of the peer's memory: write, read, atomic; a send leaves it undefined */
	uint64_t remote;		/* its address; the same */
	union {
		uint8_t payload[TAP_INLINE];
		struct {		/* read and atomic */
			uint64_t sink;	/* address here */
			uint64_t compare_add, swap;
		};
	};
};

struct tap_entry {
	uint64_t time;			/* by the clock of the ring */
	uint32_t qpn;
	uint8_t state;			/* enum tap_state, atomic */
	uint8_t kind, op, flags;
	union {
		struct tap_message message;
		struct tap_ends ends;
	};
} __attribute__((aligned(TAP_LINE)));
_Static_assert(sizeof(struct tap_entry) == TAP_LINE, "an entry begins a line");

static inline int tap_is_operation(unsigned op)
{
	return op <= TAP_FETCH_ADD && op != TAP_WRITE + 1 && op != TAP_SEND + 1;
}

static inline int tap_fetches(unsigned op)
{
	return op >= TAP_READ;
}

/* Returns the bytes of the lines behind that of a message which hold its payload. They hold none if it fits into
 * the line of the message. */
static inline uint32_t tap_payload_size(unsigned op, uint32_t captured)
{
	return captured <= (tap_fetches(op) ? 0 : TAP_INLINE) ? 0 : (captured + TAP_LINE - 1) & ~(TAP_LINE - 1u);
}

#endif
