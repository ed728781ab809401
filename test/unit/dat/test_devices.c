/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_devices.c - entries made from the devices in sysfs: which network devices belong to a port, names, parameters
 * and order of the entries, and shortages. The files around them are test/registry/test_devices.c's. */
#include "dat/devices.h"
#include <dirent.h>
#include <limits.h>
#include "test/unit/file_tree.h"
#include "test/unit/unit.h"

#define IB "/class/infiniband/"
#define NET "/class/net/"

static struct conf conf;
static int copies_left, grown_left, directories_left, files_left;	/* calls before the one that fails */

EXTEND(strdup, opendir, open64)

char *__wrap_strdup(const char *text) { return copies_left-- != 0 ? __real_strdup(text) : NULL; }
UNIT_FAIL_REALLOC(grown_left-- == 0)

DIR *__wrap_opendir(const char *name)
{
	if (directories_left-- != 0)
		return __real_opendir(name);
	errno = EMFILE;
	return NULL;
}

/* What open() is with files of 64 bits. */
int __wrap_open64(const char *name, int flags, ...)
{
	if (files_left-- != 0)
		return __real_open64(name, flags);
	errno = EMFILE;
	return -1;
}

/* --- fixture ------------------------------------------------------------------------------------------------------ */

static void no_call_fails(void) { copies_left = grown_left = directories_left = files_left = INT_MAX; }

static int set_up(void **state)
{
	memset(&conf, 0, sizeof conf);
	no_call_fails();
	return tree_begin(state);
}

static int tear_down(void **state)
{
	conf_free(&conf);
	return tree_end(state);
}

static void port(const char *device, int number, const char *node_type, const char *layer)
{
	tree_file(node_type, IB "%s/node_type", device);
	tree_file(layer, IB "%s/ports/%d/link_layer", device, number);
}

static void roce_port(const char *device, int number) { port(device, number, "1: CA\n", "Ethernet\n"); }
static void rnic(const char *device) { port(device, 1, "4: RNIC\n", "Ethernet\n"); }

/* The network device of a GID; "": the entry is unused. */
static void gid(const char *device, int number, int index, const char *netdev)
{
	tree_file(netdev, IB "%s/ports/%d/gid_attrs/ndevs/%d", device, number, index);
}

static int make(bool with_soft)
{
	conf_free(&conf);
	memset(&conf, 0, sizeof conf);
	return devices_make_entries(&conf, tree_root, with_soft);
}

/* The names without "ofa-v2-", with a blank after each. */
static void makes(const char *expected)
{
	char names[1024] = "";

	assert_int_equal(make(false), 0);
	for (size_t i = 0; i < conf.count; i++) {
		assert_memory_equal(conf.entries[i].info.ia_name, "ofa-v2-", strlen("ofa-v2-"));
		strcat(strcat(names, conf.entries[i].info.ia_name + strlen("ofa-v2-")), " ");
	}
	assert_string_equal(names, expected);
}

/* --- entries ---------------------------------------------------------------------------------------------------- */

UNIT_CASE(host_without_devices_has_no_entries)
{
	makes("");
	tree_directory("/class/infiniband");
	makes("");
	tree_file("a file", "/class/net");
	makes("");
}

UNIT_CASE(each_entry_has_its_parameters)
{
	static const struct { const char *name, *library, *params; } expected[] = {
		{ "ofa-v2-eth2", "libdaplofa.so.2", "eth2 0" },
		{ "ofa-v2-mlx5_0-2", "libdaplofa.so.2", "mlx5_0 2" },
		{ "ofa-v2-soft", SOFT_LIBRARY, "lo 0" },
		{ "ofa-v2-mlx5_0-2s", "libdaplofa.so.2", "mlx5_0 2" },
		{ "ofa-v2-mlx5_0-2u", "libdaplofa.so.2", "mlx5_0 2" },
		{ "ofa-v2-cma-roe-eth2", "libdaplofa.so.2", "eth2 0" },
	};
	const size_t count = sizeof expected / sizeof *expected;

	roce_port("mlx5_0", 2);
	gid("mlx5_0", 2, 0, "eth2\n");
	assert_int_equal(make(true), 0);
	assert_int_equal(conf.count, count);
	for (size_t i = 0; i < count; i++) {
		assert_string_equal(conf.entries[i].info.ia_name, expected[i].name);
		assert_string_equal(conf.entries[i].library, expected[i].library);
		assert_string_equal(conf.entries[i].ia_params, expected[i].params);
		assert_true(conf.entries[i].is_default);
	}
}

UNIT_CASE(software_device_needs_no_other)
{
	assert_int_equal(make(true), 0);
	assert_int_equal(conf.count, 1);
	assert_string_equal(conf.entries[0].info.ia_name, "ofa-v2-soft");
}

UNIT_CASE(hidden_files_are_no_devices)
{
	port(".d0", 1, "1: CA\n", "InfiniBand\n");
	makes("");
}

/* --- network devices of ports ----------------------------------------------------------------------------------- */

UNIT_CASE(network_device_of_several_ports_has_one_entry)
{
	roce_port("d0", 1);
	roce_port("d0", 2);
	gid("d0", 1, 0, "bond0\n");
	gid("d0", 1, 1, "bond0\n");
	gid("d0", 2, 0, "bond0\n");
	makes("bond0 d0-1 d0-2 d0-1s d0-2s d0-1u d0-2u cma-roe-bond0 ");
}

UNIT_CASE(gids_end_after_a_gap)
{
	roce_port("d0", 1);
	gid("d0", 1, 0, "eth0\n");
	gid("d0", 1, 5, "");			/* it can be opened, but not read */
	gid("d0", 1, 6, "\n");
	gid("d0", 1, 32, "eth1\n");		/* 31 are unused */
	gid("d0", 1, 40, "eth2\n");
	makes("eth0 eth1 eth2 d0-1 d0-1s d0-1u cma-roe-eth0 cma-roe-eth1 cma-roe-eth2 ");
	gid("d0", 1, 73, "eth3\n");		/* 32 are unused */
	makes("eth0 eth1 eth2 d0-1 d0-1s d0-1u cma-roe-eth0 cma-roe-eth1 cma-roe-eth2 ");
}

UNIT_CASE(gids_of_infiniband_name_no_network_device)
{
	port("d0", 1, "1: CA\n", "InfiniBand\n");
	gid("d0", 1, 0, "eth0\n");
	makes("d0-1 d0-1s d0-1u ");
}

UNIT_CASE(only_ip_over_infiniband_belongs_to_the_pci_device)
{
	port("d0", 1, "1: CA\n", "InfiniBand\n");
	tree_file("32\n", IB "d0/device/net/ib10/type");
	tree_file("32\n", IB "d0/device/net/ib9/type");
	tree_file("1\n", IB "d0/device/net/eth0/type");
	tree_file("320\n", IB "d0/device/net/eth1/type");
	tree_directory(IB "d0/device/net/eth2");
	makes("ib9 ib10 d0-1 d0-1s d0-1u ");
}

UNIT_CASE(iwarp_is_no_roce)
{
	rnic("d0");
	gid("d0", 1, 0, "eth0\n");
	makes("eth0 d0-1 d0-1s d0-1u ");
}

/* The kernel names the network device, so the address is not used. */
UNIT_CASE(address_of_iwarp_counts_only_without_a_name)
{
	rnic("d0");
	tree_file("0200:5e10:0001:0000:0000:0000:0000:0000\n", IB "d0/ports/1/gids/0");
	tree_file("02:00:5e:10:00:01\n", NET "eth1/address");
	makes("eth1 d0-1 d0-1s d0-1u ");
	gid("d0", 1, 0, "eth0\n");
	makes("eth0 d0-1 d0-1s d0-1u ");
}

UNIT_CASE(address_of_iwarp_is_compared_as_a_whole)
{
	static const char *const others[] = {
		"02:00:5e:10:00:02\n",			/* the last byte */
		"03:00:5e:10:00:01\n",			/* the first one */
		"02:00:5e\n",				/* of another kind of hardware */
		"00:00:00:00:00:00\n", "\n",
		"02:00:5e:10:00:01:00:00:00:00:00:00:00:00:00:00:00:00:00:00\n",	/* of InfiniBand */
	};

	rnic("d0");
	tree_file("0200:5e10:0001:0000:0000:0000:0000:0000\n", IB "d0/ports/1/gids/0");
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		tree_file(others[i], NET "eth%zu/address", i);
	makes("d0-1 d0-1s d0-1u ");
}

UNIT_CASE(address_of_zeros_is_no_address)
{
	rnic("d0");
	tree_file("0000:0000:0000:0000:0000:0000:0000:0000\n", IB "d0/ports/1/gids/0");
	tree_file("00:00:00:00:00:00\n", NET "lo/address");
	makes("d0-1 d0-1s d0-1u ");
}

UNIT_CASE(address_without_a_gid_belongs_to_no_port)
{
	rnic("d0");
	tree_file("02:00:5e:10:00:01\n", NET "eth1/address");
	makes("d0-1 d0-1s d0-1u ");
}

UNIT_CASE(port_without_files_has_entries_of_its_own)
{
	tree_directory(IB "d0/ports/1");
	makes("d0-1 d0-1s d0-1u ");
}

UNIT_CASE(path_that_is_too_long_leads_nowhere)
{
	char *path = malloc(PATH_MAX + 1);

	memset(path, 'p', PATH_MAX);
	path[PATH_MAX] = '\0';
	for (size_t n = PATH_MAX; n > PATH_MAX - 32; n--) {
		path[n] = '\0';
		assert_int_equal(devices_make_entries(&conf, path, false), 0);
	}
	assert_int_equal(conf.count, 0);
	free(path);
}

static void two_devices(void)
{
	roce_port("d0", 1);
	gid("d0", 1, 0, "eth0\n");
	rnic("d1");
	tree_file("0200:5e10:0001:0000:0000:0000:0000:0000\n", IB "d1/ports/1/gids/0");
	tree_file("02:00:5e:10:00:01\n", NET "eth1/address");
	tree_file("32\n", IB "d0/device/net/ib0/type");
}

/* Each call fails in turn, until there is enough. */
static void shortage_is_told_at_each_step(int *left, int err)
{
	int tries = 0, result;

	two_devices();
	do {
		no_call_fails();
		*left = tries++;
		result = make(true);
		no_call_fails();
		if (result)
			assert_int_equal(result, err);
	} while (result);
	assert_in_range(tries, 5, 100);
	assert_int_equal(conf.count, 3 + 2 + 1 + 2 + 2 + 1);
}

UNIT_CASE(lack_of_memory_is_told)
{
	shortage_is_told_at_each_step(&copies_left, ENOMEM);
	shortage_is_told_at_each_step(&grown_left, ENOMEM);
}

/* The next call of the program reads the devices again. */
UNIT_CASE(lack_of_descriptors_is_told)
{
	shortage_is_told_at_each_step(&directories_left, EMFILE);
	shortage_is_told_at_each_step(&files_left, EMFILE);
}

UNIT_MAIN(NULL, NULL)
