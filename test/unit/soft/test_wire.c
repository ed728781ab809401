/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_wire.c - the encoding of MPA, DDP and RDMAP headers, byte by byte, and CRC32C.
 * test_foreign_peer.c tests what a device does with them. */
#include "dapl/soft/wire/wire.h"
#include "test/unit/unit.h"

UNIT_TEST(mpa_frames_have_key_flags_and_length)
{
	struct wire_mpa request = { .flags = WIRE_MPA_CRC | WIRE_MPA_S, .revision = 2, .length = 0x102 };
	struct wire_mpa reply = request, read;
	uint8_t p[WIRE_MPA_HEADER];

	reply.reply = true;
	wire_mpa_put(p, &request);
	assert_memory_equal(p, "MPA ID Req Frame\x50\x02\x01\x02", WIRE_MPA_HEADER);
	assert_true(wire_mpa_get(p, false, &read));
	assert_int_equal(read.flags, request.flags);
	assert_int_equal(read.revision, 2);
	assert_int_equal(read.length, 0x102);
	assert_false(wire_mpa_get(p, true, &read));
	wire_mpa_put(p, &reply);
	assert_memory_equal(p, "MPA ID Rep Frame", 16);
	assert_true(wire_mpa_get(p, true, &read));
	assert_false(wire_mpa_get(p, false, &read));
}

/* RFC 6581: A, B and IRD in the first half, C, D and ORD in the second. */
UNIT_TEST(enhanced_data_has_its_bits)
{
	static const struct { struct wire_mpa mpa; const char *bytes; } cases[] = {
		{ { .p2p = true, .ird = 1, .ord = 2 }, "\x80\x01\x00\x02" },
		{ { .p2p_send = true, .ird = 0x3fff }, "\x7f\xff\x00\x00" },
		{ { .p2p_write = true, .ord = 0x3fff }, "\x00\x00\xbf\xff" },
		{ { .p2p_read = true, .ord = 0x1234 }, "\x00\x00\x52\x34" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct wire_mpa read = { 0 };
		uint8_t p[WIRE_MPA_ENHANCED];

		wire_enhanced_put(p, &cases[i].mpa);
		assert_memory_equal(p, cases[i].bytes, 4);
		wire_enhanced_get(p, &read);
		assert_int_equal(read.p2p, cases[i].mpa.p2p);
		assert_int_equal(read.p2p_send, cases[i].mpa.p2p_send);
		assert_int_equal(read.p2p_write, cases[i].mpa.p2p_write);
		assert_int_equal(read.p2p_read, cases[i].mpa.p2p_read);
		assert_int_equal(read.ird, cases[i].mpa.ird);
		assert_int_equal(read.ord, cases[i].mpa.ord);
	}
}

UNIT_TEST(trailer_keeps_all_fields)
{
	struct wire_trailer trailer = { .version = WIRE_TRAILER_VERSION, .features = 0x1122,
		.max_ulpdu = 0x33445566, .qpn = 0x778899, .qkey = 0xaabbccdd, .udp_port = 0xeeff,
		.token = { 1, 2, 3, 15, [15] = 16 } }, read;
	uint8_t p[WIRE_TRAILER];

	wire_trailer_put(p, &trailer);
	assert_true(wire_trailer_get(p, &read));
	assert_int_equal(read.features, trailer.features);
	assert_int_equal(read.max_ulpdu, trailer.max_ulpdu);
	assert_int_equal(read.qpn, trailer.qpn);
	assert_int_equal(read.qkey, trailer.qkey);
	assert_int_equal(read.udp_port, trailer.udp_port);
	assert_memory_equal(read.token, trailer.token, sizeof read.token);
	p[0]++;
	assert_false(wire_trailer_get(p, &read));
	p[0]--;
	p[1]--;
	assert_false(wire_trailer_get(p, &read));
}

UNIT_TEST(segment_headers_have_the_bytes_of_the_rfcs)
{
	struct wire_segment write = { .tagged = true, .last = true, .op = WIRE_WRITE, .stag = 0x11223344,
				      .to = 0x5566778899aabbcc };
	struct wire_segment send = { .op = WIRE_SEND, .stag = 0x01020304, .qn = 1, .msn = 2, .mo = 3 };
	uint8_t p[WIRE_UNTAGGED];

	assert_int_equal(wire_segment_put(p, &write), WIRE_TAGGED);
	assert_memory_equal(p, "\xc1\x40\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc", WIRE_TAGGED);
	assert_int_equal(wire_segment_put(p, &send), WIRE_UNTAGGED);
	assert_memory_equal(p, "\x01\x43\x01\x02\x03\x04\0\0\0\x01\0\0\0\x02\0\0\0\x03", WIRE_UNTAGGED);
}

static const enum wire_term terms[] = {
	WIRE_TERM_LOCAL, WIRE_TERM_STAG, WIRE_TERM_BOUNDS, WIRE_TERM_ACCESS, WIRE_TERM_STREAM,
	WIRE_TERM_WRAP, WIRE_TERM_INVALIDATE, WIRE_TERM_RDMAP_VERSION, WIRE_TERM_OPCODE,
	WIRE_TERM_CATASTROPHIC, WIRE_TERM_UNSPECIFIED, WIRE_TERM_DDP_STAG, WIRE_TERM_DDP_BOUNDS,
	WIRE_TERM_DDP_STREAM, WIRE_TERM_DDP_WRAP, WIRE_TERM_TAGGED_VERSION, WIRE_TERM_QN,
	WIRE_TERM_NO_BUFFER, WIRE_TERM_MSN, WIRE_TERM_MO, WIRE_TERM_TOO_LONG,
	WIRE_TERM_UNTAGGED_VERSION, WIRE_TERM_CRC, WIRE_TERM_LENGTH, WIRE_TERM_IRD,
};
enum { TERMS = sizeof terms / sizeof *terms };

/* A peer that is known to swap the halves of the first byte, as siw. */
UNIT_TEST(terminate_of_a_swapping_peer_is_understood)
{
	for (int i = 0; i < TERMS; i++) {
		uint8_t p[4];

		wire_terminate_put(p, terms[i]);
		p[0] = p[0] << 4 | p[0] >> 4;
		assert_int_equal(wire_terminate_get(p, true), terms[i]);
	}
}

/* The usual test vectors of CRC32C. */
UNIT_TEST(crc_is_crc32c)
{
	static const struct { const char *bytes; size_t length; const char *crc; } cases[] = {
		{ "", 0, "\0\0\0\0" },
		{ "123456789", 9, "\x83\x92\x06\xe3" },
		{ "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 32, "\xaa\x36\x91\x8a" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint8_t p[4];

		wire_crc_put(p, wire_crc(WIRE_CRC_START, cases[i].bytes, cases[i].length));
		assert_memory_equal(p, cases[i].crc, 4);
	}
}

UNIT_TEST(crc_continues_at_any_byte)
{
	uint8_t bytes[100];
	uint32_t whole;

	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = i * 37;
	whole = wire_crc(WIRE_CRC_START, bytes, sizeof bytes);
	for (size_t cut = 0; cut <= sizeof bytes; cut++)
		assert_int_equal(wire_crc(wire_crc(WIRE_CRC_START, bytes, cut), bytes + cut,
					  sizeof bytes - cut), whole);
}

UNIT_MAIN(NULL, NULL)
