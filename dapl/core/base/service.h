/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* service.h - the one background thread of a provider library: it watches descriptors,
 * runs timers and deferred calls. Started with the first user, joined with the last.
 * What is watched, and what a timer means, is its owner's business.
 *
 * Lock order: the service's own lock is innermost and never held while a callback
 * runs, so these functions may be called with any lock held, except where a call is
 * said to wait: then hold no lock that a callback takes. */
#ifndef DAPL_SERVICE_H
#define DAPL_SERVICE_H
#include <stdbool.h>
#include <stdint.h>

/* First get starts the thread (errno on failure), last put joins it. */
int dapl_service_get(void);
void dapl_service_put(void);
/* Exit: no callback from now on, unless one does not return within a second. Other
 * threads may still call what is declared here. */
void dapl_service_abandon(void);
/* True on the service thread itself. */
bool dapl_service_here(void);

/* A descriptor that is watched for reading (level-triggered). Embed it. */
struct dapl_watch {
	int fd;
	void (*ready)(struct dapl_watch *watch);
	uint32_t slot;		/* service.c's own */
};
int dapl_watch_start(struct dapl_watch *watch, int fd, void (*ready)(struct dapl_watch *));
/* Waits until `ready` is not running (unless called from the service thread); it is not
 * called afterwards. Harmless on a watch that is not started, if zeroed. */
void dapl_watch_stop(struct dapl_watch *watch);

/* A one-shot timer. Embed it, zeroed. */
struct dapl_timer {
	void (*fire)(struct dapl_timer *timer);
	uint64_t due_ns;	/* CLOCK_MONOTONIC; 0: not started */
	struct dapl_timer *next, **prev;
};
/* Starts it, or moves it if it runs already. */
void dapl_timer_start(struct dapl_timer *timer, uint64_t delay_us,
		      void (*fire)(struct dapl_timer *));
/* True if it was stopped before it fired. Does not wait: `fire` may be running. */
bool dapl_timer_stop(struct dapl_timer *timer);
/* Stops it and waits until `fire` is not running (unless on the service thread). */
void dapl_timer_drain(struct dapl_timer *timer);

/* A call that the service thread makes soon. Embed it, zeroed; it may be embedded in
 * what the call frees. Queueing it again before it ran does nothing. */
struct dapl_task {
	void (*run)(struct dapl_task *task);
	struct dapl_task *next;
	bool queued;
};
void dapl_task_queue(struct dapl_task *task, void (*run)(struct dapl_task *));
/* Waits until every task queued before has run, and every callback that was running
 * has returned. Does nothing on the service thread. */
void dapl_service_flush(void);

#endif
