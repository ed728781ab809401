/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* output.h - writes frames to a capture file, or to a ring of capture files, in pcapng or pcap. */
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
	const char *const *devices;	/* their names, which stay valid */
	unsigned device_count;		/* 1 to MAX_DEVICES; pcap has 1 */
	const char *filter;
	uint32_t snap;
	/* Completes the statistics of a device at the end of a file of a ring but the last. They have its number and
	 * its frames so far. Called by the thread that writes. */
	void (*statistics)(struct pcapng_statistics *statistics);
};

void output_open(const struct output_options *options);
/* Appends frames of a device, and puts stripped VLAN tags back. Returns how many it has taken: less than `n` if the
 * output has ended. One thread at a time may call these functions. */
DAT_COUNT output_frames(const DAT_ETH_FRAME *frames, DAT_COUNT n, unsigned device);
/* Returns false if the pipe has no reader, or if a write has failed. After a failed write the file ends with a whole
 * block, and output_check() ends the program. */
bool output_is_open(void);
/* Appends a frame of the first device with a comment of at most 95 bytes. A pcap file has no comments. `joined`: the
 * next frame must be in the same file of a ring. Returns output_is_open(). */
bool output_commented(const DAT_ETH_FRAME *frame, const char *comment, bool joined);
/* Returns the bytes that output_frames() adds to the file for the frame. Any thread may call it. */
uint64_t output_frame_size(const DAT_ETH_FRAME *frame);
/* Returns the bytes of the current file, with those that are not written yet. */
uint64_t output_size(void);
/* Returns the speed of a network device in bits a second; 0 if it is not known. */
uint64_t output_link_speed(const char *device);
/* Returns the number of files that were begun. */
uint64_t output_files(void);
/* Writes the frames that were appended. Call it each OUTPUT_FLUSH_NS while frames come slowly, so that a
 * reader sees them, and so that they outlive the process. Returns output_is_open(). */
bool output_flush(void);
/* `statistics` has a structure for each device. */
bool output_close(const struct pcapng_statistics *statistics);
/* Ends the program with a line if a write has failed. Call it after output_close(). */
void output_check(void);
/* Returns the number of frames that were appended, but not written to the file or pipe. */
uint64_t output_unwritten(void);

#endif
