/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tunables.h - the constants of the component: value, unit, reason. Values that users may change are
 * MCA parameters (component.c). contrib/openmpi/test/bench measures the effect of a change. */
#ifndef BTL_UDAPL_TUNABLES_H
#define BTL_UDAPL_TUNABLES_H

#include <stdint.h>

/* Layout of eager rings (ring.h). Both sides must use the same values. */
enum {
	UDAPL_RING_SLOT = 32,		/* bytes; a message takes a multiple of it */
	UDAPL_CACHE_LINE = 64,		/* bytes */
	UDAPL_RING_MIN_MESSAGES = 4,	/* largest messages that a ring must hold */
	UDAPL_RING_MAX_SLOTS = UINT16_MAX - 1,	/* slots; 16 bits report released slots */
	UDAPL_RING_LATER = 32,		/* other rings than the first have 1/N of its room, or less */
	UDAPL_ALIGN_ABOVE = 512,	/* bytes; longer payloads are aligned to a cache line */
	UDAPL_ALIGN_SKIP = 14,		/* bytes of it before the cache line: ob1's match header */
	UDAPL_MESSAGE_OVERHEAD = 103,	/* bytes for tail and alignment: a message takes at most its payload
					 * and this, rounded up to a cache line */
	UDAPL_TAIL_ROOM = 72		/* bytes behind a fragment's payload: padding and tail */
};

/* Reading and writing eager rings. */
enum {
	UDAPL_PREFETCH_LINES = 3,	/* cache lines before the tail, prefetched at each poll */
	UDAPL_RING_BATCH = 64,		/* messages read from one ring before the next is polled */
	UDAPL_RING_TRIES = 256,		/* attempts to get space in a ring before the slow path */
	UDAPL_SIGNALS_PER_QUEUE = 4,	/* signaled staged writes in a full send queue: frees it in parts */
	UDAPL_CREDIT_ALONE = 2,		/* 1/N of a ring unreported: a message of its own reports it */
	UDAPL_CREDIT_ALONG = 16,	/* 1/N of a ring unreported: the next staged message reports it */
	UDAPL_COPY_LIMIT = 1024		/* bytes; copying less costs less than a completion */
};

/* Progress (progress.c). */
enum {
	UDAPL_CQ_BATCH = 16,		/* completions dequeued by one poll */
	UDAPL_MAX_BUDGET = 256,		/* ring messages between two polls of the CQ, at most */
	UDAPL_MAX_EMPTY_POLLS = 256,	/* empty ring polls between two polls of the CQ, at most */
	UDAPL_IDLE_EMPTY_POLLS = 32,	/* UDAPL_MAX_EMPTY_POLLS if the module is idle: its CQ poll yields */
	UDAPL_CONN_POLLS = 128		/* ring polls between two polls of connections, approximately */
};

/* Receives posted beyond the credits, for control messages, which need no credit. Between two
 * polls of its CQ a peer receives at most: two UDAPL_CREDITS for each kind of credits (one
 * reports half of the credits; the next needs credits from the peer), one ring offer, and one
 * close notification. The UDAPL_CREDITS that opens a connection is sent before there are any
 * credits to report. As many send-queue slots are reserved for control messages. */
enum { UDAPL_CONTROL_RECEIVES = 6, UDAPL_CONTROL_REQUESTS = 6 };

/* Initial lengths and limits of DAT objects. */
enum {
	UDAPL_FIRST_IAS = 64,		/* entries requested at first; doubled if the registry has more */
	UDAPL_MAX_READS = 16,		/* outstanding RDMA reads of a connection, in each direction */
	UDAPL_DTO_EVD_LENGTH = 512,	/* events; grows with the connections */
	UDAPL_CONN_EVD_LENGTH = 1024,	/* events; does not grow */
	UDAPL_ASYNC_EVD_LENGTH = 8,	/* events; they are only logged */
	UDAPL_RECENT_REGS = 256,	/* recent registrations, a power of two */
	UDAPL_REG_TRIES = 4,		/* attempts to make one registration */
	UDAPL_REG_PAUSE_US = 1000	/* us between two attempts */
};

/* Sizes of messages, in bytes; MCA parameters of the same names change them. Data of 16 KiB with the
 * header of the PML is sent at once: with a limit of 16384 it took three messages. Copying 16 KiB costs
 * half as much as an RDMA read with its handshake, or the same where processors exchange cache lines slowly. */
enum {
	UDAPL_PML_HEADER = 128,
	UDAPL_EAGER_LIMIT = 16384 + UDAPL_PML_HEADER,
	UDAPL_RNDV_EAGER_LIMIT = 4096 + UDAPL_PML_HEADER,
	UDAPL_MAX_SEND_SIZE = UDAPL_EAGER_LIMIT
};

/* In seconds. Retries and broken connections are rare. */
#define UDAPL_RETRY_AFTER 0.5	/* after a refusal, if the peer's own request does not arrive */
#define UDAPL_BROKEN_AFTER 0.05	/* after a break, if the peer's close notification does not arrive */
/* After an orderly disconnect without a close notification. The kernel closes the connections of a dead
 * process in this way. Siw may also lose a close notification because of the close that follows it;
 * this process is then about to finalize. */
#define UDAPL_DISCONNECTED_AFTER 5.0
#define UDAPL_CLOSE_TIMEOUT 3.0	/* finalize waits for an orderly end of the connections */

#endif
