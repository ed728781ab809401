/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rows.h - rows that two processes with one connection measure. */
#ifndef BENCH_SOFT_ROWS_H
#define BENCH_SOFT_ROWS_H
#include <stdbool.h>
#include <stddef.h>

extern const char *only;	/* rows with that in their name */

/* Connects two processes, and measures these rows. Returns 0, or 1: the other process has failed. */
int data(const char *name, void (*rows)(void));
void data_rows(void);
void turn_rows(void);
void mapped_rows(void);

/* A row of round trips. */
void data_ping_pong(const char *what, size_t bytes, bool write, int rounds);
/* A row of the time until one access to memory of a sleeping process has completed. */
void to_sleeper(const char *what, void (*act)(size_t), size_t bytes);

#endif
