/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* more.c - sends of raw Ethernet endpoints with DAT_ETH_SEND_MORE: held, and sent together with those that follow. */
#include "wire.h"
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

enum {
	BATCH = 64,		/* frames that are held at most */
	LENGTH = 100,
	TRIES = 1000,		/* attempts: on a busy machine held sends may leave too early, after some
				 * milliseconds */
};

static struct wire w;
static const DAT_ETH_SEND more = { .flags = DAT_ETH_SEND_MORE };
static const DAT_ETH_SEND last;

static void open_sender(void)
{
	wire_open(&w);
	wire_finish_frames("eth0", true);
	wire_endpoint(&w, "", NULL);
}

static uint8_t *frame_at(unsigned n)
{
	return w.memory + (size_t)n * 2 * LENGTH;
}

/* Posts frame n of a test, in two segments. */
static void post(unsigned n, size_t length, DAT_LMR_CONTEXT context, const DAT_ETH_SEND *how)
{
	DAT_LMR_TRIPLET iov[] = {
		{ .lmr_context = w.context, .segment_length = 20, .virtual_address = (uintptr_t)frame_at(n) },
		{ .lmr_context = context, .segment_length = (DAT_SEG_LENGTH)length - 20,
		  .virtual_address = (uintptr_t)frame_at(n) + 20 },
	};

	OK(dat_eth_post_send(w.ep, 2, iov, (DAT_DTO_COOKIE){ .as_64 = n }, how, DAT_COMPLETION_DEFAULT_FLAG));
}

static void post_frame(unsigned n, const DAT_ETH_SEND *how)
{
	wire_frame(&w, frame_at(n), LENGTH, n);
	post(n, LENGTH, w.context, how);
}

static uint64_t sent(void)
{
	DAT_ETH_STATS stats = { .size = sizeof stats };

	OK(dat_eth_stats(w.ep, &stats));
	return stats.sent;
}

static void expect_frame(unsigned n, size_t length)
{
	static uint8_t got[1 << 16];

	EXPECT(wire_receive(&w, got, sizeof got) == length && !memcmp(got, frame_at(n), length));
}

static void expect_all(unsigned frames)
{
	for (unsigned i = 0; i < frames; i++) {
		wire_expect_send(&w, i, DAT_DTO_SUCCESS);
		expect_frame(i, LENGTH);
	}
}

static void ETH_37_held_frames_leave_with_the_next_one_in_order(void)
{
	DAT_ETH_STATS stats = { .size = sizeof stats };

	open_sender();
	for (unsigned i = 0; i < 10; i++)
		post_frame(i, &more);
	post_frame(10, &last);
	EXPECT(sent() == 11);
	expect_all(11);
	EXPECT(wire_is_silent(&w));
	OK(dat_eth_stats(w.ep, &stats));
	EXPECT(stats.sent == 11 && stats.sent_bytes == 11 * LENGTH);
	wire_close(&w);
}

static void ETH_37_a_plain_send_ends_the_batch_too(void)
{
	open_sender();
	post_frame(0, &more);
	wire_frame(&w, frame_at(1), LENGTH, 1);
	OK(wire_post_send(&w, 2 * LENGTH, LENGTH, 1));
	EXPECT(sent() == 2);
	expect_all(2);
	wire_close(&w);
}

static void ETH_37_a_frame_is_held(void)
{
	unsigned held = 0;

	open_sender();
	for (unsigned i = 0; i < TRIES && !held; i++) {
		uint64_t before = sent();

		post_frame(0, &more);
		held += sent() == before;
		post_frame(1, &last);
		EXPECT(sent() == before + 2);
		expect_all(2);
	}
	EXPECT(held);
	wire_close(&w);
}

static void ETH_37_a_full_batch_leaves_at_once(void)
{
	bool found = false;

	open_sender();
	for (unsigned i = 0; i < TRIES && !found; i++) {
		uint64_t before = sent();
		bool held;

		for (unsigned n = 0; n < BATCH - 1; n++)
			post_frame(n, &more);
		held = sent() == before;
		post_frame(BATCH - 1, &more);
		found = held && sent() == before + BATCH;
		expect_all(BATCH);
	}
	EXPECT(found);
	wire_close(&w);
}

static void ETH_37_nothing_is_held_for_ever(void)
{
	open_sender();
	for (unsigned round = 0; round < 20; round++) {	/* with all ages of the timer */
		for (unsigned i = 0; i <= round; i++)
			post_frame(i, &more);
		expect_all(round + 1);
	}
	wire_close(&w);
}

static void ETH_37_the_frames_of_a_batch_have_their_own_offloads(void)
{
	static const DAT_ETH_SEND tag = { .flags = DAT_ETH_SEND_MORE | DAT_ETH_SEND_VLAN, .vlan_tci = 77 },
		sum = { .flags = DAT_ETH_SEND_MORE | DAT_ETH_SEND_CSUM },
		cut = { .flags = DAT_ETH_SEND_MORE | DAT_ETH_SEND_TSO, .mss = 50, .header_length = 54 };
	static uint8_t got[2000];
	size_t udp, tcp;

	open_sender();
	udp = wire_udp(&w, frame_at(0), "10.77.0.1", 7, 40);
	post(0, udp, w.context, &sum);
	post_frame(1, &tag);
	tcp = wire_tcp(&w, frame_at(2), 14, 4, 100) + 100;
	post(2, tcp, w.context, &cut);
	post_frame(3, &last);
	for (unsigned i = 0; i < 4; i++)
		wire_expect_send(&w, i, DAT_DTO_SUCCESS);
	EXPECT(wire_receive(&w, got, sizeof got) == udp && wire_checksums_are_right(got, 14));
	EXPECT(wire_receive(&w, got, sizeof got) == LENGTH + 4 && !memcmp(got + 12, "\x81\x00\x00\x4d", 4));
	EXPECT(!memcmp(got + 16, frame_at(1) + 12, LENGTH - 12));
	for (unsigned i = 0; i < 2; i++)
		EXPECT(wire_receive(&w, got, sizeof got) == 104 && wire_checksums_are_right(got, 14));
	expect_frame(3, LENGTH);
	EXPECT(sent() == 5);
	wire_close(&w);
}

/* The kernel reports a refused frame only in the call after that with the frames before it. */
static void ETH_37_a_frame_that_fails_does_not_hinder_the_others(void)
{
	open_sender();
	wire_command("ip link set eth0 mtu 150");
	for (unsigned i = 0; i < 8; i++) {
		wire_frame(&w, frame_at(i), 2 * LENGTH, i);
		post(i, i % 3 == 1 ? 2 * LENGTH : LENGTH, i == 6 ? w.context + 1 : w.context, i == 7 ? &last : &more);
	}
	for (unsigned i = 0; i < 8; i++)
		wire_expect_send(&w, i, i == 6 ? DAT_DTO_ERR_LOCAL_PROTECTION :
			    i % 3 == 1 ? DAT_DTO_ERR_LOCAL_LENGTH : DAT_DTO_SUCCESS);
	for (unsigned i = 0; i < 6; i++)
		if (i % 3 != 1)
			expect_frame(i, LENGTH);
	EXPECT(wire_is_silent(&w) && sent() == 4);
	wire_close(&w);
}

static void ETH_37_a_frame_that_is_refused_leaves_the_held_ones(void)
{
	DAT_ETH_SEND sum = { .flags = DAT_ETH_SEND_CSUM };

	open_sender();
	post_frame(0, &more);
	if (DAT_GET_TYPE(wire_post_send_how(&w, LENGTH, 1, &sum)) != DAT_INVALID_PARAMETER)	/* it is not IP */
		fail("a frame without IP header is accepted");
	expect_all(1);
	EXPECT(wire_is_silent(&w) && sent() == 1);
	wire_close(&w);
}

static void ETH_37_a_device_that_is_down_fails_all(void)
{
	open_sender();
	wire_command("ip link set eth0 down");
	for (unsigned i = 0; i < 5; i++)
		post_frame(i, i == 4 ? &last : &more);
	for (unsigned i = 0; i < 5; i++)
		wire_expect_send(&w, i, DAT_DTO_ERR_TRANSPORT);
	EXPECT(!sent());
	wire_command("ip link set eth0 up");
	wire_await_up();
	for (unsigned i = 0; i < 5; i++)
		post_frame(i, i == 4 ? &last : &more);
	expect_all(5);
	wire_close(&w);
}

static void ETH_37_a_full_device_queue_delays_the_rest(void)
{
	enum { ROUNDS = 12 };		/* 768 frames: more than the send buffer of a socket holds */
	static const char queue[] = "tc qdisc add dev eth0 root tbf rate 2mbit burst 2000 latency 100s 2>/dev/null";

	open_sender();
	if (system(queue))
		skip("no tc with tbf here");
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned i = 0; i < BATCH; i++)
			post_frame(i, &more);
		for (unsigned i = 0; i < BATCH; i++)
			wire_expect_send(&w, i, DAT_DTO_SUCCESS);
	}
	for (unsigned i = 0; i < ROUNDS * BATCH; i++)
		expect_frame(i % BATCH, LENGTH);
	EXPECT(sent() == ROUNDS * BATCH);
	wire_close(&w);
}

static void ETH_37_a_rate_holds_the_batch_back(void)
{
	DAT_ETH_PACE pace = { .bits_per_s = 8000 }, none = { .bits_per_s = 0 };	/* 100 ms for a frame */

	open_sender();
	OK(dat_eth_pace(w.ep, &pace));
	for (unsigned i = 0; i < 8; i++)
		post_frame(i, i == 7 ? &last : &more);
	EXPECT(sent() < 8);
	wire_expect_send(&w, 0, DAT_DTO_SUCCESS);
	OK(dat_eth_pace(w.ep, &none));
	for (unsigned i = 1; i < 8; i++)
		wire_expect_send(&w, i, DAT_DTO_SUCCESS);
	for (unsigned i = 0; i < 8; i++)
		expect_frame(i, LENGTH);
	wire_close(&w);
}

static void ETH_37_a_disconnect_flushes_what_is_held(void)
{
	unsigned done = 0, flushed = 0;

	open_sender();
	for (unsigned i = 0; i < 5; i++)
		post_frame(i, &more);
	OK(dat_ep_disconnect(w.ep, DAT_CLOSE_ABRUPT_FLAG));
	for (unsigned i = 0; i < 5; i++) {
		DAT_DTO_COMPLETION_EVENT_DATA is =
			wire_event(w.request, DAT_DTO_COMPLETION_EVENT).event_data.dto_completion_event_data;

		EXPECT(is.user_cookie.as_64 == i);
		done += is.status == DAT_DTO_SUCCESS;
		flushed += is.status == DAT_DTO_ERR_FLUSHED;
		EXPECT(!flushed || is.status == DAT_DTO_ERR_FLUSHED);
	}
	EXPECT(done + flushed == 5);
	for (unsigned i = 0; i < done; i++)
		expect_frame(i, LENGTH);
	EXPECT(wire_is_silent(&w));
	OK(dat_ep_reset(w.ep));
	post_frame(0, &more);
	OK(dat_ep_free(w.ep));
	wire_close(&w);
}

int main(int argc, char **argv)
{
	static const struct life_case cases[] = {
		CASE(ETH_37_held_frames_leave_with_the_next_one_in_order),
		CASE(ETH_37_a_plain_send_ends_the_batch_too),
		CASE(ETH_37_a_frame_is_held),
		CASE(ETH_37_a_full_batch_leaves_at_once),
		CASE(ETH_37_nothing_is_held_for_ever),
		CASE(ETH_37_the_frames_of_a_batch_have_their_own_offloads),
		CASE(ETH_37_a_frame_that_fails_does_not_hinder_the_others),
		CASE(ETH_37_a_frame_that_is_refused_leaves_the_held_ones),
		CASE(ETH_37_a_device_that_is_down_fails_all),
		CASE(ETH_37_a_full_device_queue_delays_the_rest),
		CASE(ETH_37_a_rate_holds_the_batch_back),
		CASE(ETH_37_a_disconnect_flushes_what_is_held),
	};

	if (!wire_possible())
		return WIRE_SKIPPED;
	return life_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
