/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* launch.c - launch times of raw Ethernet endpoints on a network device with a queueing discipline that knows times of
 * frames: fq, which passes frames without one at once, and etf, which drops them. The provider holds frames back itself
 * and sets no SO_TXTIME. Many kernels lack both disciplines: test/vm/suites.d/eth-launch runs this. */
#include "wire.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FRAMES = 20, LENGTH = 200 };
#define MILLISECOND 1000000ull		/* ns */

static struct wire w;

static void open_on(const char *discipline, const char *params)
{
	char command[200];

	wire_network(&w);
	snprintf(command, sizeof command, "tc qdisc add dev eth0 root %s 2>/dev/null", discipline);
	if (system(command))
		skip("this kernel lacks the queueing discipline");
	wire_ia_params(&w, params);
	wire_endpoint(&w, "", NULL);
}

static DAT_RETURN post_at(uint64_t cookie, DAT_UINT64 launch)
{
	DAT_ETH_SEND how = { .flags = DAT_ETH_SEND_LAUNCH, .launch = launch };

	wire_frame(&w, w.memory, LENGTH, 1);
	return wire_post_send_how(&w, LENGTH, cookie, &how);
}

/* Each frame leaves in its turn, not before its time, and comes to the peer. */
static void launch_all(void)
{
	static uint8_t got[2000];
	DAT_UINT64 begin = wire_now() + 20 * MILLISECOND;

	for (uint64_t i = 0; i < FRAMES; i++)
		OK(post_at(i, begin + i * 5 * MILLISECOND));
	for (uint64_t i = 0; i < FRAMES; i++) {
		DAT_EVENT event = wire_event(w.request, DAT_DTO_COMPLETION_EVENT);
		const DAT_DTO_COMPLETION_EVENT_DATA *done = &event.event_data.dto_completion_event_data;

		EXPECT(done->user_cookie.as_64 == i && done->status == DAT_DTO_SUCCESS);
		EXPECT(wire_now() >= begin + i * 5 * MILLISECOND);
		EXPECT(wire_receive(&w, got, sizeof got) == LENGTH && !memcmp(got, w.memory, LENGTH));
	}
	EXPECT(wire_is_silent(&w));
	wire_close(&w);
}

static void ETH_26_launch_times_hold_under_fq(void)
{
	open_on("fq", "eth0 0");
	launch_all();
}

static void ETH_26_launch_times_hold_past_etf(void)
{
	open_on("etf clockid CLOCK_TAI delta 200000", "eth0 0 eth_qdisc=bypass");
	launch_all();
}

/* The kernel reports a frame that etf drops as it does one for which the device's queue has no room. */
static void ETH_26_etf_takes_no_frame_of_ours(void)
{
	open_on("etf clockid CLOCK_TAI delta 200000", "eth0 0");
	wire_frame(&w, w.memory, LENGTH, 1);
	EXPECT(DAT_GET_TYPE(wire_post_send(&w, 0, LENGTH, 1)) == DAT_INSUFFICIENT_RESOURCES);
	EXPECT(wire_is_silent(&w));
	wire_command("tc qdisc del dev eth0 root");
	OK(wire_post_send(&w, 0, LENGTH, 2));
	EXPECT(wire_event(w.request,
			  DAT_DTO_COMPLETION_EVENT).event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS);
	wire_close(&w);
}

int main(int argc, char **argv)
{
	static const struct life_case cases[] = {
		CASE(ETH_26_launch_times_hold_under_fq),
		CASE(ETH_26_launch_times_hold_past_etf),
		CASE(ETH_26_etf_takes_no_frame_of_ours),
	};

	if (!wire_possible())
		return WIRE_SKIPPED;
	return life_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
