/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* main.c - what the software device costs, beside what the machine can do. Two processes of
 * one host, a processor each, both polling; of many short batches the median counts, so that
 * what else runs disturbs little.
 *
 *   soft limits              hand-over of a cache line, memcpy, plain TCP
 *   soft data IA [TEXT]      latency and bandwidth; or only the rows whose name has TEXT in it
 *   soft turns IA            ... over TCP in turn with plain TCP, as ratios
 *   soft mapped IA           writes to and reads of memory that the other maps
 *   soft dm IA               device memory, beside memory of the process
 *   soft connect IA N        connections a second beside plain TCP, memory of N endpoints
 *   soft endpoints IA N      latency between two processes that share N connections
 *   soft processes IA N      round trips of N pairs of processes at once
 *
 * A line of output: what, how much, unit, separated by tabs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "dm.h"
#include "many.h"
#include "plain.h"
#include "rows.h"

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "limits"))
		return limits();
	if ((argc == 3 || argc == 4) && !strcmp(argv[1], "data")) {
		only = argc == 4 ? argv[3] : only;
		return data(argv[2], data_rows);
	}
	if (argc == 3 && !strcmp(argv[1], "turns"))
		return data(argv[2], turn_rows);
	if (argc == 3 && !strcmp(argv[1], "mapped"))
		return data(argv[2], mapped_rows);
	if (argc == 3 && !strcmp(argv[1], "dm"))
		return data(argv[2], dm_rows);
	if (argc == 4 && !strcmp(argv[1], "connect"))
		return connections(argv[2], atoi(argv[3]));
	if (argc == 4 && !strcmp(argv[1], "endpoints"))
		return endpoints(argv[2], atoi(argv[3]));
	if (argc == 4 && !strcmp(argv[1], "processes"))
		return processes(argv[2], atoi(argv[3]));
	fputs("usage: see test/bench/soft/main.c\n", stderr);
	return 2;
}
