/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* verbs.c - what raw endpoints over libibverbs have of their own: capabilities, flows of rules, time of the NIC, rate,
 * moderation, and what a device lacks. Runs in the machine, where test/verbs stands in for the driver; that library
 * checks each structure that it is given. */
#include "host.h"
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000ull

static struct wire w;

static void open_posted(unsigned receives)
{
	wire_open(&w);
	wire_endpoint(&w, "", NULL);
	for (unsigned i = 0; i < receives; i++)
		wire_post(&w, i * 2048, 2048, i);
}

static DAT_ETH_FRAME next_frame(uint64_t cookie)
{
	DAT_EVENT event = wire_event(w.recv, DAT_ETH_DTO_EVENT);
	DAT_ETH_FRAME frame;

	EXPECT(event.event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS);
	EXPECT(event.event_data.dto_completion_event_data.user_cookie.as_64 == cookie);
	memcpy(&frame, event.event_extension_data, sizeof frame);
	return frame;
}

static const char *carrier(void)
{
	DAT_PROVIDER_ATTR provider;

	OK(dat_ia_query(w.ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &provider));
	for (int i = 0; i < provider.num_provider_specific_attr; i++)
		if (!strcmp(provider.provider_specific_attr[i].name, DAT_ETH_ATTR_RAW))
			return provider.provider_specific_attr[i].value;
	return "none";
}

static void query_tells_what_was_probed(void)
{
	const DAT_UINT64 all = DAT_ETH_CAP_COPY | DAT_ETH_CAP_EGRESS | DAT_ETH_CAP_PARTIAL_MASK | DAT_ETH_CAP_INNER |
			       DAT_ETH_CAP_TUNNEL | DAT_ETH_CAP_RX_CSUM | DAT_ETH_CAP_JOIN | DAT_ETH_CAP_TX_CSUM |
			       DAT_ETH_CAP_TSO | DAT_ETH_CAP_PACE | DAT_ETH_CAP_TAKE | DAT_ETH_CAP_MODERATE |
			       DAT_ETH_CAP_RSS | DAT_ETH_CAP_FCS;
	DAT_ETH_ATTR attr = { .size = sizeof attr };

	wire_open(&w);
	OK(dat_eth_query(w.ia, &attr));
	EXPECT(attr.caps == all && attr.clock == DAT_ETH_CLOCK_HARDWARE);
	EXPECT(attr.mtu == 1500 && attr.max_frame == 1514 && !memcmp(attr.address, w.eth0, 6));
	EXPECT(attr.max_tso == 65549 && attr.max_tso_header == 128);
	EXPECT(attr.max_table == 512 && attr.max_group == 256);
	EXPECT(attr.rate_min == 100000 && attr.rate_max == 10000000000);
	EXPECT(!strcmp(carrier(), "VERBS"));
	wire_close(&w);
}

/* Returns a rule for UDP frames to this port. */
static DAT_ETH_RULE to_port(uint16_t port, DAT_UINT32 tag)
{
	DAT_ETH_RULE rule = host_rule(DAT_ETH_TAKE, port);

	rule.tag = tag;
	return rule;
}

static void send_udp(uint16_t port)
{
	uint8_t frame[100];

	wire_send(&w, frame, wire_udp(&w, frame, "10.77.0.1", port, 20));
}

static void frames_have_the_tag_of_their_rule(void)
{
	DAT_ETH_RULE first = to_port(5001, 71), second = to_port(5002, 0x80000072), drop = to_port(5003, 0),
		all = { .mode = 0 };
	DAT_ETH_RULE_HANDLE handle, dropping;
	DAT_UINT64 frames, bytes;

	open_posted(6);
	all.mode = DAT_ETH_TAKE;
	all.priority = 9;
	all.tag = 79;
	drop.mode = DAT_ETH_DROP;
	wire_rule(&w, &first);
	handle = wire_rule(&w, &second);
	dropping = wire_rule(&w, &drop);
	send_udp(5004);		/* no rule wants it */
	send_udp(5001);
	EXPECT(next_frame(0).tag == 71);
	wire_rule(&w, &all);
	send_udp(5003);
	send_udp(5002);
	send_udp(5004);
	EXPECT(next_frame(1).tag == 0x80000072);
	EXPECT(next_frame(2).tag == 79);
	OK(dat_eth_rule_query(handle, NULL, &frames, &bytes));
	EXPECT(frames == 1 && bytes == 62);
	OK(dat_eth_rule_query(dropping, NULL, &frames, &bytes));
	EXPECT(frames == ~(DAT_UINT64)0);	/* the device does not tell */
	OK(dat_eth_rule_free(handle));
	send_udp(5002);
	EXPECT(next_frame(3).tag == 79);
	wire_close(&w);
}

/* Makes a frame within VXLAN: its outer header, UDP to 4789, a VNI, and an inner frame to this UDP port. */
static size_t vxlan_frame(uint8_t *frame, uint8_t vni, uint16_t port)
{
	uint8_t inner[100];
	size_t length = wire_udp(&w, inner, "10.88.0.1", port, 10), headers;

	headers = wire_udp(&w, frame, "10.77.0.1", 4789, 8 + length) - length - 8;
	memset(frame + headers, 0, 8);
	frame[headers] = 0x08;
	frame[headers + 6] = vni;
	memcpy(frame + headers + 8, inner, length);
	return headers + 8 + length;
}

static void a_frame_within_a_tunnel_is_steered_by_its_inner_headers(void)
{
	DAT_ETH_RULE rule = { .mode = DAT_ETH_TAKE, .tag = 5 };
	uint8_t frame[300];
	size_t length;

	open_posted(2);
	rule.key.ip_version = rule.inner_key.ip_version = 4;
	rule.mask.ip_version = rule.inner_mask.ip_version = 0xff;
	rule.key.tunnel = DAT_ETH_TUNNEL_VXLAN;
	rule.mask.tunnel = rule.mask.tunnel_id = 0xffffffff;
	rule.key.tunnel_id = htonl(7);
	rule.inner_key.protocol = 17;
	rule.inner_mask.protocol = 0xff;
	rule.inner_key.port_dst = htons(6000);
	rule.inner_mask.port_dst = 0xffff;
	wire_rule(&w, &rule);
	wire_send(&w, frame, vxlan_frame(frame, 8, 6000));
	wire_send(&w, frame, vxlan_frame(frame, 7, 6001));
	length = vxlan_frame(frame, 7, 6000);
	wire_send(&w, frame, length);
	EXPECT(next_frame(0).wire_length == length && !memcmp(w.memory, frame, length));
	wire_close(&w);
}

/* The NIC's clock has another frequency and beginning, and 44 bits. */
static void time_is_of_the_nic_and_told_as_system_time(void)
{
	DAT_UINT64 device, system, error, before = wire_now(), last = 0;
	DAT_ETH_RULE rule = to_port(5001, 0);

	open_posted(20);
	wire_rule(&w, &rule);
	OK(dat_eth_clock(w.ia, &device, &system, &error));
	EXPECT(system + error >= before && system - error <= wire_now());
	for (unsigned i = 0; i < 20; i++) {
		DAT_ETH_FRAME frame;

		send_udp(5001);
		frame = next_frame(i);
		EXPECT(frame.flags & DAT_ETH_FRAME_HW_TIME && frame.time >= last);
		EXPECT(frame.time + SECOND > before && frame.time < wire_now() + SECOND);
		last = frame.time;
		if (i == 10)
			usleep(1100000);	/* the relation of the clocks is fitted again */
	}
	wire_close(&w);
}

static void checksums_that_the_nic_verified_are_told(void)
{
	DAT_ETH_RULE any = wire_any();
	uint8_t frame[200];

	open_posted(2);
	wire_rule(&w, &any);
	wire_tcp(&w, frame, 14, 4, 100);
	frame[17] = 140;
	for (unsigned bad = 0; bad < 2; bad++) {
		wire_finish_checksums(frame, 14, 50);
		frame[60] ^= bad ? 1 : 0;
		wire_send(&w, frame, 154);
		EXPECT((next_frame(bad).flags & (DAT_ETH_FRAME_IP_OK | DAT_ETH_FRAME_L4_OK)) ==
		       (bad ? 0u : DAT_ETH_FRAME_IP_OK | DAT_ETH_FRAME_L4_OK));
	}
	wire_close(&w);
}

/* A frame that ends with its FCS has this remainder. */
static bool ends_with_fcs(const uint8_t *frame, size_t length)
{
	uint32_t crc = ~0u;

	for (size_t bit = 0; bit < 8 * length; bit++) {
		uint32_t odd = (crc ^ frame[bit / 8] >> bit % 8) & 1;

		crc = crc >> 1 ^ (odd ? 0xedb88320 : 0);
	}
	return crc == 0xdebb20e3;
}

static void endpoint_with_fcs(const char *receive)
{
	DAT_NAMED_ATTR named[] = { { "eth_fcs", "keep" }, { "eth_receive", receive }, { "eth_frames", "64" } };
	DAT_EP_ATTR attr = wire_attr();

	attr.ep_provider_specific = named;
	attr.ep_provider_specific_count = 3;
	OK(dat_ep_create(w.ia, w.pz, w.recv, w.request, DAT_HANDLE_NULL, &attr, &w.ep));
}

/* The longest frame, and one that is cut: its FCS is not here. */
static void posted_frames_have_their_fcs(void)
{
	DAT_ETH_RULE any = wire_any();
	DAT_ETH_STATS stats = { .size = sizeof stats };
	DAT_ETH_RULE_HANDLE rule;
	uint8_t frame[1514];
	DAT_UINT64 bytes;
	DAT_ETH_FRAME got;

	wire_open(&w);
	endpoint_with_fcs("post");
	wire_post(&w, 0, 2048, 0);
	wire_post(&w, 2048, 1000, 1);
	rule = wire_rule(&w, &any);
	for (unsigned i = 0; i < 2; i++) {
		wire_send(&w, frame, wire_frame(&w, frame, 1514, i));
		got = next_frame(i);
		EXPECT(got.wire_length == 1518 && got.length == (i ? 1000u : 1518u) && got.flags & DAT_ETH_FRAME_FCS);
		EXPECT(!memcmp(w.memory + i * 2048, frame, i ? 1000 : 1514));
		EXPECT(i || ends_with_fcs(w.memory, 1518));
	}
	OK(dat_eth_rule_query(rule, NULL, NULL, &bytes));
	OK(dat_eth_stats(w.ep, &stats));
	EXPECT(bytes == 3028 && stats.received_bytes == 3028);	/* without */
	wire_close(&w);
}

static void frames_of_a_ring_have_their_fcs(void)
{
	DAT_ETH_RULE any = wire_any();
	uint8_t frame[1514];
	DAT_ETH_FRAME got;

	wire_open(&w);
	endpoint_with_fcs("ring");
	wire_rule(&w, &any);
	wire_send(&w, frame, wire_frame(&w, frame, 1514, 7));
	EXPECT(wire_poll(&w, &got, 1) == 1 && got.length == 1518 && got.flags & DAT_ETH_FRAME_FCS);
	EXPECT(!memcmp(got.data, frame, 1514) && ends_with_fcs(got.data, 1518));
	OK(dat_eth_release(w.ep, 1));
	wire_close(&w);
}

static void a_qp_with_its_own_receives_has_the_fcs(void)
{
	setenv("FAKE_ETH", "queues", 1);
	posted_frames_have_their_fcs();
}

static void pace_and_moderate(const void *arg)
{
	DAT_ETH_PACE pace = { .bits_per_s = 8000999, .burst = 3000, .frame = 1514 };

	(void)arg;
	setenv("FAKE_ETH_TELLS", "1", 1);
	open_posted(0);
	OK(dat_eth_pace(w.ep, &pace));
	OK(dat_ep_disconnect(w.ep, DAT_CLOSE_ABRUPT_FLAG));
	OK(dat_ep_reset(w.ep));
	pace.bits_per_s = 99999;
	FAILS(dat_eth_pace(w.ep, &pace), DAT_INVALID_PARAMETER);
	OK(dat_eth_moderate(w.recv, 16, 100));
	FAILS(dat_eth_moderate(w.recv, 5000, 100), DAT_INVALID_PARAMETER);
	OK(dat_eth_moderate(w.recv, 0, 0));
	wire_close(&w);
}

/* Moderation holds for the CQ of the EVD and for that of the endpoint. */
static void rate_and_moderation_are_the_devices(void)
{
	struct child_result result = run(pace_and_moderate, NULL);

	if (result.status || strcmp(result.text, "rate 8000 burst 3000 frame 1514\nrate 0 burst 0 frame 0\n"
				  "moderate 16 100\nmoderate 16 100\nmoderate 0 0\nmoderate 0 0\n"))
		fail("status %d: %s", result.status, result.text);
}

static void what_verbs_do_not_have_is_refused(void)
{
	DAT_NAMED_ATTR verify = { "eth_checksum", "verify" };
	DAT_ETH_SEND launch = { .flags = DAT_ETH_SEND_LAUNCH, .launch = 1 };
	DAT_SRQ_ATTR shared = { .max_recv_dtos = 4, .max_recv_iov = 1 };
	DAT_ETH_RULE rule = to_port(5001, 0), geneve = rule;
	DAT_EP_ATTR attr = wire_attr();
	DAT_ETH_RULE_HANDLE handle;
	DAT_EP_HANDLE other;
	DAT_SRQ_HANDLE srq;

	open_posted(0);
	OK(dat_ep_create(w.ia, w.pz, w.recv, w.request, DAT_HANDLE_NULL, &attr, &other));
	handle = wire_rule(&w, &rule);
	FAILS(dat_eth_rule_move(handle, other), DAT_MODEL_NOT_SUPPORTED);
	geneve.key.tunnel = DAT_ETH_TUNNEL_GENEVE;
	geneve.mask.tunnel = 0xffffffff;
	FAILS(dat_eth_rule_add(w.ep, &geneve, &handle), DAT_MODEL_NOT_SUPPORTED);
	FAILS(wire_post_send_how(&w, 60, 1, &launch), DAT_MODEL_NOT_SUPPORTED);
	attr.ep_provider_specific_count = 1;
	attr.ep_provider_specific = &verify;
	FAILS(dat_ep_create(w.ia, w.pz, w.recv, w.request, DAT_HANDLE_NULL, &attr, &other), DAT_MODEL_NOT_SUPPORTED);
	OK(dat_srq_create(w.ia, w.pz, &shared, &srq));
	attr = wire_attr();
	attr.max_recv_dtos = attr.max_recv_iov = 0;
	FAILS(dat_ep_create_with_srq(w.ia, w.pz, w.recv, w.request, DAT_HANDLE_NULL, srq, &attr, &other),
	      DAT_MODEL_NOT_SUPPORTED);
	wire_close(&w);
}

static void a_poor_device_receives_and_refuses_the_rest(void)
{
	DAT_ETH_RULE rule = to_port(5001, 4), partial = rule, copy = rule, tunnel = rule;
	DAT_ETH_SEND checksum = { .flags = DAT_ETH_SEND_CSUM };
	DAT_ETH_ATTR attr = { .size = sizeof attr };
	DAT_ETH_PACE pace = { .bits_per_s = 1000000 };
	DAT_UINT64 device, system, error;
	const uint16_t table[1] = { 0 };
	DAT_ETH_RSS rss = { .fields = DAT_ETH_RSS_IP, .table_size = 1, .table = table };
	DAT_ETH_GROUP_HANDLE group;
	DAT_ETH_RULE_HANDLE handle;
	DAT_ETH_FRAME frame;

	setenv("FAKE_ETH", "extended tags stamps partial copy tunnels offloads pace moderation queues", 1);
	open_posted(2);
	OK(dat_eth_query(w.ia, &attr));
	EXPECT(attr.caps == (DAT_ETH_CAP_TAKE | DAT_ETH_CAP_JOIN) && attr.clock == DAT_ETH_CLOCK_NONE && !attr.max_tso);
	wire_rule(&w, &rule);
	send_udp(5001);
	frame = next_frame(0);
	EXPECT(frame.tag == 4 && !frame.time && !frame.flags && frame.wire_length == 62);
	rule = to_port(5002, 5);	/* without flow tags there can be one */
	FAILS(dat_eth_rule_add(w.ep, &rule, &handle), DAT_MODEL_NOT_SUPPORTED);
	partial.mask.ip_dst[0] = partial.key.ip_dst[0] = 10;
	FAILS(dat_eth_rule_add(w.ep, &partial, &handle), DAT_MODEL_NOT_SUPPORTED);
	copy.mode = DAT_ETH_COPY;
	copy.priority = 1;
	FAILS(dat_eth_rule_add(w.ep, &copy, &handle), DAT_MODEL_NOT_SUPPORTED);
	tunnel.key.port_dst = tunnel.mask.port_dst = 0;
	tunnel.key.tunnel = DAT_ETH_TUNNEL_VXLAN;
	tunnel.mask.tunnel = 0xffffffff;
	tunnel.tag = 0;
	FAILS(dat_eth_rule_add(w.ep, &tunnel, &handle), DAT_MODEL_NOT_SUPPORTED);
	FAILS(wire_post_send_how(&w, 60, 1, &checksum), DAT_MODEL_NOT_SUPPORTED);
	FAILS(dat_eth_pace(w.ep, &pace), DAT_MODEL_NOT_SUPPORTED);
	FAILS(dat_eth_moderate(w.recv, 1, 1), DAT_MODEL_NOT_SUPPORTED);
	FAILS(dat_eth_clock(w.ia, &device, &system, &error), DAT_MODEL_NOT_SUPPORTED);
	FAILS(dat_eth_group_create(w.ia, 1, &w.ep, &rss, &group), DAT_MODEL_NOT_SUPPORTED);
	wire_close(&w);
}

int main(int argc, char **argv)
{
	static const struct life_case cases[] = {
		CASE(query_tells_what_was_probed),
		CASE(frames_have_the_tag_of_their_rule),
		CASE(a_frame_within_a_tunnel_is_steered_by_its_inner_headers),
		CASE(time_is_of_the_nic_and_told_as_system_time),
		CASE(checksums_that_the_nic_verified_are_told),
		CASE(posted_frames_have_their_fcs),
		CASE(frames_of_a_ring_have_their_fcs),
		CASE(a_qp_with_its_own_receives_has_the_fcs),
		CASE(rate_and_moderation_are_the_devices),
		CASE(what_verbs_do_not_have_is_refused),
		CASE(a_poor_device_receives_and_refuses_the_rest),
	};

	if (wire_on_soft() || !wire_possible())
		return WIRE_SKIPPED;
	return life_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
