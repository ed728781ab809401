/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_fpdu.c - FPDUs in a batch: length, pad, CRC, and which payloads are copied. */
#include "dapl/soft/tcp/fpdu.h"
#include "dapl/soft/wire/wire.h"
#include "dapl/soft/tunables.h"
#include "test/unit/unit.h"

enum { LARGE = BATCH_COPY_MAX + 1 };

static struct soft_batch batch;
static uint8_t payload[2 * LARGE];
static const struct wire_segment segment = { .tagged = true, .last = true, .op = WIRE_WRITE, .stag = 7, .to = 9 };

UNIT_FIXTURE(set_up)
{
	memset(&batch, 0, sizeof batch);
	memset(batch.bytes, 0xee, sizeof batch.bytes);
	for (size_t i = 0; i < sizeof payload; i++)
		payload[i] = (uint8_t)(i + 1);
}

static void put(bool crc, size_t length)
{
	struct iovec iov = { payload, length };

	fpdu_put(&batch, crc, &segment, NULL, 0, &iov, 1, (uint32_t)length);
}

/* The bytes of the batch, as a socket would take them. Returns how many. */
static size_t flatten(uint8_t *to)
{
	size_t n = 0;

	for (int i = 0; i < batch.iovs; i++) {
		memcpy(to + n, batch.iov[i].iov_base, batch.iov[i].iov_len);
		n += batch.iov[i].iov_len;
	}
	assert_int_equal(n, batch.total);
	return n;
}

/* Checks an FPDU with a payload of this length, and returns its length. */
static size_t expect_fpdu(const uint8_t *at, size_t length, bool crc)
{
	size_t ulpdu = WIRE_TAGGED + length, end = (WIRE_FPDU_LENGTH + ulpdu + 3) & ~(size_t)3;
	uint8_t expected[WIRE_CRC] = { 0 };

	assert_int_equal(wire_get16(at), ulpdu);
	assert_memory_equal(at + WIRE_FPDU_LENGTH + WIRE_TAGGED, payload, length);
	for (size_t i = WIRE_FPDU_LENGTH + ulpdu; i < end; i++)
		assert_int_equal(at[i], 0);
	if (crc)
		wire_crc_put(expected, wire_crc(WIRE_CRC_START, at, end));
	assert_memory_equal(at + end, expected, WIRE_CRC);
	return end + WIRE_CRC;
}

/* The batch is one FPDU with a payload of this length. */
static void expect_batch(size_t length, bool crc)
{
	uint8_t bytes[3 * LARGE];
	size_t n = flatten(bytes);

	assert_int_equal(expect_fpdu(bytes, length, crc), n);
}

#define TEST(name) UNIT_TEST_WITH(name, set_up, NULL)

TEST(each_length_is_padded_to_four)
{
	static const size_t lengths[] = { 0, 1, 2, 3, 4, BATCH_COPY_MAX, LARGE, LARGE + 1, LARGE + 2, LARGE + 3 };
	for (int crc = 0; crc < 2; crc++)
		for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
			set_up(NULL);
			put(crc, lengths[i]);
			expect_batch(lengths[i], crc);
		}
}

TEST(pieces_are_joined_in_their_order)
{
	struct iovec pieces[] = { { payload, 10 }, { payload + 10, 1 }, { payload + 11, LARGE - 11 } };

	fpdu_put(&batch, true, &segment, NULL, 0, pieces, 3, LARGE);
	expect_batch(LARGE, true);
	set_up(NULL);
	fpdu_put(&batch, true, &segment, NULL, 0, pieces, 2, 11);
	expect_batch(11, true);
}

TEST(fpdus_follow_each_other)
{
	uint8_t bytes[4 * LARGE];
	size_t at = 0;

	put(true, 5);
	put(true, LARGE);
	put(true, 0);
	flatten(bytes);
	at += expect_fpdu(bytes + at, 5, true);
	at += expect_fpdu(bytes + at, LARGE, true);
	at += expect_fpdu(bytes + at, 0, true);
	assert_int_equal(at, batch.total);
	assert_int_equal(batch.iovs, 3);	/* what is beside each other in the batch is one piece */
}

UNIT_MAIN(NULL, NULL)
