/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* take.c - rules that take frames away from the kernel: what a UDP socket of the host receives, and what the
 * endpoint does. */
#include "wire.h"
#include <arpa/inet.h>
#include <linux/capability.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PORT = 5000, OTHER_PORT = 5001, PAYLOAD = 32 };
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

/* A socket of the host. */
static int host_socket(uint16_t port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at))
		fail("no UDP socket at port %u", port);
	return fd;
}

static size_t datagram(uint8_t *frame, const char *to, uint16_t port, unsigned seed)
{
	size_t length = wire_udp(&w, frame, to, port, PAYLOAD);

	memset(frame + 42, (int)seed, PAYLOAD);
	wire_finish_checksums(frame, 14, 40);
	return length;
}

static void send_datagram(const char *to, uint16_t port, unsigned seed)
{
	uint8_t frame[200];
	size_t length = datagram(frame, to, port, seed);

	if (!strcmp(to, GROUP))
		memcpy(frame, group_address, 6);
	wire_send(&w, frame, length);
}

/* Returns the seed of the next datagram, or -1 if none comes. */
static int next_datagram(int fd, int milliseconds)
{
	struct pollfd readable = { .fd = fd, .events = POLLIN };
	uint8_t got[PAYLOAD];

	if (poll(&readable, 1, milliseconds) != 1)
		return -1;
	if (recv(fd, got, sizeof got, 0) != PAYLOAD)
		fail("a datagram of another length");
	return got[0];
}

/* Returns the seed of the next frame of the endpoint, or -1 if there is none. */
static int next_frame(void)
{
	DAT_ETH_FRAME frame;
	DAT_COUNT got;
	int seed;

	for (int i = 0; i < 40; i++) {
		if (dat_eth_poll(w.ep, &frame, 1, &got) == DAT_SUCCESS) {
			seed = frame.data[42];
			OK(dat_eth_release(w.ep, 1));
			return seed;
		}
		usleep(1000);	/* the ring hands over a block after 2 ms */
	}
	return -1;
}

static int wait_for_frame(void)
{
	DAT_ETH_FRAME frame;
	int seed;

	wire_poll(&w, &frame, 1);
	seed = frame.data[42];
	OK(dat_eth_release(w.ep, 1));
	return seed;
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

static DAT_ETH_RULE port_rule(DAT_UINT32 mode, uint16_t port)
{
	DAT_ETH_RULE rule = { .mode = mode };

	rule.key.ip_version = 4;
	rule.mask.ip_version = 255;
	rule.key.protocol = IPPROTO_UDP;
	rule.mask.protocol = 255;
	rule.key.port_dst = htons(port);
	rule.mask.port_dst = 0xffff;
	return rule;
}

static void ETH_28_the_kernel_does_not_see_what_is_taken(void)
{
	DAT_ETH_RULE rule = port_rule(DAT_ETH_TAKE, PORT);
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
		EXPECT(next_datagram(other, 10000) == (int)(100 + i));
	}
	EXPECT(next_datagram(taken, 0) == -1 && next_frame() == -1);
	OK(dat_eth_rule_query(handle, NULL, &frames, &bytes));
	EXPECT(frames == 20 && bytes == 20 * (42 + PAYLOAD));
	OK(dat_eth_rule_free(handle));
	send_datagram("10.77.0.1", PORT, 50);
	EXPECT(next_datagram(taken, 10000) == 50 && next_frame() == -1);
	wire_close(&w);
}

static void ETH_28_nobody_sees_what_is_dropped(void)
{
	DAT_ETH_RULE drop = port_rule(DAT_ETH_DROP, PORT), any = wire_any();
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
	EXPECT(next_datagram(other, 10000) == 77 && next_datagram(dropped, 0) == -1);
	EXPECT(wait_for_frame() == 77 && next_frame() == -1);
	await_count(handle, 5);
	OK(dat_eth_rule_query(handle, NULL, &frames, &bytes));
	EXPECT(frames == 5 && bytes == 5 * (42 + PAYLOAD));
	OK(dat_eth_rule_free(handle));
	send_datagram("10.77.0.1", PORT, 6);
	EXPECT(next_datagram(dropped, 10000) == 6 && wait_for_frame() == 6);
	/* another rule of the kind begins at 0 */
	handle = wire_rule(&w, &drop);
	send_datagram("10.77.0.1", PORT, 7);
	await_count(handle, 1);
	EXPECT(next_datagram(dropped, 0) == -1);
	wire_close(&w);
}

static void ETH_28_the_first_rule_decides(void)
{
	DAT_ETH_RULE copy = port_rule(DAT_ETH_COPY, PORT), take = wire_any();
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
	EXPECT(next_datagram(first, 10000) == 2 && next_datagram(other, 0) == -1);
	EXPECT(wait_for_frame() == 1 && wait_for_frame() == 2);
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
	length = datagram(frame, "10.77.0.1", PORT, 1);
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
	EXPECT(next_datagram(other, 10000) == 2 && next_datagram(member, 0) == -1);
	EXPECT(wait_for_frame() == 1 && next_frame() == -1);
	OK(dat_ep_disconnect(w.ep, DAT_CLOSE_ABRUPT_FLAG));
	send_datagram(GROUP, PORT, 3);
	EXPECT(next_datagram(member, 10000) == 3);
	wire_close(&w);
}

static void ETH_28_what_cannot_be_taken_is_refused(void)
{
	DAT_ETH_RULE rule = port_rule(DAT_ETH_TAKE, PORT);
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

static void keep_net_raw_alone(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[2] = { { .effective = 1 << CAP_NET_RAW, .permitted = 1 << CAP_NET_RAW } };

	if (syscall(SYS_capset, &header, sets))
		fail("capset");
}

static void take_without_capability(const void *arg)
{
	DAT_ETH_RULE rule = port_rule(DAT_ETH_TAKE, PORT);
	DAT_ETH_RULE_HANDLE handle;
	int host;

	(void)arg;
	open_ring();
	host = host_socket(PORT);
	keep_net_raw_alone();
	FAILS(dat_eth_rule_add(w.ep, &rule, &handle), DAT_PRIVILEGES_VIOLATION);
	send_datagram("10.77.0.1", PORT, 1);
	EXPECT(next_datagram(host, 10000) == 1 && next_frame() == -1);
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

/* In a process that is killed. */
static void take_and_sleep(int ready)
{
	DAT_ETH_RULE rule = port_rule(DAT_ETH_TAKE, PORT);

	wire_ia(&w);
	need_take();
	wire_endpoint(&w, "64", NULL);
	wire_rule(&w, &rule);
	if (write(ready, "", 1) == 1)
		pause();
	_exit(1);
}

static void ETH_28_a_killed_process_takes_no_more(void)
{
	int ready[2], host, other, status, seed = -1;
	char byte;
	pid_t child;

	wire_network(&w);
	if (pipe(ready))
		fail("no pipe");
	child = fork();
	if (!child)
		take_and_sleep(ready[1]);
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1) {	/* the child has said why */
		waitpid(child, &status, 0);
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
	}
	host = host_socket(PORT);
	other = host_socket(OTHER_PORT);
	send_datagram("10.77.0.1", PORT, 1);
	send_datagram("10.77.0.1", OTHER_PORT, 2);
	EXPECT(next_datagram(other, 10000) == 2 && next_datagram(host, 0) == -1);
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	for (int i = 0; i < 200 && seed < 0; i++) {	/* the kernel detaches it soon */
		send_datagram("10.77.0.1", PORT, 3);
		seed = next_datagram(host, 100);
	}
	EXPECT(seed == 3);
}

int main(int argc, char **argv)
{
	static const struct life_case cases[] = {
		CASE(ETH_28_the_kernel_does_not_see_what_is_taken),
		CASE(ETH_28_nobody_sees_what_is_dropped),
		CASE(ETH_28_the_first_rule_decides),
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
