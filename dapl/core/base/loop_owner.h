/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* loop_owner.h - selects the thread that runs the service loop (service.c): the service thread, or a thread that is
 * blocked in dat_evd_wait() or dat_cno_wait().
 *
 * If the service thread handles an event of a connection, two threads are scheduled, one after the other: the service
 * thread, and the thread that waits for the event. A blocked thread that runs the loop needs no other. It becomes the
 * owner when the service thread has woken blocked threads often, and stays it between its waits. The service thread
 * takes the loop back
 *  - when the owner returns while other threads are blocked, and none of them watches the loop;
 *  - when no event and no task came to blocked threads for a while: they may not wait any more;
 *  - when a thread waits for tasks, and when a task runs code of the consumer, which may wait for the owner.
 *
 * A structure without a lock: the caller of each function holds the service's. */
#ifndef DAPL_LOOP_OWNER_H
#define DAPL_LOOP_OWNER_H
#include <stdbool.h>
#include <stdint.h>

enum {
	LOOP_WAKEUPS = 8,		/* of blocked threads within LOOP_WINDOW_NS; fewer cost too little processor
					 * time to change the owner, which takes two wake-ups */
	LOOP_WINDOW_NS = 4000000,	/* ns */
	LOOP_LEASE_NS = 2000000,	/* ns; an event that comes when the owner has stopped waiting is late by twice
					 * that, once. The service thread is woken as often meanwhile. */
};

/* All zeroes: the service thread is the owner. */
struct loop_owner {
	bool blocked_thread;	/* the owner is a blocked thread, or is to be the next that blocks */
	bool watched;		/* a blocked thread watches the loop's descriptors */
	bool fixed;		/* the service thread stays the owner */
	unsigned blocked;	/* number of blocked threads */
	unsigned wakeups;	/* of blocked threads by the service thread, since window_ns */
	uint64_t window_ns;
	unsigned rounds, rounds_seen;	/* of blocked threads that found something; at the last check */
	uint64_t lease_ns;	/* when to check next */
};

/* The service thread has woken a blocked thread. */
void loop_owner_woke(struct loop_owner *owner, uint64_t now);
/* The caller is about to block. Returns true if it must watch the loop. */
bool loop_owner_block(struct loop_owner *owner, uint64_t now);
/* The caller no longer blocks; `watched`: it watches the loop. */
void loop_owner_awake(struct loop_owner *owner, bool watched);
/* The service thread checks, at lease_ns or later, whether blocked threads still run the loop. */
void loop_owner_check(struct loop_owner *owner, uint64_t now);

#endif
