/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_rdma.c - which interfaces belong to which ports of RDMA devices (net/rdma.c), read from a copy of /sys that
 * each case writes. */
#include "net/rdma.h"
#include "test/unit/unit.h"
#include <dirent.h>
#include <ftw.h>
#include <limits.h>
#include <sys/stat.h>

#define IB "/sys/class/infiniband/"

static struct net_link links[] = {
	{ .index = 1, .name = "lo", .length = 6 },	/* zeros */
	{ .index = 2, .name = "eth0", .lladdr = { 2, 0, 0x5e, 0x10, 0, 1 }, .length = 6 },
	{ .index = 3, .name = "eth1", .lladdr = { 2, 0, 0x5e, 0x10, 0, 2 }, .length = 6 },
	{ .index = 4, .name = "ib0", .lladdr = { 2, 0, 0x5e, 0x10, 0, 1 }, .length = 20 },
};
static const struct net_table table = { .links = links, .link_count = sizeof links / sizeof *links };
static struct net_rdma_list list;
static char root[] = "/tmp/test_rdma.XXXXXX";
static unsigned grow_left;		/* entries that the list may still get; then there is no memory */
static int directory_error;		/* of opendir(); 0: none */
static const char *bad_directory;	/* how the names end for which it fails; "": all */
static const char *bad_file;		/* how the names of files end for which fopen() fails; NULL: none */
static int file_error;

EXTEND(opendir, fopen64)

UNIT_FAIL_REALLOC(!grow_left--)

static bool ends(const char *name, const char *end)
{
	size_t length = strlen(name), n = strlen(end);

	return length >= n && !strcmp(name + length - n, end);
}

DIR *__wrap_opendir(const char *name)
{
	errno = directory_error;
	return directory_error && ends(name, bad_directory) ? NULL : __real_opendir(name);
}

FILE *__wrap_fopen64(const char *name, const char *mode)
{
	if (!bad_file || !ends(name, bad_file))
		return __real_fopen64(name, mode);
	errno = file_error;
	return NULL;
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *where) { return remove(path); }

UNIT_FIXTURE(set_up)
{
	strcpy(strrchr(root, '.'), ".XXXXXX");
	assert_non_null(mkdtemp(root));
	assert_int_equal(setenv("DAT_TEST_ROOT", root, 1), 0);
	grow_left = 1000;
	directory_error = 0;
	bad_directory = "";
	bad_file = NULL;
}

static int tear_down(void **state)
{
	net_rdma_free(&list);
	assert_null(list.ports);
	return nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* Writes a line to a file of /sys, whose folders are made. */
__attribute__((format(printf, 2, 3)))
static void put(const char *line, const char *fmt, ...)
{
	char path[PATH_MAX];
	va_list args;
	FILE *file;
	int n = snprintf(path, sizeof path, "%s", root);

	va_start(args, fmt);
	vsnprintf(path + n, sizeof path - (size_t)n, fmt, args);
	va_end(args);
	for (char *end = path + n; (end = strchr(end + 1, '/'));) {
		*end = '\0';
		assert_true(!mkdir(path, 0700) || errno == EEXIST);
		*end = '/';
	}
	file = fopen(path, "w");
	assert_non_null(file);
	assert_true(fprintf(file, "%s\n", line) > 0);
	assert_int_equal(fclose(file), 0);
}

static void put_port(const char *device, int port, const char *type, const char *layer)
{
	put(type, IB "%s/node_type", device);
	put(layer, IB "%s/ports/%d/link_layer", device, port);
}

static void put_gid_netdev(const char *device, int port, int gid, const char *netdev)
{
	put(netdev, IB "%s/ports/%d/gid_attrs/ndevs/%d", device, port, gid);
}

static void put_roce(const char *device, int port, const char *netdev)
{
	put_port(device, port, "1: CA", "Ethernet");
	put_gid_netdev(device, port, 0, netdev);
}

/* How many ports there are. */
static size_t read_ports(void)
{
	net_rdma_free(&list);
	assert_int_equal(net_rdma_read(&list, &table), 0);
	return list.count;
}

static void assert_port(size_t i, const char *netdev, const char *device, unsigned port, uint8_t kind)
{
	assert_true(i < list.count);
	assert_string_equal(list.ports[i].netdev, netdev);
	assert_string_equal(list.ports[i].device, device);
	assert_int_equal(list.ports[i].port, port);
	assert_int_equal(list.ports[i].kind, kind);
}

UNIT_CASE(host_without_rdma_devices_has_no_ports)
{
	assert_int_equal(read_ports(), 0);
	put("0", "/sys/class/net/eth0/dev_port");
	assert_int_equal(read_ports(), 0);
}

/* --- RoCE --------------------------------------------------------------------------------------------- */

UNIT_CASE(each_interface_of_the_gids_is_there_once)
{
	put_roce("mlx5_0", 1, "eth0");
	put_gid_netdev("mlx5_0", 1, 1, "eth0");
	put_gid_netdev("mlx5_0", 1, 2, "eth0.7");
	assert_int_equal(read_ports(), 2);
	assert_port(0, "eth0", "mlx5_0", 1, DAT_NET_ROCE);
	assert_port(1, "eth0.7", "mlx5_0", 1, DAT_NET_ROCE);
}

/* A GID that is not used has no readable file, or an empty line. */
UNIT_CASE(unused_gids_end_a_table_after_32)
{
	put_roce("mlx5_0", 1, "eth0");
	put_gid_netdev("mlx5_0", 1, 1, "");
	put_gid_netdev("mlx5_0", 1, 32, "eth1");
	put_gid_netdev("mlx5_0", 1, 32 + 32, "eth2");
	put_gid_netdev("mlx5_0", 1, 64 + 33, "eth3");
	assert_int_equal(read_ports(), 3);
	assert_port(1, "eth1", "mlx5_0", 1, DAT_NET_ROCE);
	assert_port(2, "eth2", "mlx5_0", 1, DAT_NET_ROCE);
}

UNIT_CASE(ports_are_ordered_by_device_and_number)
{
	put_roce("mlx5_10", 1, "eth3");
	put_roce("mlx5_2", 2, "eth2");
	put_roce("mlx5_2", 1, "eth1");
	assert_int_equal(read_ports(), 3);
	assert_port(0, "eth1", "mlx5_2", 1, DAT_NET_ROCE);
	assert_port(1, "eth2", "mlx5_2", 2, DAT_NET_ROCE);
	assert_port(2, "eth3", "mlx5_10", 1, DAT_NET_ROCE);
}

/* --- iWARP -------------------------------------------------------------------------------------------- */

UNIT_CASE(iwarp_port_has_the_interface_of_its_gid_table)
{
	put_port("siw0", 1, "4: RNIC", "Ethernet");
	put_gid_netdev("siw0", 1, 0, "eth1");
	put("0200:5e10:0001:0000:0000:0000:0000:0000", IB "siw0/ports/1/gids/0");
	assert_int_equal(read_ports(), 1);
	assert_port(0, "eth1", "siw0", 1, DAT_NET_IWARP);
}

UNIT_CASE(iwarp_port_without_table_is_known_by_its_address)
{
	static const struct { const char *gid, *netdev; } rows[] = {
		{ "0200:5e10:0001:0000:0000:0000:0000:0000", "eth0" },
		{ "0200:5e10:0002:0000:0000:0000:0000:0000", "eth1" },
		{ "0200:5e10:0003:0000:0000:0000:0000:0000", NULL },
		{ "0000:0000:0000:0000:0000:0000:0000:0000", NULL },
		{ "0200:5e10", NULL }, { "", NULL },
	};

	put_port("siw0", 1, "4: RNIC", "Ethernet");
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		put(rows[i].gid, IB "siw0/ports/1/gids/0");
		assert_int_equal(read_ports(), rows[i].netdev ? 1 : 0);
		if (rows[i].netdev)
			assert_port(0, rows[i].netdev, "siw0", 1, DAT_NET_IWARP);
	}
}

/* --- InfiniBand ----------------------------------------------------------------------------------------- */

/* dev_port counts from 0. */
UNIT_CASE(infiniband_port_has_the_interfaces_of_its_device)
{
	put_port("mlx4_0", 1, "1: CA", "InfiniBand");
	put_port("mlx4_0", 2, "1: CA", "InfiniBand");
	put("", IB "mlx4_0/device/net/ib0/x");
	put("", IB "mlx4_0/device/net/ib1/x");
	put("0", "/sys/class/net/ib0/dev_port");
	put("1", "/sys/class/net/ib1/dev_port");
	put_gid_netdev("mlx4_0", 1, 0, "eth0");		/* not looked at */
	assert_int_equal(read_ports(), 2);
	assert_port(0, "ib0", "mlx4_0", 1, DAT_NET_IB);
	assert_port(1, "ib1", "mlx4_0", 2, DAT_NET_IB);
}

UNIT_CASE(interface_that_tells_no_port_belongs_to_each)
{
	put_port("mlx4_0", 1, "1: CA", "InfiniBand");
	put_port("mlx4_0", 2, "1: CA", "InfiniBand");
	put("", IB "mlx4_0/device/net/ib0/x");
	assert_int_equal(read_ports(), 2);
	assert_port(0, "ib0", "mlx4_0", 1, DAT_NET_IB);
	assert_port(1, "ib0", "mlx4_0", 2, DAT_NET_IB);
}

/* --- the list ------------------------------------------------------------------------------------------ */

UNIT_CASE(ports_of_an_interface_are_found_one_by_one)
{
	const struct net_rdma *port;

	put_roce("rxe0", 1, "eth0");
	put_roce("rxe1", 1, "eth1");
	put_roce("rxe2", 1, "eth0");
	assert_int_equal(read_ports(), 3);
	port = net_rdma_of(&list, "eth0", NULL);
	assert_ptr_equal(port, &list.ports[0]);
	port = net_rdma_of(&list, "eth0", port);
	assert_ptr_equal(port, &list.ports[2]);
	assert_null(net_rdma_of(&list, "eth0", port));
	assert_null(net_rdma_of(&list, "eth", NULL));
}

UNIT_CASE(shortages_are_returned)
{
	static const int errors[] = { ENOMEM, EMFILE, ENFILE };

	put_roce("rxe0", 1, "eth0");
	put_gid_netdev("rxe0", 1, 1, "eth1");
	for (unsigned i = 0; i < 2; i++) {
		net_rdma_free(&list);
		grow_left = i;
		assert_int_equal(net_rdma_read(&list, &table), ENOMEM);
		assert_int_equal(list.count, i);
	}
	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
		net_rdma_free(&list);
		directory_error = errors[i];
		assert_int_equal(net_rdma_read(&list, &table), errors[i]);
	}
	directory_error = EACCES;	/* of a container without /sys */
	assert_int_equal(read_ports(), 0);
}

UNIT_CASE(shortage_within_a_device_is_an_error)
{
	static const char *const directories[] = { "/ports", "/device/net" };

	put_port("mlx4_0", 1, "1: CA", "InfiniBand");
	put("", IB "mlx4_0/device/net/ib0/x");
	for (size_t i = 0; i < sizeof directories / sizeof *directories; i++) {
		bad_directory = directories[i];
		net_rdma_free(&list);
		directory_error = EMFILE;
		assert_int_equal(net_rdma_read(&list, &table), EMFILE);
		directory_error = ENOENT;
		assert_int_equal(read_ports(), 0);
	}
}

UNIT_CASE(shortage_at_a_file_is_an_error)
{
	static const char *const files[] = {
		"/node_type", "/link_layer", "/ndevs/1", "/gids/0", "/dev_port",
	};

	put_roce("rxe0", 1, "eth0");
	put_port("siw0", 1, "4: RNIC", "Ethernet");
	put_port("mlx4_0", 1, "1: CA", "InfiniBand");
	put("", IB "mlx4_0/device/net/ib0/x");
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		bad_file = files[i];
		net_rdma_free(&list);
		file_error = EMFILE;
		assert_int_equal(net_rdma_read(&list, &table), EMFILE);
		file_error = ENOENT;
		read_ports();
	}
}

UNIT_CASE(speed_that_is_not_known_is_0)
{
	static const struct { const char *line; uint32_t speed; } rows[] = {
		{ "100000", 100000 }, { "-1", 0 }, { "0", 0 }, { "4294967295", 0 }, { "4294967294", 4294967294 },
		{ "8589934593", 0 }, { "unknown", 0 }, { "", 0 },
	};

	assert_int_equal(net_rdma_speed("eth0"), 0);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		put(rows[i].line, "/sys/class/net/eth0/speed");
		assert_int_equal(net_rdma_speed("eth0"), rows[i].speed);
	}
}

UNIT_MAIN(NULL, NULL)
