/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* xdp.c - endpoints that receive by AF_XDP (eth_receive = xdp), on a veth pair, whose driver runs XDP programs and
 * copies frames: what the endpoint and the host get, losses, what is refused, and what is left of the program. */
#include "host.h"
#include <arpa/inet.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PORT = 5000, OTHER_PORT = 5001, LENGTH = HOST_NUMBER + HOST_PAYLOAD };

static struct wire w;

static DAT_EP_ATTR xdp_attr(DAT_NAMED_ATTR named[2])
{
	DAT_EP_ATTR attr = wire_attr();

	named[0] = (DAT_NAMED_ATTR){ "eth_receive", "xdp" };
	attr.ep_provider_specific_count = 2;
	attr.ep_provider_specific = named;
	return attr;
}

static DAT_RETURN create(const char *frames, DAT_EP_HANDLE *ep)
{
	DAT_NAMED_ATTR named[2] = { { NULL, NULL }, { "eth_frames", frames } };
	DAT_EP_ATTR attr = xdp_attr(named);

	return dat_ep_create(w.ia, w.pz, w.recv, w.request, DAT_HANDLE_NULL, &attr, ep);
}

static void need_xdp(void)
{
	DAT_ETH_ATTR attr = { .size = sizeof attr };

	OK(dat_eth_query(w.ia, &attr));
	if (!(attr.caps & DAT_ETH_CAP_XDP))
		skip("this kernel has no AF_XDP sockets");
}

static void open_xdp(const char *frames)
{
	wire_open(&w);
	need_xdp();
	OK(create(frames, &w.ep));
}

static DAT_ETH_RULE all_rule(void)
{
	return (DAT_ETH_RULE){ .mode = DAT_ETH_TAKE, .flags = DAT_ETH_ALL, .tag = 9 };
}

static void send_number(uint16_t port, uint32_t number)
{
	uint8_t frame[200];

	wire_send(&w, frame, host_frame(&w, frame, "10.77.0.1", port, number));
}

static void expect_number(uint32_t number)
{
	DAT_ETH_FRAME frame;

	wire_poll(&w, &frame, 1);
	EXPECT(host_number(frame.data) == number);
	OK(dat_eth_release(w.ep, 1));
}

static bool is_empty(void)
{
	DAT_ETH_FRAME frame;
	DAT_COUNT got;

	return dat_eth_poll(w.ep, &frame, 1, &got) == (DAT_RETURN)DAT_QUEUE_EMPTY;
}

static bool has_program(void)
{
	return !system("ip link show eth0 | grep -q xdp");
}

/* The kernel detaches a link when its last descriptor is gone, perhaps some time later. */
static void await_no_program(void)
{
	double end = life_now() + 10;

	while (has_program())
		if (life_now() > end)
			fail("the device still has an XDP program");
}

/* --- frames --------------------------------------------------------------------------------------- */

static void ETH_40_frames_are_complete_and_in_order(void)
{
	uint8_t frame[1514];
	uint64_t begin, last = 0;
	DAT_ETH_RULE rule = all_rule();
	DAT_ETH_FRAME got[7];
	DAT_ETH_STATS stats = { .size = sizeof stats };
	DAT_COUNT n;

	open_xdp("64");
	wire_rule(&w, &rule);
	begin = wire_now();
	for (unsigned i = 0; i < 700;) {	/* more than the memory has room for */
		for (unsigned j = 0; j < 7; j++)
			wire_send(&w, frame, wire_frame(&w, frame, 60 + (i + j) * 2, i + j));
		for (unsigned j = 0; j < 7; j += (unsigned)n) {
			n = wire_poll(&w, got, (DAT_COUNT)(7 - j));
			for (DAT_COUNT k = 0; k < n; k++, i++) {
				size_t length = wire_frame(&w, frame, 60 + i * 2, i);

				EXPECT(got[k].length == length && got[k].wire_length == length);
				EXPECT(!memcmp(got[k].data, frame, length));
				EXPECT(got[k].tag == 9 && !got[k].lost && !got[k].flags);
				EXPECT(got[k].time >= begin && got[k].time >= last && got[k].time <= wire_now());
				last = got[k].time;
			}
			OK(dat_eth_release(w.ep, n));
		}
	}
	EXPECT(is_empty());
	OK(dat_eth_stats(w.ep, &stats));
	EXPECT(stats.received == 700 && !stats.lost && !(stats.flags & DAT_ETH_STATS_ZERO_COPY));
	wire_close(&w);
}

static void ETH_40_frames_stay_until_they_are_released(void)
{
	DAT_ETH_RULE rule = all_rule();
	DAT_ETH_FRAME got[8];

	open_xdp("64");
	wire_rule(&w, &rule);
	for (uint32_t i = 0; i < 8; i++)
		send_number(PORT, i);
	for (DAT_COUNT n = 0; n < 8;)
		n += wire_poll(&w, got + n, 8 - n);
	OK(dat_eth_release(w.ep, 3));
	for (uint32_t i = 8; i <= 58; i++)	/* the other chunks, some of them again */
		send_number(PORT, i);
	for (uint32_t i = 3; i < 8; i++)
		EXPECT(host_number(got[i].data) == i);
	FAILS(dat_eth_release(w.ep, 6), DAT_INVALID_PARAMETER);
	OK(dat_eth_release(w.ep, 5));
	for (uint32_t i = 8; i <= 58; i++)
		expect_number(i);
	EXPECT(is_empty());
	wire_close(&w);
}

static void ETH_40_a_snap_length_shortens_frames(void)
{
	DAT_NAMED_ATTR named[2] = { { NULL, NULL }, { "eth_snap", "50" } };
	DAT_EP_ATTR attr = xdp_attr(named);
	DAT_ETH_RULE rule = all_rule();
	DAT_ETH_FRAME got;

	wire_open(&w);
	need_xdp();
	OK(dat_ep_create(w.ia, w.pz, w.recv, w.request, DAT_HANDLE_NULL, &attr, &w.ep));
	wire_rule(&w, &rule);
	send_number(PORT, 1);
	wire_poll(&w, &got, 1);
	EXPECT(got.length == 50 && got.wire_length == LENGTH && (got.flags & DAT_ETH_FRAME_IP_OK));
	wire_close(&w);
}

static void ETH_40_tags_are_in_the_frame(void)
{
	DAT_ETH_RULE rule = all_rule();
	uint8_t frame[100];
	DAT_ETH_FRAME got;

	open_xdp("64");
	rule.key.vlan_tci = htons(7);
	rule.mask.vlan_tci = htons(0xfff);
	wire_rule(&w, &rule);
	wire_frame(&w, frame, sizeof frame, 1);
	for (uint8_t id = 6; id <= 8; id++) {
		memcpy(frame + 12, "\x81\x00\x20", 3);
		frame[15] = id;
		wire_send(&w, frame, sizeof frame);
	}
	wire_poll(&w, &got, 1);
	EXPECT(got.length == sizeof frame && got.data[15] == 7 && !(got.flags & DAT_ETH_FRAME_VLAN));
	OK(dat_eth_release(w.ep, 1));
	EXPECT(is_empty());
	wire_close(&w);
}

/* Several flows go to several receive queues, where the device has them. */
static void ETH_40_every_receive_queue_is_read(void)
{
	uint32_t next[8] = { 0 };
	DAT_ETH_RULE rule = all_rule();
	DAT_ETH_FRAME got[64];
	DAT_COUNT n;

	open_xdp("256");
	wire_rule(&w, &rule);
	for (uint32_t i = 0; i < 200; i++)
		send_number((uint16_t)(PORT + i % 8), i / 8);
	for (unsigned all = 0; all < 200; all += (unsigned)n) {
		n = wire_poll(&w, got, 64);
		for (DAT_COUNT i = 0; i < n; i++) {
			unsigned flow = got[i].data[37] - (PORT & 255);

			EXPECT(flow < 8 && host_number(got[i].data) == next[flow]++);
		}
		OK(dat_eth_release(w.ep, n));
	}
	wire_close(&w);
}

static void ETH_40_an_armed_endpoint_tells_when_there_are_frames(void)
{
	DAT_ETH_RULE rule = all_rule();
	DAT_EVENT event;

	open_xdp("64");
	wire_rule(&w, &rule);
	for (uint32_t i = 0; i < 5; i++) {
		OK(dat_eth_arm(w.ep));
		EXPECT(dat_evd_dequeue(w.recv, &event) == (DAT_RETURN)DAT_QUEUE_EMPTY);
		send_number(PORT, i);
		wire_event(w.recv, DAT_ETH_READY_EVENT);
		expect_number(i);
	}
	wire_close(&w);
}

/* A frame with a time of departure wakes the thread that watches the sockets, too. */
static void ETH_40_a_time_of_departure_is_no_frame(void)
{
	DAT_ETH_SEND stamp = { .flags = DAT_ETH_SEND_STAMP };
	DAT_ETH_RULE rule = all_rule();
	DAT_EVENT event;

	open_xdp("64");
	wire_rule(&w, &rule);
	OK(dat_eth_arm(w.ep));
	wire_frame(&w, w.memory, 100, 1);
	OK(wire_post_send_how(&w, 100, 3, &stamp));
	wire_event(w.request, DAT_ETH_DTO_EVENT);
	EXPECT(dat_evd_dequeue(w.recv, &event) == (DAT_RETURN)DAT_QUEUE_EMPTY);
	send_number(PORT, 1);
	wire_event(w.recv, DAT_ETH_READY_EVENT);
	expect_number(1);
	wire_close(&w);
}

/* --- losses ----------------------------------------------------------------------------------------- */

/* Sends frames of which a program that reads now and then loses some. */
static void ETH_40_losses_are_exact(void)
{
	DAT_ETH_STATS stats = { .size = sizeof stats };
	DAT_ETH_RULE rule = all_rule();
	uint32_t seen = 0, lost = 0, last = 0;
	DAT_ETH_RULE_HANDLE handle;
	DAT_UINT64 frames, bytes;
	DAT_ETH_FRAME got[16];
	DAT_COUNT n;

	open_xdp("64");
	handle = wire_rule(&w, &rule);
	for (uint32_t i = 1; i <= 3000; i++) {
		send_number(PORT, i);
		if (i % 150 == 0 && dat_eth_poll(w.ep, got, 16, &n) == DAT_SUCCESS) {
			for (DAT_COUNT k = 0; k < n; k++) {
				EXPECT(host_number(got[k].data) > last);
				last = host_number(got[k].data);
				lost += got[k].lost;
			}
			seen += (uint32_t)n;
			OK(dat_eth_release(w.ep, n));
		}
	}
	usleep(50000);
	while (dat_eth_poll(w.ep, got, 16, &n) == DAT_SUCCESS) {
		for (DAT_COUNT k = 0; k < n; k++)
			lost += got[k].lost;
		seen += (uint32_t)n;
		OK(dat_eth_release(w.ep, n));
	}
	send_number(PORT, 3001);	/* it tells the last losses */
	wire_poll(&w, got, 1);
	lost += got[0].lost;
	OK(dat_eth_stats(w.ep, &stats));
	EXPECT(stats.lost == lost && lost > 1000);
	EXPECT(seen + lost == 3000 && stats.received == seen + 1);
	OK(dat_eth_rule_query(handle, NULL, &frames, &bytes));
	EXPECT(frames == seen + 1 && bytes == frames * LENGTH);
	wire_close(&w);
}

/* --- rules --------------------------------------------------------------------------------------------- */

static void ETH_40_the_kernel_gets_what_no_rule_matches(void)
{
	DAT_ETH_RULE take = host_rule(DAT_ETH_TAKE, PORT), drop = host_rule(DAT_ETH_DROP, OTHER_PORT);
	DAT_ETH_RULE_HANDLE taking, dropping;
	DAT_UINT64 frames, bytes;
	int taken, dropped, other;

	open_xdp("64");
	taken = host_socket(PORT);
	dropped = host_socket(OTHER_PORT);
	other = host_socket(OTHER_PORT + 1);
	taking = wire_rule(&w, &take);
	dropping = wire_rule(&w, &drop);
	for (uint32_t i = 1; i <= 20; i++) {
		send_number(PORT, i);
		send_number(OTHER_PORT, i);
		send_number(OTHER_PORT + 1, i);
		expect_number(i);
		EXPECT(host_next(other, 10000) == (int)i);
	}
	EXPECT(host_next(taken, 0) == -1 && host_next(dropped, 0) == -1 && is_empty());
	OK(dat_eth_rule_query(taking, NULL, &frames, &bytes));
	EXPECT(frames == 20 && bytes == 20 * LENGTH);
	OK(dat_eth_rule_query(dropping, NULL, &frames, &bytes));
	EXPECT(frames == 20 && bytes == 20 * LENGTH);
	OK(dat_eth_rule_free(taking));
	OK(dat_eth_rule_free(dropping));
	send_number(PORT, 21);
	send_number(OTHER_PORT, 22);
	EXPECT(host_next(taken, 10000) == 21 && host_next(dropped, 10000) == 22 && is_empty());
	wire_close(&w);
}

static void ETH_40_frames_of_a_rule_that_ended_are_gone(void)
{
	DAT_ETH_RULE rule = host_rule(DAT_ETH_TAKE, PORT);
	DAT_ETH_RULE_HANDLE handle;

	open_xdp("64");
	for (unsigned i = 0; i < 4; i++) {	/* their chunks come back, too */
		handle = wire_rule(&w, &rule);
		for (uint32_t j = 0; j < 50; j++)
			send_number(PORT, j);
		OK(dat_eth_rule_free(handle));
		EXPECT(is_empty());
	}
	wire_rule(&w, &rule);
	send_number(PORT, 7);
	expect_number(7);
	wire_close(&w);
}

static void ETH_40_other_stations_need_a_flag(void)
{
	DAT_ETH_RULE own = { .mode = DAT_ETH_TAKE, .priority = 1 },
		every = { .mode = DAT_ETH_TAKE, .flags = DAT_ETH_ALL };
	static const uint8_t group[6] = { 1, 2, 3, 4, 5, 6 };
	uint8_t frame[100];
	DAT_ETH_FRAME got;

	open_xdp("64");
	wire_rule(&w, &own);
	wire_frame(&w, frame, sizeof frame, 1);
	for (unsigned i = 0; i < 6; i++) {	/* an address that differs in one byte */
		frame[i] ^= 0x10;
		wire_send(&w, frame, sizeof frame);
		frame[i] ^= 0x10;
	}
	memcpy(frame, group, 6);
	wire_send(&w, frame, sizeof frame);
	wire_poll(&w, &got, 1);
	EXPECT(!memcmp(got.data, group, 6));
	OK(dat_eth_release(w.ep, 1));
	EXPECT(is_empty());
	wire_rule(&w, &every);
	memcpy(frame, "\x02\x99", 2);
	wire_send(&w, frame, sizeof frame);
	wire_poll(&w, &got, 1);
	EXPECT(got.data[1] == 0x99);
	wire_close(&w);
}

static void ETH_40_as_many_rules_as_elsewhere(void)
{
	DAT_ETH_ATTR attr = { .size = sizeof attr };
	DAT_ETH_RULE rule = host_rule(DAT_ETH_TAKE, PORT);
	DAT_ETH_RULE_HANDLE handle;
	DAT_ETH_FRAME got;

	open_xdp("64");
	OK(dat_eth_query(w.ia, &attr));
	for (unsigned i = 0; i < attr.max_rules; i++) {
		rule = host_rule(DAT_ETH_TAKE, (uint16_t)(PORT + i));
		rule.key.ip_dst[15] = rule.mask.ip_dst[15] = 0;
		rule.tag = i;
		rule.inner_mask.port_dst = 0xffff;	/* tunnels are looked into */
		wire_rule(&w, &rule);
	}
	FAILS(dat_eth_rule_add(w.ep, &rule, &handle), DAT_INVALID_STATE);
	rule.tag = 99;
	rule.key.port_dst = htons(1);
	FAILS(dat_eth_rule_add(w.ep, &rule, &handle), DAT_INSUFFICIENT_RESOURCES);
	send_number((uint16_t)(PORT + attr.max_rules - 1), 5);
	wire_poll(&w, &got, 1);
	EXPECT(got.tag == attr.max_rules - 1);
	wire_close(&w);
}

/* --- what is refused --------------------------------------------------------------------------------- */

static void ETH_40_copies_moves_and_groups_are_refused(void)
{
	static const uint16_t table[1];
	DAT_ETH_RULE rule = host_rule(DAT_ETH_COPY, PORT);
	DAT_ETH_RSS rss = { .fields = DAT_ETH_RSS_IP, .table_size = 1, .table = table };
	DAT_LMR_TRIPLET iov = { .segment_length = 0 };
	DAT_ETH_RULE_HANDLE handle, other;
	DAT_ETH_GROUP_HANDLE group;
	DAT_EP_HANDLE ep;

	open_xdp("64");
	FAILS(dat_eth_rule_add(w.ep, &rule, &handle), DAT_MODEL_NOT_SUPPORTED);
	rule.mode = DAT_ETH_TAKE;
	rule.flags = DAT_ETH_EGRESS;
	FAILS(dat_eth_rule_add(w.ep, &rule, &handle), DAT_MODEL_NOT_SUPPORTED);
	rule.flags = 0;
	handle = wire_rule(&w, &rule);
	FAILS(dat_ep_post_recv(w.ep, 0, &iov, (DAT_DTO_COOKIE){ .as_64 = 1 }, DAT_COMPLETION_DEFAULT_FLAG),
	      DAT_MODEL_NOT_SUPPORTED);
	FAILS(dat_eth_group_create(w.ia, 1, &w.ep, &rss, &group), DAT_MODEL_NOT_SUPPORTED);
	ep = w.ep;
	wire_endpoint(&w, "64", NULL);
	FAILS(dat_eth_rule_move(handle, w.ep), DAT_MODEL_NOT_SUPPORTED);
	rule.mode = DAT_ETH_COPY;
	other = wire_rule(&w, &rule);
	FAILS(dat_eth_rule_move(other, ep), DAT_MODEL_NOT_SUPPORTED);
	wire_close(&w);
}

static void second_endpoint(const void *arg)
{
	DAT_EP_HANDLE ep;

	(void)arg;
	open_xdp("64");
	FAILS(create("64", &ep), DAT_INVALID_STATE);
	OK(dat_ep_free(w.ep));
	OK(create("64", &ep));
	OK(dat_ia_close(w.ia, DAT_CLOSE_ABRUPT_FLAG));
}

static void expect_line(void (*child)(const void *), const char *word)
{
	struct child_result result = run(child, NULL);

	if (result.status == WIRE_SKIPPED)
		skip("no AF_XDP");
	if (result.status || result.lines != 1 || !strstr(result.text, word) || !strstr(result.text, "eth0") ||
	    !strstr(result.text, "AF_XDP"))
		fail("status %d: %s", result.status, result.text);
}

static void ETH_40_a_device_has_one_such_endpoint(void)
{
	expect_line(second_endpoint, "without another one");
}

static void create_without_capability(const void *arg)
{
	DAT_EP_HANDLE ep;

	(void)arg;
	wire_open(&w);
	need_xdp();
	host_keep_net_raw_alone();
	FAILS(create("64", &ep), DAT_PRIVILEGES_VIOLATION);
	wire_endpoint(&w, "64", NULL);
	OK(dat_ia_close(w.ia, DAT_CLOSE_ABRUPT_FLAG));
}

static void ETH_40_a_missing_capability_is_named(void)
{
	expect_line(create_without_capability, "CAP_BPF");
}

static void create_with_long_frames(const void *arg)
{
	DAT_EP_HANDLE ep;

	(void)arg;
	wire_network(&w);
	wire_command("ip link set eth0 mtu 9000");
	wire_ia(&w);
	need_xdp();
	if (create("64", &ep) == DAT_SUCCESS)
		fail("the create succeeds");
	EXPECT(!has_program());
	OK(dat_ia_close(w.ia, DAT_CLOSE_ABRUPT_FLAG));
}

static void ETH_40_an_mtu_that_does_not_fit_is_refused(void)
{
	expect_line(create_with_long_frames, "3840");
}

/* --- what is left --------------------------------------------------------------------------------------- */

static void ETH_40_the_program_ends_with_the_endpoint(void)
{
	DAT_ETH_RULE rule = host_rule(DAT_ETH_TAKE, PORT);
	int host;

	open_xdp("64");
	EXPECT(has_program());
	host = host_socket(PORT);
	for (int i = 1; i <= 2; i++) {
		wire_rule(&w, &rule);
		send_number(PORT, 1);
		expect_number(1);
		OK(dat_ep_disconnect(w.ep, DAT_CLOSE_ABRUPT_FLAG));
		send_number(PORT, 2);
		EXPECT(host_next(host, 10000) == 2);
		OK(dat_ep_reset(w.ep));
	}
	OK(dat_ep_free(w.ep));
	await_no_program();
	send_number(PORT, 3);
	EXPECT(host_next(host, 10000) == 3);
	wire_close(&w);
}

static void take(void)
{
	DAT_ETH_RULE rule = host_rule(DAT_ETH_TAKE, PORT);

	wire_ia(&w);
	need_xdp();
	OK(create("64", &w.ep));
	wire_rule(&w, &rule);
}

static void ETH_40_a_killed_process_leaves_no_program(void)
{
	pid_t child;
	int host;

	wire_network(&w);
	child = host_taker(take);
	host = host_socket(PORT);
	send_number(PORT, 1);
	EXPECT(has_program() && host_next(host, 100) == -1);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	await_no_program();
	send_number(PORT, 2);
	EXPECT(host_next(host, 10000) == 2);
}

int main(int argc, char **argv)
{
	static const struct life_case cases[] = {
		CASE(ETH_40_frames_are_complete_and_in_order),
		CASE(ETH_40_frames_stay_until_they_are_released),
		CASE(ETH_40_a_snap_length_shortens_frames),
		CASE(ETH_40_tags_are_in_the_frame),
		CASE(ETH_40_every_receive_queue_is_read),
		CASE(ETH_40_an_armed_endpoint_tells_when_there_are_frames),
		CASE(ETH_40_a_time_of_departure_is_no_frame),
		CASE(ETH_40_losses_are_exact),
		CASE(ETH_40_the_kernel_gets_what_no_rule_matches),
		CASE(ETH_40_frames_of_a_rule_that_ended_are_gone),
		CASE(ETH_40_other_stations_need_a_flag),
		CASE(ETH_40_as_many_rules_as_elsewhere),
		CASE(ETH_40_copies_moves_and_groups_are_refused),
		CASE(ETH_40_a_device_has_one_such_endpoint),
		CASE(ETH_40_a_missing_capability_is_named),
		CASE(ETH_40_an_mtu_that_does_not_fit_is_refused),
		CASE(ETH_40_the_program_ends_with_the_endpoint),
		CASE(ETH_40_a_killed_process_leaves_no_program),
	};

	if (!wire_possible())
		return WIRE_SKIPPED;
	return life_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
