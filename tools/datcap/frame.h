/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* frame.h - frames described in words (datcap(1), FRAMES), and their bytes. Sending them is make.c's job. */
#ifndef DATCAP_FRAME_H
#define DATCAP_FRAME_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FRAME_LAYERS = 2, FRAME_TAGS = 2, FRAME_PAYLOAD = 2048 };

enum frame_tunnel { FRAME_PLAIN, FRAME_VXLAN, FRAME_GENEVE };

struct frame_layer {			/* from Ethernet to the ports; the second one is within a tunnel */
	uint8_t dst[6], src[6];
	unsigned tags;
	uint16_t vlan[FRAME_TAGS];	/* TCI; the outermost first */
	uint32_t type;			/* 0: as the IP version says */
	unsigned version;		/* of IP: 0, 4, 6 */
	uint8_t ip_src[16], ip_dst[16];
	uint32_t tos, ttl, id, flow;
	uint32_t protocol;		/* 256: 17 or 6 by `udp` or `tcp`, else 59, no next header */
	bool ports;
	uint32_t sport, dport;
	uint32_t seq, ack, flags;	/* TCP */
	uint32_t tunnel_id;
	enum frame_tunnel tunnel;	/* what follows; the last layer has none */
};

struct frame {
	unsigned layers;
	struct frame_layer layer[FRAME_LAYERS];
	uint32_t length;		/* bytes, without FCS; 0: as short as the headers and payload allow */
	bool bad_checksum;		/* of the innermost TCP or UDP, else IPv4 header */
	uint32_t payload_length;
	uint8_t payload[FRAME_PAYLOAD];
};

/* What is wrong in a text. */
struct frame_fault {
	unsigned column;		/* 1.. */
	char text[200];			/* what was found, what was expected */
};

/* `src` is the address of frames that do not say theirs. */
bool frame_parse(const char *text, const uint8_t src[6], struct frame *frame, struct frame_fault *fault);
/* Writes the bytes, at most `room`. Returns the length; 0: `fault` says why (column 0). */
uint32_t frame_build(const struct frame *frame, uint8_t *to, uint32_t room, struct frame_fault *fault);

/* A field that takes a range of values in turn. */
struct frame_vary {
	struct frame_layer *layer;
	uint32_t *number;		/* NULL: `address` */
	uint8_t *address;
	unsigned address_size;		/* bytes; the last 8 count */
	uint64_t first, last, step;
};
/* "sport 1-1000 step 2": a field of `frame`, which must have it. */
bool frame_parse_vary(const char *text, struct frame *frame, struct frame_vary *vary, struct frame_fault *fault);
/* The number of values, UINT64_MAX if there are more. */
uint64_t frame_vary_count(const struct frame_vary *vary);
/* Sets the field of the frame to value number `i`. */
void frame_vary_set(const struct frame_vary *vary, uint64_t i);

#endif
