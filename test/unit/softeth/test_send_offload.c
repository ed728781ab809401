/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_send_offload.c - what send.c makes of a frame that asks for a tag, checksums or segmentation, and which frames
 * it refuses. The socket is replaced here, and its part of a checksum added; the socket's errors are test_send.c's
 * matter. */
#include <linux/if_ether.h>
#include <linux/virtio_net.h>
#include "common/frame_layout.h"
#include "dapl/softeth/port_types.h"
#include "dapl/softeth/send.h"
#include "test/unit/softeth/frames.h"
#include "test/unit/unit.h"

enum { SOCKET = 1000, MTU = 500, L3 = 14, TCP = 20, UDP = 8, VXLAN = 50, TAG = 4, PIECES = 64 };

static struct eth_port port;
static struct frame frame;		/* what the program sends */
static size_t packet;			/* bytes of it up to the end of the IP packet */
static struct virtio_net_hdr vnet;	/* what the socket got, and the frame behind it */
static uint8_t sent[sizeof frame.bytes + TAG];
static size_t sent_length;
static const uint8_t *first_piece;
static unsigned messages;
static const char *wrong;

/* --- the socket ------------------------------------------------------------------------------------------------- */

REPLACE(sendmsg)
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags)
{
	assert_int_equal(fd, SOCKET);
	assert_true(flags & MSG_DONTWAIT);
	assert_int_equal(message->msg_iov[0].iov_len, sizeof vnet);
	memcpy(&vnet, message->msg_iov[0].iov_base, sizeof vnet);
	first_piece = message->msg_iov[1].iov_base;
	sent_length = 0;
	for (size_t i = 1; i < message->msg_iovlen; i++) {
		assert_true(sent_length + message->msg_iov[i].iov_len <= sizeof sent);
		memcpy(sent + sent_length, message->msg_iov[i].iov_base, message->msg_iov[i].iov_len);
		sent_length += message->msg_iov[i].iov_len;
	}
	messages++;
	return (ssize_t)(sizeof vnet + sent_length);
}

static void put16(uint8_t *at, size_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static uint32_t get16(const uint8_t *at) { return (uint32_t)at[0] << 8 | at[1]; }

/* The kernel's part of the checksum, or the device's. */
static void finish_checksum(void)
{
	uint16_t sum;

	if (!(vnet.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM))
		return;
	assert_in_range(vnet.csum_start + vnet.csum_offset, L3, sent_length - 2);
	sum = eth_sum_fold(eth_sum_bytes(sent + vnet.csum_start, sent_length - vnet.csum_start, 0));
	put16(sent + vnet.csum_start + vnet.csum_offset, (uint16_t)~sum);
}

/* --- frames ------------------------------------------------------------------------------------------------------ */

static size_t ip_length(int version) { return version == 4 ? 20 : 40; }

static void put_tcp(struct frame *f)
{
	FRAME_PUT(f, "\x30\x39\x00\x50\x00\x00\x00\x01\x00\x00\x00\x02\x50\x10\x40\x00\xab\xcd\x00\x00");
}

static void set_ip_length(struct frame *f, size_t length)
{
	put16(f->bytes + L3 + (f->bytes[L3] >> 4 == 4 ? 2 : 4), f->bytes[L3] >> 4 == 4 ? length : length - 40);
}

/* TCP or UDP with wrong checksums, and `padding` bytes behind the packet. */
static void make(int version, uint8_t protocol, size_t payload, size_t padding)
{
	size_t l4 = L3 + ip_length(version);

	frame = (struct frame){ .length = 0 };
	frame_put_ethernet(&frame, version == 4 ? ETH_P_IP : ETH_P_IPV6);
	if (version == 4)
		frame_put_ipv4(&frame, protocol);
	else
		frame_put_ipv6(&frame, protocol);
	if (protocol == IPPROTO_UDP) {
		frame_put_udp(&frame, 53);
		put16(frame.bytes + l4 + 4, UDP + payload);
		put16(frame.bytes + l4 + 6, 0xabcd);
	} else {
		put_tcp(&frame);
	}
	for (size_t i = 0; i < payload + padding; i++)
		frame_put(&frame, i < payload ? "p" : "\xee", 1);
	packet = frame.length - padding;
	set_ip_length(&frame, packet - L3);
	if (version == 4)
		put16(frame.bytes + L3 + 10, 0x1234);
	assert_true(frame.length <= sizeof frame.bytes);
}

/* The frame becomes one within a tunnel. */
static void wrap_in_vxlan(void)
{
	struct frame inner = frame;

	frame = (struct frame){ .length = 0 };
	frame_put_ethernet_ipv4(&frame, IPPROTO_UDP);
	frame_put_udp(&frame, 4789);
	FRAME_PUT(&frame, "\x08\0\0\0\0\0\x2a\0");
	assert_int_equal(frame.length, VXLAN);
	frame_put(&frame, (const char *)inner.bytes, inner.length);
	put16(frame.bytes + L3 + 20 + 4, frame.length - L3 - 20);
	set_ip_length(&frame, frame.length - L3);
}

UNIT_FIXTURE(set_up)
{
	port = (struct eth_port){ .fd = SOCKET, .mtu = MTU };
	messages = 0;
	wrong = NULL;
}

/* In pieces of odd lengths, the last one of which is not at the end of the headers. The program's memory stays as it
 * is. */
static int send_how(const struct dapl_eth_send *how)
{
	const size_t second = frame.length > 60 ? 51 : frame.length - 9;
	struct iovec iov[] = { { frame.bytes, 9 }, { frame.bytes + 9, second },
		{ frame.bytes + 9 + second, frame.length - 9 - second } };
	const struct frame before = frame;
	const char *checked = eth_send_check(&port, iov, 3, how);
	int err = eth_send(&port, iov, 3, how, &wrong);

	assert_memory_equal(frame.bytes, before.bytes, frame.length);
	assert_ptr_equal(checked, wrong);	/* a frame that is sent later is refused as one that is sent now */
	return err;
}

static void send_flags(uint32_t flags)
{
	const struct dapl_eth_send how = { .flags = flags };

	assert_int_equal(send_how(&how), 0);
	assert_null(wrong);
}

static void assert_refused(const struct dapl_eth_send *how)
{
	assert_int_equal(send_how(how), EINVAL);
	assert_non_null(wrong);
	assert_int_equal(messages, 0);
	assert_int_equal(port.stats.sent, 0);
}

/* --- what the peer gets ------------------------------------------------------------------------------------------- */

static void assert_right(const struct eth_layout *l)
{
	if (l->version == 4)
		assert_int_equal(eth_sum_fold(eth_sum_bytes(sent + l->l3, (size_t)(l->l4 - l->l3), 0)), 0xffff);
	if (l->payload)
		assert_int_equal(eth_sum_fold(eth_sum_bytes(sent + l->l4, l->end - l->l4, eth_sum_pseudo(sent, l))),
				 0xffff);
}

static void assert_checksums(void)
{
	struct eth_layout l;

	finish_checksum();
	assert_true(eth_layout_read(sent, sent_length, &l));
	assert_right(&l);
}

/* Copies a field of the frame that was sent, to compare the others. */
static void take_field(struct frame *expected, size_t at) { memcpy(expected->bytes + at, sent + at, 2); }

static void assert_equal_but_checksums(void)
{
	struct frame expected = frame;
	struct eth_layout l;

	assert_int_equal(sent_length, frame.length);
	eth_layout_read(frame.bytes, frame.length, &l);
	if (l.version == 4)
		take_field(&expected, l.l3 + 10u);
	if (l.payload)
		take_field(&expected, (size_t)l.l4 + eth_checksum_offset(&l));
	assert_memory_equal(sent, expected.bytes, sent_length);
}

#define TEST(name) UNIT_TEST_WITH(name, set_up, NULL)

/* --- tags --------------------------------------------------------------------------------------------------------- */

TEST(frame_without_offloads_is_not_copied)
{
	make(4, IPPROTO_UDP, 20, 3);
	send_flags(0);
	assert_int_equal(vnet.flags | vnet.gso_type, 0);
	assert_int_equal(sent_length, frame.length);
	assert_memory_equal(sent, frame.bytes, frame.length);
	assert_ptr_equal(first_piece, frame.bytes);
	assert_int_equal(send_how(NULL), 0);
	assert_ptr_equal(first_piece, frame.bytes);
	assert_int_equal(port.stats.sent, 2);
	assert_int_equal(port.stats.sent_bytes, 2 * frame.length);
}

TEST(tag_is_inserted_behind_the_addresses)
{
	static const uint16_t types[][2] = { { 0, ETH_P_8021Q }, { ETH_P_8021Q, ETH_P_8021Q },
		{ ETH_P_8021AD, ETH_P_8021AD } };

	make(4, IPPROTO_UDP, 300, 0);
	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		const struct dapl_eth_send how = { .flags = ETH_SEND_VLAN, .vlan_tci = 0x2003,
			.vlan_type = types[i][0] };

		set_up(NULL);
		assert_int_equal(send_how(&how), 0);
		assert_int_equal(sent_length, frame.length + TAG);
		assert_memory_equal(sent, frame.bytes, 12);
		assert_int_equal(get16(sent + 12), types[i][1]);
		assert_int_equal(get16(sent + 14), 0x2003);
		assert_memory_equal(sent + 16, frame.bytes + 12, frame.length - 12);
		assert_int_equal(vnet.flags, 0);
		assert_int_equal(port.stats.sent_bytes, frame.length + TAG);
	}
}

/* --- checksums -------------------------------------------------------------------------------------------------- */

static const struct {
	int version;
	uint8_t protocol;
} kinds[] = { { 4, IPPROTO_UDP }, { 4, IPPROTO_TCP }, { 6, IPPROTO_UDP }, { 6, IPPROTO_TCP } };
enum { KINDS = sizeof kinds / sizeof *kinds };

/* Unless the packet is padded: the kernel would add up what follows it. */
TEST(kernel_is_asked_for_the_checksum_of_a_packet)
{
	for (unsigned i = 0; i < KINDS; i++)
		for (size_t payload = 0; payload < 320; payload += 31)
			for (size_t padding = 0; padding <= 13; padding += 13) {
				make(kinds[i].version, kinds[i].protocol, payload, padding);
				send_flags(ETH_SEND_CSUM);
				assert_int_equal(vnet.flags, padding ? 0 : VIRTIO_NET_HDR_F_NEEDS_CSUM);
				assert_int_equal(vnet.gso_type, VIRTIO_NET_HDR_GSO_NONE);
				assert_checksums();
				assert_equal_but_checksums();
			}
}

TEST(checksum_behind_an_inserted_tag_is_found)
{
	for (unsigned i = 0; i < KINDS; i++) {
		make(kinds[i].version, kinds[i].protocol, 300, 0);
		send_flags(ETH_SEND_CSUM | ETH_SEND_VLAN);
		assert_int_equal(vnet.csum_start, L3 + TAG + ip_length(kinds[i].version));
		assert_checksums();
		assert_int_equal(sent_length, frame.length + TAG);
	}
}

/* 0 means that there is none; for TCP it is a checksum like others. */
TEST(udp_checksum_is_never_0)
{
	for (unsigned i = 0; i < KINDS; i++) {
		size_t l4 = L3 + ip_length(kinds[i].version), at = l4 + (kinds[i].protocol == IPPROTO_UDP ? 6 : 16);

		make(kinds[i].version, kinds[i].protocol, 20, 13);
		put16(frame.bytes + packet - 2, 0);
		send_flags(ETH_SEND_CSUM);
		put16(frame.bytes + packet - 2, get16(sent + at));	/* then all bits of the sum are set */
		send_flags(ETH_SEND_CSUM);
		assert_int_equal(get16(sent + at), kinds[i].protocol == IPPROTO_UDP ? 0xffff : 0);
	}
}

TEST(fragment_gets_the_checksum_of_its_ip_header)
{
	make(4, IPPROTO_UDP, 20, 0);
	put16(frame.bytes + L3 + 6, 0x2000);
	send_flags(ETH_SEND_CSUM);
	assert_int_equal(vnet.flags, 0);
	assert_checksums();
	assert_equal_but_checksums();
}

/* The outer checksum, which is zero here as UDP allows, stays unless it is asked for, too. */
TEST(inner_checksums_are_computed_here)
{
	struct eth_layout outer, inner;

	for (unsigned i = 0; i < KINDS; i++) {
		make(kinds[i].version, kinds[i].protocol, 50, 0);
		wrap_in_vxlan();
		send_flags(ETH_SEND_INNER_CSUM);
		assert_int_equal(vnet.flags, 0);
		assert_int_equal(sent_length, frame.length);
		assert_memory_equal(sent, frame.bytes, VXLAN);
		assert_true(eth_layout_read(sent, sent_length, &outer));
		assert_true(eth_layout_inner(sent, sent_length, &outer, &inner));
		assert_right(&inner);
		send_flags(ETH_SEND_INNER_CSUM | ETH_SEND_CSUM);
		assert_int_equal(vnet.csum_start, L3 + 20);
		assert_checksums();
		assert_true(eth_layout_inner(sent, sent_length, &outer, &inner));
		assert_right(&inner);
	}
}

/* --- segmentation ----------------------------------------------------------------------------------------------- */

/* The length in the IP header may be anything: it is known when the message is. */
TEST(message_is_segmented_by_the_kernel)
{
	static const struct dapl_eth_send flags[] = { { .flags = ETH_SEND_TSO },
		{ .flags = ETH_SEND_TSO | ETH_SEND_VLAN } };

	for (unsigned i = 0; i < 4; i++) {
		struct dapl_eth_send how = flags[i / 2];
		int version = i % 2 ? 6 : 4;
		size_t headers = L3 + ip_length(version) + TCP, tag = i / 2 ? TAG : 0;
		struct eth_layout l;

		set_up(NULL);
		make(version, IPPROTO_TCP, 250, 0);
		set_ip_length(&frame, 40);
		how.header_length = (uint16_t)headers;
		how.mss = 100;
		assert_int_equal(send_how(&how), 0);
		assert_int_equal(vnet.gso_type, version == 4 ? VIRTIO_NET_HDR_GSO_TCPV4 : VIRTIO_NET_HDR_GSO_TCPV6);
		assert_int_equal(vnet.gso_size, 100);
		assert_int_equal(vnet.hdr_len, headers + tag);
		assert_int_equal(vnet.csum_start, headers + tag - TCP);
		assert_checksums();
		assert_true(eth_layout_read(sent, sent_length, &l));
		assert_int_equal(l.end, sent_length);
		assert_int_equal(port.stats.sent, 3);
		assert_int_equal(port.stats.sent_bytes, 250 + 3 * (headers + tag));
	}
}

TEST(message_of_one_frame_is_sent_as_a_frame)
{
	const struct dapl_eth_send how = { .flags = ETH_SEND_TSO, .header_length = L3 + 20 + TCP, .mss = 250 };

	make(4, IPPROTO_TCP, 250, 0);
	assert_int_equal(send_how(&how), 0);
	assert_int_equal(vnet.gso_type, VIRTIO_NET_HDR_GSO_NONE);
	assert_int_equal(vnet.flags, VIRTIO_NET_HDR_F_NEEDS_CSUM);
	assert_checksums();
	assert_int_equal(port.stats.sent, 1);
	assert_int_equal(port.stats.sent_bytes, frame.length);
}

TEST(frames_of_a_message_may_fill_the_mtu)
{
	struct dapl_eth_send how = { .flags = ETH_SEND_TSO, .header_length = L3 + 20 + TCP, .mss = MTU - 20 - TCP + 1 };

	make(4, IPPROTO_TCP, 250, 0);
	assert_refused(&how);
	how.mss--;
	assert_int_equal(send_how(&how), 0);
}

/* --- frames that are refused ------------------------------------------------------------------------------------ */

static const struct dapl_eth_send csum = { .flags = ETH_SEND_CSUM }, inner_csum = { .flags = ETH_SEND_INNER_CSUM },
	tso = { .flags = ETH_SEND_TSO, .header_length = L3 + 20 + TCP, .mss = 100 };

TEST(frame_that_lacks_headers_is_refused)
{
	struct dapl_eth_send how = tso;

	make(4, IPPROTO_UDP, 20, 0);
	how.header_length = L3 + 20 + UDP;
	assert_refused(&how);		/* not TCP */
	assert_refused(&inner_csum);	/* no tunnel */
	frame.length = L3 + 19;
	assert_refused(&csum);
	assert_refused(&tso);
	make(4, IPPROTO_TCP, 20, 0);
	put16(frame.bytes + L3 + 6, 0x2000);
	assert_refused(&tso);		/* a fragment */
	how.header_length = 0;
	assert_refused(&how);
	put16(frame.bytes + 12, ETH_P_ARP);
	assert_refused(&csum);
	assert_refused(&inner_csum);
	assert_refused(&tso);
}

TEST(packet_that_is_longer_than_its_frame_is_refused)
{
	make(4, IPPROTO_UDP, 20, 0);
	set_ip_length(&frame, frame.length - L3 + 1);
	assert_refused(&csum);
	wrap_in_vxlan();
	assert_refused(&inner_csum);
}

TEST(message_needs_the_numbers_of_its_segments)
{
	struct dapl_eth_send how = tso;

	make(4, IPPROTO_TCP, 250, 0);
	how.mss = 0;
	assert_refused(&how);
	how.mss = 7;		/* newer kernels would cut into 8 */
	assert_refused(&how);
	how = tso;
	how.header_length++;
	assert_refused(&how);
}

TEST(message_has_a_longest_length)
{
	static uint8_t payload[0x10000];
	struct iovec iov[] = { { frame.bytes, L3 + 20 + TCP }, { payload, 0xffff - 20 - TCP + 1 } };

	make(4, IPPROTO_TCP, 0, 0);
	assert_non_null(eth_send_check(&port, iov, 2, &tso));
	iov[1].iov_len--;
	assert_null(eth_send_check(&port, iov, 2, &tso));
}

TEST(frame_has_a_limit_of_pieces)
{
	struct iovec iov[PIECES + 1];

	make(4, IPPROTO_UDP, 200, 0);
	for (int i = 0; i <= PIECES; i++)
		iov[i] = (struct iovec){ frame.bytes + i, 1 };
	iov[PIECES - 1].iov_len = frame.length - PIECES + 1;
	assert_int_equal(eth_send(&port, iov, PIECES, &csum, &wrong), 0);
	assert_checksums();
	assert_int_equal(eth_send(&port, iov, PIECES + 1, NULL, &wrong), EINVAL);
	assert_non_null(wrong);
	assert_int_equal(messages, 1);
}

UNIT_MAIN(NULL, NULL)
