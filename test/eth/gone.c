/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* gone.c - the network device changes under raw Ethernet endpoints that have posted sends: it is deleted or renamed,
 * its link goes down, its MTU becomes smaller. Each send completes once, in order, with a status that dat_eth(7) names,
 * dat_net_watch(3) tells what happened, and nothing is left of endpoint and IA. */
#include "wire.h"
#include <dat/dat_net_extensions.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SHORT = 100, LONG = 1514, SENDS = 40, WATCHED = DAT_NET_LINK | DAT_NET_MTU | DAT_NET_ADDRESS };
enum {
	WARM = 40,		/* more objects of a kind than freed ones that the provider keeps */
	ROUNDS = 6,
	SLACK = 8192,		/* bytes; a leaked queue pair or port in each round is far more */
};

static struct wire w;

static void open_watched(void)
{
	wire_open(&w);
	OK(dat_net_watch(w.ia, WATCHED));
	wire_endpoint(&w, "", NULL);
	wire_frame(&w, w.memory, LONG, 1);
}

static void set_rate(DAT_UINT64 bits_per_s)
{
	DAT_ETH_PACE pace = { .bits_per_s = bits_per_s };

	OK(dat_eth_pace(w.ep, &pace));
}

static void expect_no_more(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;

	EXPECT(DAT_GET_TYPE(dat_evd_dequeue(evd, &event)) == DAT_QUEUE_EMPTY);
}

static size_t length_of(uint64_t cookie)
{
	return cookie % 3 == 2 ? LONG : SHORT;
}

/* A segmented message leaves first, and uses up the rate for a minute. The other sends wait. */
static void post_waiting(void)
{
	DAT_ETH_SEND segment = { .flags = DAT_ETH_SEND_TSO, .mss = 1000, .header_length = 54 };

	set_rate(8000);
	OK(wire_post_send_how(&w, wire_tcp(&w, w.memory, 14, 4, 60000) + 60000, 0, &segment));
	wire_expect_send(&w, 0, DAT_DTO_SUCCESS);
	wire_frame(&w, w.memory, LONG, 1);
	for (uint64_t i = 1; i < SENDS; i++)
		OK(wire_post_send(&w, 0, length_of(i), i));
	expect_no_more(w.request);
}

/* The next change of this kind. */
static void await_change(DAT_UINT32 what, DAT_UINT32 before, DAT_UINT32 now)
{
	DAT_NET_CHANGE_DATA data;
	DAT_EVENT event;

	do {
		event = wire_event(w.async, DAT_NET_CHANGE_EVENT);
		memcpy(&data, event.event_extension_data, sizeof data);
	} while (data.what != what);
	if (data.before != before || data.now != now || data.ia != w.ia)
		fail("change 0x%x from %u to %u; expected from %u to %u", what, data.before, data.now, before, now);
}

static void close_all(void)
{
	expect_no_more(w.request);
	OK(dat_ep_free(w.ep));
	wire_close(&w);
}

/* --- deleted -------------------------------------------------------------------------------- */

static void ETH_19_sends_of_a_deleted_device_fail_in_order(void)
{
	open_watched();
	post_waiting();
	wire_command("ip link del eth0");
	await_change(DAT_NET_LINK, 1, 0);
	expect_no_more(w.request);
	set_rate(0);
	for (uint64_t i = 1; i < SENDS; i++)
		wire_expect_send(&w, i, DAT_DTO_ERR_TRANSPORT);
	OK(wire_post_send(&w, 0, SHORT, SENDS));
	wire_expect_send(&w, SENDS, DAT_DTO_ERR_TRANSPORT);
	close_all();
}

/* A send that is in the kernel's queue when the device goes counts as sent. Its time is not reported. */
static void ETH_19_stamped_sends_of_a_deleted_device_complete(void)
{
	DAT_ETH_ATTR attr = { .size = sizeof attr };
	DAT_ETH_SEND how = { .flags = DAT_ETH_SEND_STAMP };

	open_watched();
	OK(dat_eth_query(w.ia, &attr));
	if (!(attr.caps & DAT_ETH_CAP_SEND_STAMP))
		skip("this kernel's veth does not tell when frames leave");
	if (system("tc qdisc add dev eth0 root tbf rate 8bit burst 250 latency 1000s 2>/dev/null"))
		skip("no tc with tbf here");
	OK(wire_post_send(&w, 0, 2 * SHORT, 0));		/* uses the burst up */
	wire_expect_send(&w, 0, DAT_DTO_SUCCESS);
	for (uint64_t i = 1; i < SENDS; i++)
		OK(wire_post_send_how(&w, SHORT, i, &how));
	expect_no_more(w.request);
	wire_command("ip link del eth0");
	for (uint64_t i = 1; i < SENDS; i++) {
		DAT_EVENT event = wire_event(w.request, DAT_ETH_DTO_EVENT);
		const DAT_DTO_COMPLETION_EVENT_DATA *done = &event.event_data.dto_completion_event_data;
		DAT_ETH_FRAME frame;

		memcpy(&frame, event.event_extension_data, sizeof frame);
		EXPECT(done->user_cookie.as_64 == i && !frame.time);
		EXPECT(done->status == (i == 1 ? DAT_DTO_SUCCESS : DAT_DTO_ERR_TRANSPORT));
	}
	close_all();
}

static void *delete_device(void *arg)
{
	wire_command("ip link del eth0");
	atomic_store((atomic_bool *)arg, true);
	return NULL;
}

/* Takes the completions that are there. No send succeeds after the first that failed. */
static void take_some(uint64_t *completed, bool *failing)
{
	DAT_EVENT event;

	while (dat_evd_dequeue(w.request, &event) == DAT_SUCCESS) {
		const DAT_DTO_COMPLETION_EVENT_DATA *done = &event.event_data.dto_completion_event_data;

		EXPECT(event.event_number == DAT_DTO_COMPLETION_EVENT && done->user_cookie.as_64 == *completed);
		EXPECT(done->status == DAT_DTO_ERR_TRANSPORT || (done->status == DAT_DTO_SUCCESS && !*failing));
		*failing |= done->status != DAT_DTO_SUCCESS;
		++*completed;
	}
}

/* Posts single and held sends, while the device is deleted at some moment. */
static void ETH_19_sends_that_race_with_the_deletion_complete_once(void)
{
	uint64_t posted = 0, completed = 0, last = UINT64_MAX;
	double end = life_now() + 60;
	atomic_bool deleted = false;
	bool failing = false;
	pthread_t thread;

	open_watched();
	EXPECT(!pthread_create(&thread, NULL, delete_device, &deleted));
	while (completed < last) {
		DAT_ETH_SEND how = { .flags = posted % 7 ? DAT_ETH_SEND_MORE : 0 };

		if (last == UINT64_MAX && atomic_load(&deleted))
			last = posted + SENDS;
		if (posted < last && wire_post_send_how(&w, SHORT, posted, &how) == DAT_SUCCESS)
			posted++;
		take_some(&completed, &failing);
		EXPECT(life_now() < end);
	}
	pthread_join(thread, NULL);
	EXPECT(failing && posted == last);
	close_all();
}

static void ETH_6_disconnect_flushes_when_the_device_is_gone(void)
{
	DAT_ETH_RULE any = wire_any();

	open_watched();
	wire_rule(&w, &any);
	wire_post(&w, 0, SHORT, 77);
	post_waiting();
	wire_command("ip link del eth0");
	await_change(DAT_NET_LINK, 1, 0);
	OK(dat_ep_disconnect(w.ep, DAT_CLOSE_ABRUPT_FLAG));
	for (uint64_t i = 1; i < SENDS; i++)
		wire_expect_send(&w, i, DAT_DTO_ERR_FLUSHED);
	EXPECT(wire_event(w.recv,
			  DAT_ETH_DTO_EVENT).event_data.dto_completion_event_data.status == DAT_DTO_ERR_FLUSHED);
	expect_no_more(w.recv);
	close_all();
}

/* The endpoint has waiting sends, receives and rules, or an armed ring. */
static void open_and_lose_device(bool ring)
{
	DAT_ETH_RULE any = wire_any();

	open_watched();
	if (ring) {
		OK(dat_ep_free(w.ep));
		wire_endpoint(&w, "64", NULL);
	}
	wire_rule(&w, &any);
	if (ring)
		OK(dat_eth_arm(w.ep));
	else
		wire_post(&w, 0, SHORT, 77);
	post_waiting();
	wire_command("ip link del eth0");
	await_change(DAT_NET_LINK, 1, 0);
	if (ring)
		OK(dat_ep_free(w.ep));
	wire_close(&w);
}

/* Loads the libraries, and makes so many freed objects of each kind that later rounds reuse their memory. */
static void warm_up(void)
{
	DAT_ETH_RULE any = wire_any();

	wire_network(&w);
	for (int i = 0; i < WARM; i++) {
		wire_ia(&w);
		wire_endpoint(&w, "", NULL);
		wire_rule(&w, &any);
		OK(dat_ia_close(w.ia, DAT_CLOSE_ABRUPT_FLAG));
	}
	close(w.peer);
	for (int i = 0; i < ROUNDS; i++)
		open_and_lose_device(i % 2);
}

/* A build with a sanitizer finds leaks, too. */
static void ETH_19_nothing_is_left_of_an_ia_without_its_device(void)
{
	size_t memory;
	int open;

	warm_up();
	open = open_descriptors();
	memory = mallinfo2().uordblks;
	for (int i = 0; i < ROUNDS; i++)
		open_and_lose_device(i % 2);
	if (open_descriptors() != open)
		fail("%d descriptors, %d before: %s", open_descriptors(), open, what_is_open());
	if (!SANITIZED && mallinfo2().uordblks > memory + SLACK)
		fail("%zu bytes in use, %zu before", mallinfo2().uordblks, memory);
}

/* --- down, and smaller ---------------------------------------------------------------------- */

static void ETH_19_sends_posted_before_the_link_went_down_fail_in_order(void)
{
	open_watched();
	post_waiting();
	wire_command("ip link set eth0 down");
	await_change(DAT_NET_LINK, 1, 0);
	expect_no_more(w.request);
	set_rate(0);
	for (uint64_t i = 1; i < SENDS; i++)
		wire_expect_send(&w, i, DAT_DTO_ERR_TRANSPORT);
	wire_command("ip link set eth0 up");
	wire_await_up();
	OK(wire_post_send(&w, 0, SHORT, SENDS));
	wire_expect_send(&w, SENDS, DAT_DTO_SUCCESS);
	close_all();
}

/* Receives the frames that were sent: segments of post_waiting(), and frames that are not too long. Returns
 * their number. */
static unsigned take_frames(void)
{
	static uint8_t got[1 << 16];
	unsigned frames = 0;

	for (; !wire_is_silent(&w); frames++)
		EXPECT(wire_receive(&w, got, sizeof got) != LONG);
	return frames;
}

static void ETH_5_sends_that_became_too_long_fail_alone(void)
{
	unsigned before, sent = 0;

	open_watched();
	post_waiting();
	before = take_frames();
	wire_command("ip link set eth0 mtu 1000");
	await_change(DAT_NET_MTU, 1500, 1000);
	set_rate(0);
	for (uint64_t i = 1; i < SENDS; i++) {
		wire_expect_send(&w, i, length_of(i) == LONG ? DAT_DTO_ERR_LOCAL_LENGTH : DAT_DTO_SUCCESS);
		sent += length_of(i) == SHORT;
	}
	EXPECT(before && take_frames() == sent);
	wire_command("ip link set eth0 mtu 1500");
	OK(wire_post_send(&w, 0, LONG, SENDS));
	wire_expect_send(&w, SENDS, DAT_DTO_SUCCESS);
	close_all();
}

/* --- its link went down, and is up again -------------------------------------------------------- */

static void expect_no_event(void)
{
	DAT_EVENT event;
	DAT_COUNT more;

	FAILS(dat_evd_wait(w.recv, 100000, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
}

/* The socket has an error then, which keeps it ready until it is taken. */
static void ETH_19_a_link_that_goes_down_wakes_a_ring_once(void)
{
	DAT_ETH_RULE any = wire_any();
	DAT_ETH_FRAME frame;
	uint8_t sent[SHORT];

	wire_open(&w);
	wire_endpoint(&w, "64", NULL);
	wire_rule(&w, &any);
	OK(dat_eth_arm(w.ep));
	wire_command("ip link set eth0 down");
	wire_event(w.recv, DAT_ETH_READY_EVENT);
	OK(dat_eth_arm(w.ep));
	expect_no_event();
	wire_command("ip link set eth0 up");
	wire_await_up();
	expect_no_event();
	wire_frame(&w, sent, sizeof sent, 3);
	wire_send(&w, sent, sizeof sent);
	wire_event(w.recv, DAT_ETH_READY_EVENT);
	EXPECT(wire_poll(&w, &frame, 1) == 1 && frame.length == SHORT);
	close_all();
}

/* --- renamed ------------------------------------------------------------------------------------- */

static void ETH_18_a_renamed_device_is_the_same(void)
{
	DAT_ETH_STATS stats = { .size = sizeof stats };
	DAT_ETH_ATTR attr = { .size = sizeof attr };
	DAT_EP_ATTR raw = wire_attr();
	DAT_EP_HANDLE another;

	wire_open(&w);
	wire_endpoint(&w, "", NULL);
	wire_frame(&w, w.memory, LONG, 1);
	wire_command("ip link set eth0 down && ip link set eth0 name other0 && ip link set other0 up && "
		     "ip link add eth0 type veth peer name eth1 && "
		     "until ip link show other0 | grep -q 'state UP'; do sleep 0.05; done");
	OK(wire_post_send(&w, 0, SHORT, 1));
	wire_expect_send(&w, 1, DAT_DTO_SUCCESS);
	OK(dat_eth_stats(w.ep, &stats));
	EXPECT(stats.lost_device == 0 && stats.sent == 1);
	set_rate(8000000);
	OK(dat_eth_query(w.ia, &attr));
	EXPECT(!memcmp(attr.address, w.eth0, 6));
	OK(dat_ep_create(w.ia, w.pz, w.recv, w.request, DAT_HANDLE_NULL, &raw, &another));
	OK(dat_ep_free(another));
	close_all();
}

int main(int argc, char **argv)
{
	static const struct life_case cases[] = {
		CASE(ETH_19_sends_of_a_deleted_device_fail_in_order),
		CASE(ETH_19_stamped_sends_of_a_deleted_device_complete),
		CASE(ETH_19_sends_that_race_with_the_deletion_complete_once),
		CASE(ETH_6_disconnect_flushes_when_the_device_is_gone),
		CASE(ETH_19_nothing_is_left_of_an_ia_without_its_device),
		CASE(ETH_19_sends_posted_before_the_link_went_down_fail_in_order),
		CASE(ETH_5_sends_that_became_too_long_fail_alone),
		CASE(ETH_19_a_link_that_goes_down_wakes_a_ring_once),
		CASE(ETH_18_a_renamed_device_is_the_same),
	};

	if (!wire_possible())
		return WIRE_SKIPPED;
	return life_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
