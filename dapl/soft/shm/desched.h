/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* desched.h - detects a peer that polls but is descheduled, so that it answers late. A short write
 * or read that the kernel can copy at once need not wait for such a peer. One request in
 * DESCHED_SAMPLE is timed. How requests are executed stands in shm_conn.c and cma.c. */
#ifndef SOFT_DESCHED_H
#define SOFT_DESCHED_H
#include <stdbool.h>
#include <stdint.h>

/* State of a connection, guarded by qp->lock. */
struct shm_desched {
	uint32_t left;			/* requests until the next one that is timed */
	uint32_t score;			/* how many timed requests were late recently, weighted */
	uint32_t gap, direct;		/* while the peer is late: requests that bypass the ring
					 * between two timed ones, and how many of them are left */
	uint64_t since_ns;		/* when the timed request began; 0: none is under way */
	uint32_t wqe;			/* index of the timed request */
};

/* Counts a request. True: it is not timed, and takes the ring. */
static inline bool desched_count_down(struct shm_desched *desched)
{
	if (__builtin_expect(!desched->left, 0))
		return false;
	desched->left--;
	return true;
}

/* Called for a request that both the ring and CMA suit, and for which desched_count_down() was false.
 * True: it bypasses the ring. False: it takes the ring, and desched_begin() is to be called. */
bool desched_decide(struct shm_desched *desched);
/* Called instead for a request that only the ring suits. */
void desched_skip(struct shm_desched *desched);
/* The request `wqe` takes the ring, and no request is before it. */
void desched_begin(struct shm_desched *desched, uint32_t wqe, uint64_t now_ns);
/* The timed request is done, and its completion was seen. */
void desched_end(struct shm_desched *desched, uint64_t now_ns);

/* True: the timed request is among those before `head`, which are done. */
static inline bool desched_is_over(const struct shm_desched *desched, uint32_t head)
{
	return __builtin_expect(desched->since_ns != 0, 0) && (int32_t)(head - desched->wqe) > 0;
}

#endif
