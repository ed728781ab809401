/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* bad_link.c - forwards packets between two TUN devices, and loses, doubles, delays and resets some
 * (bad_link.h). */
#include "bad_link.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	PACKET = 2048,  /* bytes; the MTU of a TUN device is 1500 */
	HELD = 256,     /* packets that are delayed */
	LONGEST = 4000, /* us of a delay */
};

static struct held {
	double due; /* 0: free */
	int to, length;
	uint8_t bytes[PACKET];
} held[HELD];

/* --- devices -------------------------------------------------------------------------------- */

static void set_address(int fd, struct ifreq *request, unsigned long what, const char *address)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&request->ifr_addr;

	memset(in, 0, sizeof *in);
	in->sin_family = AF_INET;
	in->sin_addr.s_addr = inet_addr(address);
	if (ioctl(fd, what, request))
		fail("%s of %s: %s", address, request->ifr_name, strerror(errno));
}

static void bring_up(int fd, struct ifreq *request)
{
	request->ifr_flags = IFF_UP | IFF_RUNNING;
	if (ioctl(fd, SIOCSIFFLAGS, request))
		fail("bringing up %s: %s", request->ifr_name, strerror(errno));
}

/* Makes a network namespace with a TUN device of this address, and moves the thread into it. */
static int make_device(const char *address)
{
	struct ifreq request = { .ifr_name = BAD_LINK_DEVICE, .ifr_flags = IFF_TUN | IFF_NO_PI };
	struct ifreq lo = { .ifr_name = "lo" };
	int fd, tun;

	if (unshare(CLONE_NEWNET))
		skip("no network namespace to be had: needs root");
	tun = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (tun < 0 || ioctl(tun, TUNSETIFF, &request))
		skip("no TUN device to be had");
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	set_address(fd, &request, SIOCSIFADDR, address);
	set_address(fd, &request, SIOCSIFNETMASK, "255.255.255.0");
	bring_up(fd, &request);
	bring_up(fd, &lo);
	close(fd);
	return tun;
}

/* --- packets --------------------------------------------------------------------------------- */

static struct tcphdr *tcp_of(uint8_t *packet, int length)
{
	struct ip *ip = (struct ip *)packet;
	int header = ip->ip_hl * 4;

	return length >= header + (int)sizeof(struct tcphdr) && ip->ip_v == 4 &&
			       ip->ip_p == IPPROTO_TCP
		       ? (struct tcphdr *)(packet + header)
		       : NULL;
}

static uint32_t sum(const void *at, int length, uint32_t sum)
{
	const uint8_t *byte = at;

	for (int i = 0; i < length; i++)
		sum += i & 1 ? byte[i] : (uint32_t)byte[i] << 8;
	return sum;
}

static uint16_t folded(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons((uint16_t)~sum);
}

/* Replaces the packet by a reset of its connection, as if its sender had reset it. */
static int make_reset(uint8_t *packet, struct tcphdr *tcp)
{
	struct ip *ip = (struct ip *)packet;
	int length = ip->ip_hl * 4 + (int)sizeof *tcp;

	tcp->rst = 1;
	tcp->fin = tcp->psh = 0;
	tcp->doff = sizeof *tcp / 4;
	tcp->check = 0;
	tcp->check = folded(sum(tcp, sizeof *tcp, sum(&ip->ip_src, 8, IPPROTO_TCP + sizeof *tcp)));
	ip->ip_len = htons((uint16_t)length);
	ip->ip_sum = 0;
	ip->ip_sum = folded(sum(ip, ip->ip_hl * 4, 0));
	return length;
}

static void deliver(int to, const uint8_t *packet, int length)
{
	if (write(to, packet, (size_t)length) < 0)
		return; /* lost, as packets are when a queue is full */
}

static void hold(int to, const uint8_t *packet, int length, double delay)
{
	for (int i = 0; i < HELD; i++)
		if (!held[i].due) {
			held[i].due = life_now() + delay;
			held[i].to = to;
			held[i].length = length;
			memcpy(held[i].bytes, packet, (size_t)length);
			return;
		}
	deliver(to, packet, length);
}

static void deliver_due(void)
{
	double now = life_now();

	for (int i = 0; i < HELD; i++)
		if (held[i].due && held[i].due <= now) {
			held[i].due = 0;
			deliver(held[i].to, held[i].bytes, held[i].length);
		}
}

static bool is_dropped(struct bad_link *link, const struct tcphdr *tcp, uint64_t *random)
{
	bool fin = tcp && tcp->fin && link->drop_fin, rst = tcp && tcp->rst && link->drop_rst;

	link->fins += fin;
	link->rsts += rst;
	if (fin || rst || link->cut)
		return true;
	if (soak_below(random, 1000) >= link->loss)
		return false;
	link->lost++;
	return true;
}

static void forward(struct bad_link *link, int to, uint8_t *packet, int length, uint64_t *random)
{
	struct tcphdr *tcp = tcp_of(packet, length);

	link->packets++;
	if (is_dropped(link, tcp, random))
		return;
	/* A reset counts if its sequence number is the next one expected; data packets have that. */
	if (tcp && !tcp->syn && soak_below(random, 1000) < link->reset) {
		length = make_reset(packet, tcp);
		link->resets++;
	}
	if (soak_below(random, 1000) < link->doubled) {
		deliver(to, packet, length);
		link->doubles++;
	}
	if (soak_below(random, 1000) < link->delayed) {
		hold(to, packet, length, soak_below(random, LONGEST) * 1e-6);
		link->delays++;
		return;
	}
	deliver(to, packet, length);
}

static _Noreturn void forward_all(struct bad_link *link, const int *tun)
{
	uint64_t random = soak_stream(0x11117);
	static uint8_t packet[PACKET];

	for (;;) {
		struct pollfd p[2] = { { .fd = tun[0], .events = POLLIN },
				       { .fd = tun[1], .events = POLLIN } };

		poll(p, 2, 1);
		for (int i = 0; i < 2; i++)
			for (int n = 0; n < 64; n++) {
				ssize_t length = read(tun[i], packet, sizeof packet);

				if (length <= 0)
					break;
				forward(link, tun[!i], packet, (int)length, &random);
			}
		deliver_due();
	}
}

/* --- the link ----------------------------------------------------------------------------------- */

static int this_namespace(void)
{
	int fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		fail("/proc/self/ns/net: %s", strerror(errno));
	return fd;
}

static void enter(int namespace)
{
	if (setns(namespace, CLONE_NEWNET))
		fail("setns: %s", strerror(errno));
}

struct bad_link *bad_link_make(void)
{
	struct bad_link *link = soak_shared(sizeof *link);
	pid_t pid;
	int tun[2];

	tun[1] = make_device(BAD_LINK_SERVER);
	link->server_namespace = this_namespace();
	tun[0] = make_device("10.97.0.1");
	link->client_namespace = this_namespace();
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		forward_all(link, tun);
	}
	link->forwarder = pid;
	close(tun[0]);
	close(tun[1]);
	return link;
}

void bad_link_enter_server(const struct bad_link *link)
{
	enter(link->server_namespace);
}

void bad_link_end(struct bad_link *link)
{
	kill(link->forwarder, SIGKILL);
	waitpid(link->forwarder, NULL, 0);
	close(link->client_namespace);
	close(link->server_namespace);
}
