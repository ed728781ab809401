/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* two.c - see two.h. */
#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "two.h"

enum {
	ASLEEP_US = 20000,	/* until the other process surely sleeps */
	PAUSE_US = 500,		/* between accesses to memory of a sleeping process */
};

int me;
struct shared *shared;

void fail(const char *what, const char *why)
{
	fprintf(stderr, "soft: %s: %s\n", what, why);
	exit(1);
}

double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

void report(const char *what, double value, const char *unit)
{
	if (!me)
		printf("%s\t%.3f\t%s\n", what, value, unit);
	fflush(stdout);
}

void together(void)
{
	uint32_t mine = __atomic_add_fetch(&shared->barrier[me], 1, __ATOMIC_SEQ_CST);

	while (__atomic_load_n(&shared->barrier[!me], __ATOMIC_SEQ_CST) < mine)
		sched_yield();
}

struct shared *share(unsigned n)
{
	return mmap(NULL, n * sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		    -1, 0);
}

void settle_on_processor(void)
{
	cpu_set_t all, one;
	int cpu = 0, nth;

	sched_getaffinity(0, sizeof all, &all);
	nth = CPU_COUNT(&all) > 1 ? me : 0;
	for (; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all) && !nth--)
			break;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof one, &one);
}

pid_t split(void)
{
	pid_t child;

	shared = share(1);
	sem_init(&shared->over, 1, 0);
	child = fork();
	if (child < 0)
		fail("fork", strerror(errno));
	me = !child;
	alarm(GIVE_UP_S);
	settle_on_processor();
	return child;
}

int join(pid_t child)
{
	int status = 0;

	if (me)
		exit(0);
	waitpid(child, &status, 0);
	return status != 0;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double median(double *took, int n)
{
	qsort(took, n, sizeof *took, by_size);
	return took[n / 2];
}

double half_round(void (*round)(uint64_t), int rounds, int most)
{
	double took[BATCHES], begin = now();
	bool last = false;
	uint64_t n = 0;
	int batches = 0;

	if (!me)
		__atomic_store_n(&shared->last, UINT64_MAX, __ATOMIC_RELEASE);
	together();
	while (!me && !last) {
		last = batches == most - 1 || now() - begin > ROW_S;
		if (last)
			__atomic_store_n(&shared->last, n + rounds, __ATOMIC_RELEASE);
		took[batches] = now();
		for (int i = 0; i < rounds; i++)
			round(++n);
		took[batches] = now() - took[batches];
		batches++;
	}
	while (me && n != __atomic_load_n(&shared->last, __ATOMIC_ACQUIRE))
		round(++n);
	return me ? 0 : median(took, batches) / rounds / 2 * 1e6;
}

void ping_pong(const char *what, void (*round)(uint64_t), int rounds)
{
	report(what, half_round(round, rounds, BATCHES), "us");
}

/* The other process sleeps until we are done, and counts how often a thread of it ran. */
static void sleep_meanwhile(void)
{
	struct rusage before, after;

	usleep(ASLEEP_US);
	getrusage(RUSAGE_SELF, &before);
	while (sem_wait(&shared->over))
		;
	getrusage(RUSAGE_SELF, &after);
	shared->wakes = after.ru_nvcsw - before.ru_nvcsw - 1;
}

double while_it_sleeps(void (*act)(size_t), size_t bytes)
{
	static double took[ACCESSES];
	double begin;

	if (me) {
		sleep_meanwhile();
		return 0;
	}
	usleep(2 * ASLEEP_US);
	for (int i = 0; i < ACCESSES; i++) {
		for (begin = now(); now() - begin < PAUSE_US / 1e6;)
			;
		begin = now();
		act(bytes);
		took[i] = now() - begin;
	}
	sem_post(&shared->over);
	return median(took, ACCESSES) * 1e6;
}
