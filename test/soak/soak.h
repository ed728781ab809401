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

/* Parses the options, then is life_main(). */
int soak_main(int argc, char **argv, const struct life_case *cases, int n);

extern unsigned soak_seed;
unsigned soak_rounds(unsigned short_form); /* of --rounds, or that many */
double soak_seconds(double short_form);
void soak_figure(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A generator of its own for each use: `stream` tells them apart. */
uint64_t soak_stream(uint64_t stream);
uint64_t soak_random(uint64_t *state);
unsigned soak_below(uint64_t *state, unsigned n); /* 0 to n - 1 */

void *soak_shared(size_t size); /* zeroed memory that forked processes share */

/* What a process holds, and its network namespace. */
struct soak_held {
	int descriptors, threads, mappings; /* mappings: of memfds and of files in /dev/shm */
	int sockets;                        /* of processes of the namespace */
	int files;                          /* in /dev/shm */
};
struct soak_held soak_hold(void);
/* Fails if more than that is still held after some seconds, in which `meanwhile` is called. */
void soak_expect_held(const struct soak_held *most, const char *when, void (*meanwhile)(void));
long soak_resident(void); /* bytes */

#endif
