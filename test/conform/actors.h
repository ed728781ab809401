/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* actors.h - threads that block in a call, and second processes, for tests. Neither outlives the test. */
#ifndef CONFORM_ACTORS_H
#define CONFORM_ACTORS_H
#include "conform.h"
#include <pthread.h>
#include <stdatomic.h>

/* --- a thread in one blocking call ------------------------------------------------------- */

struct waiter {
	DAT_EVD_HANDLE evd;	/* the EVD on which it waits; NULL: it waits on the CNO */
	DAT_CNO_HANDLE cno;
	DAT_TIMEOUT timeout;
	DAT_COUNT threshold;
	/* the results of the call, once it has returned */
	DAT_RETURN ret;
	DAT_EVENT event;
	DAT_COUNT nmore;
	DAT_EVD_HANDLE woken_by;

	pthread_t thread;
	_Atomic pid_t tid;
	_Atomic bool done;
};
/* Both return when the thread is asleep in the call. */
struct waiter *waiter_on_evd(DAT_EVD_HANDLE evd, DAT_TIMEOUT timeout, DAT_COUNT threshold);
struct waiter *waiter_on_cno(DAT_CNO_HANDLE cno, DAT_TIMEOUT timeout);
/* Waits until the call has returned. Returns its result. */
DAT_RETURN released(struct waiter *waiter);
/* Fails if the call has returned, or returns within a moment. */
void expect_blocked(const char *what, struct waiter *waiter);
#define BLOCKED(waiter) (AT("blocked: " #waiter), expect_blocked(#waiter, waiter))
/* A signal to the thread; its handler does nothing, and does not restart calls. */
void interrupt(struct waiter *waiter);

/* --- many threads ---------------------------------------------------------------------------- */

#define MAX_CREW 64
/* Calls body(arg, 0) to body(arg, n - 1), each in a thread. All start together. Returns when all have
 * returned. */
void crew(int n, void (*body)(void *arg, int me), void *arg);

/* --- another process ----------------------------------------------------------------------------- */

struct peer {
	int pid;	/* 0 in the peer itself */
	int socket;
};
/* Runs body in a process of its own. Called before ia(). A failure there fails the test. */
struct peer a_peer(void (*body)(struct peer *self, void *arg), void *arg);
void tell(const struct peer *peer, const void *message, size_t size);
void hear(const struct peer *peer, void *message, size_t size);
void expect_peer_done(const struct peer *peer);	/* the process exits with status 0 */
void kill_peer(const struct peer *peer, int signal);	/* returns when SIGKILL or SIGSTOP has taken effect */

#endif
