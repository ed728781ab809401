/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_address_places.c - which local addresses a name in ia_params means (dapl/verbs/address.c): a network device, an
 * address, an RDMA device, a host. Interfaces, sysfs, /etc/hosts and the name server are replaced here; the text
 * and the small address functions are test_address.c's. */
#include <dirent.h>
#include <linux/if_addr.h>
#include <netdb.h>
#include "dapl/verbs/address.h"
#include "test/unit/file_tree.h"
#include "test/unit/interfaces.h"
#include "test/unit/reported.h"
#include "test/unit/unit.h"

#define RDMA "/sys/class/infiniband"
#define ETH0 "10.0.0.1"
#define ETH1 "10.0.1.1"

static struct sockaddr_in answer;		/* of the name server, if it has a family */
static unsigned questions;			/* to it */
static struct hw_places places;

EXTEND(getaddrinfo, opendir, fopen64, access)

int __wrap_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **found)
{
	if (hints->ai_flags & AI_NUMERICHOST)
		return __real_getaddrinfo(name, service, hints, found);
	questions++;
	if (!answer.sin_family)
		return EAI_NONAME;
	return __real_getaddrinfo(inet_ntoa(answer.sin_addr), service,
				  &(struct addrinfo){ .ai_socktype = SOCK_STREAM }, found);
}

/* Files of the system are those of the test. */
static bool is_systems(const char *name) { return !strncmp(name, "/sys/", 5) || !strncmp(name, "/etc/", 5); }
DIR *__wrap_opendir(const char *name) { return __real_opendir(is_systems(name) ? in_tree(name) : name); }

FILE *__wrap_fopen64(const char *name, const char *mode)
{
	return __real_fopen64(is_systems(name) ? in_tree(name) : name, mode);
}

int __wrap_access(const char *name, int mode) { return __real_access(is_systems(name) ? in_tree(name) : name, mode); }

/* --- fixture ------------------------------------------------------------------------------------------------- */

/* A machine with an RDMA device, whose port has no network devices, and two network devices. */
UNIT_FIXTURE(set_up)
{
	clear_interfaces();
	questions = reported.lines = 0;
	answer.sin_family = 0;
	assert_int_equal(tree_begin(state), 0);
	tree_directory(RDMA "/siw0/ports/1");
	add_interface("lo", 0, "127.0.0.1");
	add_interface("lo", 0, "::1");
	add_interface("eth0", 0, ETH0);
	add_interface("eth1", 0, ETH1);
}

static int find(const char *text)
{
	struct ia_params params;

	reported.lines = questions = 0;
	assert_null(ia_params_read(&params, text));
	return hw_address_find_places(&places, &params, text);
}

static void assert_place(unsigned i, const char *netdev, const char *address)
{
	char text[64];

	assert_in_range(i, 0, places.n - 1);
	assert_string_equal(places.place[i].netdev, netdev);
	assert_string_equal(hw_address_text((struct sockaddr *)&places.place[i].address, text, sizeof text), address);
}

static void assert_only_place(const char *text, const char *netdev, const char *address)
{
	assert_int_equal(find(text), 0);
	assert_int_equal(reported.lines, 0);
	assert_int_equal(sockets_open, 0);
	assert_int_equal(places.n, 1);
	assert_place(0, netdev, address);
}

/* One line, which contains `part`. */
static void assert_none(const char *text, enum log_id id, const char *part)
{
	assert_int_equal(find(text), ENODEV);
	assert_int_equal(sockets_open, 0);
	assert_int_equal(places.n, 0);
	assert_int_equal(reported.lines, 1);
	assert_int_equal(reported.id, id);
	assert_non_null(strstr(reported.text, part));
}

#define TEST(name) UNIT_TEST_WITH(name, set_up, tree_end)

/* --- network devices and addresses --------------------------------------------------------------------------- */

TEST(addresses_of_a_network_device_are_ranked)
{
	add_interface("eth2", 0, "fe80::2");
	add_interface("eth2", 0, "2001:db8::2");
	add_interface("eth2", 0, "10.0.2.1");
	add_interface("eth2", 0, "10.0.2.2");
	add_interface("eth2", 0, NULL);		/* a tunnel may have none */
	assert_int_equal(find("eth2 0"), 0);
	assert_int_equal(places.n, 4);
	assert_place(0, "eth2", "10.0.2.1");
	assert_place(1, "eth2", "10.0.2.2");
	assert_place(2, "eth2", "2001:db8::2");
	assert_place(3, "eth2", "fe80::2");
	assert_string_equal(places.device, "");
	assert_int_equal(places.port, 0);
}

TEST(alternative_names_and_labels_are_names)
{
	add_interface("eth2", 0, "10.0.2.1");
	set_label("eth2:vip");
	add_alternative_name("storage0");
	assert_only_place("eth2 0", "eth2", "10.0.2.1");
	assert_only_place("storage0 0", "eth2", "10.0.2.1");
	assert_only_place("eth2:vip 0", "eth2", "10.0.2.1");
}

TEST(usable_addresses_come_first)
{
	add_interface("eth2", 0, "2001:db8::1");
	set_address_flags(IFA_F_TENTATIVE);
	add_interface("eth2", 0, "2001:db8::2");
	set_address_flags(IFA_F_DEPRECATED);
	add_interface("eth2", 0, "2001:db8::3");
	assert_int_equal(find("eth2 0"), 0);
	assert_int_equal(places.n, 3);
	assert_place(0, "eth2", "2001:db8::3");
	assert_place(1, "eth2", "2001:db8::2");
	assert_place(2, "eth2", "2001:db8::1");
}

TEST(loopback_is_no_place)
{
	assert_none("lo 0", REPORT_NO_ADDRESS, "network device lo has no IP address");
	assert_none("127.0.0.1 0", REPORT_NO_ADDRESS, "no network device here has the address 127.0.0.1");
	assert_none("::1 0", REPORT_NO_ADDRESS, "no network device here has the address ::1");
}

TEST(address_means_its_network_device)
{
	add_interface("eth2", 0, "2001:db8::2");
	assert_only_place(ETH1 " 0", "eth1", ETH1);
	assert_only_place("2001:db8::2 0", "eth2", "2001:db8::2");
	assert_none("10.0.0.2 0", REPORT_NO_ADDRESS, "no network device here has the address 10.0.0.2");
	assert_int_equal(questions, 0);
}

TEST(places_beyond_the_limit_are_left_out)
{
	char text[20];

	for (int i = 0; i < HW_PLACES + 4; i++) {
		snprintf(text, sizeof text, "10.0.2.%d", i);
		add_interface("eth2", 0, text);
	}
	assert_int_equal(find("eth2 0"), 0);
	assert_int_equal(places.n, HW_PLACES);
	snprintf(text, sizeof text, "10.0.2.%d", HW_PLACES - 1);
	assert_place(HW_PLACES - 1, "eth2", text);
}

TEST(interfaces_that_cannot_be_listed_are_an_error)
{
	list_error = ENOMEM;
	assert_int_equal(find("eth0 0"), ENOMEM);
	assert_int_equal(sockets_open, 0);
	assert_int_equal(reported.lines, 1);
	assert_int_equal(reported.id, REPORT_OPEN_FAILED);
}

/* --- RDMA devices -------------------------------------------------------------------------------------------- */

TEST(machine_without_rdma_devices_has_no_place)
{
	assert_int_equal(tree_end(NULL), 0);
	assert_int_equal(tree_begin(NULL), 0);
	assert_none("eth0 0", REPORT_NO_DEVICE, "this machine has no RDMA device");
	tree_directory(RDMA);
	assert_none("eth0 0", REPORT_NO_DEVICE, "this machine has no RDMA device");
}

TEST(roce_port_means_the_network_devices_of_its_gids)
{
	tree_file("eth0\n", RDMA "/mlx5_0/ports/1/gid_attrs/ndevs/0");
	tree_file("eth0\n", RDMA "/mlx5_0/ports/1/gid_attrs/ndevs/1");
	tree_file("", RDMA "/mlx5_0/ports/1/gid_attrs/ndevs/2");
	tree_file("eth1\n", RDMA "/mlx5_0/ports/2/gid_attrs/ndevs/0");
	assert_only_place("mlx5_0 1", "eth0", ETH0);
	assert_string_equal(places.device, "mlx5_0");
	assert_int_equal(places.port, 1);
	assert_only_place("mlx5_0 2", "eth1", ETH1);
	assert_int_equal(places.port, 2);
	assert_only_place("mlx5_0 0", "eth0", ETH0);
	assert_int_equal(places.port, 1);
}

TEST(device_without_gids_may_be_at_each_address)
{
	assert_int_equal(find("siw0 1"), 0);
	assert_int_equal(places.n, 2);
	assert_place(0, "eth0", ETH0);
	assert_place(1, "eth1", ETH1);
	assert_string_equal(places.device, "siw0");
	keep_interfaces(2);			/* loopback alone */
	assert_none("siw0 1", REPORT_NO_ADDRESS, "no network device of RDMA device siw0 has an IP address");
}

TEST(missing_port_is_reported_with_those_there_are)
{
	assert_none("siw0 3", REPORT_NO_DEVICE, "RDMA device siw0 has no port 3; its ports: 1");
	tree_directory(RDMA "/none0");
	assert_none("none0 1", REPORT_NO_DEVICE, "RDMA device none0 has no port 1; its ports: none");
}

/* --- hosts --------------------------------------------------------------------------------------------------- */

TEST(host_has_the_address_of_the_hosts_file)
{
	tree_file("# 10.0.0.1 comment\n"
		  "127.0.1.1 node1\n"
		  "noaddress node1\n"
		  "\n"
		  "10.0.1.1\tother Node1 node1.example # 10.0.0.1\n"
		  "10.0.0.1 node1 late # unseen\n", "/etc/hosts");
	assert_only_place("node1 0", "eth1", ETH1);
	assert_int_equal(questions, 0);
	assert_only_place("node1.example 0", "eth1", ETH1);
	assert_int_equal(questions, 0);
	assert_only_place("late 0", "eth0", ETH0);
	assert_none("unseen 0", REPORT_NO_ADDRESS,
		    "unseen is no network device, local address, host name or RDMA device");
	assert_none("comment 0", REPORT_NO_ADDRESS, "comment is no network device");
}

TEST(name_server_is_asked_for_no_devices_name)
{
	answer.sin_family = AF_INET;
	inet_pton(AF_INET, ETH1, &answer.sin_addr);
	assert_none("eth7 0", REPORT_NO_ADDRESS, "RDMA devices: siw0");
	assert_int_equal(questions, 0);
	assert_only_place("node1.example 0", "eth1", ETH1);
	assert_int_equal(questions, 1);
	assert_only_place("node-1 0", "eth1", ETH1);
	assert_int_equal(questions, 1);
	assert_only_place("thishost 0", "eth1", ETH1);
	assert_int_equal(questions, 1);
}

TEST(host_elsewhere_is_no_place)
{
	assert_none("node1.example 0", REPORT_NO_ADDRESS, "node1.example is no network device");
	assert_int_equal(questions, 1);
	answer.sin_family = AF_INET;
	inet_pton(AF_INET, "192.0.2.1", &answer.sin_addr);
	assert_none("node1.example 0", REPORT_NO_ADDRESS, "node1.example is no network device");
}

UNIT_MAIN(NULL, NULL)
