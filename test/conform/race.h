/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* race.h - what the tests of races share. They test what must hold whatever the timing: no event lost or
 * doubled, no wake-up lost, no handle used after its end. Many threads, many rounds, no sleeps; a
 * lost wake-up shows as a hang. */
#ifndef CONFORM_RACE_H
#define CONFORM_RACE_H
#include "actors.h"
#include "pair.h"

#define FOR_EVER DAT_TIMEOUT_INFINITE
#define THREADS 4
#define EACH 500	/* events of one thread */

/* --- software events ------------------------------------------------------------------------- */

struct queue {
	DAT_EVD_HANDLE evd;
	DAT_CNO_HANDLE cno;
	_Atomic int seen[THREADS][EACH];
	_Atomic int taken;		/* of all */
	_Atomic bool stop;
};

struct queue *a_queue(DAT_COUNT qlen, DAT_CNO_HANDLE cno);
/* Threads below THREADS post, `consumers` others do `consume`, which ends when all is taken. */
void run_queue(struct queue *q, int consumers, void (*consume)(struct queue *q));
/* Counts an event that was dequeued; it is the only one of its number. */
void take(struct queue *q, const DAT_EVENT *event);
/* Dequeues what there is. */
void drain(struct queue *q);
bool all_taken(struct queue *q);

/* One more look at a count that grows: patience begins anew whenever it has grown. */
struct look {
	struct patience patience;
	int count;
};

void look_again(struct look *look, int count);

/* --- messages --------------------------------------------------------------------------------- */

/* Two threads that wake each other with messages: a thread that misses one hangs. */
struct rally {
	struct pair p;
	bool by_cno;
	DAT_CNO_HANDLE cno[2];
};
#define BALLS 200

/* What thread `me`, 0 or 1, of a crew of two does. The other end has a receive for the first message. */
void play(void *arg, int me);

/* Completions on one CQ, dequeued by many. */
struct many {
	struct pair p;
	_Atomic int seen[1000];
	_Atomic int taken;
};

/* On a provider that locks for its consumers, also what the manual calls unsafe. */
void needs_thread_safety(void);

#endif
