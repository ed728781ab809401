/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* writer.h - the thread that writes captured frames, so that a slow file or pipe does not keep the capture from reading. Frames
 * stay in the endpoint's ring until they are in the buffer of the next write (output.c, 1 MiB). */
#ifndef DATCAP_WRITER_H
#define DATCAP_WRITER_H
#include <stdbool.h>
#include <stdint.h>
#include <dat/udat.h>
#include <dat/dat_eth_extensions.h>

enum { WRITER_BATCH = 64 };		/* frames taken at a time */

struct writer_batch {
	DAT_ETH_FRAME frames[WRITER_BATCH];
	DAT_COUNT kept;			/* frames to write, in front */
	DAT_COUNT taken;		/* frames to release to `ep` then, in the order of the batches */
};

/* The output is open. */
void writer_start(DAT_EP_HANDLE ep);
/* The batch to fill next. NULL: all wait for the writer, also after a moment. */
struct writer_batch *writer_batch(void);
/* Hands the filled batch over. */
void writer_put(void);
/* How many batches were written, and in *behind whether more wait. */
uint64_t writer_progress(bool *behind);
/* The reader of the pipe has gone or does not read, or the file cannot be written: output_close() tells. */
bool writer_has_ended(void);
/* Waits until all batches are written, and ends the thread. Returns how many frames were not handed to the output, since it
 * had ended. */
uint64_t writer_finish(void);

#endif
