/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pcapng_read.c - see pcapng_read.h. Reads section headers, interface descriptions and the three kinds of packet
 * blocks; skips others. */
#include "pcapng_read.h"
#include <byteswap.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum {
	SECTION_HEADER = 0x0a0d0d0a, INTERFACE_DESCRIPTION = 1, OLD_PACKET = 2, SIMPLE_PACKET = 3, ENHANCED_PACKET = 6,
	BYTE_ORDER_MAGIC = 0x1a2b3c4d,
	IF_TSRESOL = 9, IF_FCSLEN = 13, IF_TSOFFSET = 14, PACKET_FLAGS = 2,
	FLAGS_FCS = 0x1e0,		/* bits of the flags that hold the length of the FCS; 0: not known */
	HEAD = 8, TAIL = 4,		/* bytes of a block before and behind its body */
	BLOCK_MAX = 16 << 20,		/* bytes */
	MICROSECONDS = 6, POWER_OF_2 = 0x80,
};

struct interface {
	uint16_t link_type;
	uint32_t snap;			/* 0: no limit */
	uint8_t resolution;		/* as in the file */
	int64_t offset;			/* s */
	bool has_fcs;
};

struct pcapng_reader {
	FILE *file;
	bool swapped;			/* the byte order of the section is not that of this host */
	struct interface *interfaces;	/* of the section */
	unsigned count;
	uint8_t *block;
	size_t room;
	char wrong[200];
};

/* A part of a block. */
struct span {
	const uint8_t *at;
	size_t left;
};

static enum pcapng_result wrong(struct pcapng_reader *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static enum pcapng_result wrong(struct pcapng_reader *r, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(r->wrong, sizeof r->wrong, fmt, args);
	va_end(args);
	return PCAPNG_WRONG;
}

static uint16_t get16(const struct pcapng_reader *r, const uint8_t *at)
{
	uint16_t value;

	memcpy(&value, at, sizeof value);
	return r->swapped ? bswap_16(value) : value;
}

static uint32_t get32(const struct pcapng_reader *r, const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof value);
	return r->swapped ? bswap_32(value) : value;
}

static uint64_t get64(const struct pcapng_reader *r, const uint8_t *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof value);
	return r->swapped ? bswap_64(value) : value;
}

/* Returns the value of the first option of that code with at least `size` bytes, or NULL. */
static const uint8_t *find_option(const struct pcapng_reader *r, struct span options, uint16_t code, size_t size)
{
	while (options.left >= 4) {
		uint16_t found = get16(r, options.at), length = get16(r, options.at + 2);
		size_t padded = 4 + ((length + 3u) & ~3u);

		if (!found || padded > options.left)
			return NULL;
		if (found == code && length >= size)
			return options.at + 4;
		options.at += padded;
		options.left -= padded;
	}
	return NULL;
}

/* --- blocks ----------------------------------------------------------------------------------- */

static enum pcapng_result begin_section(struct pcapng_reader *r, struct span body)
{
	if (body.left < 16)
		return wrong(r, "a section header of %zu bytes found, expected at least 28", body.left + HEAD + TAIL);
	if (get16(r, body.at + 4) != 1)
		return wrong(r, "pcapng of version %u found, expected 1", get16(r, body.at + 4));
	r->count = 0;
	return PCAPNG_PACKET;
}

static enum pcapng_result add_interface(struct pcapng_reader *r, struct span body)
{
	struct span options = { body.at + 8, body.left - 8 };
	struct interface *new;
	const uint8_t *value;

	if (body.left < 8)
		return wrong(r, "an interface description of %zu bytes found, expected at least 20",
			     body.left + HEAD + TAIL);
	new = reallocarray(r->interfaces, r->count + 1, sizeof *new);
	if (!new)
		return wrong(r, "no memory for interface %u", r->count);
	r->interfaces = new;
	new += r->count++;
	*new = (struct interface){ .link_type = get16(r, body.at), .snap = get32(r, body.at + 4),
		.resolution = MICROSECONDS };
	if ((value = find_option(r, options, IF_TSRESOL, 1)))
		new->resolution = *value;
	if ((value = find_option(r, options, IF_TSOFFSET, 8)))
		new->offset = (int64_t)get64(r, value);
	if ((value = find_option(r, options, IF_FCSLEN, 1)))	/* bits, or bytes: writers differ */
		new->has_fcs = *value != 0;
	return PCAPNG_PACKET;
}

static uint64_t power_of_10(unsigned n)
{
	uint64_t value = 1;

	while (n--)
		value *= 10;
	return value;
}

/* Returns ns since 1970. */
static uint64_t time_of(const struct interface *i, uint64_t units)
{
	const unsigned nano = 9, most = 28, power = i->resolution & ~(unsigned)POWER_OF_2;
	uint64_t offset = (uint64_t)i->offset * 1000000000u;

	if (i->resolution & POWER_OF_2)
		return power > 63 ? offset : offset + (units >> power) * 1000000000u +
			(uint64_t)((unsigned __int128)(units & (((uint64_t)1 << power) - 1)) * 1000000000u >> power);
	if (power <= nano)
		return offset + units * power_of_10(nano - power);
	return power > most ? offset : offset + units / power_of_10(power - nano);
}

/* Fills in what all packet blocks have. `head` is where the bytes of the packet begin in the body. */
static enum pcapng_result packet(struct pcapng_reader *r, struct span body, size_t head, struct pcapng_read *p)
{
	size_t padded = ((size_t)p->captured + 3) & ~(size_t)3;
	const uint8_t *flags;

	if (p->interface >= r->count)
		return wrong(r, "a packet of interface %u found, expected one of %u", p->interface, r->count);
	if (p->captured > body.left - head)
		return wrong(r, "a packet of %u bytes found in a block that has room for %zu", p->captured,
			     body.left - head);
	p->data = body.at + head;
	p->link_type = r->interfaces[p->interface].link_type;
	p->has_fcs = r->interfaces[p->interface].has_fcs;
	if (padded > body.left - head)
		padded = body.left - head;
	flags = find_option(r, (struct span){ p->data + padded, body.left - head - padded }, PACKET_FLAGS, 4);
	if (flags && (get32(r, flags) & FLAGS_FCS))
		p->has_fcs = true;
	return PCAPNG_PACKET;
}

static enum pcapng_result timed_packet(struct pcapng_reader *r, uint32_t type, struct span body, struct pcapng_read *p)
{
	enum { FIXED = 20 };
	enum pcapng_result result;

	if (body.left < FIXED)
		return wrong(r, "a packet block of %zu bytes found, expected at least 32", body.left + HEAD + TAIL);
	*p = (struct pcapng_read){ .captured = get32(r, body.at + 12), .length = get32(r, body.at + 16),
		.interface = type == OLD_PACKET ? get16(r, body.at) : get32(r, body.at), .has_time = true };
	result = packet(r, body, FIXED, p);
	if (result == PCAPNG_PACKET)
		p->time = time_of(&r->interfaces[p->interface],
				  (uint64_t)get32(r, body.at + 4) << 32 | get32(r, body.at + 8));
	return result;
}

/* It has neither a time nor the number of captured bytes. */
static enum pcapng_result simple_packet(struct pcapng_reader *r, struct span body, struct pcapng_read *p)
{
	enum { FIXED = 4 };
	uint32_t snap = r->count ? r->interfaces[0].snap : 0;

	if (body.left < FIXED)
		return wrong(r, "a packet block of %zu bytes found, expected at least 16", body.left + HEAD + TAIL);
	*p = (struct pcapng_read){ .length = get32(r, body.at) };
	p->captured = snap && snap < p->length ? snap : p->length;
	return packet(r, body, FIXED, p);
}

/* --- the file ---------------------------------------------------------------------------------- */

static bool get_bytes(struct pcapng_reader *r, size_t offset, size_t n)
{
	return fread(r->block + offset, 1, n, r->file) == n;
}

/* Reads the next block to r->block. A section header says its byte order itself. */
static enum pcapng_result read_block(struct pcapng_reader *r, uint32_t *type, uint32_t *length)
{
	const size_t first = HEAD + 4;	/* with the magic number of a section header */
	size_t got = fread(r->block, 1, first, r->file);
	uint32_t magic;
	uint8_t *new;

	if (got < first)
		return ferror(r->file) ? wrong(r, "%m") : got ? PCAPNG_CUT : PCAPNG_END;
	memcpy(type, r->block, 4);
	memcpy(&magic, r->block + HEAD, 4);
	if (*type == SECTION_HEADER) {		/* the same in both byte orders */
		r->swapped = magic == bswap_32(BYTE_ORDER_MAGIC);
		if (!r->swapped && magic != BYTE_ORDER_MAGIC)
			return wrong(r, "byte order 0x%08x found, expected 0x%08x", magic, BYTE_ORDER_MAGIC);
	}
	*type = get32(r, r->block);
	*length = get32(r, r->block + 4);
	if (*length < first || *length % 4 || *length > BLOCK_MAX)
		return wrong(r, "a block of %u bytes found, expected a multiple of 4 from 12 to %u", *length,
			     BLOCK_MAX);
	if (*length > r->room) {
		if (!(new = realloc(r->block, *length)))
			return wrong(r, "no memory for a block of %u bytes", *length);
		r->block = new;
		r->room = *length;
	}
	if (!get_bytes(r, first, *length - first))
		return ferror(r->file) ? wrong(r, "%m") : PCAPNG_CUT;
	if (get32(r, r->block + *length - TAIL) != *length)
		return wrong(r, "length %u found behind a block, expected %u", get32(r, r->block + *length - TAIL),
			     *length);
	return PCAPNG_PACKET;
}

enum pcapng_result pcapng_reader_next(struct pcapng_reader *r, struct pcapng_read *p, const char **why)
{
	enum pcapng_result result;
	uint32_t type = 0, length = 0;
	struct span body;
	bool found = false;

	*why = r->wrong;
	do {
		result = read_block(r, &type, &length);
		if (result != PCAPNG_PACKET)
			return result;
		body = (struct span){ r->block + HEAD, length - HEAD - TAIL };
		if (type == SECTION_HEADER) {
			result = begin_section(r, body);
		} else if (type == INTERFACE_DESCRIPTION) {
			result = add_interface(r, body);
		} else if (type == ENHANCED_PACKET || type == OLD_PACKET) {
			found = true;
			result = timed_packet(r, type, body, p);
		} else if (type == SIMPLE_PACKET) {
			found = true;
			result = simple_packet(r, body, p);
		}
	} while (result == PCAPNG_PACKET && !found);
	return result;
}

struct pcapng_reader *pcapng_reader_open(FILE *file)
{
	struct pcapng_reader *r = calloc(1, sizeof *r);

	if (!r)
		return NULL;
	r->file = file;
	r->room = 65536;
	r->block = malloc(r->room);
	if (r->block)
		return r;
	free(r);
	return NULL;
}

void pcapng_reader_close(struct pcapng_reader *r)
{
	free(r->interfaces);
	free(r->block);
	free(r);
}
