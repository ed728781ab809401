/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* many.h - rows of many connections, and of many pairs of processes. Each returns 0, or 1 if a process
 * has failed. */
#ifndef BENCH_SOFT_MANY_H
#define BENCH_SOFT_MANY_H

/* Connections a second in one process; n endpoints at once, and their memory. */
int connections(const char *name, int n);
/* Latency between two processes that share n connections. */
int endpoints(const char *name, int n);
/* Round trips of n pairs of processes at once. */
int processes(const char *name, int n);

#endif
