/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_validate.c - checksums of frames that were received, and how many frames were joined in one. */
#include "common/frame_layout.h"
#include "dapl/softeth/validate.h"
#include "test/unit/unit.h"

enum { L3 = 14, L4 = L3 + 20, PAYLOAD = L4 + 8, LENGTH = PAYLOAD + 5 };

static uint8_t bytes[LENGTH];		/* UDP over IPv4, five bytes */
static struct dapl_eth_frame frame;
static struct eth_port port;
static struct virtio_net_hdr vnet;

static void put16(size_t at, uint16_t value)
{
	bytes[at] = (uint8_t)(value >> 8);
	bytes[at + 1] = (uint8_t)value;
}

static void set_ip_checksum(void)
{
	put16(L3 + 10, 0);
	put16(L3 + 10, (uint16_t)~eth_sum_fold(eth_sum_bytes(bytes + L3, 20, 0)));
}

static void set_checksums(void)
{
	struct eth_layout l;

	set_ip_checksum();
	put16(L4 + 6, 0);
	assert_true(eth_layout_read(bytes, LENGTH, &l));
	put16(L4 + 6, (uint16_t)~eth_sum_fold(eth_sum_bytes(bytes + L4, LENGTH - L4, eth_sum_pseudo(bytes, &l))));
}

UNIT_FIXTURE(set_up)
{
	memset(bytes, 0, sizeof bytes);
	put16(12, 0x0800);
	bytes[L3] = 0x45;
	put16(L3 + 2, LENGTH - L3);
	bytes[L3 + 9] = 17;
	memcpy(bytes + L3 + 12, "\xc0\x00\x02\x01\xc0\x00\x02\x02", 8);
	memcpy(bytes + PAYLOAD, "hello", 5);
	set_checksums();
	frame = (struct dapl_eth_frame){ .length = LENGTH, .wire_length = LENGTH };
	port = (struct eth_port){ .verify = true };
	vnet = (struct virtio_net_hdr){ .gso_type = VIRTIO_NET_HDR_GSO_NONE };
}

/* The frame is in two pieces, of which the first is odd. */
static uint32_t flags(void)
{
	struct iovec iov[] = { { bytes, L4 + 3 }, { bytes + L4 + 3, LENGTH - L4 - 3 } };

	eth_validate(&port, &frame, &vnet, bytes, LENGTH, iov, 2);
	return frame.flags;
}

#define TEST(name) UNIT_TEST_WITH(name, set_up, NULL)

TEST(right_checksums_are_told)
{
	assert_int_equal(flags(), ETH_FRAME_IP_OK | ETH_FRAME_L4_OK);
}

TEST(wrong_checksums_are_told_apart)
{
	bytes[L3 + 8]++;		/* the hop limit */
	assert_int_equal(flags(), ETH_FRAME_IP_BAD | ETH_FRAME_L4_OK);
	set_up(NULL);
	bytes[LENGTH - 1]++;
	assert_int_equal(flags(), ETH_FRAME_IP_OK | ETH_FRAME_L4_BAD);
}

TEST(payload_is_summed_if_the_program_wants_it)
{
	port.verify = false;
	assert_int_equal(flags(), ETH_FRAME_IP_OK);
}

TEST(word_of_the_kernel_is_taken)
{
	bytes[LENGTH - 1]++;
	frame.flags = ETH_FRAME_L4_OK;
	assert_int_equal(flags(), ETH_FRAME_IP_OK | ETH_FRAME_L4_OK);
}

/* A frame of this host whose checksums the device would have filled in. */
TEST(partial_frames_are_not_summed)
{
	bytes[LENGTH - 1]++;
	bytes[L3 + 8]++;
	frame.flags = ETH_FRAME_PARTIAL;
	assert_int_equal(flags(), ETH_FRAME_PARTIAL);
}

TEST(udp_may_have_no_checksum)
{
	put16(L4 + 6, 0);
	assert_int_equal(flags(), ETH_FRAME_IP_OK);
}

TEST(frame_that_was_cut_is_not_summed)
{
	frame.length = LENGTH - 1;
	assert_int_equal(flags(), ETH_FRAME_IP_OK);
}

TEST(frame_without_ip_has_no_flags)
{
	put16(12, 0x0806);
	assert_int_equal(flags(), 0);
}

TEST(joined_frames_are_counted)
{
	static const struct {
		uint16_t size, segments;
		uint32_t payload;
	} rows[] = { { 1000, 1, 1 }, { 1000, 1, 1000 }, { 1000, 2, 1001 }, { 1000, 60, 60000 }, { 0, 0, 1000 } };

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		set_up(NULL);
		vnet = (struct virtio_net_hdr){ .gso_type = VIRTIO_NET_HDR_GSO_UDP, .gso_size = rows[i].size };
		frame.wire_length = PAYLOAD + rows[i].payload;
		flags();
		assert_int_equal(frame.segments, rows[i].segments);
	}
}

/* BIG TCP: the total length of IPv4 is 0. */
TEST(joined_frames_are_counted_without_a_length_in_the_header)
{
	put16(L3 + 2, 0);
	set_ip_checksum();
	vnet = (struct virtio_net_hdr){ .gso_type = VIRTIO_NET_HDR_GSO_UDP, .gso_size = 1000 };
	frame.wire_length = PAYLOAD + 100001;
	assert_int_equal(flags(), ETH_FRAME_IP_OK);
	assert_int_equal(frame.segments, 101);
}

/* The checksum in the headers is that of one of them. */
TEST(joined_frames_are_not_summed)
{
	vnet = (struct virtio_net_hdr){ .gso_type = VIRTIO_NET_HDR_GSO_UDP, .gso_size = 2 };
	assert_int_equal(flags(), ETH_FRAME_IP_OK);
	assert_int_equal(frame.segments, 3);
}

UNIT_MAIN(NULL, NULL)
