/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pcapng.h - builds blocks of pcapng files, in the byte order of this host. output.c writes them to the
 * file. */
#ifndef DATCAP_PCAPNG_H
#define DATCAP_PCAPNG_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Each function writes one block at `to` and returns its length: at most PCAPNG_HEAD_MAX, or for a packet
 * its bytes and at most PCAPNG_PACKET_EXTRA more. */
enum {
	PCAPNG_TEXT_MAX = 1000,		/* bytes kept of a name or a filter */
	PCAPNG_COMMENT_MAX = 60,
	PCAPNG_HEAD_MAX = 2 * PCAPNG_TEXT_MAX + 128,	/* the block of an interface has two texts */
	PCAPNG_PACKET_EXTRA = 192,
};

/* The texts together have fewer than PCAPNG_TEXT_MAX bytes; the comment has at most PCAPNG_COMMENT_MAX, or
 * is "", which means none. */
size_t pcapng_section(uint8_t *to, const char *os, const char *tool, const char *comment);
/* `speed` in bits a second; 0: not known. */
size_t pcapng_interface(uint8_t *to, const char *name, const char *filter, uint32_t snap, uint64_t speed);

enum pcapng_flag { PCAPNG_INBOUND = 1, PCAPNG_OUTBOUND = 2 };

struct pcapng_packet {
	uint64_t time;			/* ns since 1970 */
	uint32_t interface;		/* the number of its block in the file, from 0 on */
	const uint8_t *pieces[3];	/* the bytes of the packet */
	uint32_t lengths[3];
	uint32_t captured, wire_length;
	uint32_t flags;			/* epb_flags: enum pcapng_flag */
	uint32_t dropped;		/* frames lost before this one */
	const char *comment;		/* at most 95 bytes; "": none */
};
size_t pcapng_packet(uint8_t *to, const struct pcapng_packet *packet);

enum {
	PCAPNG_ENHANCED_PACKET = 6,	/* type of a block */
	PCAPNG_OPT_END = 0, PCAPNG_EPB_FLAGS = 2,	/* options */
};

/* These structures lie in a buffer of bytes. */
#define PCAPNG_IN_BYTES __attribute__((packed, aligned(1), may_alias))

struct pcapng_packet_head {
	uint32_t type, block_length, interface, time_high, time_low, captured, length;
} PCAPNG_IN_BYTES;

struct pcapng_packet_flags {		/* option epb_flags */
	uint16_t code, size;
	uint32_t value;
};

struct pcapng_packet_tail {		/* behind the bytes of a packet without losses and comment */
	struct pcapng_packet_flags flags;
	uint32_t end, block_length;
} PCAPNG_IN_BYTES;

/* HOT: pcapng_packet() of a packet in one piece, without losses and without a comment. Stores what it has, without a
 * copy of its own. */
static inline size_t pcapng_plain_packet(uint8_t *to, uint32_t interface, uint64_t time, const uint8_t *bytes,
					 uint32_t captured, uint32_t length, uint32_t flags)
{
	const uint32_t padded = (captured + 3) & ~3u, padding = 4;
	const uint32_t block =
		(uint32_t)(sizeof(struct pcapng_packet_head) + sizeof(struct pcapng_packet_tail)) + padded;
	uint8_t *const data = to + sizeof(struct pcapng_packet_head), *const end = data + padded;

	memset(end - padding, 0, padding);	/* the head and the bytes overwrite the rest */
	*(struct pcapng_packet_head *)to = (struct pcapng_packet_head){ PCAPNG_ENHANCED_PACKET, block,
		interface, (uint32_t)(time >> 32), (uint32_t)time, captured, length };
	memcpy(data, bytes, captured);
	*(struct pcapng_packet_tail *)end = (struct pcapng_packet_tail){
		{ PCAPNG_EPB_FLAGS, sizeof flags, flags }, PCAPNG_OPT_END, block };
	return block;
}

/* Returns the bytes of the block of a packet without a comment. */
size_t pcapng_packet_size(uint32_t captured, bool dropped);

bool pcapng_is_packet(const uint8_t *block);

struct pcapng_statistics {
	uint32_t interface;
	uint64_t time, start, received, dropped_by_interface, accepted, dropped_by_kernel, delivered;
};
size_t pcapng_interface_statistics(uint8_t *to, const struct pcapng_statistics *s);

#endif
