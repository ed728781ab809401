/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_entries.c - which local address the device of an entry of dat.conf has (net/entries.c). The list of the
 * registry is given here. */
#include "net/entries.h"
#include "common/local_addresses.h"
#include <dat/dat_entries.h>
#include <linux/if_addr.h>
#include <net/if.h>
#include "test/unit/net/ips.h"
#include "test/unit/unit.h"

#define UP (IFF_UP | IFF_RUNNING)
#define SOFT "libdaplsoft.so.2"
#define OFA "libdaplofa.so.2"

enum { LO = 1, ETH0, ETH1, IB0, EMPTY };	/* interfaces */
/* addresses, in the kernel's order */
enum { LO4, LO6, ETH0_LINK, ETH0_GLOBAL, ETH0_FIRST, ETH0_SECOND, ETH1_LINK, ETH1_GLOBAL, IB0_LINK, ADDRESSES };

static struct net_link links[] = {
	{ .index = LO, .name = "lo", .flags = UP | IFF_LOOPBACK }, { .index = ETH0, .name = "eth0", .flags = UP },
	{ .index = ETH1, .name = "eth1", .flags = UP }, { .index = IB0, .name = "ib0", .flags = UP },
	{ .index = EMPTY, .name = "empty", .flags = UP },
};
static struct net_address addresses[ADDRESSES];
static const struct net_table table = { links, addresses, sizeof links / sizeof *links, ADDRESSES, 0 };
static struct net_rdma ports[] = {
	{ "eth1", "mlx5_0", 1, DAT_NET_ROCE }, { "eth0", "mlx5_0", 2, DAT_NET_ROCE },
	{ "ib0", "mlx5_0", 2, DAT_NET_IB },
	{ "gone", "mlx5_1", 1, DAT_NET_ROCE },
};
static const struct net_rdma_list rdma = { ports, sizeof ports / sizeof *ports };
static struct net_entries entries;

/* The one entry that the registry has; `found` NULL: it has no memory. */
static DAT_ENTRY given[2];
static DAT_COUNT given_count;
static DAT_RETURN registry_returns;

REPLACE(dats_list_entries)
DAT_RETURN __wrap_dats_list_entries(DAT_ENTRY **list, DAT_COUNT *count)
{
	if (registry_returns != DAT_SUCCESS)
		return registry_returns;
	*list = malloc(sizeof given);
	memcpy(*list, given, sizeof given);
	*count = given_count;
	return DAT_SUCCESS;
}

static void set_address(int at, int index, const char *text)
{
	addresses[at] = (struct net_address){ .index = index, .address = ip(text), .usable = true };
	addresses[at].rank = local_address_rank((struct sockaddr *)&addresses[at].address, 0);
}

static int set_up(void **state)
{
	set_address(LO4, LO, "127.0.0.1");
	set_address(LO6, LO, "::1");
	set_address(ETH0_LINK, ETH0, "fe80::1");
	set_address(ETH0_GLOBAL, ETH0, "2001:db8::1");
	set_address(ETH0_FIRST, ETH0, "192.0.2.1");
	set_address(ETH0_SECOND, ETH0, "192.0.2.2");
	set_address(ETH1_LINK, ETH1, "fe80::2");
	set_address(ETH1_GLOBAL, ETH1, "2001:db8::2");
	set_address(IB0_LINK, IB0, "fe80::3");
	for (size_t i = 0; i < sizeof links / sizeof *links; i++)
		links[i].flags |= UP;
	registry_returns = DAT_SUCCESS;
	given_count = 1;
	memset(given, 0, sizeof given);
	given[0].is_default = DAT_TRUE;
	given[0].info.dapl_version_major = DAT_VERSION_MAJOR;
	strcpy(given[0].info.ia_name, "ia");
	return 0;
}

static void read_entry(const char *library, const char *params)
{
	given[0].library = library;
	given[0].ia_params = params;
	assert_int_equal(net_entries_read(&entries, &table, &rdma), 0);
}

/* Returns the place in `addresses` of the address of the entry's device. Returns -1 if it has none: the
 * entry is then left out. */
static int address_of(const char *library, const char *params)
{
	int at = -1;

	read_entry(library, params);
	if (entries.count)
		at = (int)(entries.entries[0].address - addresses);
	net_entries_free(&entries);
	return at;
}

#define TEST(name) UNIT_TEST_WITH(name, set_up, NULL)

UNIT_TEST_WITH(label_and_usability_select_an_address, set_up, NULL)
{
	strcpy(addresses[ETH0_SECOND].label, "eth0:vip");
	assert_int_equal(address_of(SOFT, "eth0:vip 0"), ETH0_SECOND);
	assert_int_equal(address_of(OFA, "eth0:vip 0"), ETH0_SECOND);
	assert_int_equal(address_of(SOFT, "eth0:vi 0"), -1);
	addresses[ETH1_GLOBAL].usable = false;
	addresses[ETH1_GLOBAL].rank = local_address_rank((struct sockaddr *)&addresses[ETH1_GLOBAL].address,
							 IFA_F_TENTATIVE);
	assert_int_equal(address_of(SOFT, "eth1 0"), ETH1_LINK);
}

TEST(interface_gives_ipv4_before_global_before_link_local)
{
	assert_int_equal(address_of(SOFT, "eth0"), ETH0_FIRST);
	assert_int_equal(address_of(SOFT, "eth1"), ETH1_GLOBAL);
	assert_int_equal(address_of(SOFT, "ib0"), IB0_LINK);
	assert_int_equal(address_of(OFA, "eth0 0"), ETH0_FIRST);
	assert_int_equal(address_of(OFA, "eth1 0"), ETH1_GLOBAL);
}

TEST(interface_without_address_gives_none)
{
	assert_int_equal(address_of(SOFT, "empty"), -1);
	assert_int_equal(address_of(OFA, "empty 0"), -1);
}

TEST(entry_may_name_any_local_address)
{
	assert_int_equal(address_of(SOFT, "192.0.2.2"), ETH0_SECOND);
	assert_int_equal(address_of(SOFT, "2001:db8::1"), ETH0_GLOBAL);
	assert_int_equal(address_of(OFA, "2001:db8::2 0"), ETH1_GLOBAL);
	assert_int_equal(address_of(SOFT, "192.0.2.3"), -1);
	assert_int_equal(address_of(SOFT, "2001:db8::3"), -1);
}

TEST(link_local_address_may_have_its_scope)
{
	set_address(ETH1_LINK, ETH1, "fe80::1");	/* as eth0 */
	assert_int_equal(address_of(SOFT, "fe80::1"), ETH0_LINK);
	assert_int_equal(address_of(OFA, "fe80::1%eth0 0"), ETH0_LINK);
	assert_int_equal(address_of(OFA, "fe80::1%eth1 0"), ETH1_LINK);
	assert_int_equal(address_of(SOFT, "fe80::1%3"), ETH1_LINK);
	assert_int_equal(address_of(OFA, "fe80::1%ib0 0"), -1);
	assert_int_equal(address_of(OFA, "fe80::1%gone 0"), -1);
	assert_int_equal(address_of(OFA, "fe80::1%3x 0"), -1);
	assert_int_equal(address_of(OFA, "fe80::1% 0"), -1);
	assert_int_equal(address_of(OFA, "192.0.2.1%eth0 0"), -1);
	assert_int_equal(address_of(OFA, "0000:0000:0000:0000:0000:0000:0000:0000:0000:0000%lo 0"), -1);
}

TEST(software_device_may_have_options)
{
	assert_int_equal(address_of(SOFT, "eth0 0 eth_qdisc=bypass"), ETH0_FIRST);
	assert_int_equal(address_of(SOFT, "eth0 0 eth_qdisc=bypass eth_qdisc=default "), ETH0_FIRST);
	assert_int_equal(address_of(SOFT, "eth0 0 eth_qdisc=bypass 0"), -1);
	assert_int_equal(address_of(OFA, "eth0 0 eth_qdisc=bypass"), -1);
}

/* A name may be a matter of a name server. */
TEST(entry_that_names_a_host_is_left_out)
{
	assert_int_equal(address_of(SOFT, "host.example.org"), -1);
	assert_int_equal(address_of(OFA, "host.example.org 0"), -1);
}

TEST(port_of_a_device_has_the_best_address_of_its_interfaces)
{
	assert_int_equal(address_of(OFA, "mlx5_0 1"), ETH1_GLOBAL);
	assert_int_equal(address_of(OFA, "mlx5_0"), ETH1_GLOBAL);	/* port 1 */
	assert_int_equal(address_of(OFA, "mlx5_0 0"), ETH1_GLOBAL);
	assert_int_equal(address_of(OFA, "mlx5_0 2"), ETH0_FIRST);	/* rather than ib0's */
	assert_int_equal(address_of(OFA, "mlx5_0 3"), -1);
	assert_int_equal(address_of(OFA, "mlx5_1 1"), -1);
	assert_int_equal(address_of(SOFT, "mlx5_0 1"), -1);
}

TEST(software_device_without_parameters_takes_the_best_interface)
{
	assert_int_equal(address_of(SOFT, ""), ETH0_FIRST);
	links[ETH0 - 1].flags &= ~(unsigned)IFF_RUNNING;
	assert_int_equal(address_of(SOFT, ""), ETH1_GLOBAL);
	links[ETH1 - 1].flags &= ~(unsigned)IFF_UP;
	assert_int_equal(address_of(SOFT, ""), IB0_LINK);	/* any before loopback */
	links[IB0 - 1].flags &= ~(unsigned)IFF_UP;
	assert_int_equal(address_of(SOFT, ""), LO4);
	assert_int_equal(address_of(OFA, ""), -1);
}

TEST(first_of_two_equal_interfaces_is_taken)
{
	set_address(ETH1_GLOBAL, ETH1, "198.51.100.1");
	assert_int_equal(address_of(SOFT, ""), ETH0_FIRST);
}

TEST(entries_that_cannot_be_opened_are_left_out)
{
	given[0].is_default = DAT_FALSE;
	assert_int_equal(address_of(SOFT, "eth0"), -1);
	given[0].is_default = given[0].is_repeated = DAT_TRUE;
	assert_int_equal(address_of(SOFT, "eth0"), -1);
	given[0].is_repeated = DAT_FALSE;
	given[0].info.dapl_version_major = 1;
	assert_int_equal(address_of(SOFT, "eth0"), -1);
	given[0].info.dapl_version_major = DAT_VERSION_MAJOR;
	assert_int_equal(address_of(SOFT, "eth0 0 0"), -1);	/* a third word */
	assert_int_equal(address_of(SOFT, "eth0"), ETH0_FIRST);
}

TEST(entry_has_the_kind_of_its_device)
{
	static const struct { const char *library, *params; uint8_t kind; bool soft; } rows[] = {
		{ SOFT, "eth0", DAT_NET_SOFT, true }, { OFA, "eth0 0", DAT_NET_ROCE, false },
		{ OFA, "ib0 0", DAT_NET_IB, false }, { OFA, "lo 0", DAT_NET_NONE, false },
		{ "/usr/lib/libdaplsoft.so", "lo", DAT_NET_SOFT, true },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		read_entry(rows[i].library, rows[i].params);
		assert_int_equal(entries.count, 1);
		assert_string_equal(entries.entries[0].ia, "ia");
		assert_int_equal(entries.entries[0].kind, rows[i].kind);
		assert_int_equal(entries.entries[0].soft, rows[i].soft);
		net_entries_free(&entries);
	}
}

TEST(first_entry_of_the_kind_is_found)
{
	struct net_entry list[] = {
		{ "none", false, DAT_NET_NONE, &addresses[LO4] }, { "soft", true, DAT_NET_SOFT, &addresses[LO4] },
		{ "first", false, DAT_NET_ROCE, &addresses[LO4] }, { "second", false, DAT_NET_ROCE, &addresses[LO4] },
	};
	const struct net_entries all = { .entries = list, .count = 4 };

	assert_ptr_equal(net_entry_of(&all, &addresses[LO4], false), &list[2]);
	assert_ptr_equal(net_entry_of(&all, &addresses[LO4], true), &list[1]);
	assert_null(net_entry_of(&all, &addresses[ETH0_FIRST], false));
}

TEST(shortage_of_the_registry_is_returned)
{
	registry_returns = DAT_INSUFFICIENT_RESOURCES;
	assert_int_equal(net_entries_read(&entries, &table, &rdma), ENOMEM);
	assert_int_equal(entries.count, 0);
	net_entries_free(&entries);
}

TEST(entries_keep_the_order_of_the_registry)
{
	given[1] = given[0];
	strcpy(given[1].info.ia_name, "other");
	given[1].library = SOFT;
	given[1].ia_params = "lo";
	given_count = 2;
	read_entry(OFA, "eth0 0");
	assert_int_equal(entries.count, 2);
	assert_string_equal(entries.entries[0].ia, "ia");
	assert_string_equal(entries.entries[1].ia, "other");
	net_entries_free(&entries);
}

UNIT_MAIN(NULL, NULL)
