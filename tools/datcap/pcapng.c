/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pcapng.c - section header, interface description, enhanced packet and interface statistics blocks. */
#include "pcapng.h"
#include <string.h>

enum {
	SECTION_HEADER = 0x0a0d0d0a, INTERFACE_DESCRIPTION = 1, INTERFACE_STATISTICS = 5,
	BYTE_ORDER_MAGIC = 0x1a2b3c4d, LINKTYPE_ETHERNET = 1,
	OPT_COMMENT = 1, SHB_OS = 3, SHB_USERAPPL = 4, IF_NAME = 2, IF_SPEED = 8, IF_TSRESOL = 9,
	IF_FILTER = 11, EPB_DROPCOUNT = 4,
	ISB_STARTTIME = 2, ISB_ENDTIME = 3, ISB_IFRECV = 4, ISB_IFDROP = 5, ISB_FILTERACCEPT = 6, ISB_OSDROP = 7,
	ISB_USRDELIV = 8,
};

struct block {
	uint8_t *begin, *at;
};

static inline void put(struct block *b, const void *bytes, size_t n)
{
	memcpy(b->at, bytes, n);
	b->at += n;
}

static void put32(struct block *b, uint32_t value)
{
	put(b, &value, sizeof value);
}

static void put16(struct block *b, uint16_t value)
{
	put(b, &value, sizeof value);
}

static inline void pad(struct block *b)
{
	uint32_t zero = 0;
	size_t n = -(size_t)(b->at - b->begin) & 3;

	memcpy(b->at, &zero, sizeof zero);	/* there is room */
	b->at += n;
}

static struct block begin(uint8_t *to, uint32_t type)
{
	struct block b = { to, to };

	put32(&b, type);
	put32(&b, 0);
	return b;
}

static size_t end(struct block *b)
{
	uint32_t length = (uint32_t)(b->at - b->begin) + 4;

	memcpy(b->begin + 4, &length, sizeof length);
	put32(b, length);
	return length;
}

static void option(struct block *b, uint16_t code, const void *value, size_t n)
{
	put16(b, code);
	put16(b, (uint16_t)n);
	put(b, value, n);
	pad(b);
}

static void text_option(struct block *b, uint16_t code, const char *text)
{
	size_t n = strlen(text);

	if (n)
		option(b, code, text, n < PCAPNG_TEXT_MAX ? n : PCAPNG_TEXT_MAX);
}

static void end_options(struct block *b)
{
	put16(b, PCAPNG_OPT_END);
	put16(b, 0);
}

size_t pcapng_section(uint8_t *to, const char *os, const char *tool, const char *comment)
{
	struct block b = begin(to, SECTION_HEADER);

	put32(&b, BYTE_ORDER_MAGIC);
	put16(&b, 1);
	put16(&b, 0);
	put32(&b, 0xffffffff);		/* the length of the section is not known */
	put32(&b, 0xffffffff);
	text_option(&b, SHB_OS, os);
	text_option(&b, SHB_USERAPPL, tool);
	text_option(&b, OPT_COMMENT, comment);
	end_options(&b);
	return end(&b);
}

size_t pcapng_interface(uint8_t *to, const char *name, const char *filter, uint32_t snap, uint64_t speed)
{
	struct block b = begin(to, INTERFACE_DESCRIPTION);
	uint8_t nanoseconds = 9, libpcap_string[PCAPNG_TEXT_MAX + 1] = { 0 };
	size_t n = strlen(filter);

	put16(&b, LINKTYPE_ETHERNET);
	put16(&b, 0);
	put32(&b, snap);
	text_option(&b, IF_NAME, name);
	if (speed)
		option(&b, IF_SPEED, &speed, sizeof speed);
	option(&b, IF_TSRESOL, &nanoseconds, 1);
	if (n) {	/* a first byte of 0 means a filter string of libpcap */
		n = n < PCAPNG_TEXT_MAX ? n : PCAPNG_TEXT_MAX;
		memcpy(libpcap_string + 1, filter, n);
		option(&b, IF_FILTER, libpcap_string, n + 1);
	}
	end_options(&b);
	return end(&b);
}

size_t pcapng_packet(uint8_t *to, const struct pcapng_packet *packet)
{
	struct block b = begin(to, PCAPNG_ENHANCED_PACKET);
	const struct { uint32_t interface, high, low, captured, length; } head = { packet->interface,
		(uint32_t)(packet->time >> 32), (uint32_t)packet->time, packet->captured, packet->wire_length };
	const struct pcapng_packet_flags flags = { PCAPNG_EPB_FLAGS, sizeof packet->flags, packet->flags };

	put(&b, &head, sizeof head);
	for (int i = 0; i < 3 && packet->lengths[i]; i++)
		put(&b, packet->pieces[i], packet->lengths[i]);
	pad(&b);
	put(&b, &flags, sizeof flags);
	if (packet->dropped) {
		uint64_t dropped = packet->dropped;

		option(&b, EPB_DROPCOUNT, &dropped, sizeof dropped);
	}
	if (*packet->comment)
		text_option(&b, OPT_COMMENT, packet->comment);
	end_options(&b);
	return end(&b);
}

size_t pcapng_packet_size(uint32_t captured, bool dropped)
{
	const size_t loss = 4 + sizeof(uint64_t), options_end = 4, block_length = 4;

	return sizeof(struct pcapng_packet_head) + ((captured + 3) & ~3u) + sizeof(struct pcapng_packet_flags) +
	       (dropped ? loss : 0) + options_end + block_length;
}

bool pcapng_is_packet(const uint8_t *block)
{
	uint32_t type;

	memcpy(&type, block, sizeof type);
	return type == PCAPNG_ENHANCED_PACKET;
}

static void time_option(struct block *b, uint16_t code, uint64_t time)
{
	uint32_t halves[2] = { (uint32_t)(time >> 32), (uint32_t)time };

	option(b, code, halves, sizeof halves);
}

size_t pcapng_interface_statistics(uint8_t *to, const struct pcapng_statistics *s)
{
	struct block b = begin(to, INTERFACE_STATISTICS);

	put32(&b, s->interface);
	put32(&b, (uint32_t)(s->time >> 32));
	put32(&b, (uint32_t)s->time);
	time_option(&b, ISB_STARTTIME, s->start);
	time_option(&b, ISB_ENDTIME, s->time);
	option(&b, ISB_IFRECV, &s->received, 8);
	if (s->dropped_by_interface != ~(uint64_t)0)
		option(&b, ISB_IFDROP, &s->dropped_by_interface, 8);
	option(&b, ISB_FILTERACCEPT, &s->accepted, 8);
	option(&b, ISB_OSDROP, &s->dropped_by_kernel, 8);
	option(&b, ISB_USRDELIV, &s->delivered, 8);
	end_options(&b);
	return end(&b);
}
