/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* options.h - the command line of datperf, read and checked (datperf(1)). */
#ifndef DATPERF_OPTIONS_H
#define DATPERF_OPTIONS_H
#include "hosts.h"
#include "measure.h"
#include "report.h"
#include "../cli.h"

enum { OPTIONS_SIZES = 29 }; /* at most: all powers of two up to LINK_BLOCK_MAX */

struct options {
	const char *device;
	struct cli_server server; /* host: NULL if this side serves, or with --fork takes its own address */
	const char *plot; /* file of the chart, or NULL */
	DAT_CONN_QUAL port; /* 0: the serving process of --fork takes a free one */
	double seconds;              /* approximate time of a line of a table */
	unsigned once_seconds;       /* how long the server waits for its client; 0: without limit */
	struct hosts hosts;
	double every;                /* seconds from one round of all lines to the next; 0: one round */
	unsigned depth;              /* requests in flight of an endpoint */
	size_t block;                /* see group_shape() */
	unsigned most;
	uint32_t rounds;             /* of a measurement; 0: as many as take `seconds` */
	unsigned endpoints, threads; /* endpoints of each thread; 0: not given */
	bool srq, both, once, histogram, compare, both_ways, gigabits;
	enum memory_kind memory;
	bool tests[TESTS]; /* none: the overview */
	size_t sizes[OPTIONS_SIZES];
	int size_count; /* 0: the default sizes of each test */
	size_t bandwidth_size; /* the only size of bandwidth then; 0: the default sizes */
	enum wake wake;
	struct limits limits;
	enum format format;
};

extern const char options_usage[];

/* Ends the program with a line if an option is wrong, and after --help and --version. */
struct options options_read(int argc, char **argv);

#endif
