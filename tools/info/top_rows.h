/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* top_rows.h - what `datinfo --top` shows: rows of traffic with rates, per adapter, connection, program, user or job;
 * filtered and sorted. top.c prints them. */
#ifndef TOOLS_INFO_TOP_ROWS_H
#define TOOLS_INFO_TOP_ROWS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "tools/control/owner.h"

enum top_by { TOP_ADAPTERS, TOP_CONNECTIONS, TOP_PROGRAMS, TOP_USERS, TOP_JOBS, TOP_BY };
enum top_sort { TOP_BUSY, TOP_BY_SENT, TOP_BY_RECEIVED, TOP_BY_READ, TOP_BY_MESSAGES, TOP_BY_RTT, TOP_BY_RETRANSMITS,
	TOP_BY_PID, TOP_SORTS };
enum top_sum { TOP_SENT, TOP_RECEIVED, TOP_READ, TOP_MESSAGES, TOP_SUMS };	/* connections have no messages */

struct top_row {
	long pid;			/* 0: of several programs */
	char user[OWNER_NAME], program[32], ia[64], object[32];
	char job[80];			/* number of the job of Slurm, or cgroup */
	size_t endpoints, programs;	/* of a row of several programs */
	char local[80], remote[80], carrier[16];	/* of a connection */
	bool has_tcp;			/* TCP carries it: */
	long rtt_us, rtt_var_us, cwnd, retransmits;
	int64_t sum[TOP_SUMS];
	double rate[TOP_SUMS];		/* per second */
};

struct top_rows {
	struct top_row *rows;		/* of the heap */
	size_t count;
	bool connections;		/* else adapters */
	double at;			/* when the counters were read, in seconds */
};

/* Asks all programs for their adapters, or for their connections. */
struct top_rows top_rows_take(bool connections);
/* Computes rates since `before`. A row that is not in both has a rate of 0. */
void top_rows_rate(struct top_rows *now, const struct top_rows *before);
/* Returns rows of what `by` says, of which any text contains `filter` in any case ("": all), in the order of `sort`.
 * The caller frees the array. */
struct top_rows top_rows_select(const struct top_rows *all, enum top_by by, enum top_sort sort, const char *filter);

#endif
