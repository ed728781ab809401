/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* writer.h - a thread that writes captured frames, so that a slow file or pipe does not stop the reading of
 * the ring. Frames stay in the endpoint's ring until they are copied to the buffer of the next write
 * (output.c, 1 MiB). */
#ifndef DATCAP_WRITER_H
#define DATCAP_WRITER_H
#include <stdbool.h>
#include <stdint.h>
#include <dat/udat.h>
#include <dat/dat_eth_extensions.h>

enum { WRITER_BATCH = 256 };	/* frames taken at a time: 3 instructions of the calls for each */

struct writer_batch {
	DAT_ETH_FRAME frames[WRITER_BATCH];
	DAT_EP_HANDLE ep;		/* whose frames they are */
	unsigned device;		/* its number in the file */
	DAT_COUNT kept;			/* frames to write, at the start of `frames` */
	DAT_COUNT taken;		/* frames to release to `ep` then, in the order of the batches */
};

/* Starts the thread. The output must be open. */
void writer_start(void);
/* Returns the batch to fill next. If all batches are full, waits a moment for the thread, and returns NULL
 * if they are full still. */
struct writer_batch *writer_batch(void);
/* Hands the batch of writer_batch() over to the thread. Call writer_wake() when no more frames are there. */
void writer_put(void);
/* Returns the number of batches written so far. Stores in *behind whether more wait. */
uint64_t writer_progress(bool *behind);
/* Wakes the thread if batches wait for it. It releases their frames: until then the device reports them as there. */
void writer_wake(void);
/* Returns whether the thread has stopped writing: the pipe has no reader, its reader does not read, or a
 * write has failed, which output_check() reports. */
bool writer_has_ended(void);
/* Waits until all batches are written, and ends the thread. Returns the number of frames that were dropped
 * because the thread had stopped writing. */
uint64_t writer_finish(void);

#endif
