/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* change.h - an instant at which rules or tables change for several ports: the old state applies to frames
 * with a time stamp before it, the new one to all others.
 *
 * Every socket sees a frame with the same time stamp, and looks at the frame after that time. A change
 * reads the clock after it was announced. So if a port sees no announcement, its frame came before the
 * change, and it does not matter which of the new times the port reads. A port that sees the announcement
 * waits for the end of the change. */
#ifndef SOFTETH_CHANGE_H
#define SOFTETH_CHANGE_H
#include <stdint.h>

/* Returns the instant. The caller then stores it, in places that are read atomically, and ends the change. */
uint64_t change_begin(void);
void change_end(void);
/* Before the times of rules and tables are read for a frame. */
void change_wait(void);

#endif
