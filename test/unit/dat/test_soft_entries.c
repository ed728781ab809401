/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_soft_entries.c - which network devices get an entry of the software device. */
#include "dat/soft_entries.h"
#include <errno.h>
#include <stdio.h>
#include <unistd.h>
#include "test/unit/file_tree.h"
#include "test/unit/interfaces.h"
#include "test/unit/unit.h"

static struct conf conf;

static int set_up(void **state)
{
	clear_interfaces();
	memset(&conf, 0, sizeof conf);
	return tree_begin(state);
}

static int tear_down(void **state)
{
	conf_free(&conf);
	assert_int_equal(sockets_open, 0);
	return tree_end(state);
}

/* Adds an address of a network device that sysfs has. */
static void add_device(const char *netdev, unsigned flags, const char *address)
{
	char path[64];

	snprintf(path, sizeof path, "/class/net/%s", netdev);
	if (access(in_tree(path), F_OK))
		tree_directory(path);
	add_interface(netdev, flags, address);
}

/* Makes entries, and compares their names. */
static void makes(const char *expected)
{
	char names[256] = "";

	assert_int_equal(soft_entries_make(&conf, in_tree("")), 0);
	for (size_t i = 0; i < conf.count; i++) {
		strcat(names, i ? " " : "");
		strcat(names, conf.entries[i].info.ia_name);
	}
	assert_string_equal(names, expected);
}

UNIT_CASE(devices_that_are_up_with_an_address_have_entries)
{
	add_device("lo", IFF_UP | IFF_LOOPBACK, "127.0.0.1");
	add_device("eth1", IFF_UP, "192.0.2.1");
	add_device("eth0", IFF_UP, "2001:db8::1");
	add_device("down", 0, "192.0.2.2");
	add_device("bare", IFF_UP, NULL);
	makes("ofa-v2-soft-eth1 ofa-v2-soft-eth0");
	assert_string_equal(conf.entries[0].ia_params, "eth1 0");
	assert_string_equal(conf.entries[0].library, "libdaplsoft.so.2");
	assert_true(conf.entries[0].unlisted);
	assert_true(conf.entries[1].is_default);
}

UNIT_CASE(several_addresses_make_one_entry)
{
	add_device("eth0", IFF_UP, "fe80::1");
	add_device("eth0", IFF_UP, "192.0.2.1");
	add_device("eth0", IFF_UP, "2001:db8::1");
	makes("ofa-v2-soft-eth0");
}

UNIT_CASE(device_that_sysfs_does_not_have_has_no_entry)
{
	add_device("eth0", IFF_UP, "192.0.2.1");
	add_interface("other", IFF_UP, "192.0.2.2");
	makes("ofa-v2-soft-eth0");
}

UNIT_CASE(link_local_address_is_not_enough)
{
	add_device("veth0", IFF_UP, "fe80::1");
	makes("");
}

UNIT_CASE(host_without_netlink_has_no_entries)
{
	add_device("eth0", IFF_UP, "192.0.2.1");
	list_error = EAFNOSUPPORT;
	makes("");
}

UNIT_CASE(shortage_of_descriptors_is_returned)
{
	add_device("eth0", IFF_UP, "192.0.2.1");
	list_error = EMFILE;
	assert_int_equal(soft_entries_make(&conf, in_tree("")), EMFILE);
}

UNIT_MAIN(NULL, NULL)
