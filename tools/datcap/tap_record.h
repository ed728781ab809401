/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tap_record.h - a message of a program, as the frames and lines of `datcap rdma` are made of it. taps.c makes it of
 * entries of a ring (common/tap.h). */
#ifndef DATCAP_TAP_RECORD_H
#define DATCAP_TAP_RECORD_H
#include "common/tap.h"

struct tap_memory {
	uint64_t remote;		/* address of the peer's memory: write, read, atomic */
	uint64_t sink;			/* read and atomic: address here */
	uint32_t stag, sink_stag;	/* of these */
};

struct tap_atomic {
	uint64_t compare_add, swap;
};

struct tap_record {
	uint64_t time;			/* ns since 1970 */
	uint32_t qpn;
	uint8_t kind, op, flags;
	uint32_t length;		/* bytes of the message */
	uint32_t captured;		/* of these */
	uint32_t word;			/* immediate data, or STag to invalidate */
	struct tap_memory memory;
	struct tap_atomic atomic;
	struct tap_ends ends;		/* of the connection */
};

#endif
