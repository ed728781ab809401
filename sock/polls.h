/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* polls.h - when a thread that reads without waiting, again and again, yields the processor: the peer may wait for it.
 * Two such threads on one processor otherwise each use up their time slice for every message. */
#ifndef SOCK_POLLS_H
#define SOCK_POLLS_H
#include <stdbool.h>
#include <stdint.h>

enum {
	POLLS_FIRST = 256, /* empty reads before the first yield: some 20 us; a peer that runs answers within 1 us */
	POLLS_MOST = 2048, /* between two yields, which get rarer while nothing comes */
};

/* All zero: no read yet. */
struct polls {
	uint32_t empty; /* reads in a row without a byte, since the last yield */
	uint32_t limit;
};

/* A read has found bytes, or none. Returns whether the thread should yield. */
bool polls_note(struct polls *p, bool found);

#endif
