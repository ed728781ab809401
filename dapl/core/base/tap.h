/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tap.h - the ring that shows a capturing program the RDMA messages of this process (common/tap.h): its
 * memory, and the reservation of records. Which messages become records is the device's matter, and when a
 * capture begins and ends is ia/tap.c's. */
#ifndef DAPL_CORE_TAP_H
#define DAPL_CORE_TAP_H
#include <stdbool.h>
#include <stdint.h>
#include "common/tap.h"

/* Before the first use. */
void dapl_tap_init(void);
/* An empty ring from now on; records hold at most `snap` bytes of payload. The memory is made at the first
 * capture and stays until dapl_tap_fini(), since threads may be about to write to it. Returns the
 * descriptor of the file, or a negative errno; -EBUSY: a record is still being written. *began names the
 * capture. */
int dapl_tap_begin(uint32_t snap, uint64_t *began);
/* Nothing is recorded any more. What was can be read still. */
void dapl_tap_end(void);
/* The client has read it. */
void dapl_tap_release(void);
/* The library is unloaded: no thread can be in a call. */
void dapl_tap_fini(void);

/* Bytes of payload that a record is to have. */
uint32_t dapl_tap_snap(void);
/* A record with room for so many bytes of payload, all zero but size and time. NULL: no capture, or no room,
 * which is counted. Each record is committed. Any locks may be held. */
struct tap_record *dapl_tap_reserve(uint32_t payload);
/* `valid` false: the message was refused. */
void dapl_tap_commit(struct tap_record *record, bool valid);

#endif
