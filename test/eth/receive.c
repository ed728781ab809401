/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* receive.c - what comes to a raw Ethernet endpoint: rules, ring receive, losses. */
#include "wire.h"
#include <arpa/inet.h>
#include <string.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct wire w;
static const uint8_t all_ones[6] = { 255, 255, 255, 255, 255, 255 };

static void open_ring(const char *frames)
{
	wire_open(&w);
	wire_endpoint(&w, frames, NULL);
}

/* The next frame must be this one. Releases it. */
static DAT_ETH_FRAME expect_frame(const uint8_t *frame, size_t length)
{
	DAT_ETH_FRAME got;

	wire_poll(&w, &got, 1);
	if (got.length != length || got.wire_length != length || memcmp(got.data, frame, length))
		fail("a frame of %u bytes instead of %zu, or other bytes", got.length, length);
	OK(dat_eth_release(w.ep, 1));
	return got;
}

/* This must be the only frame that comes: those that were sent before it did not. */
static void expect_only(const uint8_t *frame, size_t length)
{
	DAT_ETH_FRAME none;
	DAT_COUNT got;

	expect_frame(frame, length);
	usleep(20000);
	FAILS(dat_eth_poll(w.ep, &none, 1, &got), DAT_QUEUE_EMPTY);
}

static void ETH_10_nothing_comes_before_a_rule(void)
{
	DAT_ETH_RULE any = wire_any();
	uint8_t frame[60];

	open_ring("64");
	wire_send(&w, frame, wire_frame(&w, frame, sizeof frame, 1));
	wire_rule(&w, &any);
	wire_send(&w, frame, wire_frame(&w, frame, sizeof frame, 2));
	expect_only(frame, sizeof frame);
	wire_close(&w);
}

static void ETH_11_wrong_rules_are_refused(void)
{
	DAT_ETH_RULE any = wire_any(), rule = any;
	DAT_ETH_RULE_HANDLE handle;

	open_ring("64");
	FAILS(dat_eth_rule_add(w.ep, NULL, &handle), DAT_INVALID_PARAMETER);
	FAILS(dat_eth_rule_add(w.ep, &rule, NULL), DAT_INVALID_PARAMETER);
	rule.mode = 0;
	FAILS(dat_eth_rule_add(w.ep, &rule, &handle), DAT_INVALID_PARAMETER);
	rule.mode = 4;
	FAILS(dat_eth_rule_add(w.ep, &rule, &handle), DAT_MODEL_NOT_SUPPORTED);
	rule = any;
	rule.flags = 0x100;
	FAILS(dat_eth_rule_add(w.ep, &rule, &handle), DAT_INVALID_PARAMETER);
	rule = any;
	rule.key.tos = 1;
	FAILS(dat_eth_rule_add(w.ep, &rule, &handle), DAT_INVALID_PARAMETER);
	rule = any;
	rule.inner_key.tos = 3;
	rule.inner_mask.tos = 1;
	FAILS(dat_eth_rule_add(w.ep, &rule, &handle), DAT_INVALID_PARAMETER);
	rule = any;
	rule.flags = DAT_ETH_JOIN;
	FAILS(dat_eth_rule_add(w.ep, &rule, &handle), DAT_INVALID_PARAMETER);
	OK(dat_eth_rule_add(w.ep, &any, &handle));
	FAILS(dat_eth_rule_add(w.ep, &any, &handle), DAT_INVALID_STATE);
	wire_close(&w);
}

static void ETH_11_an_endpoint_has_a_limit_of_rules(void)
{
	DAT_ETH_ATTR attr = { .size = sizeof attr };
	DAT_ETH_RULE rule = wire_any();
	DAT_ETH_RULE_HANDLE handle;

	open_ring("64");
	OK(dat_eth_query(w.ia, &attr));
	for (rule.priority = 0; rule.priority < attr.max_rules; rule.priority++)
		wire_rule(&w, &rule);
	FAILS(dat_eth_rule_add(w.ep, &rule, &handle), DAT_INSUFFICIENT_RESOURCES);
	wire_close(&w);
}

static void ETH_12_a_rule_that_is_freed_matches_no_more(void)
{
	DAT_ETH_RULE any = wire_any(), other = any;
	DAT_ETH_RULE_HANDLE handle;
	uint8_t frame[60], marked[60];

	open_ring("64");
	handle = wire_rule(&w, &any);
	other.mask.src[5] = other.key.src[5] = 0xff;
	wire_rule(&w, &other);
	wire_send(&w, frame, wire_frame(&w, frame, sizeof frame, 1));
	expect_frame(frame, sizeof frame);
	OK(dat_eth_rule_free(handle));
	FAILS(dat_eth_rule_free(handle), DAT_INVALID_HANDLE);
	FAILS(dat_eth_rule_query(handle, NULL, NULL, NULL), DAT_INVALID_HANDLE);
	wire_frame(&w, frame, sizeof frame, 2);
	frame[11] = 0;
	wire_send(&w, frame, sizeof frame);
	wire_frame(&w, marked, sizeof marked, 3);
	marked[11] = 0xff;
	wire_send(&w, marked, sizeof marked);
	expect_only(marked, sizeof marked);
	wire_close(&w);
}

static bool is_promiscuous(void)
{
	unsigned flags = 0;
	FILE *file = fopen("/sys/class/net/eth0/flags", "r");
	char command[] = "ip -d link show eth0 | grep -q 'promiscuity [1-9]'";

	/* sysfs may show another namespace; ip does not */
	if (file && fscanf(file, "%x", &flags) != 1)
		flags = 0;
	if (file)
		fclose(file);
	return !system(command);
}

static void ETH_13_rules_and_promiscuity_end_with_the_endpoint(void)
{
	DAT_ETH_RULE any = wire_any();
	DAT_ETH_RULE_HANDLE handle;

	open_ring("64");
	any.flags = DAT_ETH_ALL;
	handle = wire_rule(&w, &any);
	EXPECT(is_promiscuous());
	OK(dat_ep_free(w.ep));
	EXPECT(!is_promiscuous());
	FAILS(dat_eth_rule_free(handle), DAT_INVALID_HANDLE);
	wire_close(&w);
}

static void ETH_14_the_first_rule_by_priority_counts(void)
{
	DAT_ETH_RULE low = wire_any(), high = low, copy;
	DAT_ETH_RULE_HANDLE low_handle, high_handle;
	DAT_UINT64 frames, bytes;
	uint8_t frame[100];

	open_ring("64");
	low.priority = 7;
	low.tag = 70;
	high.priority = 3;
	high.tag = 30;
	memcpy(high.key.src, w.peer_address, 6);
	memcpy(high.mask.src, all_ones, 6);
	low_handle = wire_rule(&w, &low);
	high_handle = wire_rule(&w, &high);
	wire_send(&w, frame, wire_frame(&w, frame, sizeof frame, 1));
	EXPECT(expect_frame(frame, sizeof frame).tag == 30);
	frame[6] ^= 2;
	wire_send(&w, frame, 60);
	EXPECT(expect_frame(frame, 60).tag == 70);
	OK(dat_eth_rule_query(high_handle, &copy, &frames, &bytes));
	EXPECT(frames == 1 && bytes == 100 && !memcmp(&copy, &high, sizeof copy));
	OK(dat_eth_rule_query(low_handle, NULL, &frames, &bytes));
	EXPECT(frames == 1 && bytes == 60);
	wire_close(&w);
}

static void ETH_15_a_ring_has_every_frame(void)
{
	DAT_ETH_RULE any = wire_any();
	uint8_t frame[1514];
	uint64_t last = 0;
	unsigned seen = 0;

	open_ring("8192");
	wire_rule(&w, &any);
	for (unsigned i = 0; i < 5000; i++)
		wire_send(&w, frame, wire_frame(&w, frame, 14 + i * 7 % 1501, i));
	while (seen < 5000) {
		DAT_ETH_FRAME got[64];
		DAT_COUNT n = wire_poll(&w, got, 64);

		for (DAT_COUNT i = 0; i < n; i++, seen++) {
			size_t length = wire_frame(&w, frame, 14 + seen * 7 % 1501, seen);

			EXPECT(got[i].length == length && got[i].wire_length == length && !got[i].lost);
			EXPECT(!memcmp(got[i].data, frame, length));
			EXPECT(got[i].time >= last && got[i].time);
			last = got[i].time;
		}
		OK(dat_eth_release(w.ep, n));
	}
	wire_close(&w);
}

static void ETH_15_a_snap_length_cuts_frames(void)
{
	DAT_ETH_RULE any = wire_any();
	uint8_t frame[1000];
	DAT_ETH_FRAME got;

	wire_open(&w);
	wire_endpoint(&w, "64", "96");
	wire_rule(&w, &any);
	wire_send(&w, frame, wire_frame(&w, frame, sizeof frame, 1));
	wire_poll(&w, &got, 1);
	EXPECT(got.length == 96 && got.wire_length == sizeof frame && !memcmp(got.data, frame, 96));
	wire_close(&w);
}

static void ETH_16_frames_stay_until_they_are_released(void)
{
	DAT_ETH_RULE any = wire_any();
	const uint8_t *data[40];
	uint8_t frame[200];
	DAT_ETH_FRAME got;

	open_ring("64");
	wire_rule(&w, &any);
	for (unsigned i = 0; i < 40; i++)
		wire_send(&w, frame, wire_frame(&w, frame, sizeof frame, i));
	for (unsigned i = 0; i < 40; i++) {
		wire_poll(&w, &got, 1);
		data[i] = got.data;
	}
	for (unsigned i = 0; i < 40; i++) {
		wire_frame(&w, frame, sizeof frame, i);
		EXPECT(!memcmp(data[i], frame, sizeof frame));
	}
	FAILS(dat_eth_release(w.ep, -1), DAT_INVALID_PARAMETER);
	FAILS(dat_eth_release(w.ep, 41), DAT_INVALID_PARAMETER);
	OK(dat_eth_release(w.ep, 15));
	FAILS(dat_eth_release(w.ep, 26), DAT_INVALID_PARAMETER);
	OK(dat_eth_release(w.ep, 25));
	wire_close(&w);
}

static void ETH_17_an_armed_ring_tells_when_there_are_frames(void)
{
	DAT_ETH_RULE any = wire_any();
	uint8_t frame[60];
	DAT_EVENT event;

	open_ring("64");
	wire_rule(&w, &any);
	for (unsigned i = 0; i < 3; i++) {
		OK(dat_eth_arm(w.ep));
		OK(dat_eth_arm(w.ep));
		wire_send(&w, frame, wire_frame(&w, frame, sizeof frame, i));
		event = wire_event(w.recv, DAT_ETH_READY_EVENT);
		EXPECT(event.event_data.dto_completion_event_data.ep_handle == w.ep);
		expect_only(frame, sizeof frame);
		EXPECT(DAT_GET_TYPE(dat_evd_dequeue(w.recv, &event)) == DAT_QUEUE_EMPTY);
	}
	wire_close(&w);
}

/* Sends frames, and reads few of them or none until all are sent. Each frame must come, or be reported as
 * lost. */
static void lose(const char *frames, unsigned count, unsigned read_every)
{
	DAT_ETH_STATS stats = { .size = sizeof stats };
	unsigned received = 0, lost = 0, next = 0;
	DAT_ETH_RULE any = wire_any();
	double end = life_now() + 20;
	uint8_t frame[1000];
	DAT_ETH_FRAME got[64];
	DAT_COUNT n;

	open_ring(frames);
	wire_rule(&w, &any);
	for (unsigned i = 0; i < count; i++) {
		wire_frame(&w, frame, sizeof frame, 0);
		memcpy(frame + 20, &i, sizeof i);
		wire_send(&w, frame, sizeof frame);
		if (read_every && i % read_every == 0 &&
		    dat_eth_poll(w.ep, got, 1, &n) == DAT_SUCCESS) {
			memcpy(&next, got[0].data + 20, sizeof next);
			received++;
			lost += got[0].lost;
			OK(dat_eth_release(w.ep, 1));
		}
	}
	for (stats.lost = 0; received + stats.lost < count && life_now() < end;) {
		OK(dat_eth_stats(w.ep, &stats));
		if (dat_eth_poll(w.ep, got, 64, &n) != DAT_SUCCESS) {
			usleep(1000);
			continue;
		}
		for (DAT_COUNT i = 0; i < n; i++) {
			unsigned number;

			memcpy(&number, got[i].data + 20, sizeof number);
			EXPECT(!received || number > next);
			next = number;
			lost += got[i].lost;
		}
		received += (unsigned)n;
		OK(dat_eth_release(w.ep, n));
	}
	OK(dat_eth_stats(w.ep, &stats));
	if (received + stats.lost != count || stats.received != received)
		fail("ring of %s: %u sent, %u received, %lu lost", frames, count, received,
		     (unsigned long)stats.lost);
	/* the next frame reports what was lost before it */
	wire_send(&w, frame, sizeof frame);
	wire_poll(&w, got, 1);
	lost += got[0].lost;
	if (lost != stats.lost)
		fail("ring of %s: frames tell %u losses, dat_eth_stats() %lu", frames, lost,
		     (unsigned long)stats.lost);
	EXPECT(!strcmp(frames, "16384") || lost);
	wire_close(&w);
}

static void ETH_18_small_ring_losses_are_exact(void)
{
	lose("1", 5000, 0);
}

static void ETH_18_slow_reader_losses_are_exact(void)
{
	lose("512", 8000, 50);
}

static void ETH_18_large_ring_loses_nothing(void)
{
	lose("16384", 8000, 0);
}

static void ETH_18_losses_of_posted_receives_are_exact(void)
{
	DAT_ETH_STATS stats = { .size = sizeof stats };
	unsigned received = 0, lost = 0, sent = 0;
	DAT_ETH_RULE any = wire_any();
	uint8_t frame[1514];

	wire_open(&w);
	wire_endpoint(&w, "", NULL);
	wire_rule(&w, &any);
	wire_frame(&w, frame, sizeof frame, 0);
	do {	/* until the socket's buffer is full */
		for (int i = 0; i < 1000; i++, sent++)
			wire_send(&w, frame, sizeof frame);
		OK(dat_eth_stats(w.ep, &stats));
	} while (!stats.lost && sent < 100000);
	EXPECT(stats.lost);
	wire_send(&w, frame, sizeof frame);	/* lost, too, or the last */
	sent++;
	for (;;) {
		DAT_EVENT event;
		DAT_COUNT more;

		wire_post(&w, 0, 2000, 0);
		if (dat_evd_wait(w.recv, 300000, 1, &event, &more) != DAT_SUCCESS)
			break;
		received++;
		lost += ((const DAT_ETH_FRAME *)event.event_extension_data)->lost;
	}
	OK(dat_eth_stats(w.ep, &stats));
	if (received + stats.lost != sent)
		fail("%u sent, %u received, %lu lost", sent, received, (unsigned long)stats.lost);
	/* a receive is posted: the next frame reports the losses since */
	wire_send(&w, frame, sizeof frame);
	lost += ((const DAT_ETH_FRAME *)wire_event(w.recv, DAT_ETH_DTO_EVENT).event_extension_data)->lost;
	EXPECT(lost == stats.lost);
	wire_close(&w);
}

static void ETH_20_flags_choose_among_stations_and_directions(void)
{
	DAT_ETH_RULE any = wire_any(), all = any, egress = any;
	DAT_ETH_RULE_HANDLE handle;
	uint8_t frame[60], own[60];

	open_ring("64");
	handle = wire_rule(&w, &any);
	wire_frame(&w, frame, sizeof frame, 1);
	frame[5] ^= 1;				/* another station */
	wire_send(&w, frame, sizeof frame);
	memcpy(frame, all_ones, 6);
	wire_send(&w, frame, sizeof frame);
	expect_only(frame, sizeof frame);
	OK(dat_eth_rule_free(handle));
	all.flags = DAT_ETH_ALL;
	wire_rule(&w, &all);
	wire_frame(&w, frame, sizeof frame, 2);
	frame[5] ^= 1;
	wire_send(&w, frame, sizeof frame);
	expect_frame(frame, sizeof frame);
	/* sent by another socket of this host */
	egress.flags = DAT_ETH_ALL | DAT_ETH_EGRESS;
	egress.tag = 5;
	wire_frame(&w, own, sizeof own, 3);
	wire_command("ip addr add 10.77.0.2/24 dev peer; ip neigh add 10.77.0.9 lladdr 02:00:00:00:00:09 dev eth0");
	wire_command("ip route add 10.77.0.9/32 dev eth0");
	wire_command("bash -c 'echo hello > /dev/udp/10.77.0.9/7777'");
	wire_send(&w, own, sizeof own);
	expect_frame(own, sizeof own);	/* without EGRESS only what comes in */
	wire_rule(&w, &egress);
	wire_command("bash -c 'echo hello > /dev/udp/10.77.0.9/7777'");
	{
		DAT_ETH_FRAME got;

		wire_poll(&w, &got, 1);
		EXPECT(got.flags & DAT_ETH_FRAME_OUTGOING && got.tag == 5);
		EXPECT(got.length == 48 && !memcmp(got.data + 42, "hello\n", 6));
	}
	wire_close(&w);
}

static void ETH_20_join_makes_the_host_a_member(void)
{
	DAT_ETH_RULE group = wire_any();
	DAT_ETH_RULE_HANDLE handle;
	uint8_t frame[100], got[200];
	size_t length;

	open_ring("64");
	group.flags = DAT_ETH_JOIN;
	group.key.ip_version = 4;
	group.mask.ip_version = 255;
	memcpy(group.key.ip_dst, "\xef\x01\x02\x03", 4);
	memset(group.mask.ip_dst, 255, 16);
	handle = wire_rule(&w, &group);
	length = wire_receive(&w, got, sizeof got);	/* the membership report, IGMPv3 */
	EXPECT(length >= 54 && got[23] == 2 && got[38] == 0x22 && !memcmp(got + 50, "\xef\x01\x02\x03", 4));
	length = wire_udp(&w, frame, "239.1.2.3", 5000, 20);
	memcpy(frame, "\x01\x00\x5e\x01\x02\x03", 6);
	wire_send(&w, frame, length);
	expect_only(frame, length);
	OK(dat_eth_rule_free(handle));
	length = wire_receive(&w, got, sizeof got);	/* it has left */
	EXPECT(length >= 54 && got[23] == 2 && got[38] == 0x22);
	wire_close(&w);
}

static void ETH_15_a_stripped_vlan_tag_is_told(void)
{
	DAT_ETH_RULE tagged = wire_any();
	uint8_t frame[64], plain[60];
	DAT_ETH_FRAME got;

	open_ring("64");
	tagged.key.vlan_tci = htons(5);
	tagged.mask.vlan_tci = htons(0xfff);
	wire_rule(&w, &tagged);
	wire_send(&w, plain, wire_frame(&w, plain, sizeof plain, 1));
	memcpy(frame, plain, 12);
	memcpy(frame + 12, "\x81\x00\x20\x05", 4);
	memcpy(frame + 16, plain + 12, 48);
	wire_send(&w, frame, sizeof frame);
	wire_poll(&w, &got, 1);
	if (got.flags & DAT_ETH_FRAME_VLAN) {
		EXPECT(got.vlan_tci == 0x2005 && got.vlan_type == 0x8100);
		EXPECT(got.length == 60 && !memcmp(got.data, plain, 60));
	} else {
		EXPECT(got.length == 64 && !memcmp(got.data, frame, 64));
	}
	wire_close(&w);
}

int main(int argc, char **argv)
{
	static const struct life_case cases[] = {
		CASE(ETH_10_nothing_comes_before_a_rule),
		CASE(ETH_11_wrong_rules_are_refused),
		CASE(ETH_11_an_endpoint_has_a_limit_of_rules),
		CASE(ETH_12_a_rule_that_is_freed_matches_no_more),
		CASE(ETH_13_rules_and_promiscuity_end_with_the_endpoint),
		CASE(ETH_14_the_first_rule_by_priority_counts),
		CASE(ETH_15_a_ring_has_every_frame),
		CASE(ETH_15_a_snap_length_cuts_frames),
		CASE(ETH_15_a_stripped_vlan_tag_is_told),
		CASE(ETH_16_frames_stay_until_they_are_released),
		CASE(ETH_17_an_armed_ring_tells_when_there_are_frames),
		CASE(ETH_18_small_ring_losses_are_exact),
		CASE(ETH_18_slow_reader_losses_are_exact),
		CASE(ETH_18_large_ring_loses_nothing),
		CASE(ETH_18_losses_of_posted_receives_are_exact),
		CASE(ETH_20_flags_choose_among_stations_and_directions),
		CASE(ETH_20_join_makes_the_host_a_member),
	};

	if (!wire_possible())
		return WIRE_SKIPPED;
	return life_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
