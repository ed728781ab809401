/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* plain.h - what the machine can do without the software device. */
#ifndef BENCH_SOFT_PLAIN_H
#define BENCH_SOFT_PLAIN_H
#include <stddef.h>
#include <stdint.h>

enum { TCP_WAYS = 4, CONNECTIONS_MAX = 32 };

/* A way to read a stream: bytes at once, and flags of recv(2). MSG_DONTWAIT: spinning. */
struct tcp_way {
	size_t piece;
	int flags;
};
extern const struct tcp_way tcp_way[TCP_WAYS];

extern size_t block_size;	/* bytes of a round over TCP */

/* Rows of the machine's limits. */
int limits(void);
void hand_overs(void);

void tcp_connect(void);
void tcp_round(uint64_t n);
/* Makes n connections, at most CONNECTIONS_MAX, of one process with itself, then closes both ends of each. */
void tcp_connections(int n);
/* In GB/s. */
double tcp_stream(const struct tcp_way *way, int batches);

#endif
