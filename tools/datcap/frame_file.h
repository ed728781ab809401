/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* frame_file.h - reads the Ethernet frames of a pcap or pcapng file, without their FCS. A file that cannot be read, or
 * that holds anything but Ethernet, ends the program with one line. */
#ifndef DATCAP_FRAME_FILE_H
#define DATCAP_FRAME_FILE_H
#include <stdbool.h>
#include <stdint.h>

struct frame_file;

struct file_frame {
	const uint8_t *data;		/* valid until the next call */
	uint32_t captured, length;	/* bytes at data; bytes that the frame had */
	uint64_t time;			/* ns since 1970; without a time in the file, that of the frame before it */
	bool had_fcs;			/* its FCS was in the file */
};

/* `path` "-" is standard input. */
struct frame_file *frame_file_open(const char *path);
/* Returns false at the end. */
bool frame_file_next(struct frame_file *f, struct file_frame *frame);
/* Returns whether the file ended within a frame. */
bool frame_file_is_cut(const struct frame_file *f);
void frame_file_close(struct frame_file *f);

/* Returns whether the file begins like a pcap or pcapng file. */
bool frame_file_is_capture(const char *path);

#endif
