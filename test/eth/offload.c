/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* offload.c - offloads of raw Ethernet endpoints: checksums, segmentation and VLAN tags of sends; flags about
 * checksums and joined frames of receives. The kernel finishes the frames on eth0, so the peer sees what a wire
 * would carry. */
#include "wire.h"
#include "test/variables.h"
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct wire w;
static const DAT_ETH_SEND checksum = { .flags = DAT_ETH_SEND_CSUM };

static void open_sender(void)
{
	wire_open(&w);
	wire_finish_frames("eth0", true);
	wire_endpoint(&w, "", NULL);
}

static void await_sent(size_t length)
{
	DAT_EVENT event = wire_event(w.request, DAT_DTO_COMPLETION_EVENT);

	EXPECT(event.event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS);
	EXPECT(event.event_data.dto_completion_event_data.transfered_length == length);
}

static void put16(uint8_t *at, size_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static void set_length(uint8_t *ip, size_t length)
{
	if (*ip >> 4 == 4)
		put16(ip + 2, length);
	else
		put16(ip + 4, length - 40);
}

/* Compares two frames except for their checksums. */
static bool equal_but_checksums(const uint8_t *a, const uint8_t *b, size_t length, size_t l3, size_t l4_checksum)
{
	for (size_t i = 0; i < length; i++)
		if (a[i] != b[i] && !(a[l3] >> 4 == 4 && (i == l3 + 10 || i == l3 + 11)) && i != l4_checksum &&
		    i != l4_checksum + 1)
			return false;
	return true;
}

/* --- checksums of sends --------------------------------------------------------------------- */

static unsigned seed;

static unsigned random_below(unsigned n)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % n;
}

/* Makes a frame of random kind, length and content in w.memory. Some frames have bytes behind their packet.
 * */
static size_t random_packet(size_t *l3, size_t *l4_checksum)
{
	int version = random_below(2) ? 4 : 6;
	size_t payload = random_below(1300), headers, padding = random_below(4) ? 0 : random_below(40);
	bool udp = random_below(2);

	*l3 = random_below(2) ? 14 : 18;
	headers = wire_tcp(&w, w.memory, *l3, version, 0);
	if (*l3 == 18)
		memcpy(w.memory + 12, "\x81\x00\x20\x07", 4);
	if (udp) {
		w.memory[*l3 + (version == 4 ? 9 : 6)] = 17;
		headers -= 12;
		put16(w.memory + headers - 4, payload + 8);
	}
	for (size_t i = 0; i < payload + padding; i++)
		w.memory[headers + i] = (uint8_t)random_below(256);
	*l4_checksum = udp ? headers - 2 : headers - 4;
	set_length(w.memory + *l3, headers + payload - *l3);
	return headers + payload + padding;
}

/* ETH_SEED repeats the random numbers of a run. ETH_FRAMES is the number of frames, 2000 if it is not set.
 * */
static void ETH_21_checksums_are_filled_in(void)
{
	unsigned begin, frames = (unsigned)variable_number("ETH_FRAMES", 2000);
	static uint8_t sent[2000], got[2000];

	open_sender();
	seed = begin = variable_seed("ETH_SEED");
	for (unsigned i = 0; i < frames; i++) {
		size_t l3, l4_checksum, length = random_packet(&l3, &l4_checksum);

		memcpy(sent, w.memory, length);
		OK(wire_post_send_how(&w, length, 1, &checksum));
		await_sent(length);
		EXPECT(!memcmp(sent, w.memory, length));
		EXPECT(wire_receive(&w, got, sizeof got) == length);
		if (!wire_checksums_are_right(got, l3) || !equal_but_checksums(got, sent, length, l3, l4_checksum))
			fail("ETH_SEED=%u: frame %u of %zu bytes, IPv%d, protocol %d: wrong bytes", begin, i, length,
			     sent[l3] >> 4, sent[l3] >> 4 == 4 ? sent[l3 + 9] : sent[l3 + 6]);
	}
	wire_close(&w);
}

/* The header of a tunnel, and its length. `ip`: an IP packet follows it, without an Ethernet header. */
static const struct tunnel {
	uint16_t port;		/* 0: GRE */
	const char *header;
	size_t length;
	bool ip;
} tunnels[] = {
	{ 4789, "\x08\0\0\0\0\0\x2a\0", 8, false },
	{ 6081, "\0\0\x65\x58\0\0\x2a\0", 8, false },
	{ 6081, "\x02\0\x08\0\0\0\x2a\0\1\2\3\1\5\6\7\x8", 16, true },
	{ 0, "\x20\0\x65\x58\0\0\x2a\0", 8, false },
	{ 0, "\0\0\x08\0", 4, true },
	{ 0, "\xb0\0\x08\0\0\0\0\0\0\0\0\7\0\0\0\1", 16, true },
};

/* Makes a frame with a TCP segment within a tunnel, in w.memory. Returns its length, and the offset of the
 * inner frame or packet. */
static size_t tunnel_packet(const struct tunnel *tunnel, size_t payload, size_t *at)
{
	static uint8_t inner[1500];
	size_t length = wire_tcp(&w, inner, 14, 4, payload) + payload, skip = tunnel->ip ? 14 : 0;

	set_length(inner + 14, length - 14);
	wire_udp(&w, w.memory, "10.77.0.2", tunnel->port, tunnel->length + length - skip);
	*at = (tunnel->port ? 42 : 34) + tunnel->length;
	if (!tunnel->port)
		w.memory[23] = 47;
	memcpy(w.memory + *at - tunnel->length, tunnel->header, tunnel->length);
	memcpy(w.memory + *at, inner + skip, length - skip);
	put16(w.memory + 16, *at + length - skip - 14);
	return *at + length - skip;
}

static void ETH_21_checksums_within_tunnels_are_filled_in(void)
{
	DAT_ETH_SEND how = { .flags = DAT_ETH_SEND_INNER_CSUM };
	static uint8_t sent[2000], got[2000];
	DAT_ETH_ATTR attr = { .size = sizeof attr };
	size_t at, length, l3;

	open_sender();
	OK(dat_eth_query(w.ia, &attr));
	EXPECT(attr.caps & DAT_ETH_CAP_INNER_CSUM);
	for (unsigned i = 0; i < 4 * sizeof tunnels / sizeof *tunnels; i++) {
		const struct tunnel *tunnel = &tunnels[i / 4];

		length = tunnel_packet(tunnel, i & 1 ? 1001 : 3, &at);
		l3 = at + (tunnel->ip ? 0 : 14);
		how.flags = DAT_ETH_SEND_INNER_CSUM | (i & 2 ? DAT_ETH_SEND_CSUM : 0);
		memcpy(sent, w.memory, length);
		OK(wire_post_send_how(&w, length, 1, &how));
		await_sent(length);
		EXPECT(!memcmp(sent, w.memory, length));
		EXPECT(wire_receive(&w, got, sizeof got) == length);
		EXPECT(wire_checksums_are_right(got, l3));
		EXPECT(!(i & 2) || !tunnel->port || wire_checksums_are_right(got, 14));
		EXPECT((i & 2) || !memcmp(got, sent, l3));
		EXPECT(equal_but_checksums(got + l3 - 14, sent + l3 - 14, length - l3 + 14, 14, 14 + 36) || (i & 2));
	}
	tunnel_packet(&tunnels[0], 3, &at);
	w.memory[36] = 1;		/* another port: no tunnel */
	EXPECT(DAT_GET_TYPE(wire_post_send_how(&w, at + 57, 1, &how)) == DAT_INVALID_PARAMETER);
	length = tunnel_packet(&tunnels[0], 3, &at);
	put16(w.memory + at + 16, 1000);	/* longer than the frame */
	EXPECT(DAT_GET_TYPE(wire_post_send_how(&w, length, 1, &how)) == DAT_INVALID_PARAMETER);
	how = (DAT_ETH_SEND){ .flags = DAT_ETH_SEND_INNER_CSUM | DAT_ETH_SEND_TSO, .mss = 100, .header_length = 54 };
	EXPECT(DAT_GET_TYPE(wire_post_send_how(&w, length, 1, &how)) == DAT_INVALID_PARAMETER);
	EXPECT(wire_is_silent(&w));
	wire_close(&w);
}

static void ETH_21_fragments_and_other_protocols_get_the_ip_checksum(void)
{
	uint8_t got[200];
	size_t length;

	open_sender();
	length = wire_tcp(&w, w.memory, 14, 4, 40) + 40;
	set_length(w.memory + 14, length - 14);
	w.memory[14 + 6] = 0x20;	/* more fragments */
	OK(wire_post_send_how(&w, length, 1, &checksum));
	EXPECT(wire_receive(&w, got, sizeof got) == length && (got[24] || got[25]) && !got[50] && !got[51]);
	w.memory[14 + 6] = 0;
	w.memory[14 + 9] = 200;		/* unknown protocol */
	OK(wire_post_send_how(&w, length, 1, &checksum));
	EXPECT(wire_receive(&w, got, sizeof got) == length && (got[24] || got[25]) && !got[50] && !got[51]);
	wire_close(&w);
}

static void ETH_21_what_does_not_fit_is_refused(void)
{
	static const DAT_ETH_SEND wrong[] = {
		{ .flags = 0x80 }, { .flags = DAT_ETH_SEND_CSUM, .mss = 1 }, { .flags = 0, .header_length = 54 },
		{ .flags = 0, .vlan_tci = 1 }, { .flags = DAT_ETH_SEND_VLAN, .vlan_type = 0x800 },
		{ .flags = DAT_ETH_SEND_CSUM, .reserved0 = 1 },
	};
	DAT_ETH_SEND nothing = { .flags = 0 };
	uint8_t got[200];
	size_t length;

	open_sender();
	length = wire_tcp(&w, w.memory, 14, 4, 40) + 40;
	set_length(w.memory + 14, length - 14);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		FAILS(wire_post_send_how(&w, length, 1, &wrong[i]), DAT_INVALID_PARAMETER);
	FAILS(wire_post_send_how(&w, length, 1, NULL), DAT_INVALID_PARAMETER);
	FAILS(wire_post_send_how(&w, 13, 1, &checksum), DAT_LENGTH_ERROR);
	FAILS(wire_post_send_how(&w, 1515, 1, &checksum), DAT_LENGTH_ERROR);
	set_length(w.memory + 14, length - 13);		/* longer than the frame */
	FAILS(wire_post_send_how(&w, length, 1, &checksum), DAT_INVALID_PARAMETER);
	wire_frame(&w, w.memory, 60, 1);		/* not IP */
	FAILS(wire_post_send_how(&w, 60, 1, &checksum), DAT_INVALID_PARAMETER);
	EXPECT(wire_is_silent(&w));
	OK(wire_post_send_how(&w, 60, 1, &nothing));
	EXPECT(wire_receive(&w, got, sizeof got) == 60 && !memcmp(got, w.memory, 60));
	wire_close(&w);
}

/* --- segmentation ---------------------------------------------------------------------------- */

/* Makes the expected segment from the template, without the library. */
static size_t reference(uint8_t *segment, size_t headers, size_t l3, size_t offset, size_t length, bool last)
{
	bool is_ipv4 = w.memory[l3] >> 4 == 4;
	uint8_t *tcp = segment + l3 + (is_ipv4 ? 20 : 40);
	uint32_t sequence;

	memcpy(segment, w.memory, headers);
	memcpy(segment + headers, w.memory + headers + offset, length);
	set_length(segment + l3, headers + length - l3);
	memcpy(&sequence, tcp + 4, 4);
	sequence = htonl(ntohl(sequence) + (uint32_t)offset);
	memcpy(tcp + 4, &sequence, 4);
	if (!last)
		tcp[13] &= (uint8_t)~0x09;	/* only the last segment has FIN and PSH */
	return headers + length;
}

static void expect_segments(size_t headers, size_t l3, size_t payload, size_t mss)
{
	bool is_ipv4 = w.memory[l3] >> 4 == 4;
	static uint8_t got[2000], want[2000];
	unsigned id = 0;

	for (size_t offset = 0; offset < payload; offset += mss) {
		size_t some = payload - offset < mss ? payload - offset : mss;
		size_t length = reference(want, headers, l3, offset, some, offset + some == payload);

		EXPECT(wire_receive(&w, got, sizeof got) == length);
		EXPECT(wire_checksums_are_right(got, l3));
		if (is_ipv4) {
			EXPECT(!offset || (got[l3 + 4] << 8 | got[l3 + 5]) == (int)(id + 1));
			id = (unsigned)(got[l3 + 4] << 8 | got[l3 + 5]);
			memcpy(want + l3 + 4, got + l3 + 4, 2);
		}
		EXPECT(equal_but_checksums(got, want, length, l3, headers - 4));
	}
}

static void ETH_22_a_message_is_segmented(void)
{
	static const struct { size_t l3; int version; size_t payload; uint16_t mss; } cases[] = {
		{ 14, 4, 8000, 1460 }, { 14, 6, 8000, 1440 }, { 18, 4, 8000, 1460 }, { 18, 6, 5000, 500 },
		{ 14, 4, 1460, 1460 }, { 14, 4, 1461, 1460 }, { 14, 4, 1, 1460 }, { 14, 4, 65000, 1000 },
		{ 14, 6, 65000, 1440 }, { 14, 4, 300, 8 },
	};
	DAT_ETH_STATS stats = { .size = sizeof stats };
	uint64_t frames = 0, bytes = 0;

	open_sender();
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		size_t headers = wire_tcp(&w, w.memory, cases[i].l3, cases[i].version, cases[i].payload);
		DAT_ETH_SEND how = { .flags = DAT_ETH_SEND_TSO, .mss = cases[i].mss,
			.header_length = (uint16_t)headers };
		uint64_t n = (cases[i].payload + cases[i].mss - 1) / cases[i].mss;

		if (cases[i].l3 == 18)
			memcpy(w.memory + 12, "\x81\x00\x20\x07", 4);
		OK(wire_post_send_how(&w, headers + cases[i].payload, i, &how));
		await_sent(headers + cases[i].payload);
		expect_segments(headers, cases[i].l3, cases[i].payload, cases[i].mss);
		frames += n;
		bytes += n * headers + cases[i].payload;
	}
	EXPECT(wire_is_silent(&w));
	OK(dat_eth_stats(w.ep, &stats));
	EXPECT(stats.sent == frames && stats.sent_bytes == bytes);
	wire_close(&w);
}

static void ETH_22_a_wrong_template_is_refused(void)
{
	DAT_ETH_ATTR attr = { .size = sizeof attr };
	DAT_ETH_SEND how = { .flags = DAT_ETH_SEND_TSO, .mss = 1460, .header_length = 54 }, other;

	open_sender();
	OK(dat_eth_query(w.ia, &attr));
	wire_tcp(&w, w.memory, 14, 4, 5000);
	other = how;
	other.mss = 0;
	FAILS(wire_post_send_how(&w, 5054, 1, &other), DAT_INVALID_PARAMETER);
	other.mss = 7;
	if (wire_on_soft())
		FAILS(wire_post_send_how(&w, 5054, 1, &other), DAT_INVALID_PARAMETER);
	other.mss = 1461;	/* frames of 1501 bytes of IP */
	FAILS(wire_post_send_how(&w, 5054, 1, &other), DAT_INVALID_PARAMETER);
	other = how;
	other.header_length = 53;
	FAILS(wire_post_send_how(&w, 5054, 1, &other), DAT_INVALID_PARAMETER);
	FAILS(wire_post_send_how(&w, 40, 1, &how), DAT_INVALID_PARAMETER);	/* cut */
	FAILS(wire_post_send_how(&w, 13, 1, &how), DAT_LENGTH_ERROR);
	FAILS(wire_post_send_how(&w, attr.max_tso + 1, 1, &how), DAT_LENGTH_ERROR);
	w.memory[14 + 9] = 17;	/* UDP */
	FAILS(wire_post_send_how(&w, 5054, 1, &how), DAT_INVALID_PARAMETER);
	wire_frame(&w, w.memory, 60, 1);
	FAILS(wire_post_send_how(&w, 5054, 1, &how), DAT_INVALID_PARAMETER);
	EXPECT(wire_is_silent(&w));
	wire_close(&w);
}

/* Posts 5000 bytes of TCP over IPv4 in frames of `mss` bytes. */
static DAT_RETURN post_segments(uint16_t mss)
{
	DAT_ETH_SEND how = { .flags = DAT_ETH_SEND_TSO, .mss = mss, .header_length = 54 };

	wire_tcp(&w, w.memory, 14, 4, 5000);
	return wire_post_send_how(&w, 5054, 1, &how);
}

static void expect_status(DAT_DTO_COMPLETION_STATUS status)
{
	EXPECT(wire_event(w.request, DAT_DTO_COMPLETION_EVENT).event_data.dto_completion_event_data.status == status);
}

static void ETH_22_segments_longer_than_a_lowered_mtu_fail(void)
{
	DAT_ETH_STATS stats = { .size = sizeof stats };

	open_sender();
	wire_command("ip link set eth0 mtu 1000");
	OK(post_segments(1460));
	expect_status(DAT_DTO_ERR_LOCAL_LENGTH);
	OK(post_segments(961));
	expect_status(DAT_DTO_ERR_LOCAL_LENGTH);
	EXPECT(wire_is_silent(&w));
	OK(post_segments(960));
	await_sent(5054);
	expect_segments(54, 14, 5000, 960);
	wire_command("ip link set eth0 mtu 1500");
	OK(post_segments(1460));
	await_sent(5054);
	expect_segments(54, 14, 5000, 1460);
	EXPECT(wire_is_silent(&w));
	OK(dat_eth_stats(w.ep, &stats));
	EXPECT(stats.sent == 6 + 4);
	wire_close(&w);
}

/* --- VLAN tags ---------------------------------------------------------------------------------- */

static void insert_tag(const char *tag, size_t length)
{
	memmove(w.memory + 16, w.memory + 12, length - 12);
	memcpy(w.memory + 12, tag, 4);
}

static void ETH_23_a_vlan_tag_is_inserted(void)
{
	DAT_ETH_SEND how = { .flags = DAT_ETH_SEND_VLAN, .vlan_tci = 0x6005 };
	static uint8_t got[2000];
	size_t headers;

	open_sender();
	wire_frame(&w, w.memory, 1514, 1);
	OK(wire_post_send_how(&w, 1514, 1, &how));
	insert_tag("\x81\x00\x60\x05", 1514);
	EXPECT(wire_receive(&w, got, sizeof got) == 1518 && !memcmp(got, w.memory, 1518));
	how = (DAT_ETH_SEND){ .flags = DAT_ETH_SEND_VLAN | DAT_ETH_SEND_TSO, .vlan_tci = 0x6005, .vlan_type = 0x88a8,
		.mss = 1000 };
	headers = wire_tcp(&w, w.memory, 14, 4, 3000);
	how.header_length = (uint16_t)headers;
	OK(wire_post_send_how(&w, headers + 3000, 1, &how));
	insert_tag("\x88\xa8\x60\x05", headers + 3000);
	expect_segments(headers + 4, 18, 3000, 1000);
	wire_close(&w);
}

/* --- receiving ------------------------------------------------------------------------------------ */

/* Returns the flags of the next frame, from a ring or a posted receive. */
static DAT_ETH_FRAME next_frame(bool ring)
{
	DAT_ETH_FRAME frame;
	DAT_EVENT event;

	if (ring) {
		wire_poll(&w, &frame, 1);
		OK(dat_eth_release(w.ep, 1));
		return frame;
	}
	wire_post(&w, 0, 20000, 1);
	event = wire_event(w.recv, DAT_ETH_DTO_EVENT);
	memcpy(&frame, event.event_extension_data, sizeof frame);
	return frame;
}

enum {
	IP_FLAGS = DAT_ETH_FRAME_IP_OK | DAT_ETH_FRAME_IP_BAD, L4_FLAGS = DAT_ETH_FRAME_L4_OK | DAT_ETH_FRAME_L4_BAD,
};

static void receive_checksums(bool ring, bool verify)
{
	static const char *const names[] = { "eth_receive", "eth_checksum" };
	DAT_NAMED_ATTR named[2] = { { names[0], ring ? "ring" : "post" }, { names[1], verify ? "verify" : "device" } };
	DAT_EP_ATTR attr = wire_attr();
	DAT_ETH_RULE any = wire_any();
	DAT_ETH_STATS stats = { .size = sizeof stats };
	static uint8_t frame[600];
	size_t length = 54 + 301;
	uint32_t sum;

	wire_open(&w);
	attr.ep_provider_specific_count = 2;
	attr.ep_provider_specific = named;
	OK(dat_ep_create(w.ia, w.pz, w.recv, w.request, DAT_HANDLE_NULL, &attr, &w.ep));
	wire_rule(&w, &any);
	wire_tcp(&w, frame, 14, 4, 301);
	set_length(frame + 14, length - 14);
	for (unsigned tries = 0; tries < 4; tries++) {
		bool ip_bad = tries & 1, l4_bad = tries & 2;
		uint32_t flags;

		wire_finish_checksums(frame, 14, 50);
		frame[14 + 11] ^= ip_bad;
		frame[51] ^= l4_bad;
		wire_send(&w, frame, length);
		flags = next_frame(ring).flags;
		EXPECT((flags & IP_FLAGS) == (ip_bad ? DAT_ETH_FRAME_IP_BAD : DAT_ETH_FRAME_IP_OK));
		EXPECT((flags & L4_FLAGS) == (!verify ? 0u : l4_bad ? DAT_ETH_FRAME_L4_BAD : DAT_ETH_FRAME_L4_OK));
	}
	OK(dat_eth_stats(w.ep, &stats));
	EXPECT(stats.received == 4 && stats.bad == (verify ? 3 : 2));
	sum = (uint32_t)wire_udp(&w, frame, "10.77.0.1", 5000, 100);	/* without a UDP checksum */
	wire_send(&w, frame, sum);
	EXPECT(!(next_frame(ring).flags & L4_FLAGS));
	wire_frame(&w, frame, 60, 3);
	wire_send(&w, frame, 60);
	EXPECT(!(next_frame(ring).flags & (IP_FLAGS | L4_FLAGS)));
	wire_close(&w);
}

static void ETH_24_a_ring_tells_about_the_ip_header_alone(void) { receive_checksums(true, false); }
static void ETH_24_a_ring_tells_about_all_checksums(void) { receive_checksums(true, true); }
static void ETH_24_a_posted_receive_tells_about_the_ip_header_alone(void) { receive_checksums(false, false); }
static void ETH_24_a_posted_receive_tells_about_all_checksums(void) { receive_checksums(false, true); }

/* The peer hands over a message that is not segmented, as GRO joins frames. */
static void send_joined(size_t headers, size_t payload, uint16_t mss, const uint8_t *frame)
{
	struct virtio_net_hdr vnet = { .flags = VIRTIO_NET_HDR_F_NEEDS_CSUM, .gso_type = VIRTIO_NET_HDR_GSO_TCPV4,
		.hdr_len = (uint16_t)headers, .gso_size = mss, .csum_start = (uint16_t)(headers - 20),
		.csum_offset = 16 };
	struct iovec iov[2] = { { &vnet, sizeof vnet }, { (void *)frame, headers + payload } };
	struct msghdr message = { .msg_iov = iov, .msg_iovlen = 2 };
	int one = 1;

	setsockopt(w.peer, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof one);
	if (sendmsg(w.peer, &message, 0) != (ssize_t)(sizeof vnet + headers + payload))
		fail("the peer could not send a joined frame");
}

static void receive_joined(bool ring)
{
	DAT_ETH_RULE any = wire_any();
	static uint8_t frame[9000];
	DAT_ETH_FRAME got;
	size_t headers;

	wire_open(&w);
	wire_endpoint(&w, ring ? "64" : "", NULL);
	wire_rule(&w, &any);
	headers = wire_tcp(&w, frame, 14, 4, 8000);
	set_length(frame + 14, headers + 8000 - 14);
	send_joined(headers, 8000, 1000, frame);
	got = next_frame(ring);
	EXPECT(got.segments == 8 && got.wire_length == headers + 8000 && got.flags & DAT_ETH_FRAME_PARTIAL);
	EXPECT(!(got.flags & L4_FLAGS));
	wire_close(&w);
}

static void ETH_24_a_ring_tells_of_joined_frames(void) { receive_joined(true); }
static void ETH_24_a_posted_receive_tells_of_joined_frames(void) { receive_joined(false); }

int main(int argc, char **argv)
{
	static const struct life_case cases[] = {
		CASE(ETH_21_checksums_are_filled_in),
		CASE(ETH_21_checksums_within_tunnels_are_filled_in),
		CASE(ETH_21_fragments_and_other_protocols_get_the_ip_checksum),
		CASE(ETH_21_what_does_not_fit_is_refused),
		CASE(ETH_22_a_message_is_segmented),
		CASE(ETH_22_a_wrong_template_is_refused),
		CASE(ETH_22_segments_longer_than_a_lowered_mtu_fail),
		CASE(ETH_23_a_vlan_tag_is_inserted),
		CASE(ETH_24_a_ring_tells_about_the_ip_header_alone),
		CASE(ETH_24_a_ring_tells_about_all_checksums),
		CASE(ETH_24_a_posted_receive_tells_about_the_ip_header_alone),
		CASE(ETH_24_a_posted_receive_tells_about_all_checksums),
		CASE(ETH_24_a_ring_tells_of_joined_frames),
		CASE(ETH_24_a_posted_receive_tells_of_joined_frames),
	};

	if (!wire_possible())
		return WIRE_SKIPPED;
	return life_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
