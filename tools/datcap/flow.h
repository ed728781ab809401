/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* flow.h - the connections whose RDMA messages become frames. Finds the connection of a record, detects
 * records of one message from both ends, and writes the Ethernet and IP headers of frames. iwarp.c and
 * roce.c write the headers above IP. */
#ifndef DATCAP_FLOW_H
#define DATCAP_FLOW_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "tap_record.h"

enum { FLOW_ETHERNET = 14, FLOW_HEADERS_MAX = FLOW_ETHERNET + 40 };	/* bytes of headers; with IPv6 */

struct flow {				/* a connection */
	struct tap_address ends[2];	/* ends[0] connected, ends[1] accepted */
	bool roce;
	bool posted[2];			/* ends[i] has recorded a request, so it is captured */
	void *state;			/* of the protocol above IP; see flow_state() */
	struct flow *next;
};

struct flow_frame {
	const uint8_t *bytes;
	uint32_t captured, length;	/* bytes at `bytes`, bytes of the whole frame */
	bool joined;			/* an analyser needs it in the same file to decode the next one */
};
/* Takes a frame. Returns false if it needs no more frames. */
typedef bool flow_take(void *arg, const struct flow_frame *frame);

/* Returns the connection of the record, a new one if need be. Stores the end that recorded it in *side. */
struct flow *flow_of(const struct tap_record *record, unsigned *side);
/* Returns the end that sent the message of the record. `side` is the end that recorded it. */
unsigned flow_sender(const struct tap_record *record, unsigned side);
/* Returns the state of the connection for the protocol above IP. The first call allocates `size` bytes,
 * which are 0. */
void *flow_state(struct flow *flow, size_t size);
/* Returns whether the record is of a received message whose sender is captured, too: then that end has
 * recorded the message when it posted it. Call this for each record, since it notes which ends are
 * captured. */
bool flow_is_duplicate(const struct tap_record *record);

/* Writes the headers of a frame that ends[from] sends, with `length` bytes after the IP header. Returns the
 * address after the headers. */
uint8_t *flow_put_headers(const struct flow *flow, unsigned from, uint8_t protocol, uint32_t length, uint8_t *to);
/* Returns the size of the Ethernet and IP headers, in bytes. */
uint32_t flow_headers_size(const struct flow *flow);
/* Returns the sum of the pseudo header, with which the checksum of TCP or UDP begins (sum16). */
uint32_t flow_pseudo_header(const struct flow *flow, uint8_t protocol, uint32_t length);

#endif
