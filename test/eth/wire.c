/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* wire.c - the veth pair and the IA of the tests of raw endpoints (wire.h). */
#include "wire.h"
#include "test/packet_tag.h"
#include <arpa/inet.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { TEST_TYPE = 0x88b5 };	/* for local experiments */

void wire_command(const char *command)
{
	if (system(command))
		fail("%s: failed", command);
}

static void address_of(int fd, const char *name, uint8_t address[6])
{
	struct ifreq ifr = { .ifr_flags = 0 };

	snprintf(ifr.ifr_name, sizeof ifr.ifr_name, "%s", name);
	if (ioctl(fd, SIOCGIFHWADDR, &ifr))
		fail("SIOCGIFHWADDR %s", name);
	memcpy(address, ifr.ifr_hwaddr.sa_data, 6);
}

static int open_peer(void)
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = (int)if_nametoindex("peer") };
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0), one = 1, size = 4 << 20;

	setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one);
	setsockopt(fd, SOL_PACKET, PACKET_AUXDATA, &one, sizeof one);
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at))
		fail("no packet socket on the peer");
	return fd;
}

/* A device that has just been set up drops frames until the kernel has noticed its carrier. */
void wire_await_up(void)
{
	for (int i = 0; i < 1000; i++) {
		if (!system("ip link show eth0 | grep -q 'state UP' && ip link show peer | grep -q 'state UP'"))
			return;
		usleep(10000);
	}
	fail("the link does not come up");
}

bool wire_possible(void)
{
	unsetenv("LD_PRELOAD");		/* not for the programs that cases run */
	if (geteuid() == 0)
		return true;
	printf("skip: raw Ethernet endpoints need root, for network namespaces and CAP_NET_RAW\n");
	return false;
}

/* The NICs that the environment's ETH_NICS promises: what a case before this one changed is put back. */
static void reset_network(void)
{
	wire_command("tc qdisc del dev eth0 root 2>/dev/null; "
		     "for i in eth0 peer; do ip link set $i mtu 1500 arp off promisc on up || exit; done");
	wire_await_up();
}

static void make_network(void)
{
	if (unshare(CLONE_NEWNET))
		skip("no network namespace to be had");
	if (system("ip link add eth0 type veth peer name peer 2>/dev/null"))
		skip("no veth in this kernel");
	wire_command("for i in all default eth0 peer; do echo 1 > /proc/sys/net/ipv6/conf/$i/disable_ipv6; done");
	wire_command("ip link set lo up && ip addr add 10.77.0.1/24 dev eth0 && "
		     "ip link set eth0 up arp off && ip link set peer up arp off");
	wire_await_up();
}

/* Returns ETH_LIBRARY of the environment, for the device over libibverbs: then there is a network, and eth0
 * has an RDMA device. */
static const char *wire_library(void)
{
	const char *named = getenv("ETH_LIBRARY");

	return named ? named : "libdaplsoft.so.2";
}

bool wire_on_soft(void)
{
	return !getenv("ETH_LIBRARY");
}

DAT_EP_ATTR wire_attr(void)
{
	return (DAT_EP_ATTR){ .service_type = DAT_ETH_SERVICE_TYPE_RAW, .qos = DAT_QOS_BEST_EFFORT,
		.max_recv_dtos = 64, .max_request_dtos = 64, .max_recv_iov = 4, .max_request_iov = 4 };
}

void wire_network(struct wire *w)
{
	if (getenv("ETH_NICS"))
		reset_network();
	else if (wire_on_soft())
		make_network();
	w->peer = open_peer();
	address_of(w->peer, "eth0", w->eth0);
	address_of(w->peer, "peer", w->peer_address);
}

void wire_ia(struct wire *w)
{
	wire_ia_params(w, "eth0 0");
}

void wire_ia_params(struct wire *w, const char *params)
{
	DAT_REGION_DESCRIPTION region = { .for_va = w->memory };
	DAT_VLEN size;
	DAT_VADDR at;

	life_entry(WIRE_IA, wire_library(), params);
	w->async = DAT_HANDLE_NULL;
	OK(dat_ia_open(WIRE_IA, 8, &w->async, &w->ia));
	OK(dat_pz_create(w->ia, &w->pz));
	OK(dat_evd_create(w->ia, 256, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &w->recv));
	OK(dat_evd_create(w->ia, 256, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &w->request));
	OK(dat_lmr_create(w->ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof w->memory, w->pz, DAT_MEM_PRIV_ALL_FLAG,
			  DAT_VA_TYPE_VA, &w->lmr, &w->context, NULL, &size, &at));
}

void wire_open(struct wire *w)
{
	wire_network(w);
	wire_ia(w);
}

void wire_endpoint(struct wire *w, const char *ring_frames, const char *snap)
{
	DAT_NAMED_ATTR named[3] = { { "eth_receive", "ring" }, { "eth_frames", ring_frames },
		{ "eth_snap", snap } };
	DAT_EP_ATTR attr = wire_attr();

	if (*ring_frames) {
		attr.ep_provider_specific_count = snap ? 3 : 2;
		attr.ep_provider_specific = named;
	}
	OK(dat_ep_create(w->ia, w->pz, w->recv, w->request, DAT_HANDLE_NULL, &attr, &w->ep));
}

void wire_close(struct wire *w)
{
	OK(dat_ia_close(w->ia, DAT_CLOSE_ABRUPT_FLAG));
	close(w->peer);
}

DAT_ETH_RULE wire_any(void)
{
	return (DAT_ETH_RULE){ .mode = DAT_ETH_COPY };
}

DAT_ETH_RULE_HANDLE wire_rule(struct wire *w, const DAT_ETH_RULE *rule)
{
	DAT_ETH_RULE_HANDLE handle;

	OK(dat_eth_rule_add(w->ep, rule, &handle));
	return handle;
}

size_t wire_frame(const struct wire *w, uint8_t *frame, size_t length, unsigned seed)
{
	memcpy(frame, w->eth0, 6);
	memcpy(frame + 6, w->peer_address, 6);
	frame[12] = TEST_TYPE >> 8;
	frame[13] = TEST_TYPE & 255;
	for (size_t i = 14; i < length; i++)
		frame[i] = (uint8_t)(i * 7 + seed);
	return length;
}

void wire_send(const struct wire *w, const void *frame, size_t length)
{
	if (send(w->peer, frame, length, 0) != (ssize_t)length)
		fail("the peer could not send %zu bytes", length);
}

static bool is_readable(const struct wire *w, int milliseconds)
{
	struct pollfd fd = { .fd = w->peer, .events = POLLIN };

	return poll(&fd, 1, milliseconds) == 1;
}

size_t wire_receive(const struct wire *w, uint8_t *frame, size_t room)
{
	union {
		struct cmsghdr align;
		char bytes[200];
	} control;
	struct iovec iov = { frame, room - 4 };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
		.msg_controllen = sizeof control };
	ssize_t n;

	if (!is_readable(w, 10000))
		fail("the peer received nothing for 10 s");
	n = recvmsg(w->peer, &message, MSG_TRUNC);
	if (n < 0)
		fail("the peer cannot receive");
	return packet_insert_tag(frame, (size_t)n, &message);
}

bool wire_is_silent(const struct wire *w)
{
	return !is_readable(w, 100);
}

DAT_COUNT wire_poll(struct wire *w, DAT_ETH_FRAME *frames, DAT_COUNT max)
{
	double end = life_now() + 10;
	DAT_COUNT got = 0;
	DAT_RETURN ret;

	while ((ret = dat_eth_poll(w->ep, frames, max, &got)) == (DAT_RETURN)DAT_QUEUE_EMPTY) {
		if (life_now() > end)
			fail("the ring had no frame for 10 s");
		usleep(500);
	}
	OK(ret);
	return got;
}

static DAT_LMR_TRIPLET piece(const struct wire *w, size_t offset, size_t length)
{
	return (DAT_LMR_TRIPLET){ .lmr_context = w->context, .segment_length = (DAT_SEG_LENGTH)length,
		.virtual_address = (uintptr_t)w->memory + offset };
}

void wire_post(struct wire *w, size_t offset, size_t length, uint64_t cookie)
{
	DAT_LMR_TRIPLET iov = piece(w, offset, length);

	OK(dat_ep_post_recv(w->ep, 1, &iov, (DAT_DTO_COOKIE){ .as_64 = cookie }, DAT_COMPLETION_DEFAULT_FLAG));
}

DAT_RETURN wire_post_send(struct wire *w, size_t offset, size_t length, uint64_t cookie)
{
	DAT_LMR_TRIPLET iov = piece(w, offset, length);

	return dat_ep_post_send(w->ep, 1, &iov, (DAT_DTO_COOKIE){ .as_64 = cookie },
				DAT_COMPLETION_DEFAULT_FLAG);
}

DAT_EVENT wire_event(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number)
{
	DAT_EVENT event;
	DAT_COUNT more;

	OK(dat_evd_wait(evd, MOMENT, 1, &event, &more));
	if (event.event_number != number)
		fail("event 0x%x instead of 0x%x", event.event_number, number);
	return event;
}

void wire_expect_send(const struct wire *w, uint64_t cookie, DAT_DTO_COMPLETION_STATUS status)
{
	DAT_DTO_COMPLETION_EVENT_DATA done =
		wire_event(w->request, DAT_DTO_COMPLETION_EVENT).event_data.dto_completion_event_data;

	if (done.user_cookie.as_64 != cookie || done.status != status)
		fail("send %lu has status %d, send %lu with %d expected", (unsigned long)done.user_cookie.as_64,
		     done.status, (unsigned long)cookie, status);
}

void wire_expect_type(int line, const char *call, DAT_RETURN ret, int type)
{
	if ((int)DAT_GET_TYPE(ret) != type)
		fail("line %d: %s gives %s", line, call, life_return(ret));
}

uint64_t wire_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

size_t wire_udp(const struct wire *w, uint8_t *frame, const char *to, uint16_t port, size_t payload)
{
	uint16_t length = htons((uint16_t)(28 + payload)), udp_length = htons((uint16_t)(8 + payload));

	wire_frame(w, frame, 42 + payload, port);
	memset(frame + 14, 0, 28);
	memcpy(frame + 12, "\x08\x00\x45\x00", 4);
	memcpy(frame + 16, &length, 2);
	frame[22] = 64;
	frame[23] = IPPROTO_UDP;
	inet_pton(AF_INET, "10.77.0.2", frame + 26);
	inet_pton(AF_INET, to, frame + 30);
	port = htons(port);
	memcpy(frame + 34, &port, 2);
	memcpy(frame + 36, &port, 2);
	memcpy(frame + 38, &udp_length, 2);
	return 42 + payload;
}

static void set_feature(const char *netdev, uint32_t command, uint32_t on)
{
	struct ethtool_value value = { .cmd = command, .data = on };
	struct ifreq ifr = { .ifr_data = (char *)&value };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(ifr.ifr_name, sizeof ifr.ifr_name, "%s", netdev);
	if (fd < 0 || ioctl(fd, SIOCETHTOOL, &ifr))
		fail("SIOCETHTOOL 0x%x on %s", command, netdev);
	close(fd);
}

void wire_finish_frames(const char *netdev, bool finish)
{
	set_feature(netdev, ETHTOOL_STXCSUM, !finish);
	set_feature(netdev, ETHTOOL_STSO, !finish);
}

DAT_RETURN wire_post_send_how(struct wire *w, size_t length, uint64_t cookie, const DAT_ETH_SEND *how)
{
	DAT_LMR_TRIPLET iov = piece(w, 0, length);

	return dat_eth_post_send(w->ep, 1, &iov, (DAT_DTO_COOKIE){ .as_64 = cookie }, how,
				 DAT_COMPLETION_DEFAULT_FLAG);
}

size_t wire_tcp(const struct wire *w, uint8_t *frame, size_t l3, int version, size_t payload)
{
	uint8_t *ip = frame + l3, *tcp = ip + (version == 4 ? 20 : 40);

	wire_frame(w, frame, 14, 0);
	memset(ip - 2, 0, (size_t)(tcp + 20 - ip) + 2);
	memcpy(ip - 2, version == 4 ? "\x08\x00\x45" : "\x86\xdd\x60", 3);
	if (version == 4) {
		memcpy(ip + 4, "\x12\x34\x40\x00\x40\x06", 6);
		inet_pton(AF_INET, "10.77.0.1", ip + 12);
		inet_pton(AF_INET, "10.77.0.2", ip + 16);
	} else {
		memcpy(ip + 6, "\x06\x40", 2);
		inet_pton(AF_INET6, "fd00::1", ip + 8);
		inet_pton(AF_INET6, "fd00::2", ip + 24);
	}
	memcpy(tcp, "\x1f\x90\x1f\x91\xff\xff\xf0\x00\x00\x00\x00\x00\x50\x19\x10\x00", 16);	/* PSH, ACK, FIN */
	for (size_t i = 0; i < payload; i++)
		tcp[20 + i] = (uint8_t)(i * 11 + i / 251);
	return (size_t)(tcp + 20 - frame);
}

/* Adds byte by byte, unlike the library. */
static unsigned sum_of(const uint8_t *at, size_t length, unsigned sum)
{
	for (size_t i = 0; i < length; i++) {
		sum += i & 1 ? at[i] : (unsigned)at[i] << 8;
		sum = (sum & 0xffff) + (sum >> 16);
	}
	return sum;
}

bool wire_checksums_are_right(const uint8_t *frame, size_t l3)
{
	const uint8_t *ip = frame + l3;
	bool is_ipv4 = ip[0] >> 4 == 4;
	size_t header = is_ipv4 ? (size_t)(ip[0] & 15) * 4 : 40;
	size_t length = is_ipv4 ? (size_t)(ip[2] << 8 | ip[3]) - header : (size_t)(ip[4] << 8 | ip[5]);
	unsigned sum = (unsigned)length + (is_ipv4 ? ip[9] : ip[6]);

	if (is_ipv4 && sum_of(ip, header, 0) != 0xffff)
		return false;
	sum = is_ipv4 ? sum_of(ip + 12, 8, sum) : sum_of(ip + 8, 32, sum);
	return sum_of(ip + header, length, sum) == 0xffff;
}

static void put_sum(uint8_t *at, unsigned sum)
{
	at[0] = (uint8_t)(~sum >> 8);
	at[1] = (uint8_t)~sum;
}

void wire_finish_checksums(uint8_t *frame, size_t l3, size_t l4_checksum)
{
	uint8_t *ip = frame + l3;
	size_t length = (size_t)(ip[2] << 8 | ip[3]) - 20;

	put_sum(ip + 10, 0xffff);
	put_sum(ip + 10, sum_of(ip, 20, 0));
	put_sum(frame + l4_checksum, 0xffff);
	put_sum(frame + l4_checksum, sum_of(ip + 20, length, sum_of(ip + 12, 8, (unsigned)length + ip[9])));
}
