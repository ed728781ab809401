/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_port.c - opening and closing a port over a packet socket, and what a device can do. System calls are
 * replaced and recorded here; receiving is test_receive.c's matter. */
#include <ifaddrs.h>
#include <net/if_arp.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <linux/net_tstamp.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include "dapl/softeth/bpf.h"
#include "dapl/softeth/group.h"
#include "dapl/softeth/packet_ring.h"
#include "dapl/softeth/port.h"
#include "dapl/softeth/port_types.h"
#include "dapl/softeth/spread.h"
#include "test/unit/softeth/steps.h"
#include "test/unit/unit.h"

enum { SOCKET = 1000, INET_SOCKET, COUNTERS, INDEX = 5, MTU = 1500 };	/* descriptors that the process does not have */

static unsigned sockets;		/* that are open */
static bool has_tcx, tells_departures;
static uint16_t link_type;
static size_t fails_size;		/* the allocation that fails */
static uint32_t ring_frames, ring_max_frame;

/* --- system calls and functions of other files -------------------------------------------------------------- */

REPLACE(socket, ioctl, if_indextoname, setsockopt, bind, getifaddrs, freeifaddrs, bpf_has_tcx)
REPLACE(packet_ring_open, packet_ring_close, eth_group_leave)
EXTEND(close, calloc)

/* A packet socket of a protocol would receive before it is bound. */
int __wrap_socket(int family, int type, int protocol)
{
	if (family == AF_PACKET) {
		assert_int_equal(type, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK);
		assert_int_equal(protocol, 0);
		if (step("socket"))
			return -1;
	}
	sockets++;
	return family == AF_PACKET ? SOCKET : INET_SOCKET;
}

int __wrap_close(int fd)
{
	if (fd < SOCKET)
		return __real_close(fd);
	if (fd == SOCKET)
		step("close");
	if (fd == COUNTERS)
		step("counters");
	else
		sockets--;
	return 0;
}

char *__wrap_if_indextoname(unsigned index, char *name)
{
	assert_int_equal(index, INDEX);
	return strcpy(name, "eth0");
}

/* What the driver knows. */
static int answer_ethtool(void *command)
{
	struct ethtool_ts_info *info = command;
	struct ethtool_channels *channels = command;

	if (info->cmd == ETHTOOL_GCHANNELS) {
		channels->rx_count = 1;
		channels->combined_count = 3;
		return 0;
	}
	assert_int_equal(info->cmd, ETHTOOL_GET_TS_INFO);
	info->so_timestamping = SOF_TIMESTAMPING_RX_SOFTWARE;
	if (tells_departures)
		info->so_timestamping |= SOF_TIMESTAMPING_TX_SOFTWARE;
	errno = EOPNOTSUPP;
	return failing && !strcmp(failing, "ethtool") ? -1 : 0;
}

int __wrap_ioctl(int fd, unsigned long request, ...)
{
	struct ifreq *ifr;
	va_list args;

	va_start(args, request);
	ifr = va_arg(args, struct ifreq *);
	va_end(args);
	assert_int_equal(fd, INET_SOCKET);
	assert_string_equal(ifr->ifr_name, "eth0");
	if (request == SIOCETHTOOL)
		return answer_ethtool(ifr->ifr_data);
	if (request == SIOCGIFMTU)
		ifr->ifr_mtu = MTU;
	else
		ifr->ifr_hwaddr.sa_family = link_type;
	if (request == SIOCGIFHWADDR)
		memcpy(ifr->ifr_hwaddr.sa_data, "\x02\x03\x04\x05\x06\x07", 6);
	errno = ENODEV;
	return failing && !strcmp(failing, request == SIOCGIFMTU ? "mtu" : "address") ? -1 : 0;
}

int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
	static const struct {
		int level, name;
		const char *word;
	} options[] = { { SOL_PACKET, PACKET_VNET_HDR, "vnet" }, { SOL_PACKET, PACKET_QDISC_BYPASS, "bypass" },
		{ SOL_SOCKET, SO_TIMESTAMPNS, "time" }, { SOL_SOCKET, SO_RCVBUFFORCE, "force" },
		{ SOL_SOCKET, SO_RCVBUF, "buffer" }, { SOL_PACKET, PACKET_AUXDATA, "aux" },
		{ SOL_SOCKET, SO_RXQ_OVFL, "overflow" },
		{ SOL_PACKET, PACKET_IGNORE_OUTGOING, "incoming" } };
	int number;

	assert_int_equal(fd, SOCKET);
	if (level == SOL_SOCKET && name == SO_ATTACH_FILTER)
		return step("filter");
	assert_int_equal(size, sizeof number);
	memcpy(&number, value, sizeof number);
	assert_int_not_equal(number, 0);
	for (size_t i = 0; i < sizeof options / sizeof *options; i++)
		if (options[i].level == level && options[i].name == name)
			return step(options[i].word);
	fail_msg("option %d of %d is not known", name, level);
	return -1;
}

int __wrap_bind(int fd, const struct sockaddr *address, socklen_t size)
{
	struct sockaddr_ll at;

	assert_int_equal(fd, SOCKET);
	assert_int_equal(size, sizeof at);
	memcpy(&at, address, sizeof at);
	assert_int_equal(at.sll_family, AF_PACKET);
	assert_int_equal(at.sll_ifindex, INDEX);
	assert_int_equal(at.sll_protocol, htons(ETH_P_ALL));
	return step("bind");
}

int __wrap_getifaddrs(struct ifaddrs **list)
{
	static struct rtnl_link_stats counters = { .rx_missed_errors = 7 };
	static struct sockaddr_ll packet = { .sll_family = AF_PACKET, .sll_ifindex = INDEX };
	static struct ifaddrs only = { .ifa_name = "eth0", .ifa_addr = (struct sockaddr *)&packet,
		.ifa_data = &counters };

	*list = &only;
	return failing && !strcmp(failing, "ifaddrs") ? -1 : 0;
}

void __wrap_freeifaddrs(struct ifaddrs *list) { assert_non_null(list); }
bool __wrap_bpf_has_tcx(void) { return has_tcx; }

int __wrap_packet_ring_open(struct eth_port *port, uint32_t frames, uint32_t max_frame)
{
	assert_int_equal(port->fd, SOCKET);
	ring_frames = frames;
	ring_max_frame = max_frame;
	return step("ring") ? ENOBUFS : 0;
}

void __wrap_packet_ring_close(struct eth_port *port) { step("unmap"); }
void __wrap_eth_group_leave(struct eth_port *port) { step("rules"); }

void *__wrap_calloc(size_t n, size_t size)
{
	return fails_size && n * size == fails_size ? NULL : __real_calloc(n, size);
}

/* --- a case ---------------------------------------------------------------------------------------------------- */

static struct eth_port *port;

UNIT_FIXTURE(set_up)
{
	forget_steps();
	sockets = 0;
	has_tcx = tells_departures = false;
	link_type = ARPHRD_ETHER;
	fails_size = 0;
	port = NULL;
}

UNIT_FIXTURE(tear_down)
{
	forget_steps();
	if (port)
		dapl_softeth_ops.close(port);
	assert_int_equal(sockets, 0);
}

static void want_purge(void *context)
{
}

static int open_port(const struct dapl_eth_config *config, bool bypass)
{
	const char *tried = "";
	int err = dapl_softeth_ops.open(INDEX, config, bypass, want_purge, steps, &tried, &port);

	assert_null(tried);
	return err;
}

static int query(struct dapl_eth_attr *attr)
{
	uint16_t found;
	int err = dapl_softeth_ops.query(INDEX, attr, &found);

	if (!failing || strcmp(failing, "address"))
		assert_int_equal(found, link_type);
	return err;
}

static const struct dapl_eth_config posted = { .snap = 99, .verify = true };
static const struct dapl_eth_config ring = { .ring_frames = 4096, .snap = 99 };

/* --- opening ---------------------------------------------------------------------------------------------------- */

/* The socket gets no frame before its filter passes none, and is bound when all that comes with a frame
 * is asked for. */
UNIT_CASE(socket_is_bound_when_it_is_complete)
{
	assert_int_equal(open_port(&posted, false), 0);
	assert_string_equal(steps, "socket filter vnet time force aux overflow bind");
	assert_int_equal(dapl_softeth_ops.descriptor(port), SOCKET);
	assert_int_equal(port->snap, 0);
	assert_int_equal(port->mtu, MTU);
	assert_true(port->verify);
	assert_false(port->bypass);
	assert_ptr_equal(port->want_purge, want_purge);
	assert_ptr_equal(port->context, steps);
	assert_int_equal(port->counters, -1);
	assert_int_equal(port->link, -1);
	assert_int_equal(sockets, 1);
}

UNIT_CASE(ring_takes_the_place_of_the_sockets_buffer)
{
	assert_int_equal(open_port(&ring, false), 0);
	assert_string_equal(steps, "socket filter vnet time ring bind");
	assert_int_equal(ring_frames, 4096);
	assert_int_equal(ring_max_frame, MTU + 14 + 4);		/* with a tag */
	assert_int_equal(port->snap, 99);
	assert_false(port->verify);
}

/* A packet socket sees each frame on the loopback device twice. */
UNIT_CASE(frames_on_loopback_come_once)
{
	link_type = ARPHRD_LOOPBACK;
	assert_int_equal(open_port(&ring, false), 0);
	assert_string_equal(steps, "socket filter vnet incoming time ring bind");
}

UNIT_CASE(device_without_ethernet_headers_has_no_port)
{
	static const uint16_t types[] = { ARPHRD_NONE, ARPHRD_TUNNEL, ARPHRD_INFINIBAND, ARPHRD_IPGRE };
	struct dapl_eth_attr attr;

	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		link_type = types[i];
		assert_int_equal(query(&attr), EOPNOTSUPP);
		assert_int_equal(open_port(&ring, false), EOPNOTSUPP);
		assert_int_equal(sockets, 0);
	}
}

UNIT_CASE(queueing_discipline_is_bypassed_where_asked_for)
{
	assert_int_equal(open_port(&posted, true), 0);
	assert_string_equal(steps, "socket filter vnet bypass time force aux overflow bind");
	assert_true(port->bypass);
}

/* A larger buffer than the system's limit needs CAP_NET_ADMIN. */
UNIT_CASE(buffer_is_as_large_as_the_process_may_have_it)
{
	failing = "force";
	assert_int_equal(open_port(&posted, false), 0);
	assert_string_equal(steps, "socket filter vnet time force buffer aux overflow bind");
}

UNIT_CASE(port_that_cannot_be_opened_leaves_no_socket)
{
	static const struct {
		const char *step;
		int err;
		bool with_ring;
	} rows[] = { { "socket", ENOBUFS, false }, { "filter", ENOBUFS, false },
		{ "mtu", ENODEV, false }, { "address", ENODEV, false }, { "vnet", ENOBUFS, false },
		{ "bypass", ENOBUFS, false }, { "time", ENOBUFS, false }, { "aux", ENOBUFS, false },
		{ "overflow", ENOBUFS, false }, { "bind", ENOBUFS, false }, { "ring", ENOBUFS, true } };

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		set_up(NULL);
		failing = rows[i].step;
		assert_int_equal(open_port(rows[i].with_ring ? &ring : &posted, true), rows[i].err);
		assert_null(port);
		assert_int_equal(sockets, 0);
	}
}

UNIT_CASE(port_needs_memory)
{
	fails_size = sizeof *port;
	assert_int_equal(open_port(&posted, false), ENOMEM);
	assert_string_equal(steps, "");
}

UNIT_CASE(losses_before_the_opening_are_not_the_ports)
{
	assert_int_equal(open_port(&posted, false), 0);
	assert_int_equal(port->device.missed, 7);
	assert_false(port->device.unknown);
	dapl_softeth_ops.close(port);
	failing = "ifaddrs";
	assert_int_equal(open_port(&posted, false), 0);
	assert_true(port->device.unknown);
}

/* Rules end while the socket is there: it has joined groups for them. */
UNIT_CASE(closed_port_gives_back_what_it_has)
{
	assert_int_equal(open_port(&ring, false), 0);
	port->counters = COUNTERS;
	*steps = 0;
	dapl_softeth_ops.close(port);
	port = NULL;
	assert_string_equal(steps, "rules unmap close counters");
}

/* --- what a device can do --------------------------------------------------------------------------------------- */

static uint64_t capabilities(void)
{
	struct dapl_eth_attr attr;

	assert_int_equal(query(&attr), 0);
	assert_int_equal(sockets, 0);
	return attr.caps;
}

UNIT_CASE(capabilities_depend_on_kernel_and_driver)
{
	uint64_t least = capabilities();

	assert_int_equal(least & (ETH_CAP_TAKE | ETH_CAP_SEND_STAMP), 0);
	assert_int_equal(least & ETH_CAP_COPY, ETH_CAP_COPY);
	assert_int_equal(least & ETH_CAP_RSS_LOSSLESS, ETH_CAP_RSS_LOSSLESS);
	has_tcx = true;
	assert_int_equal(capabilities(), least | ETH_CAP_TAKE);
	has_tcx = false;
	tells_departures = true;
	assert_int_equal(capabilities(), least | ETH_CAP_SEND_STAMP);
	failing = "ethtool";		/* the driver does not know the question */
	assert_int_equal(capabilities(), least);
}

UNIT_CASE(limits_are_those_of_device_and_library)
{
	struct dapl_eth_attr attr;

	assert_int_equal(query(&attr), 0);
	assert_int_equal(attr.mtu, MTU);
	assert_int_equal(attr.max_frame, MTU + 14);
	assert_memory_equal(attr.address, "\x02\x03\x04\x05\x06\x07", 6);
	assert_int_equal(attr.clock, 1);
	assert_int_equal(attr.max_rules, ETH_MAX_RULES);
	assert_int_equal(attr.max_group, ETH_MAX_GROUP);
	assert_int_equal(attr.max_table, SPREAD_TABLE_MAX);
	assert_int_equal(attr.rx_queues, 4);
	assert_int_equal(attr.tx_queues, 3);
	failing = "mtu";
	assert_int_equal(query(&attr), ENODEV);
	failing = "address";
	assert_int_equal(query(&attr), ENODEV);
}

UNIT_MAIN(NULL, NULL)
