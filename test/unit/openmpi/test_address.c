/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_address.c - the address that an adapter publishes, and which address of a peer it connects to. */
#include "test/unit/openmpi/btl.h"
#include <ifaddrs.h>
#include "contrib/openmpi/address.h"
#include "opal/mca/hwloc/base/base.h"
#include "test/unit/unit.h"

static struct sockaddr_in6 own;			/* of the adapter */
static struct sockaddr_in6 interface, mask;	/* of the only interface */
static struct sockaddr_in6 second_mask;
static struct ifaddrs without_address, without_mask, with_mask, second;
static bool has_second;			/* an interface with the same address */
static int lists;
static bool no_interfaces;

REPLACE(getifaddrs, freeifaddrs)

int __wrap_getifaddrs(struct ifaddrs **all)
{
	if (no_interfaces)
		return -1;
	without_address = (struct ifaddrs){ .ifa_next = &without_mask };
	without_mask = (struct ifaddrs){ .ifa_next = &with_mask, .ifa_addr = (struct sockaddr *)&interface };
	with_mask = (struct ifaddrs){ .ifa_addr = (struct sockaddr *)&interface,
				      .ifa_netmask = (struct sockaddr *)&mask,
				      .ifa_next = has_second ? &second : NULL };
	second = (struct ifaddrs){ .ifa_addr = (struct sockaddr *)&interface,
				   .ifa_netmask = (struct sockaddr *)&second_mask };
	*all = &without_address;
	lists++;
	return 0;
}

void __wrap_freeifaddrs(struct ifaddrs *all)
{
	assert_ptr_equal(all, &without_address);
	lists--;
}

static void set(struct sockaddr_in6 *at, const char *text)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)at;

	memset(at, 0, sizeof *at);
	if (inet_pton(AF_INET, text, &v4->sin_addr) == 1)
		v4->sin_family = AF_INET;
	else if (inet_pton(AF_INET6, text, &at->sin6_addr) == 1)
		at->sin6_family = AF_INET6;
	else
		fail_msg("%s is no address", text);
}

UNIT_FIXTURE(begin)
{
	btl_begin(state);
	set(&own, "10.1.2.3");
	module.attr.ia_address_ptr = (DAT_IA_ADDRESS_PTR)&own;
	set(&interface, "10.1.2.3");
	set(&mask, "255.255.240.0");
	no_interfaces = has_second = false;
	lists = 0;
}

#define CASE(name) UNIT_TEST_WITH(name, begin, btl_end)

/* --- own address ------------------------------------------------------------------------------- */

CASE(address_has_the_prefix_of_its_interface)
{
	struct sockaddr_in *at = (struct sockaddr_in *)&module.address.at;

	((struct sockaddr_in *)&own)->sin_port = 99;
	assert_true(udapl_address_own(&module));
	assert_int_equal(at->sin_family, AF_INET);
	assert_int_equal(at->sin_addr.s_addr, inet_addr("10.1.2.3"));
	assert_int_equal(at->sin_port, 0);	/* equal adapters compare equal */
	assert_int_equal(module.address.prefix, 20);
	assert_string_equal(module.address.ia, "ia0");
	assert_int_equal(lists, 0);
}

CASE(address_of_ipv6_has_its_scope)
{
	set(&own, "fe80::1");
	own.sin6_scope_id = 4;
	set(&interface, "fe80::1");
	interface.sin6_scope_id = 4;
	set(&mask, "ffff:ffff:ffff:ffff::");
	assert_true(udapl_address_own(&module));
	assert_int_equal(module.address.at.sin6_family, AF_INET6);
	assert_memory_equal(&module.address.at.sin6_addr, &own.sin6_addr, 16);
	assert_int_equal(module.address.at.sin6_scope_id, 4);
	assert_int_equal(module.address.prefix, 64);
	interface.sin6_scope_id = 5;		/* the same address on another link */
	assert_true(udapl_address_own(&module));
	assert_int_equal(module.address.prefix, 128);
}

CASE(of_equal_addresses_the_shortest_prefix_counts)
{
	has_second = true;
	set(&mask, "255.255.255.255");
	set(&second_mask, "255.255.255.0");
	assert_true(udapl_address_own(&module));
	assert_int_equal(module.address.prefix, 24);
	set(&second_mask, "255.255.255.255");
	set(&mask, "255.255.0.0");
	assert_true(udapl_address_own(&module));
	assert_int_equal(module.address.prefix, 16);
	assert_int_equal(lists, 0);
}

CASE(address_of_no_interface_is_a_network_of_its_own)
{
	set(&interface, "10.1.2.4");
	assert_true(udapl_address_own(&module));
	assert_int_equal(module.address.prefix, 32);
	no_interfaces = true;
	assert_true(udapl_address_own(&module));
	assert_int_equal(module.address.prefix, 32);
	set(&own, "fd00::1");
	assert_true(udapl_address_own(&module));
	assert_int_equal(module.address.prefix, 128);
}

CASE(adapter_without_an_ip_address_is_not_used)
{
	own.sin6_family = AF_UNIX;
	assert_false(udapl_address_own(&module));
	module.attr.ia_address_ptr = NULL;
	assert_false(udapl_address_own(&module));
}

CASE(long_name_of_an_adapter_is_cut)
{
	memset(module.name, 'n', 60);
	module.name[60] = 0;
	assert_true(udapl_address_own(&module));
	assert_int_equal(strlen(module.address.ia), sizeof module.address.ia - 1);
}

/* --- addresses of peers ------------------------------------------------------------------------ */

static struct udapl_address theirs[4];
static int num_theirs;

static void peer_has(const char *text, const char *name)
{
	struct udapl_address *a = &theirs[num_theirs++];

	memset(a, 0, sizeof *a);
	set(&a->at, text);
	memcpy(a->ia, name, strlen(name));
}

/* The address of the peer that is chosen: its number, or -1. */
static int choice(const char *from, uint32_t prefix, bool near)
{
	opal_proc_t proc = { .proc_flags = near ? OPAL_PROC_ON_NODE | OPAL_PROC_ON_HOST | OPAL_PROC_ON_CU |
							  OPAL_PROC_ON_CLUSTER : OPAL_PROC_NON_LOCAL };
	const struct udapl_address *to;

	set(&module.address.at, from);
	module.address.prefix = prefix;
	memcpy(module.address.ia, "ia0", 4);
	to = udapl_address_match(&module, &proc, theirs, num_theirs);
	num_theirs = 0;
	return to ? (int)(to - theirs) : -1;
}

CASE(peer_of_the_same_network_is_reached)
{
	peer_has("10.1.15.255", "ia0");
	assert_int_equal(choice("10.1.2.3", 20, false), 0);
	peer_has("10.1.16.0", "ia0");
	assert_int_equal(choice("10.1.2.3", 20, false), -1);
	peer_has("10.1.2.4", "ia0");
	assert_int_equal(choice("10.1.2.3", 24, false), 0);
	peer_has("10.1.2.4", "ia0");
	assert_int_equal(choice("10.1.2.3", 32, false), -1);
	peer_has("10.1.2.3", "ia0");
	assert_int_equal(choice("10.1.2.3", 33, false), -1);	/* longer than the address */
	peer_has("fd00::ff:1", "ia0");
	assert_int_equal(choice("fd00::1", 64, false), 0);
	peer_has("fd00:0:0:1::1", "ia0");
	assert_int_equal(choice("fd00::1", 64, false), -1);
}

CASE(peer_on_this_host_is_reached_in_any_network)
{
	peer_has("192.168.1.1", "ia0");
	assert_int_equal(choice("10.1.2.3", 24, true), 0);
}

CASE(parameter_allows_networks_behind_routers)
{
	mca_btl_udapl_component.any_network = true;
	peer_has("192.168.1.1", "ia0");
	assert_int_equal(choice("10.1.2.3", 24, false), 0);
}

/* A connection to it would end here. */
CASE(address_that_this_node_has_is_no_way_to_another)
{
	for (int any = 0; any < 2; any++) {
		mca_btl_udapl_component.any_network = any;
		peer_has("172.17.0.1", "ia0");	/* the bridge of both */
		assert_int_equal(choice("172.17.0.1", 16, false), -1);
		peer_has("172.17.0.1", "ia0");
		assert_int_equal(choice("172.17.0.1", 16, true), 0);
		set(&interface, "10.1.2.9");	/* an interface without an adapter */
		peer_has("10.1.2.9", "ia0");
		peer_has("10.1.2.4", "ia1");
		assert_int_equal(choice("10.1.2.3", 24, false), 1);
		set(&interface, "fd00::1");	/* on lo, of all nodes */
		peer_has("fd00::1", "ia0");
		assert_int_equal(choice("fd00::1", 128, false), -1);
		peer_has("fd00::1", "ia0");
		assert_int_equal(choice("fd00::2", 64, false), -1);
	}
	assert_int_equal(lists, 0);
	no_interfaces = true;
	peer_has("10.1.2.9", "ia0");
	assert_int_equal(choice("10.1.2.3", 24, false), 0);
}

CASE(loopback_reaches_this_host_alone)
{
	mca_btl_udapl_component.any_network = true;
	peer_has("127.0.0.2", "ia0");
	assert_int_equal(choice("127.0.0.1", 8, true), 0);
	peer_has("127.0.0.2", "ia0");
	assert_int_equal(choice("127.0.0.1", 8, false), -1);
	peer_has("127.0.0.2", "ia0");
	assert_int_equal(choice("10.1.2.3", 24, true), -1);
	peer_has("10.1.2.3", "ia0");
	assert_int_equal(choice("127.0.0.1", 8, true), -1);
	peer_has("::1", "ia0");
	assert_int_equal(choice("::1", 128, true), 0);
	peer_has("::1", "ia0");
	assert_int_equal(choice("::1", 128, false), -1);
}

CASE(other_family_is_never_reached)
{
	mca_btl_udapl_component.any_network = true;
	peer_has("fd00::1", "ia0");
	assert_int_equal(choice("10.1.2.3", 24, true), -1);
}

/* Both sides choose pairs of the same names, so that several adapters are used. */
CASE(adapter_of_the_same_name_is_preferred)
{
	peer_has("10.1.2.4", "ia1");
	peer_has("10.1.2.5", "ia0");
	assert_int_equal(choice("10.1.2.3", 24, false), 1);
	peer_has("10.1.2.4", "ia1");
	peer_has("10.1.2.5", "ia2");
	assert_int_equal(choice("10.1.2.3", 24, false), 0);
	peer_has("10.9.2.5", "ia0");
	peer_has("10.1.2.4", "ia1");
	assert_int_equal(choice("10.1.2.3", 24, false), 1);	/* but not if it cannot be reached */
	assert_int_equal(choice("10.1.2.3", 24, false), -1);
}

UNIT_MAIN(NULL, NULL)
