/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tap.h - the ring through which a program with open IAs hands copies of its RDMA messages to `datcap rdma`
 * (CONTROL_TAP of control.h). It lies in a memory file of the program, whose descriptor the answer
 * names; the client opens it as /proc/PID/fd/N.
 *
 * Entries are written behind each other from `head` on, modulo the size; an entry does not wrap: one of
 * the state TAP_SKIP fills the end. `head` is published behind whole entries. An entry becomes TAP_SKIP when its
 * request is refused, at once. The client reads from `tail` on, and leaves an entry for some milliseconds. A
 * message that does not fit counts as lost: the program never waits.
 *
 * An entry is short, so that the program touches one cache line for a short message: fields that few messages
 * have follow it in parts, and the addresses of a connection come once, with its first message. */
#ifndef COMMON_TAP_H
#define COMMON_TAP_H
#include <stdint.h>

enum {
	TAP_MAGIC = 0x70617431, TAP_VERSION = 3,
	TAP_HEAD = 4096,		/* bytes before the records */
	TAP_SIZE = 8 << 20,		/* bytes of records: some 100 ms of a program that does nothing but send */
	TAP_SNAP_MAX = 65536,		/* bytes of payload in a record */
	TAP_LEASE_MS = 3000,		/* the capture ends if the client does not ask again for so long */
};

struct tap_ring {			/* at the start of the file */
	uint32_t magic, version;
	uint64_t size;			/* bytes of records */
	uint64_t began;			/* ns, monotonic: which capture it is; the answer has it, too */
	uint64_t head __attribute__((aligned(64)));	/* written by the program; counts bytes */
	uint64_t lost;			/* records that did not fit */
	uint64_t tail __attribute__((aligned(64)));	/* written by the client */
};

enum tap_state { TAP_VALID = 1, TAP_SKIP };

enum tap_kind {
	TAP_POSTED,			/* a request of this side, just before it was posted */
	TAP_RECEIVED,			/* a message of the peer, in a receive of this side */
	TAP_ANSWERED,			/* a read or an atomic of this side has completed */
};

enum tap_op { TAP_SEND, TAP_WRITE, TAP_READ, TAP_CMP_SWAP, TAP_FETCH_ADD };

enum tap_flag {
	TAP_SOLICITED = 1, TAP_INVALIDATE = 2, TAP_IMMEDIATE = 4,
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

/* What is told of a message. In the ring it is an entry, with the parts that the message has. */
struct tap_memory {
	uint64_t remote;		/* address of the peer's memory: write, read, atomic */
	uint64_t sink;			/* read and atomic: address here */
	uint32_t stag, sink_stag;	/* of these */
};

struct tap_atomic {
	uint64_t compare_add, swap;
};

struct tap_ends {
	struct tap_address local, remote;
	uint32_t remote_qpn, mtu;	/* of TAP_ROCE: the peer's QP, bytes of payload in a packet */
};

struct tap_record {
	uint64_t time;			/* ns since 1970 */
	uint32_t qpn;
	uint8_t kind, op, flags, reserved;
	uint32_t length;		/* bytes of the message */
	uint32_t captured;		/* of these */
	uint32_t word;			/* immediate data, or STag to invalidate */
	uint32_t reserved2;
	struct tap_memory memory;
	struct tap_atomic atomic;
	struct tap_ends ends;		/* of the connection */
};

enum tap_part { TAP_PART_MEMORY = 1, TAP_PART_ATOMIC = 2, TAP_PART_ENDS = 4 };

struct tap_entry {
	uint32_t size;			/* with parts and payload; a multiple of 8 */
	uint8_t state;			/* enum tap_state, atomic */
	uint8_t kind, op, flags;
	uint64_t time;
	uint32_t qpn, length, captured, word;
	uint32_t parts;			/* enum tap_part: those that follow, in this order; then the payload */
	uint32_t reserved;
};
_Static_assert(sizeof(struct tap_entry) == 40 && sizeof(struct tap_ends) == 48 && sizeof(struct tap_memory) == 24,
	       "entries are aligned");

#endif
