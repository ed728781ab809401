/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* calls_worker.h - a thread of calls.c: its random choices, the handles that it shares with the other
 * threads, and the record of its calls. The calls themselves are in calls_objects.c and calls_endpoints.c.
 * */
#ifndef TEST_CALLS_WORKER_H
#define TEST_CALLS_WORKER_H
#include "life.h"
#include <pthread.h>
#include <stdatomic.h>

enum { MAX_THREADS = 32, IAS = 3, SLOTS = 6, LAST_CALLS = 8, NAMES = 100 };
enum kind { IA, PZ, LMR, RMR, EVD, CNO, EP, PSP, RSP, CSP, CR, SRQ, KINDS };

/* Handles that all threads share, by the IA in which they were made. The handle of a freed object stays
 * until another takes its slot. */
extern _Atomic(uintptr_t) handles[IAS][KINDS][SLOTS];
extern _Atomic(unsigned) quals[IAS][SLOTS];	/* qualifiers of service points */
/* The contexts of the LMR in the same slot. */
extern _Atomic(DAT_LMR_CONTEXT) local_context[IAS][SLOTS];
extern _Atomic(DAT_RMR_CONTEXT) remote_context[IAS][SLOTS];

/* Messages and RDMA reads take data from the lower half, which nothing writes to. Receives and RDMA writes
 * go to the cells of the upper half in turn. */
enum { ARENA = 8 << 20, CELL = 64 /* bytes */ };
extern char arena[ARENA];

struct worker {
	pthread_t thread;
	unsigned number, random;
	_Atomic(unsigned) made, succeeded;
	_Atomic(const char *) name[LAST_CALLS];
	_Atomic(uintptr_t) on[LAST_CALLS];
	struct { const char *name; unsigned made, succeeded; } tally[NAMES];
	_Atomic(double) since;		/* 0: in no call */
	_Atomic(bool) done;
};

/* --- choices ------------------------------------------------------------------------------- */

/* Returns a random number below n. */
unsigned roll(struct worker *w, unsigned n);
bool one_in(struct worker *w, unsigned n);
/* Returns a slot. Half of all calls get the same one, so that threads meet on one object. */
unsigned pick_slot(struct worker *w);
/* Returns a handle of this kind; at times one of another kind, or DAT_HANDLE_NULL. */
DAT_HANDLE pick(struct worker *w, unsigned ia, enum kind kind);
void keep(struct worker *w, unsigned ia, enum kind kind, const void *handle);
unsigned pick_ia(struct worker *w);
/* Returns true rarely: objects must live long enough for calls of other threads. */
bool may_free(struct worker *w);
/* Returns whether to make a new object: if a random slot has no valid handle, and at times if it has. */
bool has_place(struct worker *w, unsigned ia, enum kind kind);
/* Returns a random timeout in microseconds. */
DAT_TIMEOUT moment(struct worker *w);
DAT_COMPLETION_FLAGS post_flags(struct worker *w);

/* --- one call ------------------------------------------------------------------------------- */

void begin_call(struct worker *w, const char *name, uintptr_t on);
DAT_RETURN end_call(struct worker *w, DAT_RETURN ret);
/* Makes a call and records it. `first` is its first argument, the object that it is about. */
#define CALL(function, first, ...) \
	(begin_call(w, #function, (uintptr_t)(first)), end_call(w, function(first, ##__VA_ARGS__)))

/* --- calls by kind, each on objects of one of the IAs ------------------------------------------ */

typedef void random_call_fn(struct worker *w, unsigned ia);
random_call_fn call_ia, call_pz, call_lmr, call_rmr, call_evd, call_cno;		/* calls_objects.c */
random_call_fn call_ep, call_post, call_sp, call_cr, call_srq, call_any;		/* calls_endpoints.c */

#endif
