/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Messages between two processes on the wire. */
#include "sock/link_message.h"
#include "test/unit/unit.h"

static const struct link_message message = { .type = 4, .flags = 0xfe, .credits = 0x0102, .stream = 0x03040506,
					     .a = 0x0708090a0b0c0d0e, .b = UINT64_MAX, .c = 1 };

UNIT_TEST(message_has_network_byte_order)
{
	static const unsigned char wanted[LINK_MESSAGE] = { 4, 0xfe, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
							    255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0,
							    0, 1 };
	unsigned char wire[LINK_MESSAGE];

	link_message_encode(&message, wire);
	assert_memory_equal(wire, wanted, sizeof wire);
}

UNIT_TEST(decoded_message_is_the_encoded_one)
{
	unsigned char wire[LINK_MESSAGE];
	struct link_message got;

	link_message_encode(&message, wire);
	assert_true(link_message_decode(wire, sizeof wire, &got));
	assert_int_equal(got.type, message.type);
	assert_int_equal(got.flags, message.flags);
	assert_int_equal(got.credits, message.credits);
	assert_int_equal(got.stream, message.stream);
	assert_true(got.a == message.a && got.b == message.b && got.c == message.c);
}

UNIT_TEST(other_sizes_are_no_message)
{
	unsigned char wire[2 * (LINK_MESSAGE + LINK_INLINE)] = { 0 };
	struct link_message got;

	for (size_t size = 0; size <= sizeof wire; size++)
		assert_int_equal(link_message_decode(wire, size, &got),
				 size >= LINK_MESSAGE && size <= LINK_MESSAGE + LINK_INLINE);
}

UNIT_TEST(bytes_of_a_stream_follow_the_message)
{
	unsigned char wire[LINK_MESSAGE + 5];
	struct link_message got;

	link_message_encode(&message, wire);
	memcpy(wire + LINK_MESSAGE, "bytes", 5);
	assert_true(link_message_decode(wire, sizeof wire, &got));
	assert_int_equal(got.size, 5);
	assert_memory_equal(got.bytes, "bytes", 5);
	assert_true(link_message_decode(wire, LINK_MESSAGE, &got));
	assert_int_equal(got.size, 0);
}

UNIT_MAIN(NULL, NULL)
