/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* change.h - an instant at which something changes for several ports: frames with a time stamp before it go by the old
 * state, the others by the new one.
 *
 * Every socket sees a frame with the same time stamp, and looks at the frame later than that. A change reads the clock
 * after it has announced itself. So a port that sees no announcement looks at a frame which came before the
 * change, and it does not matter which of the new times it reads; one that sees it waits for the end. */
#ifndef SOFTETH_CHANGE_H
#define SOFTETH_CHANGE_H
#include <stdint.h>

/* Returns the instant. The caller then stores it, in places that are read atomically, and ends the change. */
uint64_t change_begin(void);
void change_end(void);
/* Before the times of rules and tables are read for a frame. */
void change_wait(void);

#endif
