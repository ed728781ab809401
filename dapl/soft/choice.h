/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* choice.h - which way a large read takes that can take two: through the ring, where the target
 * copies in and the initiator out, or copied by the kernel at once. What is faster depends on the
 * processor and on the length, by a factor of three either way (doc/performance.md), so a device
 * measures both. Knows nothing of how either is done (pair.c, direct.c). */
#ifndef SOFT_CHOICE_H
#define SOFT_CHOICE_H
#include <stdbool.h>
#include <stdint.h>

enum {
	CHOICE_MIN = 8 << 10,		/* shorter ones take the ring: they cost no system call */
	CHOICE_MAX = 4 << 20,		/* longer ones too: the kernel's copy is made under locks */
	CHOICE_SIZES = 10,		/* by powers of two */
};

enum { CHOICE_SERIES = 4 };		/* requests in a row are measured together, at most */

enum soft_way { SOFT_WAY_OPEN, SOFT_WAY_RING, SOFT_WAY_KERNEL };

/* Of a device. All atomic, and no harm done when two threads count as one. */
struct soft_choice {
	struct {
		uint32_t turn;
		uint32_t ns[2];		/* for 64 KiB, by the ring and by the kernel; 0: unknown */
	} size[CHOICE_SIZES];
};

/* The way of a request of CHOICE_MIN to CHOICE_MAX bytes. *try: it's taken to see how long it takes. */
enum soft_way soft_choice_make(struct soft_choice *choice, uint64_t length, bool *try);
/* Nobody has to measure each of them. True: this read goes by the kernel, which is faster, and nothing
 * is to be learned. False: soft_choice_make knows. */
bool soft_choice_is_kernel(struct soft_choice *choice, uint64_t length);
/* It took so long, from when nothing was before it until it was done; or that is its share of what a
 * series took. */
void soft_choice_learn(struct soft_choice *choice, enum soft_way way, uint64_t length, uint64_t ns);

/* Requests that went one way, one after the other, the first with nothing before it: the ring carries
 * several at once. */
struct soft_series {
	uint64_t begun_ns;		/* 0: it says nothing */
	uint64_t bytes;			/* of those that are done */
	unsigned room, under_way;
};

/* A request begins, `alone` or not. True: it belongs to the series. */
static inline bool soft_series_join(struct soft_series *s, bool alone, uint64_t now_ns)
{
	if (alone)
		*s = (struct soft_series){ .begun_ns = now_ns, .room = CHOICE_SERIES };
	if (!s->room)
		return false;
	s->room--;
	s->under_way++;
	return true;
}

/* It says nothing, and takes no more. */
static inline void soft_series_spoil(struct soft_series *s)
{
	s->begun_ns = s->room = 0;
}

/* One of it is done. True: no other is under way, so it is over. */
static inline bool soft_series_ends(struct soft_series *s, uint64_t length)
{
	s->bytes += length;
	if (--s->under_way)
		return false;
	s->room = 0;
	return true;
}

/* What it took for one of this length. */
static inline uint64_t soft_series_share(const struct soft_series *s, uint64_t length, uint64_t now_ns)
{
	return (double)(now_ns - s->begun_ns) * length / s->bytes;	/* the product may not fit 64 bits */
}

#endif
