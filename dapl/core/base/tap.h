/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tap.h - the ring through which a capturing program reads the RDMA messages of this process
 * (common/tap.h): its memory and its entries. The device decides which messages become records. ia/tap.c
 * begins and ends a capture. */
#ifndef DAPL_CORE_TAP_H
#define DAPL_CORE_TAP_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>
#include "common/tap.h"

/* Called before any other function of this header. */
void dapl_tap_init(void);
/* Begins a capture with an empty ring. Records have at most `snap` bytes of payload. The memory is
 * allocated at the first capture and stays until dapl_tap_fini(), because threads may be about to write to
 * it. Returns the descriptor of the file, or a negative errno. *began is the time in ns that identifies the
 * capture. */
int dapl_tap_begin(uint32_t snap, uint64_t *began);
/* Ends recording. The client can still read the records. */
void dapl_tap_end(void);
/* Called when the client has read the records. Gives the memory of the entries back to the system. */
void dapl_tap_release(void);
/* Called when the library is unloaded: no thread can be in a call. */
void dapl_tap_fini(void);

/* Returns how many bytes of payload a record has at most. */
uint32_t dapl_tap_snap(void);
/* Returns the number of the capture that runs or ran last, or 0 if there was none. */
uint32_t dapl_tap_capture(void);

struct tap_place {
	uint64_t at;
	uint32_t capture;
};

/* Adds a record with record->captured bytes from the pieces of `payload`. record->ends is needed if *shown
 * differs from dapl_tap_capture(). *shown belongs to the connection, and this function updates it. Returns
 * false if no capture runs, or if there is no room, which is counted. Any locks may be held. */
bool dapl_tap_put(const struct tap_record *record, uint32_t *shown, const struct iovec *payload,
		  struct tap_place *place);
/* Called when the message of the record was refused: the client skips the record. */
void dapl_tap_cancel(const struct tap_place *place);

#endif
