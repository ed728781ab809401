/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* proto_state.h - what protocol selection keeps for a connection. Only proto.[ch] look into it. */
#ifndef SOFT_PROTO_STATE_H
#define SOFT_PROTO_STATE_H
#include <stdbool.h>
#include <stdint.h>
#include "dapl/soft/shm/proto_table.h"

/* Guarded by qp->lock. */
struct proto_state {
	uint32_t unmapped;		/* the last STag that could not be mapped */
	/* Whether the peer polls. */
	uint64_t looked_ns;		/* when the poll count of the peer was last read */
	uint32_t polls;			/* the poll count read then */
	bool polls_often;		/* the peer polled often before that */
	/* Large requests that are measured. */
	bool trying;			/* the protocol of the last large request was selected to measure it */
	bool probing;			/* so was that of the last large write that was started */
	enum shm_proto last;		/* protocol of that write */
	struct proto_series reads, writes;
};

#endif
