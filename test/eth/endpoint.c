/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* endpoint.c - raw Ethernet endpoints as endpoints: creating, sending, posted receives, the calls that they refuse,
 * disconnect and reset, a link that is down. */
#include "wire.h"
#include <arpa/inet.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct wire w;

static void ETH_1_it_is_connected_at_once(void)
{
	DAT_EP_STATE state;

	wire_open(&w);
	wire_endpoint(&w, "", NULL);
	OK(dat_ep_get_status(w.ep, &state, NULL, NULL));
	EXPECT(state == DAT_EP_STATE_CONNECTED);
	OK(dat_ep_free(w.ep));
	wire_close(&w);
}

static void ETH_1_without_an_evd_it_only_sends_or_receives(void)
{
	DAT_EP_ATTR attr = wire_attr();
	uint8_t got[100];
	DAT_EP_HANDLE ep;

	wire_open(&w);
	OK(dat_ep_create(w.ia, w.pz, DAT_HANDLE_NULL, w.request, DAT_HANDLE_NULL, &attr, &w.ep));
	wire_frame(&w, w.memory, 60, 3);
	OK(wire_post_send(&w, 0, 60, 1));
	EXPECT(wire_receive(&w, got, sizeof got) == 60 && !memcmp(got, w.memory, 60));
	OK(dat_ep_create(w.ia, w.pz, w.recv, DAT_HANDLE_NULL, DAT_HANDLE_NULL, &attr, &ep));
	wire_close(&w);
}

static void ETH_2_no_pz_and_a_connect_evd_are_refused(void)
{
	DAT_EP_ATTR attr = wire_attr();
	DAT_EVD_HANDLE connect;
	DAT_EP_HANDLE ep;

	wire_open(&w);
	OK(dat_evd_create(w.ia, 4, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &connect));
	FAILS(dat_ep_create(w.ia, DAT_HANDLE_NULL, w.recv, w.request, DAT_HANDLE_NULL, &attr, &ep),
	      DAT_INVALID_HANDLE);
	FAILS(dat_ep_create(w.ia, w.pz, w.recv, w.request, connect, &attr, &ep), DAT_INVALID_HANDLE);
	OK(dat_evd_free(connect));
	wire_close(&w);
}

static void drop_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { { 0 } };

	if (syscall(SYS_capset, &header, none))
		fail("capset");
}

static void create_without_capability(const void *arg)
{
	DAT_EP_ATTR attr = wire_attr();
	DAT_EP_HANDLE ep;

	(void)arg;
	wire_open(&w);
	drop_capabilities();
	FAILS(dat_ep_create(w.ia, w.pz, w.recv, w.request, DAT_HANDLE_NULL, &attr, &ep),
	      DAT_PRIVILEGES_VIOLATION);
	OK(dat_ia_close(w.ia, DAT_CLOSE_ABRUPT_FLAG));
}

static void ETH_3_a_missing_capability_is_named(void)
{
	struct child_result result;

	result = run(create_without_capability, NULL);
	if (result.status || result.lines != 1 || !strstr(result.text, "CAP_NET_RAW") || !strstr(result.text, "eth0"))
		fail("status %d: %s", result.status, result.text);
}

static void ETH_4_wrong_attributes_are_refused(void)
{
	static const DAT_NAMED_ATTR wrong[] = {
		{ "eth_receive", "rings" }, { "eth_frames", "0" }, { "eth_frames", "-1" }, { "eth_frames", "" },
		{ "eth_frames", "1048577" }, { "eth_snap", "65537" }, { "eth_snap", "12x" }, { "eth_what", "1" },
		{ "eth_checksum", "yes" }, { "eth_fcs", "yes" },
	};
	DAT_EP_ATTR attr = wire_attr();
	DAT_EP_HANDLE ep;

	wire_open(&w);
	attr.ep_provider_specific_count = 1;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		attr.ep_provider_specific = (DAT_NAMED_ATTR *)&wrong[i];
		FAILS(dat_ep_create(w.ia, w.pz, w.recv, w.request, DAT_HANDLE_NULL, &attr, &ep),
		      DAT_INVALID_PARAMETER);
	}
	wire_close(&w);
}

static void create_with_fcs(const void *arg)
{
	DAT_NAMED_ATTR keep = { "eth_fcs", "keep" }, strip = { "eth_fcs", "strip" };
	DAT_EP_ATTR attr = wire_attr();
	DAT_EP_HANDLE ep;

	(void)arg;
	setenv("DAPL_TRACE_LEVEL", "1", 1);
	wire_open(&w);
	attr.ep_provider_specific_count = 1;
	attr.ep_provider_specific = &keep;
	FAILS(dat_ep_create(w.ia, w.pz, w.recv, w.request, DAT_HANDLE_NULL, &attr, &ep), DAT_MODEL_NOT_SUPPORTED);
	attr.ep_provider_specific = &strip;
	OK(dat_ep_create(w.ia, w.pz, w.recv, w.request, DAT_HANDLE_NULL, &attr, &ep));
	wire_close(&w);
}

/* Packet sockets never have it. */
static void ETH_39_frames_without_fcs_are_no_silent_substitute(void)
{
	DAT_ETH_ATTR attr = { .size = sizeof attr };
	struct child_result result;

	wire_open(&w);
	OK(dat_eth_query(w.ia, &attr));
	wire_close(&w);
	if (attr.caps & DAT_ETH_CAP_FCS)
		skip("the device gives frames with their FCS");
	result = run(create_with_fcs, NULL);
	if (result.status || !strstr(result.text, "eth_fcs is keep") || !strstr(result.text, "DAT_ETH_CAP_FCS"))
		fail("status %d: %s", result.status, result.text);
}

static void ETH_5_a_send_is_one_frame(void)
{
	static const size_t lengths[] = { 14, 15, 60, 64, 1000, 1514 };
	uint8_t got[2000];

	wire_open(&w);
	wire_endpoint(&w, "", NULL);
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		DAT_EVENT event;

		wire_frame(&w, w.memory, lengths[i], (unsigned)i);
		OK(wire_post_send(&w, 0, lengths[i], i));
		event = wire_event(w.request, DAT_DTO_COMPLETION_EVENT);
		EXPECT(event.event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS);
		EXPECT(event.event_data.dto_completion_event_data.user_cookie.as_64 == i);
		EXPECT(event.event_data.dto_completion_event_data.transfered_length == lengths[i]);
		EXPECT(wire_receive(&w, got, sizeof got) == lengths[i]);
		EXPECT(!memcmp(got, w.memory, lengths[i]));
	}
	wire_close(&w);
}

static void ETH_5_a_send_is_gathered(void)
{
	DAT_LMR_TRIPLET iov[3];
	uint8_t got[200];
	DAT_DTO_COOKIE cookie = { .as_64 = 0 };

	wire_open(&w);
	wire_endpoint(&w, "", NULL);
	wire_frame(&w, w.memory, 100, 9);
	for (int i = 0; i < 3; i++)
		iov[i] = (DAT_LMR_TRIPLET){ .lmr_context = w.context, .segment_length = i < 2 ? 7 : 86,
			.virtual_address = (uintptr_t)w.memory + 7 * i };
	OK(dat_ep_post_send(w.ep, 3, iov, cookie, DAT_COMPLETION_SUPPRESS_FLAG));
	EXPECT(wire_receive(&w, got, sizeof got) == 100 && !memcmp(got, w.memory, 100));
	wire_close(&w);
}

static void ETH_5_a_frame_of_a_wrong_length_is_refused(void)
{
	wire_open(&w);
	wire_endpoint(&w, "", NULL);
	FAILS(wire_post_send(&w, 0, 0, 0), DAT_LENGTH_ERROR);
	FAILS(wire_post_send(&w, 0, 13, 0), DAT_LENGTH_ERROR);
	FAILS(wire_post_send(&w, 0, 1515, 0), DAT_LENGTH_ERROR);
	FAILS(wire_post_send(&w, 0, 1519, 0), DAT_LENGTH_ERROR);
	EXPECT(wire_is_silent(&w));
	wire_close(&w);
}

/* The tag may be in another segment than the addresses. A second tag does not make more room. */
static void ETH_5_a_full_frame_may_have_a_tag(void)
{
	static const DAT_ETH_SEND insert = { .flags = DAT_ETH_SEND_VLAN, .vlan_tci = 7 };
	DAT_DTO_COOKIE cookie = { .as_64 = 2 };
	DAT_LMR_TRIPLET iov[2];
	uint8_t got[2000];

	wire_open(&w);
	wire_endpoint(&w, "", NULL);
	wire_frame(&w, w.memory, 1518, 5);
	FAILS(wire_post_send(&w, 0, 1518, 1), DAT_LENGTH_ERROR);
	w.memory[12] = 0x81;
	w.memory[13] = 0x00;
	FAILS(wire_post_send(&w, 0, 1519, 1), DAT_LENGTH_ERROR);
	FAILS(wire_post_send_how(&w, 1518, 1, &insert), wire_on_soft() ? DAT_LENGTH_ERROR : DAT_MODEL_NOT_SUPPORTED);
	OK(wire_post_send(&w, 0, 1518, 1));
	wire_expect_send(&w, 1, DAT_DTO_SUCCESS);
	EXPECT(wire_receive(&w, got, sizeof got) == 1518 && !memcmp(got, w.memory, 1518));
	for (int i = 0; i < 2; i++)
		iov[i] = (DAT_LMR_TRIPLET){ .lmr_context = w.context, .segment_length = i ? 1505 : 13,
			.virtual_address = (uintptr_t)w.memory + 13 * i };
	OK(dat_ep_post_send(w.ep, 2, iov, cookie, DAT_COMPLETION_DEFAULT_FLAG));
	wire_expect_send(&w, 2, DAT_DTO_SUCCESS);
	EXPECT(wire_receive(&w, got, sizeof got) == 1518 && !memcmp(got, w.memory, 1518));
	EXPECT(wire_is_silent(&w));
	wire_close(&w);
}

static void ETH_5_memory_that_is_not_registered_is_not_sent(void)
{
	DAT_EVENT event;

	wire_open(&w);
	wire_endpoint(&w, "", NULL);
	OK(dat_lmr_free(w.lmr));
	OK(wire_post_send(&w, 0, 60, 0));
	event = wire_event(w.request, DAT_DTO_COMPLETION_EVENT);
	EXPECT(event.event_data.dto_completion_event_data.status == DAT_DTO_ERR_LOCAL_PROTECTION);
	EXPECT(wire_is_silent(&w));
	wire_close(&w);
}

static DAT_DTO_COMPLETION_STATUS status_of_next(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number)
{
	return wire_event(evd, number).event_data.dto_completion_event_data.status;
}

static void ETH_6_disconnect_flushes_and_reset_connects(void)
{
	DAT_ETH_RULE any = wire_any();
	DAT_ETH_RULE_HANDLE rule;
	uint8_t frame[60];
	DAT_EP_STATE state;

	wire_open(&w);
	wire_endpoint(&w, "", NULL);
	rule = wire_rule(&w, &any);
	wire_post(&w, 0, 100, 1);
	OK(dat_ep_disconnect(w.ep, DAT_CLOSE_GRACEFUL_FLAG));
	OK(dat_ep_get_status(w.ep, &state, NULL, NULL));
	EXPECT(state == DAT_EP_STATE_DISCONNECTED);
	EXPECT(status_of_next(w.recv, DAT_ETH_DTO_EVENT) == DAT_DTO_ERR_FLUSHED);
	OK(wire_post_send(&w, 0, 60, 0));
	EXPECT(status_of_next(w.request, DAT_DTO_COMPLETION_EVENT) == DAT_DTO_ERR_FLUSHED);
	FAILS(dat_eth_rule_free(rule), DAT_INVALID_HANDLE);
	FAILS(dat_eth_rule_add(w.ep, &any, &rule), DAT_INVALID_STATE);
	OK(dat_ep_reset(w.ep));
	OK(dat_ep_get_status(w.ep, &state, NULL, NULL));
	EXPECT(state == DAT_EP_STATE_CONNECTED);
	wire_rule(&w, &any);
	wire_post(&w, 0, 100, 2);
	wire_send(&w, frame, wire_frame(&w, frame, sizeof frame, 5));
	EXPECT(status_of_next(w.recv, DAT_ETH_DTO_EVENT) == DAT_DTO_SUCCESS);
	EXPECT(!memcmp(w.memory, frame, sizeof frame));
	wire_close(&w);
}

static void ETH_7_calls_for_connections_are_refused(void)
{
	DAT_SOCK_ADDR *to = (DAT_SOCK_ADDR *)&(struct sockaddr){ .sa_family = AF_INET };
	DAT_LMR_TRIPLET local = { .lmr_context = 0, .segment_length = 8, .virtual_address = 0 };
	DAT_RMR_TRIPLET remote = { .rmr_context = 0, .segment_length = 8, .virtual_address = 0 };
	DAT_DTO_COOKIE cookie = { .as_64 = 0 };

	wire_open(&w);
	wire_endpoint(&w, "", NULL);
	FAILS(dat_ep_connect(w.ep, to, 1, 1000000, 0, NULL, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
	      DAT_MODEL_NOT_SUPPORTED);
	FAILS(dat_ep_post_rdma_write(w.ep, 1, &local, cookie, &remote, DAT_COMPLETION_DEFAULT_FLAG),
	      DAT_MODEL_NOT_SUPPORTED);
	FAILS(dat_ep_post_rdma_read(w.ep, 1, &local, cookie, &remote, DAT_COMPLETION_DEFAULT_FLAG),
	      DAT_MODEL_NOT_SUPPORTED);
	FAILS(dat_ep_post_send_with_invalidate(w.ep, 1, &local, cookie, DAT_COMPLETION_DEFAULT_FLAG, DAT_TRUE, 1),
	      DAT_MODEL_NOT_SUPPORTED);
	wire_close(&w);
}

static void ETH_7_ring_calls_need_a_ring_and_receives_none(void)
{
	DAT_ETH_FRAME frame;
	DAT_LMR_TRIPLET iov;
	DAT_COUNT got;

	wire_open(&w);
	wire_endpoint(&w, "", NULL);
	FAILS(dat_eth_poll(w.ep, &frame, 1, &got), DAT_MODEL_NOT_SUPPORTED);
	FAILS(dat_eth_release(w.ep, 0), DAT_MODEL_NOT_SUPPORTED);
	FAILS(dat_eth_arm(w.ep), DAT_MODEL_NOT_SUPPORTED);
	OK(dat_ep_free(w.ep));
	wire_endpoint(&w, "64", NULL);
	iov = (DAT_LMR_TRIPLET){ .lmr_context = w.context, .segment_length = 100,
		.virtual_address = (uintptr_t)w.memory };
	FAILS(dat_ep_post_recv(w.ep, 1, &iov, (DAT_DTO_COOKIE){ .as_64 = 0 }, DAT_COMPLETION_DEFAULT_FLAG),
	      DAT_MODEL_NOT_SUPPORTED);
	wire_close(&w);
}

static const DAT_ETH_FRAME *frame_of(const DAT_EVENT *event)
{
	return (const DAT_ETH_FRAME *)event->event_extension_data;
}

static void ETH_8_posted_receives_get_frames(void)
{
	DAT_ETH_RULE any = wire_any();
	uint8_t frame[1514];
	uint64_t last = 0;

	wire_open(&w);
	wire_endpoint(&w, "", NULL);
	any.tag = 42;
	wire_rule(&w, &any);
	for (unsigned i = 0; i < 200; i++) {
		size_t length = 14 + i * 7 % 1501;
		DAT_EVENT event;

		wire_post(&w, 0, 2000, i);
		wire_send(&w, frame, wire_frame(&w, frame, length, i));
		event = wire_event(w.recv, DAT_ETH_DTO_EVENT);
		EXPECT(event.event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS);
		EXPECT(event.event_data.dto_completion_event_data.user_cookie.as_64 == i);
		EXPECT(event.event_data.dto_completion_event_data.transfered_length == length);
		EXPECT(frame_of(&event)->length == length && frame_of(&event)->wire_length == length);
		EXPECT(frame_of(&event)->tag == 42 && !frame_of(&event)->lost);
		EXPECT(frame_of(&event)->time >= last && frame_of(&event)->time);
		last = frame_of(&event)->time;
		EXPECT(!memcmp(w.memory, frame, length));
	}
	wire_close(&w);
}

static void ETH_8_a_long_frame_is_cut(void)
{
	DAT_ETH_RULE any = wire_any();
	uint8_t frame[1000];
	DAT_EVENT event;

	wire_open(&w);
	wire_endpoint(&w, "", NULL);
	wire_rule(&w, &any);
	memset(w.memory, 0xee, 200);
	wire_post(&w, 0, 20, 1);
	wire_send(&w, frame, wire_frame(&w, frame, sizeof frame, 1));
	event = wire_event(w.recv, DAT_ETH_DTO_EVENT);
	EXPECT(event.event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS);
	EXPECT(frame_of(&event)->length == 20 && frame_of(&event)->wire_length == sizeof frame);
	EXPECT(!memcmp(w.memory, frame, 20) && w.memory[20] == 0xee);
	wire_close(&w);
}

static bool agent_runs, agent_may_end;	/* atomic */

/* Keeps the service thread, which calls it. */
static void slow_agent(DAT_PVOID data, DAT_EVD_HANDLE evd)
{
	(void)data;
	(void)evd;
	__atomic_store_n(&agent_runs, true, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&agent_may_end, __ATOMIC_ACQUIRE))
		usleep(1000);
}

static void ETH_8_a_polling_thread_needs_no_other_thread(void)
{
	DAT_OS_WAIT_PROXY_AGENT agent = { .proxy_agent_func = slow_agent };
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };
	DAT_ETH_RULE any = wire_any();
	DAT_EVD_HANDLE evd;
	DAT_CNO_HANDLE cno;
	uint8_t frame[60];
	double end;

	wire_open(&w);
	wire_endpoint(&w, "", NULL);
	wire_rule(&w, &any);
	OK(dat_cno_create(w.ia, agent, &cno));
	OK(dat_evd_create(w.ia, 1, cno, DAT_EVD_SOFTWARE_FLAG, &evd));
	OK(dat_evd_post_se(evd, &event));
	while (!__atomic_load_n(&agent_runs, __ATOMIC_ACQUIRE))
		usleep(1000);
	for (unsigned i = 0; i < 3; i++) {
		wire_post(&w, 0, 100, i);
		wire_send(&w, frame, wire_frame(&w, frame, sizeof frame, i));
		end = life_now() + 10;
		while (dat_evd_dequeue(w.recv, &event) != DAT_SUCCESS)
			if (life_now() > end)
				fail("frame %u has not come", i);
		EXPECT(event.event_data.dto_completion_event_data.user_cookie.as_64 == i);
		EXPECT(!memcmp(w.memory, frame, sizeof frame));
	}
	__atomic_store_n(&agent_may_end, true, __ATOMIC_RELEASE);
	OK(dat_evd_free(evd));
	OK(dat_cno_free(cno));
	wire_close(&w);
}

static void ETH_19_a_link_that_is_down_fails_sends(void)
{
	uint8_t got[100];

	wire_open(&w);
	wire_endpoint(&w, "", NULL);
	wire_frame(&w, w.memory, 60, 0);
	wire_command("ip link set eth0 down");
	OK(wire_post_send(&w, 0, 60, 0));
	EXPECT(status_of_next(w.request, DAT_DTO_COMPLETION_EVENT) == DAT_DTO_ERR_TRANSPORT);
	wire_command("ip link set eth0 up");
	wire_await_up();
	OK(wire_post_send(&w, 0, 60, 1));
	EXPECT(status_of_next(w.request, DAT_DTO_COMPLETION_EVENT) == DAT_DTO_SUCCESS);
	EXPECT(wire_receive(&w, got, sizeof got) == 60);
	wire_close(&w);
}

static void use_a_tunnel(const void *arg)
{
	DAT_ETH_ATTR attr = { .size = sizeof attr };
	DAT_EP_ATTR raw = wire_attr();

	(void)arg;
	wire_ia_params(&w, "raw:tun0 0");
	FAILS(dat_eth_query(w.ia, &attr), DAT_MODEL_NOT_SUPPORTED);
	FAILS(dat_ep_create(w.ia, w.pz, w.recv, w.request, DAT_HANDLE_NULL, &raw, &w.ep), DAT_MODEL_NOT_SUPPORTED);
	wire_close(&w);
}

/* A tunnel's packets begin with their IP header. */
static void ETH_41_a_device_without_ethernet_is_refused(void)
{
	struct child_result result;

	wire_network(&w);
	if (system("ip tuntap add dev tun0 mode tun 2>/dev/null || ip link add tun0 type ipip local 10.77.0.1 "
		   "2>/dev/null"))
		skip("no tun and no ipip in this kernel");
	result = run(use_a_tunnel, NULL);
	if (result.status || result.lines != 2 || !strstr(result.text, "tun0: found link type ") ||
	    !strstr(result.text, "expected Ethernet (1) or loopback (772)"))
		fail("%d, and this: %s", result.status, result.text);
}

/* Sends datagrams to a socket of this host. */
static void send_over_lo(int n)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int to = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), from = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t size = sizeof at;

	if (bind(to, (struct sockaddr *)&at, size) || getsockname(to, (struct sockaddr *)&at, &size))
		fail("no socket on lo");
	while (n--)
		if (sendto(from, "x", 1, 0, (struct sockaddr *)&at, size) != 1)
			fail("sendto");
	close(from);
	close(to);
}

/* The kernel shows a frame on lo to packet sockets when it is sent, and again when it is received. */
static void ETH_42_frames_on_lo_come_once(void)
{
	enum { FRAMES = 10 };
	DAT_ETH_RULE any = wire_any();
	DAT_ETH_FRAME frame;
	DAT_COUNT more;

	wire_network(&w);
	wire_ia_params(&w, "raw:lo 0");
	for (int egress = 0; egress < 2; egress++) {
		wire_endpoint(&w, "64", NULL);
		any.flags |= egress ? DAT_ETH_EGRESS : 0;
		wire_rule(&w, &any);
		send_over_lo(FRAMES);
		for (int i = 0; i < FRAMES; i++)
			EXPECT(wire_poll(&w, &frame, 1) == 1 && !(frame.flags & DAT_ETH_FRAME_OUTGOING));
		memset(w.memory, 0, 60);	/* as the address of lo is */
		OK(wire_post_send(&w, 0, 60, 1));
		EXPECT(wire_poll(&w, &frame, 1) == 1 && frame.length == 60);
		usleep(20000);		/* ten times what a block of the ring waits */
		FAILS(dat_eth_poll(w.ep, &frame, 1, &more), DAT_QUEUE_EMPTY);
		OK(dat_ep_free(w.ep));
	}
	wire_close(&w);
}

static void ETH_9_query_tells_what_the_device_can_do(void)
{
	DAT_ETH_ATTR attr = { .size = sizeof attr };
	struct { DAT_UINT32 size, mtu, rest; } small = { .size = 8, .rest = 77 };
	DAT_PROVIDER_ATTR provider;
	const char *carrier = NULL;

	wire_open(&w);
	OK(dat_eth_query(w.ia, &attr));
	EXPECT(attr.mtu == 1500 && attr.max_frame == 1514 && !memcmp(attr.address, w.eth0, 6));
	EXPECT(attr.caps & DAT_ETH_CAP_COPY && attr.clock == DAT_ETH_CLOCK_SOFTWARE);
	OK(dat_eth_query(w.ia, (DAT_ETH_ATTR *)&small));
	EXPECT(small.mtu == 1500 && small.rest == 77);
	FAILS(dat_eth_query(w.ia, NULL), DAT_INVALID_PARAMETER);
	OK(dat_ia_query(w.ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &provider));
	for (int i = 0; i < provider.num_provider_specific_attr; i++)
		if (!strcmp(provider.provider_specific_attr[i].name, DAT_ETH_ATTR_RAW))
			carrier = provider.provider_specific_attr[i].value;
	EXPECT(carrier && !strcmp(carrier, "PACKET"));
	wire_close(&w);
}

int main(int argc, char **argv)
{
	static const struct life_case cases[] = {
		CASE(ETH_1_it_is_connected_at_once),
		CASE(ETH_1_without_an_evd_it_only_sends_or_receives),
		CASE(ETH_2_no_pz_and_a_connect_evd_are_refused),
		CASE(ETH_3_a_missing_capability_is_named),
		CASE(ETH_4_wrong_attributes_are_refused),
		CASE(ETH_39_frames_without_fcs_are_no_silent_substitute),
		CASE(ETH_5_a_send_is_one_frame),
		CASE(ETH_5_a_send_is_gathered),
		CASE(ETH_5_a_frame_of_a_wrong_length_is_refused),
		CASE(ETH_5_a_full_frame_may_have_a_tag),
		CASE(ETH_5_memory_that_is_not_registered_is_not_sent),
		CASE(ETH_6_disconnect_flushes_and_reset_connects),
		CASE(ETH_7_calls_for_connections_are_refused),
		CASE(ETH_7_ring_calls_need_a_ring_and_receives_none),
		CASE(ETH_8_posted_receives_get_frames),
		CASE(ETH_8_a_long_frame_is_cut),
		CASE(ETH_8_a_polling_thread_needs_no_other_thread),
		CASE(ETH_9_query_tells_what_the_device_can_do),
		CASE(ETH_41_a_device_without_ethernet_is_refused),
		CASE(ETH_42_frames_on_lo_come_once),
		CASE(ETH_19_a_link_that_is_down_fails_sends),
	};

	if (!wire_possible())
		return WIRE_SKIPPED;
	return life_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
