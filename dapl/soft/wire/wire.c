/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* wire.c - encodes and decodes MPA, DDP and RDMAP headers, computes CRC32C. Does no
 * I/O. Whether a well-formed header is acceptable is decided by rdmap/segment.c and cm/. */
#include "dapl/soft/wire/wire.h"

static const char request_key[16] = "MPA ID Req Frame", reply_key[16] = "MPA ID Rep Frame";

void wire_mpa_put(uint8_t header[WIRE_MPA_HEADER], const struct wire_mpa *mpa)
{
	memcpy(header, mpa->reply ? reply_key : request_key, 16);
	header[16] = mpa->flags;
	header[17] = mpa->revision;
	wire_put16(header + 18, mpa->length);
}

bool wire_mpa_get(const uint8_t header[WIRE_MPA_HEADER], bool reply, struct wire_mpa *mpa)
{
	memset(mpa, 0, sizeof *mpa);
	mpa->reply = reply;
	mpa->flags = header[16];
	mpa->revision = header[17];
	mpa->length = wire_get16(header + 18);
	return !memcmp(header, reply ? reply_key : request_key, 16);
}

void wire_enhanced_put(uint8_t data[WIRE_MPA_ENHANCED], const struct wire_mpa *mpa)
{
	wire_put16(data, mpa->p2p << 15 | mpa->p2p_send << 14 | (mpa->ird & 0x3fff));
	wire_put16(data + 2, mpa->p2p_write << 15 | mpa->p2p_read << 14 | (mpa->ord & 0x3fff));
}

void wire_enhanced_get(const uint8_t data[WIRE_MPA_ENHANCED], struct wire_mpa *mpa)
{
	uint16_t first = wire_get16(data), second = wire_get16(data + 2);

	mpa->p2p = first >> 15;
	mpa->p2p_send = first >> 14 & 1;
	mpa->ird = first & 0x3fff;
	mpa->p2p_write = second >> 15;
	mpa->p2p_read = second >> 14 & 1;
	mpa->ord = second & 0x3fff;
}

void wire_trailer_put(uint8_t data[WIRE_TRAILER], const struct wire_trailer *trailer)
{
	memset(data, 0, WIRE_TRAILER);
	data[0] = trailer->version;
	data[1] = WIRE_TRAILER;
	wire_put16(data + 2, trailer->features);
	wire_put32(data + 4, trailer->max_ulpdu);
	wire_put32(data + 8, trailer->qpn);
	wire_put32(data + 12, trailer->qkey);
	wire_put16(data + 16, trailer->udp_port);
	memcpy(data + 20, trailer->token, sizeof trailer->token);
}

bool wire_trailer_get(const uint8_t data[WIRE_TRAILER], struct wire_trailer *trailer)
{
	trailer->version = data[0];
	trailer->features = wire_get16(data + 2);
	trailer->max_ulpdu = wire_get32(data + 4);
	trailer->qpn = wire_get32(data + 8);
	trailer->qkey = wire_get32(data + 12);
	trailer->udp_port = wire_get16(data + 16);
	memcpy(trailer->token, data + 20, sizeof trailer->token);
	return data[0] == WIRE_TRAILER_VERSION && data[1] == WIRE_TRAILER;
}

unsigned wire_segment_put(uint8_t *p, const struct wire_segment *segment)
{
	p[0] = segment->tagged << 7 | segment->last << 6 | 1;
	p[1] = 1 << 6 | segment->op;
	wire_put32(p + 2, segment->stag);
	if (segment->tagged) {
		wire_put64(p + 6, segment->to);
		return WIRE_TAGGED;
	}
	wire_put32(p + 6, segment->qn);
	wire_put32(p + 10, segment->msn);
	wire_put32(p + 14, segment->mo);
	return WIRE_UNTAGGED;
}

void wire_terminate_put(uint8_t p[WIRE_TERMINATE_LENGTH], unsigned term)
{
	p[0] = term >> 8;
	p[1] = term;
	p[2] = p[3] = 0;
}

/* Returns true if the RFCs define this layer, type and code. */
static bool term_known(unsigned layer, unsigned type, unsigned code)
{
	switch (layer) {
	case 0:
		return type <= 2 && (code <= 9 || code == 0xff);
	case 1:
		return (type == 1 && code <= 4) || (type == 2 && code >= 1 && code <= 6) ||
		       type == 0;
	case 2:
		return type == 0 && code >= 1 && code <= 7;
	}
	return false;
}

unsigned wire_terminate_get(const uint8_t p[WIRE_TERMINATE_LENGTH], bool peer_swaps)
{
	unsigned high = p[0] >> 4, low = p[0] & 15, code = p[1];
	bool swapped = peer_swaps || ((p[2] & 0x07) && !(p[2] & 0xe0)) ||
		       (!term_known(high, low, code) && term_known(low, high, code));

	return swapped ? WIRE_TERM(low, high, code) : WIRE_TERM(high, low, code);
}

/* --- CRC32C: the instruction where there is one, else a table ---------------- */

static uint32_t crc_table[256];

__attribute__((constructor)) static void crc_table_fill(void)
{
	for (unsigned i = 0; i < 256; i++) {
		uint32_t crc = i;

		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
		crc_table[i] = crc;
	}
}

static uint32_t crc_plain(uint32_t crc, const uint8_t *p, size_t length)
{
	while (length--)
		crc = crc >> 8 ^ crc_table[(uint8_t)crc ^ *p++];
	return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2")))
static uint32_t crc_sse42(uint32_t crc, const uint8_t *p, size_t length)
{
	uint64_t crc64 = crc, word;

	for (; length >= 8; p += 8, length -= 8) {
		memcpy(&word, p, 8);
		crc64 = __builtin_ia32_crc32di(crc64, word);
	}
	crc = crc64;
	while (length--)
		crc = __builtin_ia32_crc32qi(crc, *p++);
	return crc;
}

uint32_t wire_crc(uint32_t crc, const void *data, size_t length)
{
	if (__builtin_cpu_supports("sse4.2"))
		return crc_sse42(crc, data, length);
	return crc_plain(crc, data, length);
}
#else
uint32_t wire_crc(uint32_t crc, const void *data, size_t length)
{
	return crc_plain(crc, data, length);
}
#endif

void wire_crc_put(uint8_t p[4], uint32_t crc)
{
	crc = ~crc;
	p[0] = crc;
	p[1] = crc >> 8;
	p[2] = crc >> 16;
	p[3] = crc >> 24;
}
