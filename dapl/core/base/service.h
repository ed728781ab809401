/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* service.h - the one background thread of a provider library: it watches descriptors, runs timers and
 * deferred calls. Started with the first user, joined with the last. Its users decide what is watched and
 * what a timer means.
 *
 * Lock order: the service's own lock is innermost, and is not held while a callback runs. So these
 * functions may be called with any lock held. Exception: the caller of a function that waits holds no lock
 * that a callback takes. */
#ifndef DAPL_SERVICE_H
#define DAPL_SERVICE_H
#include <stdbool.h>
#include <stdint.h>

/* The first get starts the thread, the last put joins it. Returns 0 or an errno. */
int dapl_service_get(void);
void dapl_service_put(void);
/* Called at exit: ends callbacks, and waits a second at most for one that runs. Other threads may still
 * call the functions of this header. */
void dapl_service_abandon(void);
/* True in a callback, on whichever thread it runs. */
bool dapl_service_here(void);

/* A descriptor that is watched for reading (level-triggered). Embed it. */
struct dapl_watch {
	int fd;
	void (*ready)(struct dapl_watch *watch);
	uint32_t slot;		/* private to service.c */
};
int dapl_watch_start(struct dapl_watch *watch, int fd, void (*ready)(struct dapl_watch *));
/* Waits until `ready` does not run (unless called on the service thread). `ready` is not called afterwards.
 * Does nothing if the watch is not started, and zeroed. */
void dapl_watch_stop(struct dapl_watch *watch);

/* A one-shot timer. Embed it, zeroed. */
struct dapl_timer {
	void (*fire)(struct dapl_timer *timer);
	uint64_t due_ns;	/* on CLOCK_MONOTONIC; 0: the timer is not started */
	struct dapl_timer *next, **prev;
};
/* Starts the timer, or moves it if it is started already. */
void dapl_timer_start(struct dapl_timer *timer, uint64_t delay_us,
		      void (*fire)(struct dapl_timer *));
/* Returns true if the timer was stopped before it fired. Does not wait: `fire` may be running. */
bool dapl_timer_stop(struct dapl_timer *timer);
/* Stops the timer and waits until `fire` does not run (unless called on the service thread). */
void dapl_timer_drain(struct dapl_timer *timer);

/* A call that the service thread makes soon. Embed it, zeroed; the call may free the structure around it.
 * Queueing a task again before it has run does nothing. */
struct dapl_task {
	void (*run)(struct dapl_task *task);
	struct dapl_task *next;
	bool queued;
	bool runs_consumer;	/* the call runs code of the consumer: only the service thread makes it */
};
void dapl_task_queue(struct dapl_task *task, void (*run)(struct dapl_task *));
/* Waits until all tasks that were queued before have run, and a callback that runs now has returned. Does
 * nothing on the service thread. */
void dapl_service_flush(void);

/* A thread that is blocked in a wait may run the loop in place of the service thread (loop_owner.h). It calls
 * dapl_service_block() with no lock held before it blocks. A descriptor that this returns is watched, and
 * dapl_service_work() called when it is readable: callbacks run then. After false it is not watched any more.
 * dapl_service_awake() ends that; `watched`: until now. -1: other threads run the loop. */
int dapl_service_block(void);
bool dapl_service_work(void);
void dapl_service_awake(bool watched);
/* The caller has woken a blocked thread. */
void dapl_service_woke(void);

#endif
