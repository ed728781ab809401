/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* two.h - the two processes of a measurement: what they share, how they wait for each other, and how
 * times become a row of the output. A failure ends the process with a line on stderr. */
#ifndef BENCH_SOFT_TWO_H
#define BENCH_SOFT_TWO_H
#include <semaphore.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	BATCHES = 300, ROUNDS = 100, ACCESSES = 1000,
	LARGE = 1 << 20, MIDDLE = 64 << 10, SMALL = 8,	/* bytes */
	STREAM = 16, STREAMS = 60,	/* messages of a batch, batches */
	ROW_S = 8,		/* a row ends after that */
	GIVE_UP_S = 300,
};

extern int me;			/* 0: measures; 1: the other process */

extern struct shared {		/* between the two, for everything that is not measured */
	_Alignas(128) uint64_t ping;
	_Alignas(128) uint64_t pong;
	_Alignas(128) uint32_t barrier[2];
	uint64_t last;			/* round of a row; UINT64_MAX: not known yet */
	uint64_t target[2];
	uint32_t context[2];
	uint16_t port;
	sem_t over;			/* the other one may wake up */
	long wakes;			/* it woke up so often before */
	pid_t other;
	char *block;			/* of the other */
} *shared;

void fail(const char *what, const char *why) __attribute__((noreturn));
/* In seconds. */
double now(void);
/* A row of the output, of side 0. */
void report(const char *what, double value, const char *unit);
/* Sorts `took`. */
double median(double *took, int n);

/* Memory for `n` pairs of processes. */
struct shared *share(unsigned n);
/* Each side has a processor of its own, if there are two. */
void settle_on_processor(void);
/* Starts the other process. */
pid_t split(void);
/* Ends the other process. Returns whether it has failed. */
int join(pid_t child);
/* Waits for the other process. */
void together(void);

/* Runs one side's part of `rounds` round trips, `most` times; half the median of them, in us, for
 * side 0. The sides don't wait for one another between batches: on a busy machine that takes long.
 * Side 0 says in time which round is the last. */
double half_round(void (*round)(uint64_t), int rounds, int most);
void ping_pong(const char *what, void (*round)(uint64_t), int rounds);
/* The median time in us that something takes, done now and then while the other process sleeps. */
double while_it_sleeps(void (*act)(size_t), size_t bytes);

#endif
