/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* common.h - what the two ping-pong programs share: arguments, the clock, the median.
 *
 *   PROGRAM server WHERE PORT ROUNDS
 *   PROGRAM client WHERE PORT ROUNDS time|step ADDR
 *
 * time: ROUNDS round trips of 8 bytes, polling; prints the median in us.
 * step: the same, but the client sleeps until a completion must be there, so
 *       that every op_* function below runs once a round and always finds its event:
 *       their instruction counts (callgrind) then do not depend on timing.
 *       NAP_MS in the environment is how long it sleeps (default 30 ms).
 */
#ifndef BENCH_COMMON_H
#define BENCH_COMMON_H
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MESSAGE = 8, WARM_UP = 20 };

#define CHECK(ok, ...) \
	do { \
		if (!(ok)) { \
			fprintf(stderr, __VA_ARGS__); \
			fputc('\n', stderr); \
			exit(1); \
		} \
	} while (0)

/* Measured functions: never inlined, so that callgrind sees them by name. */
#define OP __attribute__((noinline))

static inline double now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static inline void nap(void)
{
	const char *ms = getenv("NAP_MS");
	struct timespec t = { 0, (ms ? atoi(ms) : 30) * 1000 * 1000L };

	nanosleep(&t, NULL);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static inline double median(double *v, int n)
{
	qsort(v, n, sizeof *v, by_value);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* Supplied by the program: connect, and the four operations. The reap
 * functions return 1 when they took a completion, 0 when there was none. */
static void setup(const char *where, const char *addr, int port);
static void finish(void);
static void op_post_send(void);
static int op_reap_send(void);
static void op_post_recv(void);
static int op_reap_recv(void);

static inline void serve(int rounds)
{
	for (int i = 0; i < rounds; i++) {
		while (!op_reap_recv())
			;
		op_post_recv();
		op_post_send();
		while (!op_reap_send())
			;
	}
}

static inline void time_rounds(int rounds)
{
	double *took = calloc(rounds, sizeof *took);
	for (int i = 0; i < rounds; i++) {
		double t = now_us();
		op_post_send();
		while (!op_reap_send())
			;
		while (!op_reap_recv())
			;
		took[i] = now_us() - t;
		op_post_recv();
	}
	printf("%.2f\n", median(took + WARM_UP, rounds - WARM_UP));
	free(took);
}

static inline void step_rounds(int rounds)
{
	for (int i = 0; i < rounds; i++) {
		op_post_send();
		nap();
		CHECK(op_reap_send() && op_reap_recv(), "round %d: a completion was late", i);
		op_post_recv();
	}
	printf("%d\n", rounds);
}

int main(int argc, char **argv)
{
	CHECK(argc == 5 || argc == 7, "usage: see common.h");
	int client = argc == 7, rounds = atoi(argv[4]);
	CHECK(rounds > WARM_UP, "more than %d rounds, please", WARM_UP);
	setup(argv[2], client ? argv[6] : NULL, atoi(argv[3]));
	if (!client)
		serve(rounds);
	else if (!strcmp(argv[5], "step"))
		step_rounds(rounds);
	else
		time_rounds(rounds);
	if (!client)	/* a stepping side has not looked at the last completions yet */
		sleep(1);
	finish();
	return 0;
}
#endif
