/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pending.h - the pending-ring bitmap tells a device with many rings which of them have messages.
 * The device gives its rings numbers. It asks the peers of seldom used rings to set the bit of
 * their number, in memory that the device shares with all its peers, whenever they have stored a
 * message. The bitmap only makes a ring be looked at sooner: each ring is polled in its turn as
 * well. progress/rings.c decides when to ask, process.c provides the memory.
 *
 * Order. The producer stores into the ring, then makes a full fence, then looks whether it is asked
 * to mark. The consumer that asks for marks then marks the ring itself, so that it looks at the
 * ring after it has asked. A producer sets the bit of the number, then that of the word in `any`.
 * The consumer clears them in the opposite order, and looks at the ring after both.
 *
 * Trust. Any peer may set or clear any bit at any time. Wrong bits make a poll look at empty rings, as
 * many as a word has bits at most. A ring whose bit was cleared is polled when its turn comes. */
#ifndef SOFT_PENDING_H
#define SOFT_PENDING_H
#include <stdbool.h>
#include <stdint.h>
#include "common/trace.h"	/* likely, unlikely */
#include "common/once.h"
#include "dapl/soft/shm/shared.h"

struct dapl_device;
struct shm_conn;

/* --- the consumer; progress lock held --------------------------------------------------------- */

/* Gives the ring a number, if one is left. */
void pending_join(struct shm_conn *shm);
void pending_leave(struct shm_conn *shm);
/* Asks the peer to mark the ring from now on. What it stored before is treated as marked. */
void pending_ask(struct shm_conn *shm);
/* The peer need not mark the ring any more. */
void pending_waive(struct shm_conn *shm);
/* Takes the bits of one word, whose index is *word. 0: no ring is marked. */
uint64_t pending_take(struct dapl_device *dev, unsigned *word);
/* The ring with this number; NULL: its connection has been closed meanwhile. */
struct shm_conn *pending_conn(const struct dapl_device *dev, unsigned number);

/* --- the producer; after a full fence --------------------------------------------------------- */

/* Sets the bit. `pending_nr` was stored by the peer: a number plus 1, or anything. */
void pending_mark(struct shm_pending *pending, uint32_t pending_nr);

#endif
