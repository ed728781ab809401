/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* capture_types.h - what a capture keeps: its devices, what it has counted, and what it has told the user. */
#ifndef DATCAP_CAPTURE_TYPES_H
#define DATCAP_CAPTURE_TYPES_H
#include <net/if.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <dat/udat.h>
#include <dat/dat_eth_extensions.h>
#include "datcap.h"
#include "device.h"
#include "frame_filter.h"

enum { BATCH = 64 };		/* frames taken at a time: short ones stay in the first-level cache */

struct losses {			/* lost frames, by the place of the loss */
	uint64_t device;		/* ~0: not known */
	uint64_t ring, here;
};

struct source {			/* a device that is captured */
	struct device device;
	uint64_t kept;			/* frames of it that passed the filter */
	uint64_t lost;			/* frames lost since the last frame that passed the filter */
};

struct batch {
	DAT_ETH_FRAME frames[BATCH];
	DAT_COUNT taken, kept;		/* kept: those that passed the filter, at the start of `frames` */
};

enum mode { STATS, LINES, FILES };	/* counts frames, prints them, writes them to a file */

/* While a file is written, the thread of writer.c changes what it counts, and the main thread only reads that. */
struct capture {
	const struct options *o;
	enum mode mode;
	struct batch batch;
	struct source sources[MAX_DEVICES];
	unsigned count;
	char names[MAX_DEVICES * IF_NAMESIZE];	/* of the devices, for a line */
	struct frame_filter filter;
	bool output_ended, hardware;
	const struct source *gone, *broken;	/* one whose device was removed, or whose ring cannot be read */
	bool terminal;			/* shows the number of frames there */
	long nap, long_nap, naps_left;	/* ns: of one sleep; while few frames come; of sleeps left before it waits for
					 * an event */
	uint64_t few, taken;		/* frames: few of them, of a ring; those taken since the last sleep */
	uint64_t kept, bytes;		/* frames that passed the filter */
	uint64_t file_bytes;		/* of these frames in the file */
	uint64_t unwritten;		/* frames that were taken and not written */
	uint64_t told;			/* losses that came with frames */
	uint64_t in_output;		/* ns, monotonic: when a call of output.c began; 0: not within one */
	uint64_t next_flush;		/* ns, monotonic */
	bool ending;			/* the main thread ends the capture */
	pthread_mutex_t lock;		/* guards what follows */
	uint64_t settled, lost_stuck;	/* losses in the rings: up to capture_report_look(); during blocked calls of
					 * output.c */
	uint64_t begin, next_line;	/* ns, monotonic */
	uint64_t seconds_printed;
	uint64_t kept_before, bytes_before;	/* at the last line */
	struct losses lost_before;
	uint64_t first_time;		/* CLOCK_REALTIME, ns, at the start */
};

#endif
