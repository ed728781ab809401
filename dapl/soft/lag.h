/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lag.h - does a peer that polls answer late all the same, because it has no processor? Then a
 * short write or read that the kernel can copy at once need not wait for it. One request in
 * EACH is timed; knows nothing of how they are executed (pair.c, direct.c). */
#ifndef SOFT_LAG_H
#define SOFT_LAG_H
#include <stdbool.h>
#include <stdint.h>

/* Of a connection; all by the one who posts on it, qp->lock held. */
struct soft_lag {
	uint32_t left;			/* requests until the next one that is timed */
	uint32_t score;			/* that they were late, of late */
	uint32_t gap, direct;		/* while they are, so many don't take the ring, and yet */
	uint64_t since_ns;		/* when the one that is timed began; 0: none is */
	uint32_t wqe;			/* its place in the queue */
};

/* Nothing is to be decided for this request: it takes the ring. */
static inline bool soft_lag_passes(struct soft_lag *lag)
{
	if (__builtin_expect(!lag->left, 0))
		return false;
	lag->left--;
	return true;
}

/* A request that either way suits, and that did not pass. True: not the ring's. False: it is, and
 * soft_lag_begin is to be called. */
bool soft_lag_decide(struct soft_lag *lag);
/* ... and that the ring's alone suits. */
void soft_lag_skip(struct soft_lag *lag);
/* The request at `wqe` goes by the ring, with nothing before it. */
void soft_lag_begin(struct soft_lag *lag, uint32_t wqe, uint64_t now_ns);
/* It is done, and has been seen to be. */
void soft_lag_end(struct soft_lag *lag, uint64_t now_ns);

/* The requests before `head` are done; is the one that is timed among them? */
static inline bool soft_lag_is_over(const struct soft_lag *lag, uint32_t head)
{
	return __builtin_expect(lag->since_ns != 0, 0) && (int32_t)(head - lag->wqe) > 0;
}

#endif
