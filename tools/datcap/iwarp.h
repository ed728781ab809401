/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* iwarp.h - RDMA messages as Ethernet frames that protocol analysers decode: TCP segments with MPA, DDP and RDMAP
 * headers. The headers below RDMAP are made up but for addresses and ports. Where messages come from is
 * rdma.c's job. */
#ifndef DATCAP_IWARP_H
#define DATCAP_IWARP_H
#include <stdbool.h>
#include <stdint.h>
#include "common/tap.h"

struct iwarp_frame {
	const uint8_t *bytes;
	uint32_t captured, length;	/* bytes that are there, bytes of the frame */
};

/* A message is a duplicate if both ends are captured: then what one side received is what the other posted.
 * Remembers what the connection has sent. */
bool iwarp_is_duplicate(const struct tap_record *record);
/* Calls `each` for each frame of the message: before the first one of a connection also those that open it. Stops
 * when it returns false, and returns that. */
bool iwarp_frames(const struct tap_record *record, const uint8_t *payload,
		  bool (*each)(void *arg, const struct iwarp_frame *frame), void *arg);

#endif
