/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* take.c - rules that take frames away from the kernel: what a UDP socket of the host receives, and what the
 * endpoint does. */
#include "host.h"
#include <arpa/inet.h>
#include <errno.h>
#include <linux/bpf.h>
#include <net/if.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PORT = 5000, OTHER_PORT = 5001 };
#define GROUP "239.1.2.3"
static const char group_address[] = "\x01\x00\x5e\x01\x02\x03";

static struct wire w;

static void need_take(void)
{
	DAT_ETH_ATTR attr = { .size = sizeof attr };

	OK(dat_eth_query(w.ia, &attr));
	if (!(attr.caps & DAT_ETH_CAP_TAKE))
		skip("this kernel cannot take frames away: Linux 6.6 can");
}

static void open_ring(void)
{
	wire_open(&w);
	need_take();
	wire_endpoint(&w, "64", NULL);
}

static void send_datagram(const char *to, uint16_t port, uint32_t number)
{
	uint8_t frame[200];
	size_t length = host_frame(&w, frame, to, port, number);

	if (!strcmp(to, GROUP))
		memcpy(frame, group_address, 6);
	wire_send(&w, frame, length);
}

/* Returns the number of the next frame of the endpoint, or -1 if there is none. */
static int next_frame(void)
{
	DAT_ETH_FRAME frame;
	DAT_COUNT got;
	int number;

	for (int i = 0; i < 40; i++) {
		if (dat_eth_poll(w.ep, &frame, 1, &got) == DAT_SUCCESS) {
			number = (int)host_number(frame.data);
			OK(dat_eth_release(w.ep, 1));
			return number;
		}
		usleep(1000);	/* the ring hands over a block after 2 ms */
	}
	return -1;
}

static int wait_for_frame(void)
{
	DAT_ETH_FRAME frame;
	int number;

	wire_poll(&w, &frame, 1);
	number = (int)host_number(frame.data);
	OK(dat_eth_release(w.ep, 1));
	return number;
}

/* Waits until the rule has counted so many frames. */
static void await_count(DAT_ETH_RULE_HANDLE rule, DAT_UINT64 expected)
{
	double end = life_now() + 10;
	DAT_UINT64 frames = 0, bytes = 0;

	while (frames < expected && life_now() < end) {
		OK(dat_eth_rule_query(rule, NULL, &frames, &bytes));
		usleep(1000);
	}
	if (frames != expected)
		fail("the rule has counted %lu frames, not %lu", (unsigned long)frames, (unsigned long)expected);
}

static void ETH_28_the_kernel_does_not_see_what_is_taken(void)
{
	DAT_ETH_RULE rule = host_rule(DAT_ETH_TAKE, PORT);
	DAT_ETH_RULE_HANDLE handle;
	DAT_UINT64 frames, bytes;
	int taken, other;

	open_ring();
	taken = host_socket(PORT);
	other = host_socket(OTHER_PORT);
	handle = wire_rule(&w, &rule);
	for (unsigned i = 1; i <= 20; i++) {
		send_datagram("10.77.0.1", PORT, i);
		send_datagram("10.77.0.1", OTHER_PORT, 100 + i);
		EXPECT(wait_for_frame() == (int)i);
		EXPECT(host_next(other, 10000) == (int)(100 + i));
	}
	EXPECT(host_next(taken, 0) == -1 && next_frame() == -1);
	OK(dat_eth_rule_query(handle, NULL, &frames, &bytes));
	EXPECT(frames == 20 && bytes == 20 * (HOST_NUMBER + HOST_PAYLOAD));
	OK(dat_eth_rule_free(handle));
	send_datagram("10.77.0.1", PORT, 50);
	EXPECT(host_next(taken, 10000) == 50 && next_frame() == -1);
	wire_close(&w);
}

static void ETH_28_nobody_sees_what_is_dropped(void)
{
	DAT_ETH_RULE drop = host_rule(DAT_ETH_DROP, PORT), any = wire_any();
	DAT_ETH_RULE_HANDLE handle;
	DAT_UINT64 frames, bytes;
	int dropped, other;

	open_ring();
	dropped = host_socket(PORT);
	other = host_socket(OTHER_PORT);
	any.priority = 1;
	wire_rule(&w, &any);
	handle = wire_rule(&w, &drop);
	for (unsigned i = 1; i <= 5; i++)
		send_datagram("10.77.0.1", PORT, i);
	send_datagram("10.77.0.1", OTHER_PORT, 77);
	EXPECT(host_next(other, 10000) == 77 && host_next(dropped, 0) == -1);
	EXPECT(wait_for_frame() == 77 && next_frame() == -1);
	await_count(handle, 5);
	OK(dat_eth_rule_query(handle, NULL, &frames, &bytes));
	EXPECT(frames == 5 && bytes == 5 * (HOST_NUMBER + HOST_PAYLOAD));
	OK(dat_eth_rule_free(handle));
	send_datagram("10.77.0.1", PORT, 6);
	EXPECT(host_next(dropped, 10000) == 6 && wait_for_frame() == 6);
	/* another rule of the kind begins at 0 */
	handle = wire_rule(&w, &drop);
	send_datagram("10.77.0.1", PORT, 7);
	await_count(handle, 1);
	EXPECT(host_next(dropped, 0) == -1);
	wire_close(&w);
}

static void ETH_28_the_first_rule_decides(void)
{
	DAT_ETH_RULE copy = host_rule(DAT_ETH_COPY, PORT), take = wire_any();
	int first, other;

	open_ring();
	first = host_socket(PORT);
	other = host_socket(OTHER_PORT);
	take.mode = DAT_ETH_TAKE;
	take.priority = 5;
	wire_rule(&w, &copy);
	wire_rule(&w, &take);
	send_datagram("10.77.0.1", OTHER_PORT, 1);
	send_datagram("10.77.0.1", PORT, 2);
	EXPECT(host_next(first, 10000) == 2 && host_next(other, 0) == -1);
	EXPECT(wait_for_frame() == 1 && wait_for_frame() == 2);
	wire_close(&w);
}

/* What a program at the ingress of a device returns (enum tcx_action_base; older headers lack it). */
enum tcx_verdict { TO_NEXT_PROGRAM = -1, TO_HOST = 0, TO_NONE = 2 };

static int bpf_call(int command, void *attr, size_t size)
{
	int fd = (int)syscall(SYS_bpf, command, attr, size);

	if (fd < 0)
		fail("bpf command %d: %s", command, strerror(errno));
	return fd;
}

/* Attaches a program as another service would, before all that are there or behind them. It ends when the descriptor
 * is closed. */
static int attach_foreign(enum tcx_verdict verdict, bool before)
{
	struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = verdict }, { .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr load = { .prog_type = BPF_PROG_TYPE_SCHED_CLS, .insns = (uintptr_t)insns, .insn_cnt = 2,
		.license = (uintptr_t)"GPL" };
	struct {	/* BPF_LINK_CREATE, with the members of tcx */
		uint32_t program, interface, type, flags, relative, padding;
		uint64_t revision;
	} link = { .interface = if_nametoindex("eth0"), .type = 46 /* BPF_TCX_INGRESS */,
		.flags = before ? 1 << 3 : 1 << 4 /* BPF_F_BEFORE, BPF_F_AFTER */ };
	int fd;

	link.program = (uint32_t)bpf_call(BPF_PROG_LOAD, &load, sizeof load);
	fd = bpf_call(BPF_LINK_CREATE, &link, sizeof link);
	close((int)link.program);
	return fd;
}

/* A program that was there before, and one that is attached behind, decide about what the rules leave alone. */
static void ETH_28_rules_come_before_programs_of_others(void)
{
	DAT_ETH_RULE take = host_rule(DAT_ETH_TAKE, PORT);
	int taken, other, earlier, later;

	open_ring();
	taken = host_socket(PORT);
	other = host_socket(OTHER_PORT);
	earlier = attach_foreign(TO_HOST, true);
	wire_rule(&w, &take);
	send_datagram("10.77.0.1", PORT, 1);
	EXPECT(wait_for_frame() == 1 && host_next(taken, 100) == -1);
	send_datagram("10.77.0.1", OTHER_PORT, 2);
	EXPECT(host_next(other, 10000) == 2);
	close(earlier);
	later = attach_foreign(TO_NONE, false);
	send_datagram("10.77.0.1", OTHER_PORT, 3);
	send_datagram("10.77.0.1", PORT, 4);
	EXPECT(wait_for_frame() == 4 && host_next(other, 100) == -1 && host_next(taken, 0) == -1);
	close(later);
	send_datagram("10.77.0.1", OTHER_PORT, 5);
	EXPECT(host_next(other, 10000) == 5);
	wire_close(&w);
}

/* A program that is attached before the rules later ends the row when it passes or drops a frame. The
 * endpoint gets the frame all the same: the kernel copies it to packet sockets before. */
static void ETH_28_programs_that_come_before_the_rules_decide(void)
{
	DAT_ETH_RULE take = host_rule(DAT_ETH_TAKE, PORT);
	DAT_ETH_RULE_HANDLE handle;
	int host, foreign;

	open_ring();
	host = host_socket(PORT);
	handle = wire_rule(&w, &take);
	foreign = attach_foreign(TO_NEXT_PROGRAM, true);
	send_datagram("10.77.0.1", PORT, 1);
	EXPECT(wait_for_frame() == 1 && host_next(host, 100) == -1);
	close(foreign);
	foreign = attach_foreign(TO_HOST, true);
	send_datagram("10.77.0.1", PORT, 2);
	EXPECT(wait_for_frame() == 2 && host_next(host, 10000) == 2);
	close(foreign);
	foreign = attach_foreign(TO_NONE, true);
	send_datagram("10.77.0.1", PORT, 3);
	EXPECT(wait_for_frame() == 3 && host_next(host, 100) == -1);
	close(foreign);
	send_datagram("10.77.0.1", PORT, 4);
	EXPECT(wait_for_frame() == 4 && host_next(host, 100) == -1);
	OK(dat_eth_rule_free(handle));
	wire_close(&w);
}

static void ETH_28_a_stripped_tag_is_looked_at(void)
{
	DAT_ETH_RULE drop = wire_any();
	DAT_ETH_RULE_HANDLE handle;
	uint8_t frame[200];
	size_t length;

	open_ring();
	drop.mode = DAT_ETH_DROP;
	drop.key.vlan_tci = htons(7);
	drop.mask.vlan_tci = htons(0xfff);
	drop.key.port_dst = htons(PORT);
	drop.mask.port_dst = 0xffff;
	handle = wire_rule(&w, &drop);
	length = host_frame(&w, frame, "10.77.0.1", PORT, 1);
	memmove(frame + 16, frame + 12, length - 12);
	for (unsigned id = 6; id <= 8; id++) {
		memcpy(frame + 12, "\x81\x00\x20", 3);
		frame[15] = (uint8_t)id;
		wire_send(&w, frame, length + 4);
	}
	await_count(handle, 1);
	wire_close(&w);
}

static int member_socket(void)
{
	struct ip_mreqn group = { .imr_ifindex = (int)if_nametoindex("eth0") };
	int fd = host_socket(PORT);

	inet_pton(AF_INET, GROUP, &group.imr_multiaddr);
	if (setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &group, sizeof group))
		fail("the host does not join");
	return fd;
}

static void ETH_28_a_group_is_taken_and_the_host_stays_a_member(void)
{
	DAT_ETH_RULE rule = wire_any();
	uint8_t report[200];
	int member, other;

	open_ring();
	other = host_socket(OTHER_PORT);
	rule.mode = DAT_ETH_TAKE;
	rule.flags = DAT_ETH_JOIN;
	rule.key.ip_version = 4;
	rule.mask.ip_version = 255;
	inet_pton(AF_INET, GROUP, rule.key.ip_dst);
	memset(rule.mask.ip_dst, 255, 4);
	wire_rule(&w, &rule);
	EXPECT(wire_receive(&w, report, sizeof report) >= 54 && report[23] == 2 && report[38] == 0x22);
	EXPECT(!memcmp(report + 50, "\xef\x01\x02\x03", 4));
	member = member_socket();
	send_datagram(GROUP, PORT, 1);
	send_datagram("10.77.0.1", OTHER_PORT, 2);
	EXPECT(host_next(other, 10000) == 2 && host_next(member, 0) == -1);
	EXPECT(wait_for_frame() == 1 && next_frame() == -1);
	OK(dat_ep_disconnect(w.ep, DAT_CLOSE_ABRUPT_FLAG));
	send_datagram(GROUP, PORT, 3);
	EXPECT(host_next(member, 10000) == 3);
	wire_close(&w);
}

static void ETH_28_what_cannot_be_taken_is_refused(void)
{
	DAT_ETH_RULE rule = host_rule(DAT_ETH_TAKE, PORT);
	DAT_ETH_RULE_HANDLE handle;

	open_ring();
	rule.flags = DAT_ETH_EGRESS;
	FAILS(dat_eth_rule_add(w.ep, &rule, &handle), DAT_MODEL_NOT_SUPPORTED);
	rule.mode = DAT_ETH_DROP;
	FAILS(dat_eth_rule_add(w.ep, &rule, &handle), DAT_MODEL_NOT_SUPPORTED);
	rule.flags = 0;
	OK(dat_eth_rule_add(w.ep, &rule, &handle));
	rule.mode = DAT_ETH_COPY;
	FAILS(dat_eth_rule_add(w.ep, &rule, &handle), DAT_INVALID_STATE);
	wire_close(&w);
}

static void take_without_capability(const void *arg)
{
	DAT_ETH_RULE rule = host_rule(DAT_ETH_TAKE, PORT);
	DAT_ETH_RULE_HANDLE handle;
	int host;

	(void)arg;
	open_ring();
	host = host_socket(PORT);
	host_keep_net_raw_alone();
	FAILS(dat_eth_rule_add(w.ep, &rule, &handle), DAT_PRIVILEGES_VIOLATION);
	send_datagram("10.77.0.1", PORT, 1);
	EXPECT(host_next(host, 10000) == 1 && next_frame() == -1);
	rule.mode = DAT_ETH_COPY;
	OK(dat_eth_rule_add(w.ep, &rule, &handle));
	send_datagram("10.77.0.1", PORT, 2);
	EXPECT(wait_for_frame() == 2);
	OK(dat_ia_close(w.ia, DAT_CLOSE_ABRUPT_FLAG));
}

static void ETH_28_a_missing_capability_is_named(void)
{
	struct child_result result = run(take_without_capability, NULL);

	if (result.status || result.lines != 1 || !strstr(result.text, "CAP_BPF") || !strstr(result.text, "eth0"))
		fail("status %d: %s", result.status, result.text);
}

static void take(void)
{
	DAT_ETH_RULE rule = host_rule(DAT_ETH_TAKE, PORT);

	wire_ia(&w);
	need_take();
	wire_endpoint(&w, "64", NULL);
	wire_rule(&w, &rule);
}

static void ETH_28_a_killed_process_takes_no_more(void)
{
	int host, other, number = -1;
	pid_t child;

	wire_network(&w);
	child = host_taker(take);
	host = host_socket(PORT);
	other = host_socket(OTHER_PORT);
	send_datagram("10.77.0.1", PORT, 1);
	send_datagram("10.77.0.1", OTHER_PORT, 2);
	EXPECT(host_next(other, 10000) == 2 && host_next(host, 0) == -1);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	for (int i = 0; i < 200 && number < 0; i++) {	/* the kernel detaches it soon */
		send_datagram("10.77.0.1", PORT, 3);
		number = host_next(host, 100);
	}
	EXPECT(number == 3);
}

int main(int argc, char **argv)
{
	static const struct life_case cases[] = {
		CASE(ETH_28_the_kernel_does_not_see_what_is_taken),
		CASE(ETH_28_nobody_sees_what_is_dropped),
		CASE(ETH_28_the_first_rule_decides),
		CASE(ETH_28_rules_come_before_programs_of_others),
		CASE(ETH_28_programs_that_come_before_the_rules_decide),
		CASE(ETH_28_a_stripped_tag_is_looked_at),
		CASE(ETH_28_a_group_is_taken_and_the_host_stays_a_member),
		CASE(ETH_28_what_cannot_be_taken_is_refused),
		CASE(ETH_28_a_missing_capability_is_named),
		CASE(ETH_28_a_killed_process_takes_no_more),
	};

	if (!wire_possible())
		return WIRE_SKIPPED;
	return life_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
