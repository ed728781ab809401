/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_eth.c - raw Ethernet QPs of the software device (eth/eth.c): loading of the library, their life, rules and
 * groups. Receives are test_eth_receive.c's matter, sends test_eth_send.c's. */
#include <sys/eventfd.h>
#include "test/unit/child.h"
#include "test/unit/soft/eth_port.h"
#include "test/unit/unit.h"

enum { PURGE_US = 1000000 };

/* --- the library ------------------------------------------------------------------------------------------------ */

/* The library is loaded once in a process. */
static bool cannot_load(void)
{
	struct dapl_eth_attr attr;
	uint64_t t[3];
	struct ibv_qp *qp = raw_new(false);

	return soft_eth_ops.query(&eth_device, &attr) == ENOENT && begin(qp, 0) == ENOENT &&
	       soft_eth_ops.clock(&eth_device, &t[0], &t[1], &t[2]) == ENOENT && !soft_eth_destroy_qp(qp) &&
	       around.loads == 1 && around.unloads == !around.no_library && !around.queries && !around.opened &&
	       around.reports == 1 && around.report == REPORT_LIBRARY_NOT_LOADED &&
	       !!strstr(around.report_text, "another version") == around.other_version;
}

static void assert_not_loaded(bool no_library, bool no_symbol, bool other_version)
{
	pid_t pid = fork_child();

	if (!pid) {
		around = (struct eth_around){ .no_library = no_library, .no_symbol = no_symbol,
			.other_version = other_version };
		strcpy(eth_device.netdev, "eth9");
		eth_device.netdev_index = INDEX;
		_exit(cannot_load() ? 0 : 1);
	}
	expect_success(pid);
}

#define CASE(name) UNIT_TEST_WITH(name, eth_port_set_up, eth_port_tear_down)

/* Runs before the library is loaded. */
UNIT_TEST(missing_library_is_reported_once)
{
	assert_not_loaded(true, false, false);
	assert_not_loaded(false, true, false);
	assert_not_loaded(false, false, true);
}

/* It is in the directory of the device's own library: here that of the program. */
UNIT_TEST(library_is_loaded_once_from_the_own_directory)
{
	struct dapl_eth_attr attr;
	const char *name;

	around = (struct eth_around){ .no_library = false };
	strcpy(eth_device.netdev, "eth9");
	eth_device.netdev_index = INDEX;
	assert_int_equal(soft_eth_ops.query(&eth_device, &attr), 0);
	assert_int_equal(soft_eth_ops.query(&eth_device, &attr), 0);
	assert_int_equal(around.loads, 1);
	assert_int_equal(around.unloads, 0);
	assert_int_equal(around.reports, 0);
	name = strrchr(around.path, '/');
	assert_non_null(name);
	assert_string_equal(name, "/libdaplsoft-eth.so");
}

/* --- the device ------------------------------------------------------------------------------------------------- */

CASE(query_adds_what_the_service_thread_does)
{
	struct dapl_eth_attr attr;

	assert_int_equal(soft_eth_ops.query(&eth_device, &attr), 0);
	assert_int_equal(attr.mtu, MTU);
	assert_int_equal(attr.caps, ETH_CAP_COPY | ETH_CAP_PACE | ETH_CAP_LAUNCH | ETH_CAP_MODERATE);
	assert_in_range(attr.rate_min, 1, attr.rate_max - 1);
	around.query_error = ENODEV;
	assert_int_equal(soft_eth_ops.query(&eth_device, &attr), ENODEV);
}

CASE(clock_of_stamps_is_the_systems)
{
	uint64_t device_ns = 0, system_ns = 0, error_ns = 1;

	assert_int_equal(soft_eth_ops.clock(&eth_device, &device_ns, &system_ns, &error_ns), 0);
	assert_int_not_equal(device_ns, 0);
	assert_int_equal(device_ns, system_ns);
	assert_int_equal(error_ns, 0);
}

/* --- life ------------------------------------------------------------------------------------------------------- */

CASE(qp_that_cannot_be_made_leaves_nothing)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RAW_PACKET };
	struct ibv_qp *qp = NULL;

	around.fails_size = sizeof(struct soft_eth);
	assert_int_equal(soft_eth_create_qp(&eth_device, NULL, &attr, &qp), ENOMEM);
	assert_steps("");
	around.fails_size = 0;
	around.create_error = EINVAL;
	assert_int_equal(soft_eth_create_qp(&eth_device, NULL, &attr, &qp), EINVAL);
	assert_null(qp);
}

CASE(failed_begin_names_its_cause)
{
	struct ibv_qp *qp = raw_new(false);

	around.open_error = EPERM;
	assert_int_equal(begin(qp, 0), EPERM);
	assert_int_equal(around.report, REPORT_NO_CAPABILITY);
	assert_non_null(strstr(around.report_text, "eth9"));
	assert_non_null(strstr(around.report_text, "CAP_NET_RAW"));
	around.open_error = ENODEV;
	assert_int_equal(begin(qp, 0), ENODEV);
	assert_int_equal(around.report, REPORT_OPEN_FAILED);
	assert_non_null(strstr(around.report_text, strerror(ENODEV)));
	assert_int_equal(around.reports, 2);
	around.tried = "the step of AF_XDP";
	around.open_error = EBUSY;
	assert_int_equal(begin(qp, 0), EBUSY);
	assert_int_equal(around.report, REPORT_OPEN_FAILED);
	assert_non_null(strstr(around.report_text, "AF_XDP on eth9: the step of AF_XDP: "));
	assert_non_null(strstr(around.report_text, strerror(EBUSY)));
	around.open_error = EPERM;
	assert_int_equal(begin(qp, 0), EPERM);
	assert_int_equal(around.report, REPORT_NO_CAPABILITY);
	assert_non_null(strstr(around.report_text, "the step of AF_XDP"));
	around.steps[0] = 0;
	assert_int_equal(fail_qp(qp), 0);
	assert_int_equal(soft_eth_reset_qp(&eth_device, qp), 0);
	assert_int_equal(soft_eth_destroy_qp(qp), 0);
	assert_steps("error reset timer destroy ");	/* it has no port */
}

/* Moving rules needs purges of both ports, so the timer ends behind the rules. */
CASE(destroy_ends_what_uses_the_port_before_it)
{
	eth_of(raw)->watching = around.watching = true;
	eth_of(raw)->timer = around.timer_fd = eventfd(0, EFD_CLOEXEC);
	assert_int_equal(soft_eth_destroy_qp(raw), 0);
	assert_steps("stop rules timer close destroy ");
	around.timer_fd = 0;
	raw = raw_new(false);
}

CASE(error_takes_rules_away_and_flushes)
{
	eth_of(raw)->head = eth_of(raw)->tail = 3;
	eth_of(raw)->holding = true;
	assert_int_equal(fail_qp(raw), 0);
	assert_steps("rules error ");
	assert_false(eth_of(raw)->holding);
	assert_int_equal(eth_of(raw)->tail, 3);
}

CASE(reset_empties_the_qp_and_its_socket)
{
	eth_of(raw)->received = 5;
	eth_of(raw)->head = eth_of(raw)->tail = 3;
	eth_of(raw)->holding = true;
	eth_of(raw)->watching = around.watching = true;
	assert_int_equal(soft_eth_reset_qp(&eth_device, raw), 0);
	assert_steps("stop rules drain reset ");
	assert_false(eth_of(raw)->holding);
	assert_int_equal(eth_of(raw)->tail, 0);
	assert_int_equal(eth_of(raw)->received, 0);
	around.reset_error = ENOMEM;
	assert_int_equal(soft_eth_reset_qp(&eth_device, raw), ENOMEM);
	around.reset_error = 0;
	raw_renew(false, 4);
	assert_int_equal(soft_eth_reset_qp(&eth_device, raw), 0);
	assert_steps("rules poll reset ");
}

/* --- rules and groups ------------------------------------------------------------------------------------------- */

static const uint16_t table[1];
static const struct dapl_eth_rss rss = { .size = 1, .table = table };

static struct ibv_qp *group_of(struct ibv_qp *const *members, uint32_t n)
{
	struct ibv_qp *group = NULL;

	assert_int_equal(soft_eth_ops.create_group(&eth_device, members, n, &rss, &group), 0);
	assert_int_equal(around.ports, n);
	return group;
}

static void assert_at(const struct eth_place *place, bool group)
{
	assert_ptr_equal(place->port, group ? NULL : the_port);
	assert_ptr_equal(place->group, group ? the_group : NULL);
}

CASE(rule_is_at_a_port_or_a_group)
{
	struct ibv_qp *group = group_of(&raw, 1), *places[] = { raw, group };
	const struct dapl_eth_rule rule = { .mode = ETH_COPY };
	uint64_t frames, bytes;
	void *added, *moved;

	for (int i = 0; i < 2; i++) {
		assert_int_equal(soft_eth_ops.add_rule(places[i], &rule, &added), 0);
		assert_at(&around.at, i);
		around.at = (struct eth_place){ .port = NULL };
		soft_eth_ops.count_rule(places[i], added, &frames, &bytes);
		assert_at(&around.at, i);
		assert_int_equal(frames, 3);
		assert_int_equal(bytes, 180);
		assert_int_equal(soft_eth_ops.move_rule(places[i], added, places[!i], &moved), 0);
		assert_at(&around.at, i);
		assert_at(&around.to, !i);
		assert_ptr_equal(moved, added);
		soft_eth_ops.free_rule(places[!i], moved);
		assert_at(&around.at, !i);
	}
	around.rule_error = EEXIST;
	assert_int_equal(soft_eth_ops.move_rule(raw, added, group, &moved), EEXIST);
	soft_eth_ops.free_group(group);
}

/* A rule that copies needs no capability that could be missing here. */
CASE(device_without_ethernet_is_reported)
{
	struct dapl_eth_attr attr;

	around.query_error = EOPNOTSUPP;
	around.link_type = 65534;
	assert_int_equal(soft_eth_ops.query(&eth_device, &attr), EOPNOTSUPP);
	assert_int_equal(around.reports, 1);
	assert_non_null(strstr(around.report_text, "eth9: found link type 65534, expected Ethernet (1) or loopback "
			       "(772)"));
	around.query_error = ENODEV;
	assert_int_equal(soft_eth_ops.query(&eth_device, &attr), ENODEV);
	assert_int_equal(around.reports, 1);
}

CASE(missing_capability_for_a_rule_is_reported)
{
	struct dapl_eth_rule rule = { .mode = ETH_COPY };
	struct ibv_qp *group = group_of(&raw, 1);
	void *added;

	around.rule_error = EPERM;
	assert_int_equal(soft_eth_ops.add_rule(raw, &rule, &added), EPERM);
	rule.mode = ETH_TAKE;
	around.rule_error = EEXIST;
	assert_int_equal(soft_eth_ops.add_rule(raw, &rule, &added), EEXIST);
	assert_int_equal(around.reports, 0);
	around.rule_error = EPERM;
	assert_int_equal(soft_eth_ops.add_rule(raw, &rule, &added), EPERM);
	assert_int_equal(soft_eth_ops.add_rule(group, &rule, &added), EPERM);
	assert_int_equal(around.reports, 2);
	assert_int_equal(around.report, REPORT_NO_CAPABILITY);
	assert_non_null(strstr(around.report_text, "eth9"));
	assert_non_null(strstr(around.report_text, "CAP_BPF"));
	soft_eth_ops.free_group(group);
}

CASE(group_is_of_the_ports_of_its_members)
{
	struct ibv_qp *members[] = { raw, raw, raw }, *group = group_of(members, 3);

	assert_int_equal(group->qp_type, IBV_QPT_DRIVER);
	assert_int_equal(soft_eth_ops.set_group(group, table), 0);
	around.group_error = EINVAL;
	assert_int_equal(soft_eth_ops.set_group(group, table), EINVAL);
	soft_eth_ops.free_group(group);
	assert_steps("group ");
}

CASE(group_that_cannot_be_made_leaves_nothing)
{
	struct ibv_qp *group = NULL;

	around.group_error = ENOSPC;
	assert_int_equal(soft_eth_ops.create_group(&eth_device, &raw, 1, &rss, &group), ENOSPC);
	around.group_error = 0;
	around.ports = 0;
	around.fails_size = sizeof(struct eth_port *);
	assert_int_equal(soft_eth_ops.create_group(&eth_device, &raw, 1, &rss, &group), ENOMEM);
	assert_int_equal(around.ports, 0);
	assert_null(group);
}

/* As long as the port has something left of rules that were moved away. */
CASE(port_is_purged_each_second)
{
	around.purge_again = true;
	purge_timer_fires();
	assert_int_equal(around.timer_us, PURGE_US);
	around.purge_again = false;
	purge_timer_fires();
	assert_int_equal(around.timer_us, 0);
}

UNIT_MAIN(NULL, NULL)
