/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* proto_table.h - what a device has measured about large requests. A payload can go through the ring,
 * where one side copies it in and the other out, or be copied once by the kernel (CMA). Which is
 * faster depends on the processor and on the length, by a factor of three either way
 * (doc/performance.md). So a device measures both for each size class: the first requests of the class
 * use the two in turn, then all use the faster one. After a minute the class is measured again. */
#ifndef SOFT_PROTO_TABLE_H
#define SOFT_PROTO_TABLE_H
#include <stdbool.h>
#include <stdint.h>
#include "common/once.h"
#include "dapl/soft/tunables.h"

enum { PROTO_SIZES = 10 };	/* size classes: powers of two from PROTO_MIN on */

/* How the payload of a request goes to a peer on this host (proto.h). */
enum shm_proto {
	PROTO_UNDECIDED,
	PROTO_INLINE, PROTO_COPY,	/* through the ring */
	PROTO_RNDV, PROTO_CMA, PROTO_MAPPED,
};

/* A size class. All fields are atomic; it does no harm when two threads count as one. */
struct proto_class {
	uint32_t selected;		/* enum shm_proto: the faster one. UNDECIDED until it is known */
	uint32_t due;			/* when it is measured again, in proto_ticks() */
	uint32_t turn;			/* requests of the measurement; 0: none is under way */
	uint32_t ns[2];			/* the shortest time for 64 KiB, by the ring and by CMA; 0: not
					 * measured */
};

/* The measurements of a device for one kind of large requests. */
struct shm_proto_table {
	struct proto_class class[PROTO_SIZES];
};

/* The measurements of a device. */
struct shm_proto_tables {
	struct shm_proto_table reads, writes;	/* sends count as writes */
};

static inline unsigned proto_size_class(uint64_t length)
{
	unsigned class = 63 - __builtin_clzll(length / PROTO_MIN | 1);

	return class < PROTO_SIZES ? class : PROTO_SIZES - 1;
}

/* A clock of 32 bits: units of 2^30 ns. */
static inline uint32_t proto_ticks(uint64_t now_ns)
{
	return now_ns >> 30;
}

/* The faster protocol of a request of PROTO_MIN to PROTO_MAX bytes, COPY or CMA. UNDECIDED: it is to
 * be measured, see proto_choose(). */
static inline enum shm_proto proto_known(const struct shm_proto_table *table, uint64_t length,
					 uint64_t now_ns)
{
	const struct proto_class *class = &table->class[proto_size_class(length)];

	return (int32_t)(READ_ONCE(class->due) - proto_ticks(now_ns)) > 0
	       ? (enum shm_proto)READ_ONCE(class->selected) : PROTO_UNDECIDED;
}

/* Selects COPY or CMA for such a request. *trying: it is selected in order to measure it, so
 * proto_learn() is to be called. */
enum shm_proto proto_choose(struct shm_proto_table *table, uint64_t length, uint64_t now_ns, bool *trying);
/* Records how long a request took, from the moment when no request was before it until it was done; or
 * its share of the time of a series. RNDV counts as CMA. */
void proto_learn(struct shm_proto_table *table, enum shm_proto proto, uint64_t length, uint64_t ns);
/* A copy by CMA has failed: requests of this size take the ring until the next measurement. */
void proto_avoid_cma(struct shm_proto_table *table, uint64_t length, uint64_t now_ns);

/* Requests that used one protocol in succession, the first with none before it. They are measured
 * together, since the ring carries several at once. */
struct proto_series {
	uint64_t begun_ns;		/* 0: the series is void */
	uint64_t bytes;			/* of the requests that are done */
	unsigned room, under_way;
};

/* A request begins; `alone`: none is before it. Returns true if it belongs to the series. */
static inline bool proto_series_join(struct proto_series *s, bool alone, uint64_t now_ns)
{
	if (alone)
		*s = (struct proto_series){ .begun_ns = now_ns, .room = PROTO_SERIES };
	if (!s->room)
		return false;
	s->room--;
	s->under_way++;
	return true;
}

/* The series is void, and takes no more requests. */
static inline void proto_series_cancel(struct proto_series *s)
{
	s->begun_ns = s->room = 0;
}

/* A request of the series is done. Returns true if no other is under way, so the series is over. */
static inline bool proto_series_ends(struct proto_series *s, uint64_t length)
{
	s->bytes += length;
	if (--s->under_way)
		return false;
	s->room = 0;
	return true;
}

/* The share of a request of this length in the time that the series took. */
static inline uint64_t proto_series_share(const struct proto_series *s, uint64_t length, uint64_t now_ns)
{
	return (double)(now_ns - s->begun_ns) * length / s->bytes;	/* the product may not fit 64 bits */
}

/* What protocol selection keeps for a connection. Only proto.[ch] look into it. Guarded by qp->lock. */
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
