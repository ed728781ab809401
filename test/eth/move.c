/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* move.c - rules that move between raw endpoints while frames come: each frame comes to one of them. */
#include "wire.h"
#include <arpa/inet.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	FRAMES = 20000,
	LENGTH = 100,
	NUMBER = 20,		/* offset of a frame's number */
	UNDER_WAY = 500,	/* frames: half of what the kernel keeps for a processor
				 * (net.core.netdev_max_backlog) */
};

static struct wire w;
static DAT_EP_HANDLE eps[2];
static uint32_t next_of[2];	/* the least number of the next frame */
static uint8_t seen[FRAMES];
static _Atomic unsigned received;
static atomic_bool ended;

static void open_two(const char *frames)
{
	wire_open(&w);
	for (int i = 0; i < 2; i++) {
		wire_endpoint(&w, frames, NULL);
		eps[i] = w.ep;
	}
}

/* Takes the frames that have come to an endpoint. Their numbers must increase. */
static void collect(int i)
{
	DAT_ETH_FRAME frames[64];
	DAT_COUNT got = 0;
	uint32_t number;

	while (dat_eth_poll(eps[i], frames, 64, &got) == DAT_SUCCESS) {
		for (DAT_COUNT n = 0; n < got; n++) {
			memcpy(&number, frames[n].data + NUMBER, sizeof number);
			EXPECT(number < FRAMES && !frames[n].lost);
			if (seen[number]++)
				fail("frame %u came twice", number);
			if (number + 1 <= next_of[i])
				fail("frame %u came late", number);
			next_of[i] = number + 1;
			received++;
		}
		OK(dat_eth_release(eps[i], got));
	}
}

/* The kernel drops frames for which it has no room before any socket gets them, so few frames are in
 * progress at a time. */
static void *send_frames(void *none)
{
	uint8_t frame[LENGTH];

	wire_frame(&w, frame, LENGTH, 1);
	for (uint32_t i = 0; i < FRAMES; i++) {
		while (i >= received + UNDER_WAY && !ended)
			sched_yield();
		memcpy(frame + NUMBER, &i, sizeof i);
		wire_send(&w, frame, LENGTH);
	}
	return none;
}

static void ETH_29_each_frame_comes_to_one_endpoint(void)
{
	DAT_ETH_RULE any = wire_any();
	unsigned moves = 0, both;
	DAT_ETH_RULE_HANDLE rule;
	DAT_UINT64 frames, bytes;
	pthread_t sender;
	double end;

	open_two("65536");
	w.ep = eps[0];
	rule = wire_rule(&w, &any);
	pthread_create(&sender, NULL, send_frames, NULL);
	for (end = life_now() + 30; received < FRAMES && life_now() < end;) {
		unsigned before = received;

		collect(0);
		collect(1);
		if (received != before)
			end = life_now() + 30;	/* a busy machine may take long for all */
		if (moves < 1000) {
			OK(dat_eth_rule_move(rule, eps[++moves & 1]));
			usleep(500);
		}
	}
	ended = true;
	pthread_join(sender, NULL);
	if (received != FRAMES)
		fail("%u of %d frames came, with %u moves", received, FRAMES, moves);
	OK(dat_eth_rule_query(rule, NULL, &frames, &bytes));
	EXPECT(frames == FRAMES && bytes == (DAT_UINT64)FRAMES * LENGTH);
	both = next_of[0] && next_of[1];
	EXPECT(moves > 1 && both);
	wire_close(&w);
}

static int comes_to(void)
{
	uint8_t frame[LENGTH];
	DAT_ETH_FRAME got;
	DAT_COUNT n;

	wire_send(&w, frame, wire_frame(&w, frame, LENGTH, 7));
	for (int tries = 0; tries < 10000; tries++) {
		for (int i = 0; i < 2; i++)
			if (dat_eth_poll(eps[i], &got, 1, &n) == DAT_SUCCESS) {
				OK(dat_eth_release(eps[i], 1));
				return i;
			}
		usleep(1000);
	}
	return -1;
}

static void ETH_29_a_rule_belongs_to_its_new_endpoint(void)
{
	DAT_ETH_RULE any = wire_any();
	DAT_ETH_RULE_HANDLE rule, other;

	open_two("64");
	w.ep = eps[0];
	rule = wire_rule(&w, &any);
	EXPECT(comes_to() == 0);
	OK(dat_eth_rule_move(rule, eps[0]));	/* it is there */
	EXPECT(comes_to() == 0);
	OK(dat_eth_rule_move(rule, eps[1]));
	EXPECT(comes_to() == 1);
	w.ep = eps[0];
	other = wire_rule(&w, &any);		/* its place is free */
	FAILS(dat_eth_rule_move(rule, eps[0]), DAT_INVALID_STATE);
	OK(dat_eth_rule_free(other));
	EXPECT(comes_to() == 1);
	OK(dat_ep_free(eps[0]));		/* the endpoint that it left */
	OK(dat_eth_rule_query(rule, NULL, NULL, NULL));
	OK(dat_ep_free(eps[1]));
	FAILS(dat_eth_rule_free(rule), DAT_INVALID_HANDLE);
	wire_close(&w);
}

static void ETH_29_wrong_moves_are_refused(void)
{
	DAT_ETH_RULE any = wire_any();
	DAT_ETH_RULE_HANDLE rule;
	DAT_ETH_ATTR attr = { .size = sizeof attr };
	const uint16_t table[2] = { 0, 1 };
	DAT_ETH_RSS rss = { .fields = DAT_ETH_RSS_IP, .table_size = 2, .table = table };
	DAT_ETH_GROUP_HANDLE group;

	open_two("64");
	w.ep = eps[0];
	rule = wire_rule(&w, &any);
	FAILS(dat_eth_rule_move(rule, DAT_HANDLE_NULL), DAT_INVALID_HANDLE);
	FAILS(dat_eth_rule_move(rule, w.request), DAT_INVALID_HANDLE);
	FAILS(dat_eth_rule_move(eps[0], eps[1]), DAT_INVALID_HANDLE);
	OK(dat_ep_disconnect(eps[1], DAT_CLOSE_ABRUPT_FLAG));
	FAILS(dat_eth_rule_move(rule, eps[1]), DAT_INVALID_STATE);
	EXPECT(comes_to() == 0);
	OK(dat_ep_reset(eps[1]));
	OK(dat_eth_rule_free(rule));
	FAILS(dat_eth_rule_move(rule, eps[1]), DAT_INVALID_HANDLE);
	OK(dat_eth_query(w.ia, &attr));
	if (attr.caps & DAT_ETH_CAP_TAKE) {
		any.mode = DAT_ETH_DROP;
		rule = wire_rule(&w, &any);
		OK(dat_eth_group_create(w.ia, 2, eps, &rss, &group));
		FAILS(dat_eth_rule_move(rule, group), DAT_MODEL_NOT_SUPPORTED);
	}
	wire_close(&w);
}

/* --- rules that drop frames ----------------------------------------------------------------- */

enum { PORT = 5000, DATAGRAM = 42 + 20, DROPPED = 5000 };

static int host_socket(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);

	EXPECT(fd >= 0 && !bind(fd, (struct sockaddr *)&at, sizeof at));
	/* the sender's address: else the host drops the datagram itself */
	wire_command("ip route add 10.77.0.2/32 dev eth0");
	return fd;
}

static void send_datagram(void)
{
	uint8_t frame[100];
	size_t length = wire_udp(&w, frame, "10.77.0.1", PORT, DATAGRAM - 42);

	wire_finish_checksums(frame, 14, 40);
	wire_send(&w, frame, length);
}

static bool comes_to_the_host(int fd)
{
	char byte;

	for (int tries = 0; tries < 10000; tries++) {
		if (recv(fd, &byte, 1, 0) >= 0)
			return true;
		usleep(1000);
	}
	return false;
}

static uint64_t dropped_by(DAT_ETH_RULE_HANDLE rule)
{
	DAT_UINT64 frames, bytes;

	OK(dat_eth_rule_query(rule, NULL, &frames, &bytes));
	EXPECT(bytes == frames * DATAGRAM);
	return frames;
}

static void await_dropped(DAT_ETH_RULE_HANDLE rule, uint64_t expected)
{
	double end = life_now() + 20;

	while (dropped_by(rule) < expected && life_now() < end)
		usleep(1000);
	EXPECT(dropped_by(rule) == expected);
}

static DAT_ETH_RULE_HANDLE dropping;
static _Atomic unsigned sent;

/* The kernel drops frames for which it has no room before the rule counts them, so few frames are in
 * progress at a time. */
static void *send_datagrams(void *none)
{
	double end = life_now() + 30;

	for (unsigned i = 0; i < DROPPED && life_now() < end; i++) {
		send_datagram();
		sent = i + 1;
		if (i % 200 == 199) {
			while (dropped_by(dropping) + 50 < i && life_now() < end)
				usleep(100);
			if (life_now() < end)
				end = life_now() + 30;
		}
	}
	ended = true;
	return none;
}

static void ETH_29_no_frame_passes_a_drop_rule_that_moves(void)
{
	DAT_ETH_RULE drop = { .mode = DAT_ETH_DROP, .key.ip_version = 4, .mask.ip_version = 0xff };
	DAT_ETH_ATTR attr = { .size = sizeof attr };
	unsigned moves = 0;
	pthread_t sender;
	char byte;
	int fd;

	open_two("64");
	OK(dat_eth_query(w.ia, &attr));
	if (!(attr.caps & DAT_ETH_CAP_TAKE))
		skip("this kernel cannot take frames away: Linux 6.6 can");
	fd = host_socket();
	send_datagram();
	EXPECT(comes_to_the_host(fd));
	w.ep = eps[0];
	dropping = wire_rule(&w, &drop);
	pthread_create(&sender, NULL, send_datagrams, NULL);
	while (!ended)
		OK(dat_eth_rule_move(dropping, eps[++moves & 1]));
	pthread_join(sender, NULL);
	await_dropped(dropping, sent);
	EXPECT(sent == DROPPED && moves > 1);
	EXPECT(recv(fd, &byte, 1, 0) < 0);	/* the host saw none of them */
	OK(dat_eth_rule_move(dropping, eps[1]));
	OK(dat_ep_free(eps[0]));
	send_datagram();
	await_dropped(dropping, sent + 1);
	OK(dat_ep_free(eps[1]));		/* the rule ends with it */
	send_datagram();
	EXPECT(comes_to_the_host(fd));
	close(fd);
	wire_close(&w);
}

/* There are more moves than an endpoint may have rules: each move frees what it used. */
static void ETH_29_moves_leave_nothing(void)
{
	DAT_ETH_ATTR attr = { .size = sizeof attr };
	DAT_ETH_RULE any = wire_any();
	DAT_ETH_RULE_HANDLE rule;

	open_two("64");
	OK(dat_eth_query(w.ia, &attr));
	w.ep = eps[0];
	rule = wire_rule(&w, &any);
	for (unsigned i = 1; i <= 3 * attr.max_rules; i++)
		OK(dat_eth_rule_move(rule, eps[i & 1]));
	EXPECT(comes_to() == (int)(3 * attr.max_rules & 1));
	OK(dat_eth_rule_free(rule));
	w.ep = eps[1];
	for (any.priority = 0; any.priority < attr.max_rules; any.priority++)
		wire_rule(&w, &any);
	wire_close(&w);
}

int main(int argc, char **argv)
{
	static const struct life_case cases[] = {
		CASE(ETH_29_each_frame_comes_to_one_endpoint),
		CASE(ETH_29_a_rule_belongs_to_its_new_endpoint),
		CASE(ETH_29_wrong_moves_are_refused),
		CASE(ETH_29_no_frame_passes_a_drop_rule_that_moves),
		CASE(ETH_29_moves_leave_nothing),
	};

	if (!wire_possible())
		return WIRE_SKIPPED;
	return life_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
