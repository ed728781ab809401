/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* soak.h - what the reliability tests share: options for longer runs, a seed that is printed, figures that
 * are printed at the end, and what the process and its network namespace hold. The cases run
 * under test/life/life.h.
 *
 *	PROGRAM [--seed N] [--rounds N] [--seconds N] [CASE ...]
 *
 * Without options a case takes a second or two. --rounds and --seconds lengthen each case. */
#ifndef TEST_SOAK_SOAK_H
#define TEST_SOAK_SOAK_H
#include "test/life/life.h"

/* Parses the options, then calls life_main(). */
int soak_main(int argc, char **argv, const struct life_case *cases, int n);

extern unsigned soak_seed;
unsigned soak_rounds(unsigned short_form); /* the number of --rounds, or short_form without the option */
double soak_seconds(double short_form);    /* the number of --seconds, or short_form */
/* Keeps a line that is printed after the cases. */
void soak_figure(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The first state of a generator: another one for each `stream`. */
uint64_t soak_stream(uint64_t stream);
uint64_t soak_random(uint64_t *state);
unsigned soak_below(uint64_t *state, unsigned n); /* 0 to n - 1 */

void *soak_shared(size_t size); /* zeroed memory that forked processes share */

/* What a process holds, and its network namespace. */
struct soak_held {
	int descriptors, threads, mappings; /* mappings of memfds and of files in /dev/shm */
	int sockets;                        /* of all processes of the namespace */
	int files;                          /* in /dev/shm */
};
struct soak_held soak_hold(void);
/* Fails if the process and its namespace still hold more after some seconds. Calls `meanwhile` while it
 * waits. */
void soak_expect_held(const struct soak_held *most, const char *when, void (*meanwhile)(void));
long soak_resident(void); /* resident memory of the process in bytes */

#endif
