/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* calls.h - which of many rings has something: peers call. A device that serves more rings than it
 * likes to look at in each poll gives them numbers, and asks the peers of those that are seldom
 * used to set the number's bit in memory that it shares with all its peers, whenever they have stored
 * something. Nothing depends on it but how soon a ring is looked at: all of them are in their
 * turn. When to ask is engine.c's matter, where the memory is from shm.c's.
 *
 * Order. The producer stores into the ring, then a full fence, then looks whether it is asked to call.
 * Who asks calls himself afterwards, so that the ring is looked at after that. A caller sets the bit of the
 * number, then that of the word in `any`; who is called clears them the other way round, and looks at
 * the ring after both.
 *
 * Trust. Any peer may set or clear any bit at any time: then a ring is looked at in vain, of so many at
 * a time as a word has bits, or not before its turn comes. */
#ifndef SOFT_CALLS_H
#define SOFT_CALLS_H
#include <stdbool.h>
#include <stdint.h>
#include "common/trace.h"	/* likely, unlikely */
#include "dapl/soft/relaxed.h"

struct dapl_device;
struct soft_pair;

enum { CALLS_WORDS = 64, CALLS_MAX = CALLS_WORDS * 64 };

struct soft_calls {
	uint64_t any;				/* a bit for a word */
	uint64_t word[CALLS_WORDS] __attribute__((aligned(64)));
} __attribute__((aligned(4096)));

/* --- who is called; engine lock held ----------------------------------------------------------- */

/* Gives the pair a number, if one is left. */
void soft_calls_join(struct soft_pair *pair);
void soft_calls_leave(struct soft_pair *pair);
/* Asks its peer to call from now on. What it stored before counts as called for. */
void soft_calls_ask(struct soft_pair *pair);
void soft_calls_waive(struct soft_pair *pair);
/* Takes some of the calls there are: bits of one word, which is *word. */
uint64_t soft_calls_take(struct dapl_device *dev, unsigned *word);
/* NULL: it has gone meanwhile. */
struct soft_pair *soft_calls_pair(const struct dapl_device *dev, unsigned number);

/* --- who calls: after a full fence --------------------------------------------------------------- */

/* `call` is what the peer said: a number and 1, or anything. */
void soft_call(struct soft_calls *calls, uint32_t call);

#endif
