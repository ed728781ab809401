/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* output.h - capture files: pcapng or pcap, one or a ring of them. */
#ifndef DATCAP_OUTPUT_H
#define DATCAP_OUTPUT_H
#include <stdbool.h>
#include <stdint.h>
#include <dat/udat.h>
#include <dat/dat_eth_extensions.h>
#include "pcapng.h"

enum { OUTPUT_FLUSH_NS = 100000000 };	/* ns; soon enough for a live view, rare enough for a disk */

struct output_options {
	const char *path;		/* "-": standard output */
	bool pcap;			/* else pcapng */
	unsigned ring_files;		/* 0: one file */
	uint64_t ring_size;		/* bytes of each */
	const char *device, *filter;
	uint32_t snap;
};

void output_open(const struct output_options *options);
/* Appends a frame; a stripped tag is put back. False: the reader of the pipe has gone, or writing has failed.
 * Then output_close() ends the program, with whole blocks in the file. One thread at a time may call these. */
bool output_frame(const DAT_ETH_FRAME *frame);
/* The same, with a comment of at most 95 bytes where the format has them. */
bool output_commented(const DAT_ETH_FRAME *frame, const char *comment);
/* Writes what was appended. Call it each OUTPUT_FLUSH_NS while frames come slowly: a reader sees them then, and they
 * outlive the process. False: the reader of the pipe has gone. */
bool output_flush(void);
bool output_close(const struct pcapng_statistics *statistics);
/* Frames that were appended and did not get to the file, or to the reader of the pipe. */
uint64_t output_unwritten(void);

#endif
