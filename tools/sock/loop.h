/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* loop.h - the only thread of datsockd that serves: it waits for descriptors and calls what belongs to them. */
#ifndef SOCK_LOOP_H
#define SOCK_LOOP_H
#include <stdbool.h>
#include <stdint.h>

enum { LOOP_TICK_MS = 50 };	/* what waits for a time is looked at so often, while there is any */

struct loop_watch {
	int fd;
	void (*ready)(struct loop_watch *watch);
};

bool loop_open(void);		/* false: errno */
bool loop_add(struct loop_watch *watch);
/* Its descriptor is reported or not. */
void loop_pause(struct loop_watch *watch, bool paused);
void loop_remove(struct loop_watch *watch);
/* Ready watches of this turn may be gone: nothing of it is called after this, until descriptors are asked again. */
void loop_start_anew(void);
/* The next turn begins at once: something was left for it. */
void loop_soon(void);
uint64_t loop_now_ms(void);	/* monotonic; of this turn */
/* Calls tick() every LOOP_TICK_MS as long as it returns true, and after each event. Returns after loop_end(). */
void loop_run(bool (*tick)(void));
void loop_end(void);

#endif
