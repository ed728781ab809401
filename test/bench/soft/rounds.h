/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rounds.h - round trips, streams and single accesses over one endpoint. */
#ifndef BENCH_SOFT_ROUNDS_H
#define BENCH_SOFT_ROUNDS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern size_t size;		/* bytes of a round's message */
extern double answer_after;	/* seconds that side 1 computes before it answers */

/* One side's part of round n: for half_round(). */
void send_round(uint64_t n);
void write_round(uint64_t n);
/* All is completed and forgotten, on both sides. */
void finish(void);

/* Of a send or a write, in us. */
double data_half_round(size_t bytes, bool write, int rounds, int most);
/* Until the last has completed, which says that it is in place. In bytes a second, for side 0. */
double stream_speed(size_t bytes, bool write, unsigned count, int most);
void write_and_wait(size_t bytes);
void read_and_wait(size_t bytes);

#endif
