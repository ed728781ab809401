/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_dissect.c - the descriptions of frames that are cut off, changed or random: whatever a frame has, the dissector
 * reads only bytes that are there, and its texts end. The texts of good frames are tested by test/eth/datcap-lines. */
#include "tools/datcap/dissect.h"
#include "test/unit/unit.h"
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, FRAME_MAX = 200 };

static uint8_t *page_end;		/* the page behind cannot be read */

UNIT_FIXTURE(begin)
{
	uint8_t *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(pages, MAP_FAILED);
	assert_int_equal(mprotect(pages + PAGE, PAGE, PROT_NONE), 0);
	page_end = pages + PAGE;
}

static void ends(const char *text, size_t size)
{
	assert_non_null(memchr(text, 0, size));
}

/* Describes the first `captured` bytes, which end where memory ends. */
static struct dissection dissect(const uint8_t *frame, uint32_t captured, uint32_t length)
{
	struct dissection is;

	memset(&is, 'x', sizeof is);
	memcpy(page_end - captured, frame, captured);
	dissect_frame(page_end - captured, captured, length, &is);
	ends(is.from, sizeof is.from);
	ends(is.to, sizeof is.to);
	ends(is.tags, sizeof is.tags);
	ends(is.protocol, sizeof is.protocol);
	ends(is.detail, sizeof is.detail);
	assert_true(*is.protocol);
	return is;
}

#define MACS "\x02\0\0\0\0\x01\x02\0\0\0\0\x02"
#define IPV4(protocol) "\x08\0\x45\0\0\x96\0\0\0\0\x40" protocol "\0\0\x0a\0\0\x01\x0a\0\0\x02"
#define IPV6(next) "\x86\xdd\x60\0\0\0\0\x96" next "\x40" \
	"\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x02"

static const struct { const char *bytes; size_t size; const char *protocol; } frames[] = {
#define FRAME(protocol, bytes) { bytes, sizeof(bytes) - 1, protocol }
	FRAME("tcp", MACS "\x81\0\0\x05" IPV4("\x06") "\0\x01\0\x02\0\0\0\0\0\0\0\0\x50\x18\0\0\0\0\0\0"),
	FRAME("iwarp", MACS IPV4("\x06") "\0\x01\0\x02\0\0\0\0\0\0\0\0\x50\x18\0\0\0\0\0\0"
	      "\0\x16\x41\x43\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0" "abcd" "\0\0\0\0"),
	FRAME("iwarp", MACS IPV4("\x06") "\0\x01\0\x02\0\0\0\0\0\0\0\0\x50\x18\0\0\0\0\0\0"
	      "MPA ID Rep Frame\x20\x01\0\0"),
	FRAME("roce", MACS IPV4("\x11") "\x80\0\x12\xb7\0\x82\0\0" "\x0a\x40\xff\xff\0\0\0\x11\0\0\0\x05"
	      "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
	FRAME("vxlan", MACS IPV4("\x11") "\x80\0\x12\xb5\0\x82\0\0" "\x08\0\0\0\0\0\x05\0"
	      MACS IPV6("\x3a") "\x80\0\0\0\0\x01\0\x02"),
	FRAME("gre", MACS IPV4("\x2f") "\0\0\x08\0"
	      "\x45\0\0\x1c\0\0\0\0\x40\x01\0\0\x0a\0\0\x01\x0a\0\0\x02\x08\0\0\0\0\x01\0\x02"),
	FRAME("udp", MACS IPV6("\0") "\x3c\0\0\0\0\0\0\0" "\x2c\0\0\0\0\0\0\0"
	      "\x11\0\0\0\0\0\0\0" "\0\x01\0\x02\0\x08\0\0"),
	FRAME("arp", MACS "\x08\x06\0\x01\x08\0\x06\x04\0\x01\x02\0\0\0\0\x01\x0a\0\0\x01\0\0\0\0\0\0\x0a\0\0\x02"),
	FRAME("type 0x88cc", MACS "\x88\xcc"),
	FRAME("802.3", MACS "\0\x20"),
};

UNIT_TEST_WITH(frames_cut_at_each_byte_are_described, begin, NULL)
{
	for (size_t i = 0; i < sizeof frames / sizeof *frames; i++) {
		const uint8_t *frame = (const uint8_t *)frames[i].bytes;

		assert_string_equal(dissect(frame, (uint32_t)frames[i].size, 150).protocol, frames[i].protocol);
		for (uint32_t n = 0; n < frames[i].size; n++)
			dissect(frame, n, 150);
	}
}

UNIT_TEST_WITH(a_frame_that_is_cut_says_so, begin, NULL)
{
	assert_string_equal(dissect((const uint8_t *)frames[0].bytes, 40, 150).detail, "cut off");
	assert_string_equal(dissect((const uint8_t *)frames[0].bytes, 10, 150).detail, "cut off");
}

/* Their length has more than the 16 bits of IP, which has 0 there; IPv6 may have it in a hop-by-hop header. */
UNIT_TEST_WITH(big_tcp_frames_are_as_long_as_they_are, begin, NULL)
{
#define DATA_TO_5001 "\x9c\x40\x13\x89\0\0\0\1\0\0\0\2\x50\x10\0\x3e\0\0\0\0" "abcd"
	static const char ipv4[] = MACS "\x08\0\x45\0\0\0\0\0\x40\0\x40\x06\0\0\x0a\0\0\x01\x0a\0\0\x02" DATA_TO_5001;
	static const char ipv6[] = MACS "\x86\xdd\x60\0\0\0\0\0\0\x40"
		"\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x02"
		"\x06\0\xc2\x04\0\1\x38\x9c" DATA_TO_5001;
	static const struct { const char *bytes; uint32_t size, headers; const char *to; } big[] = {
		{ ipv4, sizeof ipv4 - 1, 54, "10.0.0.2:5001" }, { ipv6, sizeof ipv6 - 1, 82, "[fd00::2]:5001" },
	};

	for (size_t i = 0; i < sizeof big / sizeof *big; i++) {
		struct dissection is = dissect((const uint8_t *)big[i].bytes, big[i].size, big[i].headers + 80000);

		assert_string_equal(is.protocol, "tcp");
		assert_string_equal(is.to, big[i].to);
		assert_string_equal(is.detail, "A seq 1 ack 2, 80000 bytes");
	}
}

UNIT_TEST_WITH(changed_and_random_frames_are_described, begin, NULL)
{
	const unsigned seed = (unsigned)getpid();
	uint8_t frame[FRAME_MAX];

	print_message("seed %u\n", seed);
	srandom(seed);
	for (int round = 0; round < 200000; round++) {
		size_t i = (size_t)random() % (sizeof frames / sizeof *frames), size = (size_t)random() % FRAME_MAX;

		for (size_t n = 0; n < FRAME_MAX; n++)
			frame[n] = (uint8_t)random();
		if (round % 8)
			memcpy(frame, frames[i].bytes, frames[i].size);
		for (int changes = (int)(random() % 4); changes > 0; changes--)
			frame[(size_t)random() % FRAME_MAX] = (uint8_t)random();
		dissect(frame, (uint32_t)size, (uint32_t)(size + (size_t)random() % 3 * 70));
	}
}

UNIT_MAIN(NULL, NULL)
