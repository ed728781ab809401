/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_frame_layout.c - offsets of the headers of a frame, frames that are cut off, and one's complement sums. */
#include "common/frame_layout.h"
#include "test/unit/unit.h"

/* A frame that is built from its start. */
static uint8_t frame[512];
static size_t length;

static void put(const void *bytes, size_t n)
{
	memcpy(frame + length, bytes, n);
	length += n;
}
#define PUT(text) put(text, sizeof text - 1)

static void put16(uint8_t *at, size_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

/* `tags` VLAN tags of two kinds, then the type. */
static void ethernet(int tags, uint16_t type)
{
	memset(frame, 0, sizeof frame);
	length = 12;
	for (int i = 0; i < tags; i++) {
		PUT("\x81\x00\x00\x05");
		if (!i && tags > 1)
			memcpy(frame + length - 4, "\x88\xa8", 2);
	}
	put16(frame + length, type);
	length += 2;
}

/* An IP header of this many bytes, and the length behind it. */
static void ipv4(size_t header, uint8_t protocol, uint16_t payload)
{
	uint8_t *p = frame + length;

	length += header;
	p[0] = (uint8_t)(0x40 | header / 4);
	put16(p + 2, header + payload);
	p[9] = protocol;
}

static void ipv6(uint8_t next, uint16_t payload)
{
	uint8_t *p = frame + length;

	length += 40;
	p[0] = 0x60;
	put16(p + 4, payload);
	p[6] = next;
}

/* A TCP header of this many bytes. */
static void tcp(size_t header)
{
	frame[length + 12] = (uint8_t)(header / 4 << 4);
	length += header;
}

static struct eth_layout read_it(void)
{
	struct eth_layout l;

	assert_true(eth_layout_read(frame, length, &l));
	return l;
}

UNIT_TEST(udp_behind_each_number_of_tags_is_found)
{
	for (int tags = 0; tags <= 2; tags++) {
		struct eth_layout l;

		ethernet(tags, 0x0800);
		ipv4(20, IPPROTO_UDP, 8 + 3);
		length += 8 + 3;
		l = read_it();
		assert_int_equal(l.l3, 14 + 4 * tags);
		assert_int_equal(l.l4, l.l3 + 20);
		assert_int_equal(l.payload, l.l4 + 8);
		assert_int_equal(l.end, length);
		assert_int_equal(l.version, 4);
		assert_int_equal(l.protocol, IPPROTO_UDP);
		assert_int_equal(eth_checksum_offset(&l), 6);
	}
	ethernet(3, 0x0800);
	ipv4(20, IPPROTO_UDP, 8);
	length += 8;
	assert_false(eth_layout_read(frame, length, &(struct eth_layout){ 0 }));
}

UNIT_TEST(ipv6_extension_headers_are_skipped)
{
	struct eth_layout l;

	ethernet(0, 0x86dd);
	ipv6(IPPROTO_HOPOPTS, 8 + 16 + 8);
	PUT("\x3c\x00\x00\x00\x00\x00\x00\x00");	/* destination options follow */
	PUT("\x11\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00");	/* UDP follows */
	length += 8;
	l = read_it();
	assert_int_equal(l.version, 6);
	assert_int_equal(l.protocol, IPPROTO_UDP);
	assert_int_equal(l.l4, 14 + 40 + 8 + 16);
	assert_int_equal(l.payload, length);
	assert_int_equal(l.end, length);
}

/* Its pseudo header has another address. */
UNIT_TEST(routing_header_is_not_passed)
{
	struct eth_layout l;

	ethernet(0, 0x86dd);
	ipv6(IPPROTO_ROUTING, 8 + 8);
	PUT("\x11\x00\x00\x00\x00\x00\x00\x00");
	length += 8;
	l = read_it();
	assert_int_equal(l.protocol, IPPROTO_ROUTING);
	assert_int_equal(l.payload, 0);
}

UNIT_TEST(fragments_and_other_protocols_have_no_payload)
{
	for (int i = 0; i < 3; i++) {
		ethernet(0, 0x0800);
		ipv4(20, i ? IPPROTO_UDP : IPPROTO_ICMP, 8);
		length += 8;
		if (i)			/* the first one, and one behind it */
			memcpy(frame + 14 + 6, i == 1 ? "\x20\x00" : "\x00\x01", 2);
		assert_int_equal(read_it().payload, 0);
	}
	memcpy(frame + 14 + 6, "\x40\x00", 2);		/* "do not fragment" is no fragment */
	assert_int_equal(read_it().payload, 14 + 20 + 8);
}

UNIT_TEST(other_types_are_no_ip)
{
	ethernet(0, 0x0806);
	length += 46;
	assert_false(eth_layout_read(frame, length, &(struct eth_layout){ 0 }));
	ethernet(0, 0x0800);		/* the type says IPv4, the header IPv6 */
	ipv6(IPPROTO_UDP, 8);
	length += 8;
	assert_false(eth_layout_read(frame, length, &(struct eth_layout){ 0 }));
}

/* A frame whose headers end at its end is read in no shorter length. */
UNIT_TEST(headers_that_are_cut_off_are_refused)
{
	struct eth_layout l;

	for (int six = 0; six < 2; six++) {
		ethernet(2, six ? 0x86dd : 0x0800);
		if (six)
			ipv6(IPPROTO_TCP, 24);
		else
			ipv4(24, IPPROTO_TCP, 24);
		tcp(24);
		assert_true(eth_layout_read(frame, length, &l));
		for (size_t n = 0; n < length; n++)
			assert_false(eth_layout_read(frame, n, &l));
	}
}

/* Puts the headers of a tunnel behind the outer ones. Returns where the inner IP header begins, or 0. */
static size_t inner_l3(uint8_t protocol, uint16_t port, const char *tunnel, size_t tunnel_length)
{
	struct eth_layout outer, inner;
	bool bridged = tunnel[2] == 0x65 || port == 4789;
	size_t ip;

	ethernet(0, 0x0800);
	ipv4(20, protocol, 512 - 14 - 20);
	if (protocol == IPPROTO_UDP) {
		put16(frame + length + 2, port);
		put16(frame + length + 4, 512 - 14 - 20);
		length += 8;
	}
	put(tunnel, tunnel_length);
	if (bridged) {
		length += 12;
		PUT("\x08\x00");
	}
	ip = length;
	ipv4(20, IPPROTO_TCP, 20);
	tcp(20);
	assert_true(eth_layout_read(frame, sizeof frame, &outer));
	for (size_t n = 0; n < length; n++)
		assert_false(eth_layout_inner(frame, n, &outer, &inner));
	if (!eth_layout_inner(frame, length, &outer, &inner))
		return 0;
	assert_int_equal(inner.l3, ip);
	assert_int_equal(inner.protocol, IPPROTO_TCP);
	assert_int_equal(inner.payload, length);
	return ip;
}

UNIT_TEST(headers_within_a_tunnel_are_found)
{
	assert_int_equal(inner_l3(IPPROTO_UDP, 4789, "\x08\0\0\0\0\0\x2a\0", 8), 14 + 20 + 8 + 8 + 14);
	assert_int_equal(inner_l3(IPPROTO_UDP, 6081, "\0\0\x65\x58\0\0\x2a\0", 8), 14 + 20 + 8 + 8 + 14);
	assert_int_equal(inner_l3(IPPROTO_UDP, 6081, "\x01\0\x08\0\0\0\x2a\0\1\2\3\4", 12), 14 + 20 + 8 + 12);
	assert_int_equal(inner_l3(IPPROTO_GRE, 0, "\0\0\x08\0", 4), 14 + 20 + 4);
	assert_int_equal(inner_l3(IPPROTO_GRE, 0, "\x20\0\x65\x58\0\0\x2a\0", 8), 14 + 20 + 8 + 14);
	assert_int_equal(inner_l3(IPPROTO_GRE, 0, "\xb0\0\x08\0\0\0\0\0\0\0\0\7\0\0\0\1", 16), 14 + 20 + 16);
}

UNIT_TEST(what_is_no_tunnel_has_no_inner_headers)
{
	assert_int_equal(inner_l3(IPPROTO_UDP, 4790, "\x08\0\0\0\0\0\x2a\0", 8), 0);	/* the port */
	assert_int_equal(inner_l3(IPPROTO_UDP, 4789, "\0\0\0\0\0\0\x2a\0", 8), 0);	/* no VNI flag */
	assert_int_equal(inner_l3(IPPROTO_UDP, 6081, "\x40\0\x65\x58\0\0\x2a\0", 8), 0);	/* version 1 */
	assert_int_equal(inner_l3(IPPROTO_GRE, 0, "\0\1\x08\0", 4), 0);			/* version 1 */
	assert_int_equal(inner_l3(IPPROTO_GRE, 0, "\x40\0\x08\0", 4), 0);			/* routing */
	assert_int_equal(inner_l3(IPPROTO_IPIP, 0, "\0\0\x08\0", 4), 0);
}

UNIT_TEST(options_that_are_cut_off_are_refused)
{
	struct eth_layout l;

	ethernet(0, 0x0800);
	ipv4(24, IPPROTO_ICMP, 0);
	assert_true(eth_layout_read(frame, length, &l));
	assert_false(eth_layout_read(frame, length - 1, &l));
	put16(frame + 14 + 2, 23);	/* the packet ends within them */
	assert_false(eth_layout_read(frame, length, &l));
}

UNIT_TEST(headers_that_contradict_themselves_are_refused)
{
	struct eth_layout l;

	ethernet(0, 0x0800);
	ipv4(20, IPPROTO_UDP, 7);	/* shorter than the UDP header */
	length += 8;
	assert_false(eth_layout_read(frame, length, &l));
	ethernet(0, 0x0800);
	ipv4(20, IPPROTO_TCP, 20);
	tcp(16);			/* shorter than any TCP header */
	length += 4;
	assert_false(eth_layout_read(frame, length, &l));
	ethernet(0, 0x0800);
	ipv4(20, IPPROTO_UDP, 8);
	length += 8;
	frame[14] = 0x44;		/* shorter than any IPv4 header */
	assert_false(eth_layout_read(frame, length, &l));
}

/* RFC 1071, the example of section 3. */
UNIT_TEST(sum_is_the_one_of_the_standard)
{
	static const uint8_t bytes[] = { 0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7 };

	assert_int_equal(eth_sum_fold(eth_sum_bytes(bytes, sizeof bytes, 0)), 0xddf2);
	assert_int_equal(eth_sum_fold(eth_sum_bytes(bytes, 3, 0)), 0xf201);	/* an odd byte is the upper one */
	assert_int_equal(eth_sum_fold(0x1fffe), 0xffff);
	assert_int_equal(eth_sum_fold(0xffff0001), 1);		/* the carry of a carry */
}

UNIT_TEST(pieces_have_the_sum_of_the_whole)
{
	uint8_t bytes[64];

	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (uint8_t)(i * 37 + 11);
	for (size_t a = 0; a < 20; a++)
		for (size_t b = a; b < 24; b++) {
			struct iovec iov[] = { { bytes, a }, { bytes + a, b - a }, { bytes + b, sizeof bytes - b } };
			uint16_t expected = eth_sum_fold(eth_sum_bytes(bytes + 5, 50, 0));

			assert_int_equal(eth_sum_fold(eth_sum_pieces(iov, 3, 5, 50, 0)), expected);
		}
}

/* Each kind of large frame that Linux has. */
UNIT_TEST(headers_are_found_without_a_length)
{
	struct eth_layout l;

	ethernet(1, 0x0800);
	ipv4(24, IPPROTO_TCP, 0);
	put16(frame + 18 + 2, 0);
	tcp(32);
	assert_false(eth_layout_read(frame, length, &l));
	assert_true(eth_layout_read_unsized(frame, length, &l));
	assert_int_equal(l.payload, 18 + 24 + 32);
	ethernet(0, 0x86dd);
	ipv6(IPPROTO_TCP, 0);
	tcp(20);
	assert_false(eth_layout_read(frame, length, &l));
	assert_true(eth_layout_read_unsized(frame, length, &l));
	assert_int_equal(l.payload, 14 + 40 + 20);
	ethernet(0, 0x86dd);
	ipv6(IPPROTO_HOPOPTS, 0);
	PUT("\x06\x00\xc2\x04\x00\x01\x86\xa0");	/* jumbo payload, TCP follows */
	tcp(20);
	assert_false(eth_layout_read(frame, length, &l));
	assert_true(eth_layout_read_unsized(frame, length, &l));
	assert_int_equal(l.payload, 14 + 40 + 8 + 20);
	assert_int_equal(frame[14 + 4] | frame[14 + 5], 0);
}

UNIT_TEST(headers_without_a_length_are_whole)
{
	struct eth_layout l;

	ethernet(0, 0x86dd);
	ipv6(IPPROTO_TCP, 0);
	tcp(20);
	for (size_t n = 0; n < length; n++)
		assert_false(eth_layout_read_unsized(frame, n, &l));
	ethernet(0, 0x0806);
	length += 60;
	assert_false(eth_layout_read_unsized(frame, length, &l));
	ethernet(0, 0x86dd);
	ipv6(IPPROTO_TCP, 0);
	tcp(20);
	length = sizeof frame;		/* more than the headers that are read */
	assert_true(eth_layout_read_unsized(frame, length, &l));
}

UNIT_MAIN(NULL, NULL)
