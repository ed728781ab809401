/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_xsk.c - the rings of an AF_XDP socket: which frames come, when chunks go back, and what counts as lost. The
 * test is the kernel's side of the rings. test/eth/xdp.c opens real sockets. */
#include "dapl/softeth/xsk.h"
#include "test/unit/unit.h"

enum { CHUNK = 2048, CHUNKS = 4, FD = 1000 };

static struct xsk x;
static uint32_t fill_producer, fill_consumer, fill_flags, received_producer, received_consumer;
static uint64_t fill[CHUNKS];
static struct xdp_desc received[CHUNKS];
static struct xdp_statistics statistics;
static unsigned wake_ups;

REPLACE(getsockopt, recvfrom)

int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *size)
{
	assert_int_equal(fd, FD);
	assert_int_equal(level, SOL_XDP);
	assert_int_equal(option, XDP_STATISTICS);
	memcpy(value, &statistics, *size);
	return 0;
}

ssize_t __wrap_recvfrom(int fd, void *to, size_t size, int flags, struct sockaddr *from, socklen_t *length)
{
	assert_int_equal(fd, FD);
	assert_int_equal(size, 0);
	assert_int_equal(flags, MSG_DONTWAIT);
	wake_ups++;
	return 0;
}

/* All chunks are the kernel's. The counts of both rings are about to wrap. */
UNIT_FIXTURE(set_up)
{
	fill_consumer = received_producer = received_consumer = UINT32_MAX - 1;
	fill_producer = fill_consumer + CHUNKS;
	fill_flags = wake_ups = 0;
	memset(&statistics, 0, sizeof statistics);
	x = (struct xsk){ .fd = FD, .size = CHUNK * CHUNKS, .chunk = CHUNK,
		.fill = { &fill_producer, &fill_consumer, &fill_flags, fill, fill_producer, CHUNKS - 1, NULL, 0 },
		.received = { &received_producer, &received_consumer, NULL, received, received_producer, CHUNKS - 1,
			NULL, 0 } };
}

/* The kernel fills a chunk. */
static void store(uint64_t address, uint32_t length)
{
	received[received_producer++ & (CHUNKS - 1)] = (struct xdp_desc){ .addr = address, .len = length };
	fill_consumer++;
}

#define TEST(name) UNIT_TEST_WITH(name, set_up, NULL)

TEST(frames_come_in_order)
{
	struct xdp_desc frame;

	assert_false(xsk_has_frame(&x));
	assert_false(xsk_take(&x, &frame));
	for (uint32_t i = 0; i < CHUNKS; i++)
		store(i * CHUNK + 256, 60 + i);
	for (uint32_t i = 0; i < CHUNKS; i++) {
		assert_true(xsk_has_frame(&x));
		assert_true(xsk_take(&x, &frame));
		assert_int_equal(frame.addr, i * CHUNK + 256);
		assert_int_equal(frame.len, 60 + i);
	}
	assert_false(xsk_take(&x, &frame));
	assert_int_equal(received_consumer, UINT32_MAX - 1);
	xsk_commit(&x);
	assert_int_equal(received_consumer, received_producer);
}

TEST(frame_outside_of_the_memory_is_skipped)
{
	static const struct { uint64_t address; uint32_t length; } bad[] = {
		{ CHUNK * CHUNKS, 0 }, { UINT64_MAX - 100, 60 }, { CHUNK + 256, CHUNK - 255 }, { 0, UINT32_MAX },
		{ CHUNK * CHUNKS - 1, 2 },
	};
	struct xdp_desc frame;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		store(bad[i].address, bad[i].length);
		assert_false(xsk_take(&x, &frame));
		store(CHUNK + 256, CHUNK - 256);
		assert_true(xsk_take(&x, &frame));
		assert_int_equal(frame.len, CHUNK - 256);
	}
}

/* Chunks begin at multiples of their size, wherever the frame was. */
TEST(chunks_go_back_together)
{
	struct xdp_desc frame;

	store(2 * CHUNK + 256, 60);
	store(1 * CHUNK + 270, 60);
	while (xsk_take(&x, &frame))
		xsk_give(&x, frame.addr);
	assert_int_equal(fill_producer, (uint32_t)(UINT32_MAX - 1 + CHUNKS));
	assert_false(xsk_commit(&x));
	assert_int_equal(fill_producer, (uint32_t)(UINT32_MAX - 1 + CHUNKS + 2));
	assert_int_equal(fill[(UINT32_MAX - 1 + CHUNKS) & (CHUNKS - 1)], 2 * CHUNK);
	assert_int_equal(fill[(UINT32_MAX + CHUNKS) & (CHUNKS - 1)], 1 * CHUNK);
}

TEST(losses_are_looked_for_after_the_last_chunk_was_used)
{
	struct xdp_desc frame;

	for (uint32_t i = 0; i < CHUNKS; i++)
		store(i * CHUNK, 60);
	assert_false(xsk_commit(&x));		/* nothing is given: it stays so */
	assert_true(xsk_take(&x, &frame));
	xsk_give(&x, frame.addr);
	assert_true(xsk_commit(&x));
	assert_false(xsk_commit(&x));
}

TEST(kernel_is_woken_if_it_asks)
{
	xsk_commit(&x);
	assert_int_equal(wake_ups, 0);
	fill_flags = XDP_RING_NEED_WAKEUP;
	xsk_commit(&x);
	assert_int_equal(wake_ups, 1);
}

/* Looks at an empty fill ring are not frames. */
TEST(drops_are_told_once)
{
	statistics = (struct xdp_statistics){ .rx_dropped = 5, .rx_ring_full = 2, .rx_fill_ring_empty_descs = 100 };
	assert_int_equal(xsk_read_drops(&x), 7);
	assert_int_equal(xsk_read_drops(&x), 0);
	statistics.rx_dropped = 6;
	assert_int_equal(xsk_read_drops(&x), 1);
}

UNIT_MAIN(NULL, NULL)
