/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_changes.c - the changes that messages of rtnetlink and uevents mean (net/changes.c). The messages are built
 * here; the sockets that they come from are monitor.c's. */
#include "net/changes.h"
#include <net/if.h>
#include <netlink/errno.h>
#include "test/unit/net/ips.h"
#include "test/unit/net/messages.h"
#include "test/unit/unit.h"

#define UP (IFF_UP | IFF_RUNNING)

enum { ETH0 = 2, ETH1 = 3, ETH2 = 4 };	/* interfaces */

static struct net_changes c;
static bool no_memory, parser_lacks_memory;

UNIT_FAIL_REALLOC(no_memory)

EXTEND(net_parse)
int __wrap_net_parse(struct nl_msg *msg, void (*each)(struct nl_object *, void *), void *arg)
{
	return parser_lacks_memory ? -NLE_NOMEM : __real_net_parse(msg, each, arg);
}

UNIT_FIXTURE(set_up)
{
	c = (struct net_changes){ .what = DAT_NET_CHANGES };
	no_memory = parser_lacks_memory = false;
}

UNIT_FIXTURE(tear_down) { net_table_free(&c.table); }

/* How many changes a message means, which are in c.ready. */
static size_t changes_of(struct nl_msg *msg)
{
	net_changes_of(&c, msg);
	nlmsg_free(msg);
	return c.count;
}

static void assert_change(const struct dat_net_change *change, uint32_t what, uint32_t before, uint32_t now)
{
	assert_int_equal(change->what, what);
	assert_int_equal(change->before, before);
	assert_int_equal(change->now, now);
}

/* The only change that a message means. */
static const struct dat_net_change *change_of(struct nl_msg *msg)
{
	assert_int_equal(changes_of(msg), 1);
	return &c.ready[0];
}

static void add_link(int index, const char *name)
{
	changes_of(message_link(RTM_NEWLINK, index, name, 1500, UP));
	assert_string_equal(net_link_by_index(&c.table, index)->name, name);
}

/* --- interfaces ------------------------------------------------------------------------------------- */

UNIT_CASE(each_difference_of_an_interface_is_told_once)
{
	static const struct {
		uint32_t mtu;
		unsigned flags;
		size_t changes;
		struct dat_net_change first, second;
	} rows[] = {
		{ 1500, UP, 0, { 0 }, { 0 } },
		{ 9000, UP, 1, { DAT_NET_MTU, 1500, 9000, .netdev = "eth0" }, { 0 } },
		{ 9000, IFF_UP, 1, { DAT_NET_LINK, 1, 0, .netdev = "eth0" }, { 0 } },
		{ 9000, 0, 0, { 0 }, { 0 } },		/* down already, without a carrier */
		{ 1400, UP, 2, { DAT_NET_MTU, 9000, 1400, .netdev = "eth0" },
			{ DAT_NET_LINK, 0, 1, .netdev = "eth0" } },
		{ 1400, UP | IFF_PROMISC, 0, { 0 }, { 0 } },
	};

	add_link(ETH0, "eth0");
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_int_equal(changes_of(message_link(RTM_NEWLINK, ETH0, "eth0", rows[i].mtu, rows[i].flags)),
				 rows[i].changes);
		if (rows[i].changes > 0)
			assert_memory_equal(&c.ready[0], &rows[i].first, sizeof rows[i].first);
		if (rows[i].changes > 1)
			assert_memory_equal(&c.ready[1], &rows[i].second, sizeof rows[i].second);
	}
}

UNIT_CASE(interface_goes_once)
{
	const struct dat_net_change *change;

	add_link(ETH0, "eth0");
	change = change_of(message_link(RTM_DELLINK, ETH0, "eth0", 1500, UP));
	assert_change(change, DAT_NET_LINK, 1, 0);
	assert_string_equal(change->netdev, "eth0");
	assert_int_equal(changes_of(message_link(RTM_DELLINK, ETH0, "eth0", 1500, UP)), 0);
	assert_change(change_of(message_link(RTM_NEWLINK, ETH0, "eth0", 1500, UP)), DAT_NET_LINK, 0, 1);
}

UNIT_CASE(interface_that_goes_takes_no_other_with_it)
{
	add_link(ETH0, "eth0");
	add_link(ETH1, "eth1");
	add_link(ETH2, "eth2");
	changes_of(message_link(RTM_DELLINK, ETH0, "eth0", 1500, UP));
	assert_null(net_link_by_index(&c.table, ETH0));
	assert_string_equal(net_link_by_index(&c.table, ETH1)->name, "eth1");
	assert_string_equal(net_link_by_index(&c.table, ETH2)->name, "eth2");
	changes_of(message_link(RTM_DELLINK, ETH1, "eth1", 1500, UP));
	assert_int_equal(c.table.link_count, 1);
	assert_string_equal(net_link_by_index(&c.table, ETH2)->name, "eth2");
}

/* The kernel reports in this way that a port left its bridge. */
UNIT_CASE(port_of_a_bridge_is_no_interface)
{
	const struct ifinfomsg head = { .ifi_family = AF_BRIDGE, .ifi_index = ETH0 };
	struct nl_msg *msg = message_new(RTM_DELLINK, 0, &head, sizeof head);

	add_link(ETH0, "eth0");
	message_put_text(msg, IFLA_IFNAME, "eth0");
	assert_int_equal(changes_of(msg), 0);
	assert_non_null(net_link_by_index(&c.table, ETH0));
}

/* Events of wireless interfaces have neither name nor MTU. */
UNIT_CASE(message_without_a_name_changes_no_interface)
{
	add_link(ETH0, "eth0");
	assert_int_equal(changes_of(message_link(RTM_NEWLINK, ETH0, NULL, 0, 0)), 0);
	assert_int_equal(net_link_by_index(&c.table, ETH0)->mtu, 1500);
}

UNIT_CASE(names_of_interfaces_are_followed_for_other_changes)
{
	c.what = DAT_NET_NEIGHBOUR;
	assert_int_equal(changes_of(message_link(RTM_NEWLINK, ETH0, "eth0", 1500, UP)), 0);
	assert_int_equal(changes_of(message_link(RTM_NEWLINK, ETH0, "lan0", 9000, UP)), 0);
	assert_string_equal(change_of(message_neighbour(RTM_NEWNEIGH, ETH0, "192.0.2.1", NUD_STALE))->netdev, "lan0");
	assert_int_equal(changes_of(message_link(RTM_DELLINK, ETH0, "lan0", 9000, UP)), 0);
	assert_string_equal(change_of(message_neighbour(RTM_NEWNEIGH, ETH0, "192.0.2.1", NUD_STALE))->netdev, "");
}

UNIT_CASE(shortage_of_memory_is_told_and_leaves_the_table)
{
	add_link(ETH0, "eth0");
	for (int i = 0; i < 2; i++) {
		no_memory = !i;
		parser_lacks_memory = i;
		c.err = 0;
		assert_int_equal(changes_of(message_link(RTM_NEWLINK, ETH1, "eth1", 1500, UP)), 0);
		assert_int_equal(c.err, ENOMEM);
		assert_int_equal(c.table.link_count, 1);
		assert_string_equal(net_link_by_index(&c.table, ETH0)->name, "eth0");
	}
}

/* --- addresses --------------------------------------------------------------------------------------- */

UNIT_CASE(address_comes_and_goes)
{
	static const struct {
		const char *text;
		uint8_t prefix;
	} rows[] = { { "192.0.2.1", 24 }, { "2001:db8::1", 64 } };

	add_link(ETH0, "eth0");
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct dat_net_change *change;

		change = change_of(message_address(RTM_NEWADDR, ETH0, rows[i].text, rows[i].prefix));
		assert_change(change, DAT_NET_ADDRESS, 0, 1);
		assert_ip(&change->address, rows[i].text);
		assert_int_equal(change->prefix, rows[i].prefix);
		assert_string_equal(change->netdev, "eth0");
		change = change_of(message_address(RTM_DELADDR, ETH0, rows[i].text, rows[i].prefix));
		assert_change(change, DAT_NET_ADDRESS, 1, 0);
		assert_ip(&change->address, rows[i].text);
	}
}

/* --- routes ------------------------------------------------------------------------------------------ */

/* 198.51.100.0/24 by eth0, without a router yet. */
static struct nl_msg *route_by_eth0(int type)
{
	struct nl_msg *msg = message_route(type, AF_INET, "198.51.100.0", 24);

	message_put_u32(msg, RTA_OIF, ETH0);
	return msg;
}

UNIT_CASE(route_has_its_destination_router_and_interface)
{
	struct nl_msg *msg = route_by_eth0(RTM_NEWROUTE);
	const struct dat_net_change *change;

	add_link(ETH0, "eth0");
	message_put_ip(msg, RTA_GATEWAY, "192.0.2.254");
	change = change_of(msg);
	assert_change(change, DAT_NET_ROUTE, 0, 1);
	assert_ip(&change->address, "198.51.100.0");
	assert_int_equal(change->prefix, 24);
	assert_ip(&change->via, "192.0.2.254");
	assert_string_equal(change->netdev, "eth0");
	change = change_of(route_by_eth0(RTM_DELROUTE));
	assert_change(change, DAT_NET_ROUTE, 1, 0);
	assert_ip(&change->via, NULL);
}

UNIT_CASE(default_route_has_its_family)
{
	assert_ip(&change_of(message_route(RTM_NEWROUTE, AF_INET, NULL, 0))->address, "0.0.0.0");
	assert_int_equal(c.ready[0].prefix, 0);
	assert_ip(&change_of(message_route(RTM_NEWROUTE, AF_INET6, NULL, 0))->address, "::");
	assert_int_equal(c.ready[0].prefix, 0);
}

UNIT_CASE(replaced_route_has_changed)
{
	struct nl_msg *msg = route_by_eth0(RTM_NEWROUTE);

	nlmsg_hdr(msg)->nlmsg_flags |= NLM_F_REPLACE;
	assert_change(change_of(msg), DAT_NET_ROUTE, 1, 1);
}

UNIT_CASE(routes_that_the_kernel_keeps_for_itself_are_not_told)
{
	static const struct rtmsg heads[] = {
		{ .rtm_family = AF_INET, .rtm_table = RT_TABLE_LOCAL, .rtm_type = RTN_LOCAL },
		{ .rtm_family = AF_INET6, .rtm_table = RT_TABLE_MAIN, .rtm_type = RTN_UNICAST,
			.rtm_flags = RTM_F_CLONED },
	};

	for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
		assert_int_equal(changes_of(message_new(RTM_NEWROUTE, 0, &heads[i], sizeof heads[i])), 0);
}

/* RTA_VIA instead of RTA_GATEWAY: a family, and an address of it. */
UNIT_CASE(ipv4_route_may_have_an_ipv6_router)
{
	struct sockaddr_storage router = ip("fe80::1");
	struct nl_msg *msg = route_by_eth0(RTM_NEWROUTE);
	uint8_t via[2 + 16] = { AF_INET6 };
	const struct dat_net_change *change;

	memcpy(via + 2, &((struct sockaddr_in6 *)&router)->sin6_addr, 16);
	message_put(msg, RTA_VIA, via, sizeof via);
	change = change_of(msg);
	assert_ip(&change->address, "198.51.100.0");
	assert_ip(&change->via, "fe80::1");
}

static struct nl_msg *route_of_hops(const void *hops, size_t size)
{
	struct nl_msg *msg = message_route(RTM_NEWROUTE, AF_INET, "198.51.100.0", 24);

	message_put(msg, RTA_MULTIPATH, hops, size);
	return msg;
}

UNIT_CASE(first_of_several_hops_is_told)
{
	static const struct rtnexthop hops[2] = { { .rtnh_len = sizeof *hops, .rtnh_ifindex = ETH1 },
						  { .rtnh_len = sizeof *hops, .rtnh_ifindex = ETH0 } };

	add_link(ETH0, "eth0");
	add_link(ETH1, "eth1");
	assert_string_equal(change_of(route_of_hops(hops, sizeof hops))->netdev, "eth1");
}

/* libnl would read on behind the attribute. */
UNIT_CASE(route_with_a_broken_hop_is_not_told)
{
	static const struct rtnexthop hop = { .rtnh_len = sizeof hop + 1, .rtnh_ifindex = ETH0 };
	uint8_t bytes[sizeof hop + 1] = { 0 };

	memcpy(bytes, &hop, sizeof hop);
	assert_int_equal(changes_of(route_of_hops(bytes, sizeof bytes)), 0);
	assert_int_equal(c.err, 0);
}

/* --- neighbours --------------------------------------------------------------------------------------- */

UNIT_CASE(neighbour_comes_and_goes_with_its_state)
{
	static const struct { int type, state; bool told, before; } rows[] = {
		{ RTM_NEWNEIGH, NUD_REACHABLE, true, false }, { RTM_NEWNEIGH, NUD_STALE, true, false },
		{ RTM_NEWNEIGH, NUD_DELAY, true, false }, { RTM_NEWNEIGH, NUD_PROBE, true, false },
		{ RTM_NEWNEIGH, NUD_PERMANENT, true, false }, { RTM_NEWNEIGH, NUD_FAILED, true, true },
		{ RTM_NEWNEIGH, NUD_INCOMPLETE, false, false }, { RTM_NEWNEIGH, NUD_NOARP, false, false },
		{ RTM_DELNEIGH, NUD_STALE, true, true }, { RTM_DELNEIGH, NUD_FAILED, true, true },
		{ RTM_DELNEIGH, NUD_INCOMPLETE, false, false }, { RTM_DELNEIGH, NUD_NOARP, false, false },
	};

	add_link(ETH0, "eth0");
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_int_equal(changes_of(message_neighbour(rows[i].type, ETH0, "2001:db8::7", rows[i].state)),
				 rows[i].told);
		if (!rows[i].told)
			continue;
		assert_change(&c.ready[0], DAT_NET_NEIGHBOUR, rows[i].before, !rows[i].before);
		assert_ip(&c.ready[0].address, "2001:db8::7");
		assert_string_equal(c.ready[0].netdev, "eth0");
	}
}

/* One that has no room is none: half of it would be another address. */
UNIT_CASE(neighbour_has_its_whole_link_layer_address_or_none)
{
	static const struct {
		size_t bytes;
		uint8_t length;
	} rows[] = { { 0, 0 }, { 6, 6 }, { DAT_NET_LLADDR_MAX, DAT_NET_LLADDR_MAX }, { DAT_NET_LLADDR_MAX + 1, 0 } };

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct nl_msg *msg = message_neighbour(RTM_NEWNEIGH, ETH0, "192.0.2.7", NUD_REACHABLE);
		const struct dat_net_change *change;

		if (rows[i].bytes)
			message_put_lladdr(msg, NDA_LLADDR, 1, rows[i].bytes);
		change = change_of(msg);
		assert_int_equal(change->length, rows[i].length);
		for (int j = 0; j < change->length; j++)
			assert_int_equal(change->lladdr[j], 1 + j);
	}
}

UNIT_CASE(address_learnt_by_a_bridge_is_no_neighbour)
{
	const struct ndmsg head = { .ndm_family = AF_BRIDGE, .ndm_ifindex = ETH0, .ndm_state = NUD_REACHABLE };
	struct nl_msg *msg = message_new(RTM_NEWNEIGH, 0, &head, sizeof head);

	message_put_lladdr(msg, NDA_LLADDR, 1, 6);
	assert_int_equal(changes_of(msg), 0);
}

/* --- any messages -------------------------------------------------------------------------------------- */

static struct nl_msg *whole_link(void) { return message_link(RTM_NEWLINK, ETH1, "eth1", 1500, UP); }
static struct nl_msg *whole_address(void) { return message_address(RTM_NEWADDR, ETH0, "192.0.2.1", 24); }

static struct nl_msg *whole_route(void)
{
	struct nl_msg *msg = route_by_eth0(RTM_NEWROUTE);

	message_put_ip(msg, RTA_GATEWAY, "192.0.2.254");
	return msg;
}

static struct nl_msg *whole_neighbour(void)
{
	struct nl_msg *msg = message_neighbour(RTM_NEWNEIGH, ETH0, "2001:db8::7", NUD_REACHABLE);

	message_put_lladdr(msg, NDA_LLADDR, 1, 6);
	return msg;
}

static const struct {
	struct nl_msg *(*make)(void);
	uint32_t what;
	size_t head;		/* bytes without which the message says nothing */
} messages[] = {
	{ whole_link, DAT_NET_LINK, sizeof(struct ifinfomsg) },
	{ whole_address, DAT_NET_ADDRESS, sizeof(struct ifaddrmsg) },
	{ whole_route, DAT_NET_ROUTE, sizeof(struct rtmsg) },
	{ whole_neighbour, DAT_NET_NEIGHBOUR, sizeof(struct ndmsg) },
};

UNIT_CASE(kinds_that_were_not_asked_for_are_not_told)
{
	for (size_t i = 0; i < sizeof messages / sizeof *messages; i++) {
		tear_down(NULL);
		c = (struct net_changes){ .what = messages[i].what };
		assert_int_equal(change_of(messages[i].make())->what, messages[i].what);
		tear_down(NULL);
		c = (struct net_changes){ .what = DAT_NET_CHANGES & ~messages[i].what };
		assert_int_equal(changes_of(messages[i].make()), 0);
	}
}

UNIT_CASE(changes_of_the_message_before_are_not_told_again)
{
	assert_int_equal(changes_of(whole_address()), 1);
	assert_int_equal(changes_of(message_link(RTM_DELLINK, ETH1, "eth1", 1500, UP)), 0);
}

static void assert_ip_part(const struct sockaddr_storage *part, const struct sockaddr_storage *whole)
{
	static const uint8_t none[sizeof(struct in6_addr)];
	size_t n;
	const uint8_t *bytes = net_bytes((const struct sockaddr *)part, &n);

	if (n && memcmp(bytes, none, n) != 0)
		assert_memory_equal(part, whole, sizeof *whole);
}

/* Each value from a part of a message is missing, or is that of the whole message. */
static void assert_part(const struct dat_net_change *part, const struct dat_net_change *whole)
{
	assert_change(part, whole->what, whole->before, whole->now);
	if (*part->netdev)
		assert_string_equal(part->netdev, whole->netdev);
	assert_ip_part(&part->address, &whole->address);
	assert_ip_part(&part->via, &whole->via);
	if (part->length) {
		assert_int_equal(part->length, whole->length);
		assert_memory_equal(part->lladdr, whole->lladdr, sizeof whole->lladdr);
	}
}

UNIT_CASE(cut_messages_tell_nothing_that_is_not_there)
{
	struct dat_net_change whole;

	for (size_t i = 0; i < sizeof messages / sizeof *messages; i++) {
		struct nl_msg *msg = messages[i].make();
		size_t length = nlmsg_hdr(msg)->nlmsg_len;

		add_link(ETH0, "eth0");
		whole = *change_of(msg);
		for (size_t cut = NLMSG_HDRLEN; cut < length; cut++) {
			tear_down(NULL);
			set_up(NULL);
			add_link(ETH0, "eth0");
			if (changes_of(message_cut(messages[i].make(), cut)))
				assert_part(&c.ready[0], &whole);
			assert_in_range(c.count, 0, cut < NLMSG_LENGTH(messages[i].head) ? 0 : 1);
			assert_int_equal(c.err, 0);
		}
	}
}

/* --- RDMA devices --------------------------------------------------------------------------------------- */

static size_t changes_of_uevent(const char *text, size_t length)
{
	char *exact = memcpy(malloc(length), text, length);	/* a sanitizer sees what is read behind it */

	net_changes_of_uevent(&c, exact, length);
	free(exact);
	return c.count;
}

#define DEVICE "DEVPATH=/devices/pci0000:00/0000:00:02.0/infiniband/mlx5_0\0"
#define ADDED "add@/devices/pci0000:00/0000:00:02.0/infiniband/mlx5_0\0ACTION=add\0" DEVICE \
	"SUBSYSTEM=infiniband\0SEQNUM=7"

UNIT_CASE(rdma_devices_come_and_go)
{
	static const char removed[] = "SUBSYSTEM=infiniband\0" DEVICE "ACTION=remove", added[] = ADDED;

	assert_int_equal(changes_of_uevent(added, sizeof added), 1);
	assert_change(&c.ready[0], DAT_NET_RDMA, 0, 1);
	assert_string_equal(c.ready[0].device, "mlx5_0");
	assert_int_equal(changes_of_uevent(removed, sizeof removed), 1);
	assert_change(&c.ready[0], DAT_NET_RDMA, 1, 0);
	assert_string_equal(c.ready[0].device, "mlx5_0");
}

UNIT_CASE(other_uevents_are_no_changes)
{
#define ROW(text) { text, sizeof text }
	static const struct { const char *text; size_t length; } rows[] = {
		ROW("ACTION=add\0" DEVICE "SUBSYSTEM=net"), ROW("ACTION=add\0" DEVICE "SUBSYSTEM=infiniband_verbs"),
		ROW("ACTION=change\0" DEVICE "SUBSYSTEM=infiniband"), ROW(DEVICE "SUBSYSTEM=infiniband"),
		ROW("ACTION=add\0SUBSYSTEM=infiniband"), ROW("ACTION=add\0DEVPATH=mlx5_0\0SUBSYSTEM=infiniband"),
		ROW("ACTION=add\0" DEVICE), ROW(""), { "", 0 }, ROW("\0\0\0"),
	};
	static const char added[] = ADDED;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_int_equal(changes_of_uevent(rows[i].text, rows[i].length), 0);
	c.what = DAT_NET_CHANGES & ~DAT_NET_RDMA;
	assert_int_equal(changes_of_uevent(added, sizeof added), 0);
}

UNIT_CASE(word_without_an_end_is_not_read)
{
	static const char added[] = "ACTION=add\0" DEVICE "SUBSYSTEM=infiniband";

	assert_int_equal(changes_of_uevent(added, sizeof added), 1);
	for (size_t length = 0; length < sizeof added; length++)
		assert_int_equal(changes_of_uevent(added, length), 0);
}

UNIT_CASE(name_of_a_device_is_cut_to_its_room)
{
	char text[] = "ACTION=add\0SUBSYSTEM=infiniband\0DEVPATH="
		"/0123456789012345678901234567890123456789012345678901234567890123456789";

	assert_int_equal(changes_of_uevent(text, sizeof text), 1);
	assert_int_equal(strlen(c.ready[0].device), DAT_NET_DEVICE_MAX - 1);
}

UNIT_MAIN(NULL, NULL)
