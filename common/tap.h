/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tap.h - the ring through which a program with open IAs hands copies of its RDMA messages to `datcap rdma`
 * (CONTROL_TAP of control.h). It lies in a memory file of the program, whose descriptor the answer
 * names; the client opens it as /proc/PID/fd/N.
 *
 * Records are written behind each other from `head` on, modulo the size; a record does not wrap: a record
 * of the state TAP_SKIP fills the end. The program reserves a record as TAP_PENDING, publishes `head`, and
 * sets the state when the message was posted. The client reads from `tail` on, and stops at a pending
 * record. A record that does not fit counts as lost: the program never waits. */
#ifndef COMMON_TAP_H
#define COMMON_TAP_H
#include <stdint.h>

enum {
	TAP_MAGIC = 0x70617431, TAP_VERSION = 1,
	TAP_HEAD = 4096,		/* bytes before the records */
	TAP_SIZE = 8 << 20,		/* bytes of records: some 40 ms of a program that does nothing but send */
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

enum tap_state { TAP_PENDING, TAP_VALID, TAP_SKIP };

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
};

struct tap_address {
	uint8_t family;			/* 4 or 6 */
	uint8_t reserved;
	uint16_t port;			/* host byte order */
	uint8_t ip[16];			/* IPv4: the first four bytes */
};

struct tap_record {
	uint32_t size;			/* with payload; a multiple of 8 */
	uint32_t state;			/* enum tap_state, atomic */
	uint64_t time;			/* ns since 1970 */
	uint32_t qpn;
	uint8_t kind, op, flags, reserved;
	uint32_t length;		/* bytes of the message */
	uint32_t captured;		/* of these, behind this record */
	uint32_t word;			/* immediate data, or STag to invalidate */
	uint32_t stag;			/* of the peer's memory: write, read, atomic */
	uint64_t remote;		/* address there */
	uint64_t sink;			/* read and atomic: address here */
	uint32_t sink_stag;
	uint32_t reserved2;
	uint64_t compare_add, swap;	/* atomics */
	struct tap_address local_address, remote_address;
};
_Static_assert(sizeof(struct tap_record) % 8 == 0, "records are aligned");

#endif
