/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_nics.c - the rows that dat_net_nics() makes of interfaces and RDMA ports (net/nics.c), which are given here. */
#include "net/rdma.h"
#include <net/if.h>
#include "test/unit/net/namespace.h"
#include "test/unit/unit.h"

static struct net_link links[] = {
	{ .index = 1, .name = "lo", .mtu = 65536, .flags = IFF_UP | IFF_RUNNING | IFF_LOOPBACK },
	{ .index = 2, .name = "eth0", .mtu = 1500, .flags = IFF_UP, .lladdr = { 2, 0, 0, 0, 0, 1 }, .length = 6 },
};
static struct net_rdma ports[] = {
	{ "eth0", "mlx5_0", 1, DAT_NET_ROCE }, { "gone", "mlx5_1", 1, DAT_NET_ROCE },
	{ "eth0", "siw0", 2, DAT_NET_IWARP },
};
static struct dat_net_nic *list;
static size_t count;

REPLACE(net_rdma_speed)
uint32_t __wrap_net_rdma_speed(const char *netdev) { return strcmp(netdev, "eth0") ? 0 : 100000; }

UNIT_FIXTURE(set_up)
{
	given_table = (struct net_table){ .links = links, .link_count = 2 };
	given_ports = (struct net_rdma_list){ ports, 3 };
	failing = NULL;
	list = NULL;
}

UNIT_FIXTURE(tear_down)
{
	dat_net_free(list);
	assert_int_equal(held, 0);
}

UNIT_CASE(interface_is_there_once_for_each_port)
{
	static const struct {
		const char *netdev, *device;
		unsigned port;
		uint8_t rdma;
	} rows[] = { { "lo", "", 0, DAT_NET_NONE }, { "eth0", "mlx5_0", 1, DAT_NET_ROCE },
		{ "eth0", "siw0", 2, DAT_NET_IWARP } };

	assert_int_equal(dat_net_nics(&list, &count), 0);
	assert_int_equal(count, sizeof rows / sizeof *rows);
	for (size_t i = 0; i < count; i++) {
		assert_string_equal(list[i].netdev, rows[i].netdev);
		assert_string_equal(list[i].device, rows[i].device);
		assert_int_equal(list[i].port, rows[i].port);
		assert_int_equal(list[i].rdma, rows[i].rdma);
	}
}

UNIT_CASE(row_has_what_is_known_of_its_interface)
{
	assert_int_equal(dat_net_nics(&list, &count), 0);
	assert_int_equal(list[0].mtu, 65536);
	assert_int_equal(list[0].up, 1);
	assert_int_equal(list[0].speed_mbit, 0);
	assert_int_equal(list[0].length, 0);
	assert_int_equal(list[1].mtu, 1500);
	assert_int_equal(list[1].up, 0);		/* without a carrier */
	assert_int_equal(list[1].speed_mbit, 100000);
	assert_int_equal(list[1].length, 6);
	assert_memory_equal(list[1].address, links[1].lladdr, 6);
}

UNIT_CASE(namespace_without_interfaces_has_an_empty_list)
{
	given_table.link_count = 0;
	count = 9;
	assert_int_equal(dat_net_nics(&list, &count), 0);
	assert_non_null(list);
	assert_int_equal(count, 0);
}

UNIT_CASE(failures_are_returned_and_leave_the_arguments)
{
	static const char *const functions[] = { "open", "table", "rdma" };

	count = 9;
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
		failing = functions[i];
		assert_int_equal(dat_net_nics(&list, &count), ENFILE);
		assert_int_equal(held, 0);
	}
	assert_int_equal(dat_net_nics(NULL, &count), EINVAL);
	assert_int_equal(dat_net_nics(&list, NULL), EINVAL);
	assert_null(list);
	assert_int_equal(count, 9);
}

UNIT_MAIN(NULL, NULL)
