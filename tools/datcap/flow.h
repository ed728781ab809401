/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* flow.h - the connections whose RDMA messages become frames: which records belong to one, which of them tell the
 * same message twice, and the Ethernet and IP headers of its frames. What is above IP is the job of iwarp.c and
 * roce.c. */
#ifndef DATCAP_FLOW_H
#define DATCAP_FLOW_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/tap.h"

enum { FLOW_ETHERNET = 14, FLOW_HEADERS_MAX = FLOW_ETHERNET + 40 };	/* bytes of headers; with IPv6 */

struct flow {				/* a connection */
	struct tap_address ends[2];	/* ends[0] connected, ends[1] accepted */
	bool roce;
	bool posted[2];			/* ends[i] is captured */
	void *state;			/* of the protocol above IP; see flow_state() */
	struct flow *next;
};

struct flow_frame {
	const uint8_t *bytes;
	uint32_t captured, length;	/* bytes that are there, bytes of the frame */
};
/* Takes a frame. False: no more are wanted. */
typedef bool flow_take(void *arg, const struct flow_frame *frame);

/* The connection of the record; `side` is the end that recorded it. */
struct flow *flow_of(const struct tap_record *record, unsigned *side);
/* The end that sent the message, if `side` recorded it. */
unsigned flow_sender(const struct tap_record *record, unsigned side);
/* The state of a protocol for the connection: `size` bytes, zeroed at first. */
void *flow_state(struct flow *flow, size_t size);
/* A message is a duplicate if both ends are captured: then what one side received is what the other posted.
 * Remembers what the connection has sent. */
bool flow_is_duplicate(const struct tap_record *record);

/* The headers of a frame from ends[from] with `length` bytes behind the IP header. Returns the place behind
 * them. */
uint8_t *flow_put_headers(const struct flow *flow, unsigned from, uint8_t protocol, uint32_t length, uint8_t *to);
/* Bytes of these headers. */
uint32_t flow_headers_size(const struct flow *flow);
/* The sum that the checksum of TCP or UDP begins with (sum16). */
uint32_t flow_pseudo_header(const struct flow *flow, uint8_t protocol, uint32_t length);

#endif
