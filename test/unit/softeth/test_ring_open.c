/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_ring_open.c - opening and closing of a ring of TPACKET_V3: what the kernel is asked for, how large the ring
 * is, and what a step that fails leaves. What is polled from a ring is test_ring.c's. */
#include <linux/if_packet.h>
#include "dapl/softeth/packet_ring.h"
#include "test/unit/unit.h"

/* --- in place of the system, when a ring is opened -------------------------------------------------------------- */

static struct eth_port port;
static uint8_t memory[16];		/* of the ring, which is not looked at */
static char calls[64];
static const char *failing;		/* the call that fails; NULL: none */
static int version;
static struct tpacket_req3 request;
static size_t mapped;			/* bytes */

REPLACE(setsockopt, mmap64, munmap)

static bool fails(const char *call)
{
	bool is_it = failing && !strcmp(call, failing);

	strncat(calls, call, sizeof calls - 1 - strlen(calls));
	if (is_it)
		errno = ENOBUFS;
	return is_it;
}

UNIT_FAIL_CALLOC(failing && !strcmp(failing, "use ") && fails("use "))

int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
	assert_int_equal(fd, port.fd);
	assert_int_equal(level, SOL_PACKET);
	if (name == PACKET_VERSION) {
		assert_int_equal(size, sizeof version);
		memcpy(&version, value, size);
		return fails("version ") ? -1 : 0;
	}
	assert_int_equal(name, PACKET_RX_RING);
	assert_int_equal(size, sizeof request);
	memcpy(&request, value, size);
	return fails("ring ") ? -1 : 0;
}

void *__wrap_mmap64(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
	assert_null(at);
	assert_int_equal(protection, PROT_READ | PROT_WRITE);
	assert_int_equal(flags, MAP_SHARED);
	assert_int_equal(fd, port.fd);
	assert_int_equal(offset, 0);
	mapped = size;
	return fails("map ") ? MAP_FAILED : memory;
}

int __wrap_munmap(void *at, size_t size)
{
	assert_ptr_equal(at, memory);
	assert_int_equal(size, mapped);
	fails("unmap ");
	return 0;
}

/* A port without a ring gets one. */
static int opens(uint32_t n, uint32_t max_frame)
{
	*calls = '\0';
	port.ring = (struct eth_ring){ .map = NULL };
	return packet_ring_open(&port, n, max_frame);
}

/* --- cases ------------------------------------------------------------------------------------------------------ */

UNIT_FIXTURE(begin)
{
	port = (struct eth_port){ .fd = 33 };
	failing = NULL;
}

#define TEST(name) UNIT_TEST_WITH(name, begin, NULL)

TEST(ring_is_described_to_the_kernel_before_it_is_mapped)
{
	assert_int_equal(opens(100, 1514), 0);
	assert_string_equal(calls, "version ring map ");
	assert_int_equal(version, TPACKET_V3);
	assert_int_equal(request.tp_block_nr, port.ring.blocks);
	assert_int_equal(request.tp_block_size, port.ring.block_size);
	assert_int_equal(request.tp_frame_nr, request.tp_block_size / request.tp_frame_size * request.tp_block_nr);
	assert_int_equal(request.tp_feature_req_word, TP_FT_REQ_FILL_RXHASH);
	assert_int_equal(request.tp_retire_blk_tov, 2);		/* 0: when the kernel thinks fit */
	assert_int_equal(mapped, (size_t)request.tp_block_size * request.tp_block_nr);
	packet_ring_close(&port);
	assert_string_equal(calls, "version ring map unmap ");
}

static uint64_t room_for(uint32_t n, uint32_t max_frame)
{
	uint64_t room;

	assert_int_equal(opens(n, max_frame), 0);
	assert_true(port.ring.block_size > 65536);		/* the kernel's longest frame */
	room = (uint64_t)port.ring.blocks * port.ring.block_size;
	packet_ring_close(&port);
	return room;
}

TEST(ring_has_room_for_its_frames)
{
	const uint64_t whole = room_for(10000, 1514);

	assert_in_range(whole, 10000 * 1514, 10000 * 1514 * 2);
	assert_in_range(room_for(10000, 65536), 10000ull * 65536, 10000ull * 65536 * 2);
	port.snap = 128;
	assert_in_range(room_for(10000, 65536), 10000 * 128, 10000 * 128 * 3);
	port.snap = 9000;			/* no frame is that long */
	assert_int_equal(room_for(10000, 1514), whole);
}

TEST(ring_has_a_least_and_a_largest_size)
{
	assert_int_equal(room_for(1, 60), 512 << 10);
	assert_int_equal(room_for(0, 60), 512 << 10);
	assert_int_equal(room_for(UINT32_MAX, UINT32_MAX - 128), 4ull << 30);
}

TEST(step_that_fails_leaves_a_ring_that_can_be_closed)
{
	static const struct { const char *step, *calls; } cases[] = {
		{ "use ", "use " }, { "version ", "version " }, { "ring ", "version ring " },
		{ "map ", "version ring map " },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		failing = cases[i].step;
		assert_int_equal(opens(100, 1514), i ? ENOBUFS : ENOMEM);
		assert_string_equal(calls, cases[i].calls);
		packet_ring_close(&port);
		assert_string_equal(calls, cases[i].calls);	/* nothing is unmapped */
	}
}

UNIT_MAIN(NULL, NULL)
