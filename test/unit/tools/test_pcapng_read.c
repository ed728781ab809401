/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_pcapng_read.c - pcapng files of several sections, byte orders and interfaces, which libpcap refuses, as datcap
 * reads them. */
#include "tools/datcap/pcapng_read.h"
#include "test/unit/unit.h"

enum { ETHERNET = 1, RAW_IP = 101, SECTION = 0x0a0d0d0a, MAGIC = 0x1a2b3c4d };

struct file {
	uint8_t bytes[4096];
	size_t used, block;		/* offset of the block that is being written */
	bool big;			/* byte order of the section */
};

static struct file file;

UNIT_FIXTURE(begin) { memset(&file, 0, sizeof file); }

static void put(uint64_t value, unsigned size)
{
	for (unsigned i = 0; i < size; i++)
		file.bytes[file.used++] = (uint8_t)(value >> 8 * (file.big ? size - 1 - i : i));
}

static void begin_block(uint32_t type)
{
	file.block = file.used;
	put(type, 4);
	put(0, 4);
}

static void end_block(void)
{
	size_t end = file.used;
	uint32_t length = (uint32_t)(end - file.block) + 4;

	file.used = file.block + 4;
	put(length, 4);
	file.used = end;
	put(length, 4);
}

static void section(bool big)
{
	file.big = big;
	begin_block(SECTION);
	put(MAGIC, 4);
	put(1, 2);
	put(0, 2);
	put(UINT64_MAX, 8);
	end_block();
}

static void option(uint16_t code, uint64_t value, unsigned size)
{
	put(code, 2);
	put(size, 2);
	put(value, size);
	while (file.used % 4)
		put(0, 1);
}

static void begin_interface(uint16_t link_type, uint32_t snap)
{
	begin_block(1);
	put(link_type, 2);
	put(0, 2);
	put(snap, 4);
}

static void interface(uint16_t link_type, uint32_t snap)
{
	begin_interface(link_type, snap);
	end_block();
}

static void begin_packet(uint32_t interface, uint64_t time, uint32_t captured, uint32_t length)
{
	begin_block(6);
	put(interface, 4);
	put(time >> 32, 4);
	put(time & 0xffffffff, 4);
	put(captured, 4);
	put(length, 4);
	for (uint32_t i = 0; i < captured; i++)
		put(i, 1);
	while (file.used % 4)
		put(0, 1);
}

static void packet(uint32_t interface, uint64_t time, uint32_t captured, uint32_t length)
{
	begin_packet(interface, time, captured, length);
	end_block();
}

static struct pcapng_reader *reader;
static FILE *stream;
static struct pcapng_read got;
static const char *why;

static void open_file(size_t length)
{
	stream = fmemopen(file.bytes, length, "r");
	assert_non_null(stream);
	reader = pcapng_reader_open(stream);
	assert_non_null(reader);
}

static enum pcapng_result next(void) { return pcapng_reader_next(reader, &got, &why); }

static void expect_packet(uint64_t time, uint32_t captured, uint32_t length)
{
	assert_int_equal(next(), PCAPNG_PACKET);
	assert_int_equal(got.captured, captured);
	assert_int_equal(got.length, length);
	assert_int_equal(got.time, time);
	for (uint32_t i = 0; i < captured; i++)
		assert_int_equal(got.data[i], i & 255);
}

static void close_file(void)
{
	pcapng_reader_close(reader);
	fclose(stream);
}

static void expect_end(void)
{
	assert_int_equal(next(), PCAPNG_END);
	close_file();
}

static void expect_wrong(const char *text)
{
	open_file(file.used);
	assert_int_equal(next(), PCAPNG_WRONG);
	assert_non_null(strstr(why, text));
	close_file();
}

UNIT_TEST_WITH(sections_have_their_byte_order, begin, NULL)
{
	section(false);
	interface(ETHERNET, 0);
	packet(0, 5000000, 61, 61);
	section(true);
	interface(ETHERNET, 0);
	packet(0, 5000001, 62, 100);
	section(false);
	interface(ETHERNET, 0);
	packet(0, 5000002, 63, 63);
	open_file(file.used);
	expect_packet(5000000000, 61, 61);
	expect_packet(5000001000, 62, 100);
	expect_packet(5000002000, 63, 63);
	expect_end();
}

UNIT_TEST_WITH(interfaces_differ, begin, NULL)
{
	section(false);
	interface(ETHERNET, 64);
	interface(RAW_IP, 128);
	packet(1, 0, 20, 20);
	packet(0, 0, 30, 30);
	open_file(file.used);
	assert_int_equal(next(), PCAPNG_PACKET);
	assert_int_equal(got.interface, 1);
	assert_int_equal(got.link_type, RAW_IP);
	assert_int_equal(next(), PCAPNG_PACKET);
	assert_int_equal(got.link_type, ETHERNET);
	expect_end();
}

UNIT_TEST_WITH(clocks_have_their_resolution_and_offset, begin, NULL)
{
	static const struct { uint8_t resolution; uint64_t units, ns; } clocks[] = {
		{ 0, 3, 3000000000 }, { 3, 4, 4000000 }, { 9, 5, 5 }, { 12, 7000, 7 }, { 0x80 | 1, 3, 1500000000 },
		{ 0x80 | 32, 0x180000000, 1500000000 },
	};

	section(true);
	for (unsigned i = 0; i < sizeof clocks / sizeof *clocks; i++) {
		begin_interface(ETHERNET, 0);
		option(9, clocks[i].resolution, 1);
		option(14, 100, 8);
		end_block();
		packet(i, clocks[i].units, 16, 16);
	}
	open_file(file.used);
	for (unsigned i = 0; i < sizeof clocks / sizeof *clocks; i++)
		expect_packet(100000000000 + clocks[i].ns, 16, 16);
	expect_end();
}

UNIT_TEST_WITH(fcs_is_of_the_interface_or_the_packet, begin, NULL)
{
	section(false);
	begin_interface(ETHERNET, 0);
	option(13, 4, 1);
	end_block();
	interface(ETHERNET, 0);
	packet(0, 0, 64, 64);
	packet(1, 0, 64, 64);
	begin_packet(1, 0, 64, 64);
	option(2, 4 << 5, 4);
	end_block();
	open_file(file.used);
	assert_int_equal(next(), PCAPNG_PACKET);
	assert_true(got.has_fcs);
	assert_int_equal(next(), PCAPNG_PACKET);
	assert_false(got.has_fcs);
	assert_int_equal(next(), PCAPNG_PACKET);
	assert_true(got.has_fcs);
	expect_end();
}

UNIT_TEST_WITH(simple_packets_end_at_the_snap_length, begin, NULL)
{
	section(false);
	interface(ETHERNET, 20);
	begin_block(3);
	put(100, 4);
	for (int i = 0; i < 20; i++)
		put((uint64_t)i, 1);
	end_block();
	begin_block(0x0bad);	/* of a kind that is not known */
	put(7, 4);
	end_block();
	open_file(file.used);
	expect_packet(0, 20, 100);
	assert_false(got.has_time);
	expect_end();
}

UNIT_TEST_WITH(file_is_cut_at_each_byte, begin, NULL)
{
	size_t whole;

	section(true);
	interface(ETHERNET, 0);
	packet(0, 1, 60, 60);
	whole = file.used;
	packet(0, 2, 60, 60);
	for (size_t n = whole + 1; n < file.used; n++) {
		open_file(n);
		assert_int_equal(next(), PCAPNG_PACKET);
		assert_int_equal(next(), PCAPNG_CUT);
		close_file();
	}
}

UNIT_TEST_WITH(mistakes_are_told, begin, NULL)
{
	section(false);
	packet(0, 0, 16, 16);
	expect_wrong("a packet of interface 0 found, expected one of 0");
	begin(NULL);
	section(false);
	interface(ETHERNET, 0);
	begin_block(6);
	put(0, 4);
	put(0, 8);
	put(1000, 4);
	put(1000, 4);
	end_block();
	expect_wrong("a packet of 1000 bytes found in a block that has room for 0");
	begin(NULL);
	section(false);
	begin_block(6);
	put(0, 4);
	end_block();
	expect_wrong("a packet block of 16 bytes found");
	begin(NULL);
	section(false);
	begin_block(7);
	end_block();
	file.bytes[file.used - 4]++;
	expect_wrong("length 13 found behind a block, expected 12");
	begin(NULL);
	section(false);
	file.bytes[8]++;
	expect_wrong("byte order");
	begin(NULL);
	section(false);
	file.bytes[12] = 2;
	expect_wrong("version 2 found, expected 1");
	begin(NULL);
	section(false);
	put(5, 4);
	put(11, 4);
	put(11, 4);
	expect_wrong("a block of 11 bytes found");
}

UNIT_MAIN(NULL, NULL)
