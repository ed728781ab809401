/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* frame.h - parses descriptions of frames (datcap(1), FRAMES), and builds the frames. make.c sends them. */
#ifndef DATCAP_FRAME_H
#define DATCAP_FRAME_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FRAME_LAYERS = 2, FRAME_TAGS = 2, FRAME_PAYLOAD = 2048 };

enum frame_arp { FRAME_NO_ARP, FRAME_ARP_REQUEST, FRAME_ARP_REPLY };	/* the numbers of the operations */

enum frame_tunnel { FRAME_PLAIN, FRAME_VXLAN, FRAME_GENEVE };

struct frame_layer {			/* from Ethernet to the ports; the second layer is in a tunnel */
	uint8_t dst[6], src[6];
	unsigned tags;
	uint16_t vlan[FRAME_TAGS];	/* TCI; the outermost first */
	uint32_t type;			/* 0: that of the IP version */
	unsigned version;		/* of IP: 0, 4, 6 */
	uint8_t ip_src[16], ip_dst[16];	/* of IP, or of sender and target of ARP */
	enum frame_arp arp;		/* there is no IP header then */
	bool icmp;			/* ICMP, or ICMPv6 in IPv6 */
	uint32_t icmp_type, icmp_code, icmp_id, icmp_seq;
	uint32_t tos, ttl, id, flow;
	uint32_t protocol;		/* 17 after `udp`, 6 after `tcp`, 1 or 58 after `icmp`; 256: not given, sent
					 * as 59 */
	bool ports;
	uint32_t sport, dport;
	uint32_t seq, ack, flags;	/* TCP */
	uint32_t tunnel_id;
	enum frame_tunnel tunnel;	/* holds the next layer; FRAME_PLAIN in the last layer */
};

struct frame {
	unsigned layers;
	struct frame_layer layer[FRAME_LAYERS];
	uint32_t length;		/* bytes, without FCS; 0: those of headers and payload */
	bool bad_checksum;		/* of the innermost TCP or UDP, else IPv4 header */
	uint32_t payload_length;
	uint8_t payload[FRAME_PAYLOAD];
};

/* An error in a text. */
struct frame_fault {
	unsigned column;		/* 1.. */
	char text[200];			/* what was found, what was expected */
};

/* `src` is the source address if the text has none. Returns false if the text is wrong; *fault says why. */
bool frame_parse(const char *text, const uint8_t src[6], struct frame *frame, struct frame_fault *fault);
/* Writes the bytes of the frame, at most `room`, and returns their number. After an error returns 0; *fault
 * says why, and its column is 0. */
uint32_t frame_build(const struct frame *frame, uint8_t *to, uint32_t room, struct frame_fault *fault);

/* A field that takes the values of a range in turn, or random ones of them. */
struct frame_vary {
	struct frame_layer *layer;
	uint32_t *number;		/* the field; NULL: it is `address` */
	uint8_t *address;
	unsigned address_size;		/* bytes; only the last 8 vary */
	uint64_t first, last, step;
	uint32_t random;		/* frames that get a random value; 0: values in turn */
	uint64_t seed;			/* of random values */
};
/* Parses text like "sport 1-1000 step 2" or "sport 1-1000 random 50". Returns false if it is wrong, or if `frame`
 * does not have the field; *fault says why. */
bool frame_parse_vary(const char *text, struct frame *frame, struct frame_vary *vary, struct frame_fault *fault);
/* Returns the number of values in turn, or UINT64_MAX if there are more; 1 if values are random. */
uint64_t frame_vary_count(const struct frame_vary *vary);
/* Sets the field of the frame to value `i`, counted from 0; of random values, to one that `i` and the seed select. */
void frame_vary_set(const struct frame_vary *vary, uint64_t i);

#endif
