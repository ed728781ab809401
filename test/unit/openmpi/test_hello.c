/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_hello.c - the private data of a connection: its bytes, and which private data of a peer is accepted. */
#include "test/unit/openmpi/btl.h"
#include "contrib/openmpi/hello.h"
#include "test/unit/unit.h"

UNIT_FIXTURE(begin)
{
	btl_begin(state);
	OPAL_PROC_MY_NAME = (opal_process_name_t){ .jobid = 0x01020304, .vpid = 0x05060708 };
	module.address.qualifier = 0x0a0b0c0d;
	module.message_size = 0x11121314;
	mca_btl_udapl_component.credits = 0x2122;
}

static const uint8_t bytes[] = {
	0x75, 0x44, 0x41, 0x02,		/* "uDA", version 2 */
	1, 2, 3, 4, 5, 6, 7, 8,		/* job, process */
	0x0a, 0x0b, 0x0c, 0x0d,		/* qualifier */
	0x11, 0x12, 0x13, 0x14,		/* bytes of a message */
	0, 0, 0x21, 0x22,		/* credits */
};

#define CASE(name) UNIT_TEST_WITH(name, begin, btl_end)

CASE(bytes_are_in_network_order)
{
	struct udapl_hello own = udapl_hello_own(&module);

	assert_int_equal(sizeof own, sizeof bytes);
	assert_memory_equal(&own, bytes, sizeof bytes);
	assert_true(sizeof own <= 52);	/* as many have room on InfiniBand */
}

CASE(every_field_is_read)
{
	struct udapl_hello h;

	assert_true(udapl_hello_parse(&module, bytes, sizeof bytes, &h));
	assert_int_equal(h.magic, UDAPL_MAGIC);
	assert_int_equal(h.jobid, 0x01020304);
	assert_int_equal(h.vpid, 0x05060708);
	assert_int_equal(h.qualifier, 0x0a0b0c0d);
	assert_int_equal(h.message_size, 0x11121314);
	assert_int_equal(h.credits, 0x2122);
}

/* Providers may pad private data: InfiniBand always gives all of it. */
CASE(padded_data_is_accepted)
{
	uint8_t padded[56] = { 0 };
	struct udapl_hello h;

	memcpy(padded, bytes, sizeof bytes);
	assert_true(udapl_hello_parse(&module, padded, sizeof padded, &h));
}

CASE(short_data_is_refused)
{
	struct udapl_hello h;

	for (int size = -1; size < (int)sizeof bytes; size++)
		assert_false(udapl_hello_parse(&module, bytes, size, &h));
	assert_false(udapl_hello_parse(&module, NULL, sizeof bytes, &h));
}

/* A byte of the four of the magic number, whose last is the version. */
CASE(another_program_or_version_is_refused)
{
	uint8_t other[sizeof bytes];
	struct udapl_hello h;

	for (int i = 0; i < 4; i++) {
		memcpy(other, bytes, sizeof bytes);
		other[i]++;
		assert_false(udapl_hello_parse(&module, other, sizeof other, &h));
	}
}

/* Receives would be too small for its messages, or its for ours. */
CASE(another_size_of_messages_is_refused)
{
	struct udapl_hello h;

	module.message_size++;
	assert_false(udapl_hello_parse(&module, bytes, sizeof bytes, &h));
}

/* Private data lies anywhere in an event. */
CASE(data_need_not_be_aligned)
{
	uint8_t at[sizeof bytes + 1];
	struct udapl_hello h;

	memcpy(at + 1, bytes, sizeof bytes);
	assert_true(udapl_hello_parse(&module, at + 1, sizeof bytes, &h));
	assert_int_equal(h.credits, 0x2122);
}

UNIT_MAIN(NULL, NULL)
