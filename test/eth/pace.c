/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pace.c - when sends of raw Ethernet endpoints leave: rate, launch time, what ends the wait; the clock. The
 * arithmetic of a rate is test/unit/soft/test_pace.c. */
#include "wire.h"
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { FRAMES = 10, LENGTH = 1514 };
#define SECOND 1000000000ull

static struct wire w;

static void open_paced(uint64_t bits_per_s)
{
	DAT_ETH_PACE pace = { .bits_per_s = bits_per_s };

	wire_open(&w);
	wire_endpoint(&w, "", NULL);
	OK(dat_eth_pace(w.ep, &pace));
	wire_frame(&w, w.memory, LENGTH, 1);
}

static void post_frames(void)
{
	for (uint64_t i = 0; i < FRAMES; i++)
		OK(wire_post_send(&w, 0, LENGTH, i));
}

static DAT_RETURN launch_at(uint64_t time, uint64_t cookie)
{
	DAT_ETH_SEND how = { .flags = DAT_ETH_SEND_LAUNCH, .launch = time };

	return wire_post_send_how(&w, LENGTH, cookie, &how);
}

/* The device is gone: sends that wait for the rate complete. */
static void ETH_25_a_rate_ends_without_its_device(void)
{
	DAT_ETH_PACE rate = { .bits_per_s = 8000 }, none = { .bits_per_s = 0 };

	open_paced(8000);
	post_frames();
	wire_expect_send(&w, 0, DAT_DTO_SUCCESS);
	wire_command("ip link del eth0");
	OK(dat_eth_pace(w.ep, &none));
	for (uint64_t i = 1; i < FRAMES; i++)
		wire_event(w.request, DAT_DTO_COMPLETION_EVENT);
	EXPECT(dat_eth_pace(w.ep, &rate) != DAT_SUCCESS);
	wire_close(&w);
}

static void ETH_25_a_rate_holds_sends_back(void)
{
	DAT_ETH_PACE none = { .bits_per_s = 0 };
	static uint8_t got[2000];
	unsigned left = 0;
	DAT_EVENT event;

	open_paced(8000);	/* 1.5 s for a frame */
	post_frames();
	wire_expect_send(&w, 0, DAT_DTO_SUCCESS);
	while (dat_evd_dequeue(w.request, &event) == DAT_SUCCESS)
		left++;
	EXPECT(left < FRAMES - 2);
	OK(dat_eth_pace(w.ep, &none));
	for (uint64_t i = 1 + left; i < FRAMES; i++)
		wire_expect_send(&w, i, DAT_DTO_SUCCESS);
	for (unsigned i = 0; i < FRAMES; i++)
		EXPECT(wire_receive(&w, got, sizeof got) == LENGTH && !memcmp(got, w.memory, LENGTH));
	wire_close(&w);
}

static void ETH_25_waiting_frames_leave_without_another_post(void)
{
	DAT_ETH_PACE pace = { .bits_per_s = 2000000, .burst = 3000, .frame = LENGTH };	/* 6 ms for a frame */

	open_paced(1000000);
	OK(dat_eth_pace(w.ep, &pace));
	post_frames();
	for (uint64_t i = 0; i < FRAMES; i++)	/* though nothing is posted any more */
		wire_expect_send(&w, i, DAT_DTO_SUCCESS);
	wire_close(&w);
}

static void ETH_25_a_rate_beyond_the_limits_is_refused(void)
{
	DAT_ETH_ATTR attr = { .size = sizeof attr };
	DAT_ETH_PACE pace = { .bits_per_s = 0 };

	open_paced(0);
	OK(dat_eth_query(w.ia, &attr));
	EXPECT(attr.caps & DAT_ETH_CAP_PACE && attr.rate_min && attr.rate_max > attr.rate_min);
	pace.bits_per_s = attr.rate_min - 1;
	FAILS(dat_eth_pace(w.ep, &pace), DAT_INVALID_PARAMETER);
	pace.bits_per_s = attr.rate_max + 1;
	FAILS(dat_eth_pace(w.ep, &pace), DAT_INVALID_PARAMETER);
	FAILS(dat_eth_pace(w.ep, NULL), DAT_INVALID_PARAMETER);
	pace.bits_per_s = attr.rate_max;
	OK(dat_eth_pace(w.ep, &pace));
	OK(dat_ep_disconnect(w.ep, DAT_CLOSE_ABRUPT_FLAG));
	FAILS(dat_eth_pace(w.ep, &pace), DAT_INVALID_STATE);
	wire_close(&w);
}

/* Returns the time at which the kernel received the next frame on the peer. */
static uint64_t stamp_of_next(void)
{
	union {
		struct cmsghdr align;
		char bytes[200];
	} control;
	struct msghdr message = { .msg_control = &control, .msg_controllen = sizeof control };
	struct timespec at = { 0 };

	if (recvmsg(w.peer, &message, 0) < 0)
		fail("the peer received nothing");
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS)
			memcpy(&at, CMSG_DATA(c), sizeof at);
	return (uint64_t)at.tv_sec * SECOND + (uint64_t)at.tv_nsec;
}

static void ETH_26_a_frame_leaves_at_its_launch_time(void)
{
	uint64_t launch, stamp;
	int one = 1;

	open_paced(0);
	setsockopt(w.peer, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof one);
	launch = wire_now() + SECOND / 5;
	OK(launch_at(launch, 1));
	OK(wire_post_send(&w, 0, LENGTH, 2));	/* stays behind it */
	wire_expect_send(&w, 1, DAT_DTO_SUCCESS);
	wire_expect_send(&w, 2, DAT_DTO_SUCCESS);
	for (int i = 0; i < 2; i++) {
		stamp = stamp_of_next();
		if (stamp < launch)
			fail("frame %d left %lu ns before its time", i, (unsigned long)(launch - stamp));
	}
	wire_close(&w);
}

static void ETH_26_a_time_that_is_past_is_counted(void)
{
	DAT_ETH_STATS stats = { .size = sizeof stats };
	DAT_ETH_SEND wrong = { .flags = DAT_ETH_SEND_CSUM, .launch = 1 };

	open_paced(0);
	FAILS(wire_post_send_how(&w, LENGTH, 1, &wrong), DAT_INVALID_PARAMETER);
	OK(launch_at(wire_now() - 1, 1));
	OK(launch_at(1, 2));
	wire_expect_send(&w, 1, DAT_DTO_SUCCESS);
	wire_expect_send(&w, 2, DAT_DTO_SUCCESS);
	OK(dat_eth_stats(w.ep, &stats));
	EXPECT(stats.late == 2 && stats.sent == 2);
	wire_close(&w);
}

static void ETH_26_a_frame_that_is_wrong_is_refused_though_it_would_wait(void)
{
	DAT_ETH_SEND how = { .flags = DAT_ETH_SEND_LAUNCH | DAT_ETH_SEND_CSUM, .launch = wire_now() + 600 * SECOND };

	open_paced(0);
	FAILS(wire_post_send_how(&w, LENGTH, 1, &how), DAT_INVALID_PARAMETER);	/* not IP */
	wire_close(&w);
}

static void ETH_26_memory_is_looked_up_when_the_frame_leaves(void)
{
	open_paced(0);
	OK(launch_at(wire_now() + SECOND / 5, 1));
	OK(dat_lmr_free(w.lmr));
	wire_expect_send(&w, 1, DAT_DTO_ERR_LOCAL_PROTECTION);
	EXPECT(wire_is_silent(&w));
	wire_close(&w);
}

static void ETH_26_a_disconnect_flushes_what_waits(void)
{
	DAT_ETH_STATS stats = { .size = sizeof stats };
	static uint8_t got[2000];

	open_paced(8000);
	OK(launch_at(wire_now() + 600 * SECOND, 1));
	OK(wire_post_send(&w, 0, LENGTH, 2));
	OK(dat_ep_disconnect(w.ep, DAT_CLOSE_ABRUPT_FLAG));
	OK(wire_post_send(&w, 0, LENGTH, 3));
	for (uint64_t i = 1; i <= 3; i++)
		wire_expect_send(&w, i, DAT_DTO_ERR_FLUSHED);
	OK(dat_ep_reset(w.ep));
	OK(wire_post_send(&w, 0, LENGTH, 4));	/* without a rate: two at once */
	OK(wire_post_send(&w, 0, LENGTH, 5));
	wire_expect_send(&w, 4, DAT_DTO_SUCCESS);
	wire_expect_send(&w, 5, DAT_DTO_SUCCESS);
	EXPECT(wire_receive(&w, got, sizeof got) == LENGTH && wire_receive(&w, got, sizeof got) == LENGTH);
	OK(dat_eth_stats(w.ep, &stats));
	EXPECT(stats.sent == 2);
	EXPECT(wire_is_silent(&w));
	wire_close(&w);
}

static void ETH_26_an_endpoint_is_freed_while_sends_wait(void)
{
	open_paced(0);
	OK(launch_at(wire_now() + 600 * SECOND, 1));
	OK(dat_ep_free(w.ep));
	EXPECT(wire_is_silent(&w));
	wire_close(&w);
}

static void ETH_27_the_clock_is_that_of_the_system(void)
{
	DAT_UINT64 device, system, error, before = wire_now();

	open_paced(0);
	OK(dat_eth_clock(w.ia, &device, &system, &error));
	EXPECT(system >= before && system <= wire_now() && device == system && !error);
	FAILS(dat_eth_clock(w.ia, NULL, &system, &error), DAT_INVALID_PARAMETER);
	FAILS(dat_eth_clock(w.ia, &device, NULL, &error), DAT_INVALID_PARAMETER);
	FAILS(dat_eth_clock(w.ia, &device, &system, NULL), DAT_INVALID_PARAMETER);
	FAILS(dat_eth_clock(w.ep, &device, &system, &error), DAT_INVALID_HANDLE);
	wire_close(&w);
}

int main(int argc, char **argv)
{
	static const struct life_case cases[] = {
		CASE(ETH_25_a_rate_holds_sends_back),
		CASE(ETH_25_a_rate_ends_without_its_device),
		CASE(ETH_25_waiting_frames_leave_without_another_post),
		CASE(ETH_25_a_rate_beyond_the_limits_is_refused),
		CASE(ETH_26_a_frame_leaves_at_its_launch_time),
		CASE(ETH_26_a_time_that_is_past_is_counted),
		CASE(ETH_26_a_frame_that_is_wrong_is_refused_though_it_would_wait),
		CASE(ETH_26_memory_is_looked_up_when_the_frame_leaves),
		CASE(ETH_26_a_disconnect_flushes_what_waits),
		CASE(ETH_26_an_endpoint_is_freed_while_sends_wait),
		CASE(ETH_27_the_clock_is_that_of_the_system),
	};

	if (!wire_possible())
		return WIRE_SKIPPED;
	return life_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
