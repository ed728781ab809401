/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_pcapng.c - files of the blocks of datcap, read by libpcap. */
#include "tools/datcap/pcapng.h"
#include "test/unit/unit.h"
#include <pcap/pcap.h>

enum { FRAMES_MAX = 400 };

static uint8_t file[FRAMES_MAX * (PCAPNG_PACKET_EXTRA + FRAMES_MAX) + 2 * PCAPNG_HEAD_MAX];
static uint8_t bytes[FRAMES_MAX];
static size_t used;

UNIT_FIXTURE(begin)
{
	for (int i = 0; i < FRAMES_MAX; i++)
		bytes[i] = (uint8_t)(i * 7 + 1);
	used = pcapng_section(file, "system", "tool", "");
	used += pcapng_interface(file + used, "eth0", "", 0, 0);
}

static pcap_t *open_file(size_t length)
{
	char error[PCAP_ERRBUF_SIZE];
	FILE *stream = fmemopen(file, length, "r");
	pcap_t *pcap;

	assert_non_null(stream);
	pcap = pcap_fopen_offline_with_tstamp_precision(stream, PCAP_TSTAMP_PRECISION_NANO, error);
	assert_non_null(pcap);
	return pcap;
}

static uint64_t time_of(const struct pcap_pkthdr *header)
{
	return (uint64_t)header->ts.tv_sec * 1000000000 + (uint64_t)header->ts.tv_usec;
}

/* Frames of `length` bytes of the file; *error: it ends with a mistake. */
static int count_frames(size_t length, bool *error)
{
	pcap_t *pcap = open_file(length);
	struct pcap_pkthdr *header;
	const uint8_t *data;
	int n = 0, got;

	while ((got = pcap_next_ex(pcap, &header, &data)) == 1)
		n++;
	*error = got == PCAP_ERROR;
	pcap_close(pcap);
	return n;
}

/* The halves of a time change places at 2^32 ns. */
UNIT_TEST_WITH(times_around_2_32_ns_are_kept, begin, NULL)
{
	static const uint64_t times[] = { 0, 1, 0xfffffffe, 0xffffffff, 0x100000000, 0x100000001,
		0x18bcfe56ffffffff, 0x18bcfe5700000000, 0x18bcfe5700000001 };
	const int n = sizeof times / sizeof *times;
	struct pcap_pkthdr *header;
	const uint8_t *data;
	pcap_t *pcap;

	for (int i = 0; i < n; i++) {
		struct pcapng_packet packet = { .time = times[i], .pieces = { bytes }, .lengths = { 60 },
			.captured = 60, .wire_length = 60, .flags = PCAPNG_INBOUND, .dropped = 1, .comment = "text" };

		used += pcapng_plain_packet(file + used, 0, times[i], bytes, 60, 60, PCAPNG_INBOUND);
		used += pcapng_packet(file + used, &packet);
	}
	pcap = open_file(used);
	for (int i = 0; i < 2 * n; i++) {
		assert_int_equal(pcap_next_ex(pcap, &header, &data), 1);
		assert_int_equal(time_of(header), times[i / 2]);
	}
	pcap_close(pcap);
}

UNIT_TEST_WITH(frames_of_each_length_are_kept, begin, NULL)
{
	struct pcap_pkthdr *header;
	const uint8_t *data;
	pcap_t *pcap;

	for (uint32_t n = 0; n < FRAMES_MAX; n++)
		used += pcapng_plain_packet(file + used, 0, 5, bytes, n, n + 1000, PCAPNG_OUTBOUND);
	pcap = open_file(used);
	for (uint32_t n = 0; n < FRAMES_MAX; n++) {
		assert_int_equal(pcap_next_ex(pcap, &header, &data), 1);
		assert_int_equal(header->caplen, n);
		assert_int_equal(header->len, n + 1000);
		assert_memory_equal(data, bytes, n);
	}
	pcap_close(pcap);
}

/* A frame in one piece and one in three, without losses and comment, are the same block. */
UNIT_TEST_WITH(both_functions_write_the_same, begin, NULL)
{
	static uint8_t other[1024];

	for (uint32_t n = 3; n < 64; n++) {
		struct pcapng_packet packet = { .time = 0x123456789abcdef0, .pieces = { bytes, bytes + 1, bytes + 2 },
			.lengths = { 1, 1, n - 2 }, .captured = n, .wire_length = n, .flags = PCAPNG_INBOUND,
			.comment = "" };
		size_t length = pcapng_packet(other, &packet);

		assert_int_equal(pcapng_plain_packet(file, 0, packet.time, bytes, n, n, PCAPNG_INBOUND), length);
		assert_memory_equal(file, other, length);
		assert_int_equal(pcapng_packet_size(n, false), length);
		packet.dropped = 1;
		assert_int_equal(pcapng_packet_size(n, true), pcapng_packet(other, &packet));
	}
}

/* The longest blocks there are: all texts are cut, all options there. */
UNIT_TEST_WITH(long_texts_are_cut, begin, NULL)
{
	static uint8_t block[PCAPNG_HEAD_MAX + 8];
	static char text[2 * PCAPNG_TEXT_MAX], comment[PCAPNG_COMMENT_MAX + 1];

	memset(text, 'x', sizeof text - 1);
	memset(block, 0xee, sizeof block);
	memset(comment, 'c', PCAPNG_COMMENT_MAX);
	used = pcapng_section(file, text, text, comment);
	assert_true(used <= PCAPNG_HEAD_MAX);
	assert_int_equal(used - pcapng_section(file, text, text, ""), 4 + PCAPNG_COMMENT_MAX);
	used = pcapng_section(file, text, text, "");
	assert_true(used > 2 * PCAPNG_TEXT_MAX && used <= PCAPNG_HEAD_MAX);
	assert_int_equal(pcapng_interface(block, text, text, 0, 1000000000), used + 16);
	assert_true(used + 16 <= PCAPNG_HEAD_MAX);
	assert_int_equal(block[used + 16], 0xee);
	memcpy(file + used, block, PCAPNG_HEAD_MAX);
	pcap_close(open_file(used + PCAPNG_HEAD_MAX));
}

/* Of an option of 8 bytes in an interface statistics block; ~0: it is not there. */
static uint64_t statistic(const uint8_t *block, uint16_t wanted)
{
	uint16_t option[2];
	uint64_t value;

	for (size_t at = 20;; at += 4 + ((option[1] + 3u) & ~3u)) {
		memcpy(option, block + at, sizeof option);
		if (!option[0])
			return ~(uint64_t)0;
		memcpy(&value, block + at + 4, sizeof value);
		if (option[0] == wanted)
			return value;
	}
}

UNIT_TEST_WITH(losses_are_told_by_place, begin, NULL)
{
	struct pcapng_statistics s = { .received = 100, .dropped_by_interface = 1, .accepted = 90,
		.dropped_by_kernel = 2, .delivered = 88 };

	assert_int_equal(pcapng_is_packet(file), 0);
	pcapng_interface_statistics(file, &s);
	assert_int_equal(pcapng_is_packet(file), 0);
	assert_int_equal(statistic(file, 4), 100);	/* isb_ifrecv */
	assert_int_equal(statistic(file, 5), 1);	/* isb_ifdrop */
	assert_int_equal(statistic(file, 6), 90);	/* isb_filteraccept */
	assert_int_equal(statistic(file, 7), 2);	/* isb_osdrop */
	assert_int_equal(statistic(file, 8), 88);	/* isb_usrdeliv */
	s.dropped_by_interface = ~(uint64_t)0;	/* not known */
	pcapng_interface_statistics(file, &s);
	assert_int_equal(statistic(file, 5), ~(uint64_t)0);
	pcapng_plain_packet(file, 0, 5, bytes, 61, 61, PCAPNG_INBOUND);
	assert_int_equal(pcapng_is_packet(file), 1);
}

UNIT_TEST_WITH(a_file_that_is_cut_has_the_frames_before, begin, NULL)
{
	struct pcapng_statistics none = { .time = 1 };
	size_t last;
	bool error;

	assert_int_equal(count_frames(used, &error), 0);
	assert_false(error);
	for (int i = 0; i < 3; i++) {
		last = used;
		used += pcapng_plain_packet(file + used, 0, 5, bytes, 61, 61, PCAPNG_INBOUND);
	}
	for (size_t length = last; length < used; length++) {
		assert_int_equal(count_frames(length, &error), 2);
		assert_int_equal(error, length != last);
	}
	assert_int_equal(count_frames(used, &error), 3);
	assert_false(error);
	used += pcapng_interface_statistics(file + used, &none);
	assert_int_equal(count_frames(used, &error), 3);
	assert_false(error);
}

UNIT_MAIN(NULL, NULL)
