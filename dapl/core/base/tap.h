/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tap.h - the ring that shows a capturing program the RDMA messages of this process (common/tap.h): its
 * memory, and the entries in it. Which messages become records is the device's matter, and when a
 * capture begins and ends is ia/tap.c's. */
#ifndef DAPL_CORE_TAP_H
#define DAPL_CORE_TAP_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>
#include "common/tap.h"

/* Before the first use. */
void dapl_tap_init(void);
/* An empty ring from now on; records hold at most `snap` bytes of payload. The memory is made at the first
 * capture and stays until dapl_tap_fini(), since threads may be about to write to it. Returns the
 * descriptor of the file, or a negative errno. *began names the capture. */
int dapl_tap_begin(uint32_t snap, uint64_t *began);
/* Nothing is recorded any more. What was can be read still. */
void dapl_tap_end(void);
/* The client has read it. */
void dapl_tap_release(void);
/* The library is unloaded: no thread can be in a call. */
void dapl_tap_fini(void);

/* Bytes of payload that a record has at most. */
uint32_t dapl_tap_snap(void);
/* The number of the capture that runs, or ran last; 0: there was none. */
uint32_t dapl_tap_capture(void);

struct tap_place {
	uint64_t at;
	uint32_t capture;
};

/* Adds a record with record->captured bytes from the pieces of `payload`. The ends are needed if *shown
 * is not dapl_tap_capture(); *shown, which belongs to the connection, is kept here. Returns false if
 * nothing is captured, or if there is no room, which is counted. Any locks may be held. */
bool dapl_tap_put(const struct tap_record *record, uint32_t *shown, const struct iovec *payload, struct tap_place *place);
/* The message was refused. */
void dapl_tap_cancel(const struct tap_place *place);

#endif
