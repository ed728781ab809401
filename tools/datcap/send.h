/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* send.h - sends a list of frames, at their own times, at a rate, or as fast as possible, and prints how
 * late they were. replay.c and make.c supply the frames. */
#ifndef DATCAP_SEND_H
#define DATCAP_SEND_H
#include <stdint.h>
#include "datcap.h"
#include "device.h"

struct sender;

/* Opens the device. Ends the program if the device has the default route and --yes was not given. */
struct sender *sender_open(const struct options *o);
const DAT_ETH_ATTR *sender_attr(const struct sender *s);
/* Returns the bytes that the device sends of a frame that begins with `length` bytes at `frame`: a VLAN tag may exceed
 * the limit of the device. */
uint32_t sender_most(const struct sender *s, const uint8_t *frame, uint32_t length);
/* Appends a frame of `length` bytes, due `at` ns after the first frame. Returns the address for its bytes,
 * which is valid until the next call. */
uint8_t *sender_add(struct sender *s, uint32_t length, uint64_t at);
/* Makes the frame that was added last a TCP message that the device cuts into segments: `header_length`
 * bytes of headers, then `mss` bytes of payload for each segment. */
void sender_segment(struct sender *s, uint16_t header_length, uint16_t mss);
/* The list lacks a part of what was to be sent: sender_run() returns STATUS_LOST instead of 0. */
void sender_mark_incomplete(struct sender *s);
/* Sends the list o->loops times (0: until a signal), but at most o->count frames. Prints the summary, frees
 * `s`, and returns the exit status. */
int sender_run(struct sender *s);

#endif
