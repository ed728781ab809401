/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* send.h - sends a list of frames, at their own times, at a rate, or as fast as it goes, and tells how exact that was.
 * Where the frames come from is replay.c's and make.c's job. */
#ifndef DATCAP_SEND_H
#define DATCAP_SEND_H
#include <stdint.h>
#include "datcap.h"
#include "device.h"

struct sender;

/* Opens the device, unless it carries the default route and --yes was not given. */
struct sender *sender_open(const struct options *o);
const DAT_ETH_ATTR *sender_attr(const struct sender *s);
/* Appends a frame of `length` bytes that is to go `at` ns after the first one. Returns where its bytes are to be
 * written, valid until the next call. */
uint8_t *sender_add(struct sender *s, uint32_t length, uint64_t at);
/* The frame that was added last is a message, cut by the device after so many bytes of headers. */
void sender_segment(struct sender *s, uint16_t header_length, uint16_t mss);
/* Sends them o->loops times (0: until a signal), and at most o->count frames. Prints the summary, frees `s`, and
 * returns the exit status. */
int sender_run(struct sender *s);

#endif
