/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* qdisc.c - eth_qdisc=bypass in ia_params: raw Ethernet endpoints send past the queueing discipline of the network
 * device. The discipline here lets two short frames through and holds all others for minutes. */
#include "wire.h"
#include <stdlib.h>
#include <string.h>

enum { FRAMES = 10, LENGTH = 100 };

static struct wire w;

static void open_sender(const char *params)
{
	wire_network(&w);
	wire_finish_frames("eth0", true);
	if (system("tc qdisc add dev eth0 root tbf rate 8bit burst 250 latency 1000s 2>/dev/null"))
		skip("no tc with tbf here");
	wire_ia_params(&w, params);
	wire_endpoint(&w, "", NULL);
	wire_frame(&w, w.memory, LENGTH, 1);
}

static void expect_sends(unsigned n, DAT_DTO_COMPLETION_STATUS status)
{
	for (unsigned i = 0; i < n; i++) {
		DAT_EVENT event = wire_event(w.request, DAT_DTO_COMPLETION_EVENT);

		if (event.event_data.dto_completion_event_data.status != status)
			fail("send %u has status %d", i, event.event_data.dto_completion_event_data.status);
	}
}

static void expect_frames(unsigned n)
{
	static uint8_t got[2000];

	for (unsigned i = 0; i < n; i++)
		EXPECT(wire_receive(&w, got, sizeof got) == LENGTH && !memcmp(got, w.memory, LENGTH));
}

static void post_batch(void)
{
	DAT_ETH_SEND how = { .flags = DAT_ETH_SEND_MORE };

	for (unsigned i = 0; i < FRAMES - 1; i++)
		OK(wire_post_send_how(&w, LENGTH, i, &how));
	OK(wire_post_send(&w, 0, LENGTH, FRAMES - 1));
}

static void ETH_38_frames_pass_the_discipline(void)
{
	open_sender(" raw:eth0  0  eth_qdisc=bypass ");
	for (unsigned i = 0; i < FRAMES; i++)
		OK(wire_post_send(&w, 0, LENGTH, i));
	post_batch();
	expect_sends(2 * FRAMES, DAT_DTO_SUCCESS);
	expect_frames(2 * FRAMES);
	wire_close(&w);
}

static void hold_all_but_two(const char *params)
{
	open_sender(params);
	post_batch();
	expect_sends(FRAMES, DAT_DTO_SUCCESS);
	expect_frames(2);
	EXPECT(wire_is_silent(&w));
	wire_close(&w);
}

static void ETH_38_without_it_the_discipline_counts(void)
{
	hold_all_but_two("eth0 0");
}

static void ETH_38_the_last_option_counts(void)
{
	hold_all_but_two("eth0 0 eth_qdisc=bypass eth_qdisc=default");
}

/* In a batch with a frame, and alone. The kernel would drop the frame. */
static void segment(bool batch)
{
	DAT_ETH_SEND how = { .flags = DAT_ETH_SEND_TSO | DAT_ETH_SEND_MORE, .mss = 50, .header_length = 54 };
	static uint8_t got[2000];
	size_t length;

	open_sender("eth0 0 eth_qdisc=bypass");
	length = wire_tcp(&w, w.memory, 14, 4, 100) + 100;
	if (!batch)
		how.flags = DAT_ETH_SEND_TSO;
	OK(wire_post_send_how(&w, length, 1, &how));
	if (batch)
		OK(wire_post_send(&w, 0, LENGTH, 2));
	expect_sends(batch ? 2 : 1, DAT_DTO_SUCCESS);
	for (unsigned i = 0; i < 2; i++)
		EXPECT(wire_receive(&w, got, sizeof got) == 104 && wire_checksums_are_right(got, 14));
	EXPECT(wire_is_silent(&w));	/* the frame is behind it in the discipline */
	wire_close(&w);
}

static void ETH_38_a_message_to_segment_ends_the_bypass(void)
{
	segment(false);
}

static void ETH_38_a_message_to_segment_in_a_batch_ends_it_too(void)
{
	segment(true);
}

static void ETH_38_a_device_without_carrier_fails_sends(void)
{
	open_sender("eth0 0 eth_qdisc=bypass");
	wire_command("ip link set peer down");
	for (int i = 0; i < 1000 && system("ip link show eth0 | grep -q NO-CARRIER"); i++)
		;
	OK(wire_post_send(&w, 0, LENGTH, 1));
	expect_sends(1, DAT_DTO_ERR_TRANSPORT);
	post_batch();
	expect_sends(FRAMES, DAT_DTO_ERR_TRANSPORT);
	wire_close(&w);
}

static void open_wrong(const void *params)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;

	life_entry(WIRE_IA, "libdaplsoft.so.2", params);
	if (dat_ia_open(WIRE_IA, 8, &async, &ia) == DAT_SUCCESS)
		fail("it is opened");
}

static void ETH_38_another_value_is_refused_in_one_line(void)
{
	static const char *const wrong[] = {
		"lo 0 eth_qdisc=no", "lo 0 eth_qdisc", "lo 0 eth_qdisc=", "lo 0 eth_qdisc=bypassed",
		"lo 0 eth_other=bypass", "lo 0 eth_qdisc=bypass 0", "lo 0 0",
	};

	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		struct child_result result = run(open_wrong, wrong[i]);

		if (result.status || result.lines != 1 || !strstr(result.text, wrong[i]) ||
		    !strstr(result.text, "expected eth_qdisc=bypass or eth_qdisc=default"))
			fail("\"%s\": status %d, %d lines: %s", wrong[i], result.status, result.lines, result.text);
	}
}

int main(int argc, char **argv)
{
	static const struct life_case cases[] = {
		CASE(ETH_38_frames_pass_the_discipline),
		CASE(ETH_38_without_it_the_discipline_counts),
		CASE(ETH_38_the_last_option_counts),
		CASE(ETH_38_a_message_to_segment_ends_the_bypass),
		CASE(ETH_38_a_message_to_segment_in_a_batch_ends_it_too),
		CASE(ETH_38_a_device_without_carrier_fails_sends),
		CASE(ETH_38_another_value_is_refused_in_one_line),
	};

	if (!wire_possible())
		return WIRE_SKIPPED;
	return life_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
