/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stamp.c - sends that report when their frame left, also after a wait in a queue of the kernel. */
#include "wire.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LENGTH = 200 };

static struct wire w;

static void open_sender(const char *ring)
{
	DAT_ETH_ATTR attr = { .size = sizeof attr };

	wire_open(&w);
	OK(dat_eth_query(w.ia, &attr));
	if (!(attr.caps & DAT_ETH_CAP_SEND_STAMP))
		skip("this kernel's veth does not tell when frames leave");
	wire_endpoint(&w, ring, NULL);
	wire_frame(&w, w.memory, LENGTH, 1);
	memcpy(w.memory, w.peer_address, 6);
	memcpy(w.memory + 6, w.eth0, 6);
}

static void post(uint64_t cookie, DAT_UINT32 flags, DAT_UINT64 launch)
{
	DAT_ETH_SEND how = { .flags = flags, .launch = launch };

	OK(wire_post_send_how(&w, LENGTH, cookie, &how));
}

/* Takes the next completion. Returns its time of departure. */
static DAT_UINT64 departure(uint64_t cookie)
{
	DAT_EVENT event = wire_event(w.request, DAT_ETH_DTO_EVENT);
	const DAT_DTO_COMPLETION_EVENT_DATA *done = &event.event_data.dto_completion_event_data;
	DAT_ETH_FRAME frame;

	memcpy(&frame, event.event_extension_data, sizeof frame);
	EXPECT(done->status == DAT_DTO_SUCCESS && done->user_cookie.as_64 == cookie && done->operation == DAT_DTO_SEND);
	EXPECT(done->transfered_length == LENGTH);
	return frame.time;
}

static void comes_to_peer(void)
{
	uint8_t frame[LENGTH + 4];

	EXPECT(wire_receive(&w, frame, sizeof frame) == LENGTH && !memcmp(frame, w.memory, LENGTH));
}

static void ETH_36_an_event_tells_when_the_frame_left(void)
{
	DAT_UINT64 before, left, last = 0;
	DAT_EVENT event;

	open_sender("");
	for (uint64_t i = 0; i < 50; i++) {
		before = wire_now();
		post(i, DAT_ETH_SEND_STAMP, 0);
		left = departure(i);
		EXPECT(left >= before && left <= wire_now() && left > last);
		last = left;
		comes_to_peer();
		OK(wire_post_send(&w, 0, LENGTH, i));	/* others are as ever */
		event = wire_event(w.request, DAT_DTO_COMPLETION_EVENT);
		EXPECT(event.event_data.dto_completion_event_data.user_cookie.as_64 == i);
		comes_to_peer();
	}
	wire_close(&w);
}

static void ETH_36_a_launch_time_comes_first(void)
{
	DAT_UINT64 launch;

	open_sender("");
	launch = wire_now() + 20000000;
	post(1, DAT_ETH_SEND_STAMP | DAT_ETH_SEND_LAUNCH, launch);
	post(2, DAT_ETH_SEND_STAMP, 0);
	EXPECT(departure(1) >= launch);
	EXPECT(departure(2) > launch);
	wire_close(&w);
}

/* At this rate each frame takes 2 ms. A pause of the sender is not made up for by a burst. */
static void ETH_36_a_rate_holds(void)
{
	DAT_ETH_PACE pace = { .bits_per_s = LENGTH * 8 * 500 };
	DAT_UINT64 before;

	open_sender("");
	OK(dat_eth_pace(w.ep, &pace));
	for (int i = 0; i < 5; i++) {
		usleep(20000);
		before = wire_now();
		post(1, DAT_ETH_SEND_STAMP, 0);
		post(2, DAT_ETH_SEND_STAMP, 0);
		departure(1);
		EXPECT(departure(2) >= before + 1900000);	/* ns: the first may be stamped late */
	}
	wire_close(&w);
}

/* Adds a queue that lets a frame through and holds the next ones back for a moment. */
static void make_slow(const char *rate)
{
	char command[200];

	snprintf(command, sizeof command, "tc qdisc add dev eth0 root tbf rate %s burst 250 latency 100s 2>/dev/null",
		 rate);
	if (system(command))
		skip("no tc with tbf here");
}

/* With receives posted, the service thread watches the socket. */
static void ETH_36_a_time_that_comes_later_is_waited_for(void)
{
	DAT_UINT64 times[3], before;
	DAT_ETH_RULE any = wire_any();

	for (int receive = 0; receive < 2; receive++) {
		open_sender("");
		if (receive) {
			wire_rule(&w, &any);
			wire_post(&w, 1000, 200, 9);
		}
		make_slow("16kbit");
		before = wire_now();
		for (uint64_t i = 0; i < 3; i++)
			post(i, DAT_ETH_SEND_STAMP, 0);
		OK(wire_post_send(&w, 0, LENGTH, 3));
		for (uint64_t i = 0; i < 3; i++) {
			times[i] = departure(i);
			if (!times[i] && wire_now() - before > 1000000000)
				skip("this machine took more than a second to send three frames");
			EXPECT(times[i] > (i ? times[i - 1] : before) && times[i] <= wire_now());
		}
		wire_event(w.request, DAT_DTO_COMPLETION_EVENT);
		for (int i = 0; i < 4; i++)
			comes_to_peer();
		OK(dat_ep_free(w.ep));
		OK(dat_ia_close(w.ia, DAT_CLOSE_ABRUPT_FLAG));
		close(w.peer);
	}
}

/* A frame that is still in the queue after a second: the send completes without a time. */
static void ETH_36_a_time_that_does_not_come_is_0(void)
{
	open_sender("");
	make_slow("400bit");
	post(1, DAT_ETH_SEND_STAMP, 0);
	post(2, DAT_ETH_SEND_STAMP, 0);
	EXPECT(departure(1));
	EXPECT(!departure(2));
	wire_close(&w);
}

static void ETH_36_a_disconnect_does_not_wait(void)
{
	DAT_EVENT event;

	open_sender("");
	make_slow("400bit");
	for (uint64_t i = 1; i < 4; i++)
		post(i, DAT_ETH_SEND_STAMP, 0);
	EXPECT(departure(1));
	OK(dat_ep_disconnect(w.ep, DAT_CLOSE_ABRUPT_FLAG));
	EXPECT(!departure(2));		/* it has left for the kernel's queue */
	event = wire_event(w.request, DAT_ETH_DTO_EVENT);
	EXPECT(event.event_data.dto_completion_event_data.status == DAT_DTO_ERR_FLUSHED);
	OK(dat_ep_reset(w.ep));
	wire_close(&w);
}

/* A departure is no frame for the ring. */
static void ETH_36_a_ring_is_not_woken(void)
{
	DAT_EVENT event;

	open_sender("64");
	OK(dat_eth_arm(w.ep));
	make_slow("16kbit");
	for (uint64_t i = 0; i < 3; i++)
		post(i, DAT_ETH_SEND_STAMP, 0);
	for (uint64_t i = 0; i < 3; i++)
		EXPECT(departure(i));
	EXPECT(DAT_GET_TYPE(dat_evd_dequeue(w.recv, &event)) == DAT_QUEUE_EMPTY);
	wire_close(&w);
}

static double processor_time(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The provider must take the socket's error, with a ring and with posted receives: else the service thread
 * would loop. */
static void ETH_36_a_link_that_is_down_costs_nothing(void)
{
	DAT_ETH_RULE any = wire_any();
	double before;

	for (int ring = 0; ring < 2; ring++) {
		open_sender(ring ? "64" : "");
		wire_rule(&w, &any);
		post(1, DAT_ETH_SEND_STAMP, 0);
		EXPECT(departure(1));
		if (ring)
			OK(dat_eth_arm(w.ep));
		else
			wire_post(&w, 1000, 200, 9);
		wire_command("ip link set eth0 down");
		usleep(50000);
		before = processor_time();
		usleep(400000);
		EXPECT(processor_time() - before < 0.2);
		OK(dat_ia_close(w.ia, DAT_CLOSE_ABRUPT_FLAG));
		close(w.peer);
	}
}

static void ETH_36_segmentation_excludes_a_time_of_departure(void)
{
	DAT_ETH_SEND how = { .flags = DAT_ETH_SEND_STAMP | DAT_ETH_SEND_TSO, .mss = 100, .header_length = 54 };

	open_sender("");
	EXPECT(DAT_GET_TYPE(wire_post_send_how(&w, LENGTH, 1, &how)) == DAT_INVALID_PARAMETER);
	EXPECT(wire_is_silent(&w));
	wire_close(&w);
}

int main(int argc, char **argv)
{
	static const struct life_case cases[] = {
		CASE(ETH_36_an_event_tells_when_the_frame_left),
		CASE(ETH_36_a_launch_time_comes_first),
		CASE(ETH_36_a_rate_holds),
		CASE(ETH_36_a_time_that_comes_later_is_waited_for),
		CASE(ETH_36_a_time_that_does_not_come_is_0),
		CASE(ETH_36_a_disconnect_does_not_wait),
		CASE(ETH_36_a_ring_is_not_woken),
		CASE(ETH_36_a_link_that_is_down_costs_nothing),
		CASE(ETH_36_segmentation_excludes_a_time_of_departure),
	};

	if (!wire_possible())
		return WIRE_SKIPPED;
	return life_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
