/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_net_watch.c - events of a device's port and of its loss: which watches get them; and that a child of a fork
 * has no watch. Changes of interfaces are in test/life/net_events.c. */
#include <dat/dat_net_extensions.h>
#include "dapl/core/event/calls.h"
#include "dapl/core/ia/net_watch.h"
#include "test/unit/child.h"
#include "test/unit/core/core_device.h"
#include "test/unit/unit.h"

static struct dapl_ia *ia;
static struct dapl_evd *async_evd;

UNIT_FIXTURE(set_up)
{
	core_device = (struct core_device){ .attr = { .mtu = 1500, .port_active = true } };
	assert_int_equal(dapl_service_get(), 0);
	ia = core_ia_new();
	ia->attr = core_device.attr;
	async_evd = core_async_evd_new(ia);
}

UNIT_FIXTURE(tear_down)
{
	dapl_net_forget(ia);
	ia->async_evd = NULL;
	core_evd_free(async_evd);
	core_ia_free(ia);
	dapl_service_put();
}

static bool change(DAT_NET_CHANGE_DATA *data)
{
	DAT_EVENT event;

	if (dapl_evd_dequeue((DAT_EVD_HANDLE)async_evd, &event) != DAT_SUCCESS)
		return false;
	assert_int_equal(event.event_number, DAT_NET_CHANGE_EVENT);
	memcpy(data, &event.event_extension_data, sizeof *data);
	return true;
}

static void wait_for_change(DAT_NET_CHANGE_DATA *data)
{
	while (!change(data))	/* the alarm ends it */
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

/* Twice: the first must leave no lock behind. */
UNIT_CASE(lost_device_is_reported_to_watches_of_it)
{
	DAT_NET_CHANGE_DATA data;

	dapl_net_device_lost(ia);	/* no watch */
	assert_int_equal(dapl_net_watch(ia, DAT_NET_LINK | DAT_NET_MTU), DAT_SUCCESS);
	dapl_net_device_lost(ia);
	assert_false(change(&data));
	assert_int_equal(dapl_net_watch(ia, DAT_NET_RDMA), DAT_SUCCESS);
	for (int i = 0; i < 2; i++) {
		dapl_net_device_lost(ia);
		assert_true(change(&data));
		assert_int_equal(data.what, DAT_NET_RDMA);
		assert_int_equal(data.before, 1);
		assert_int_equal(data.now, 0);
		assert_int_equal(data.lost, 0);
		assert_false(change(&data));
	}
	dapl_net_forget(ia);
	dapl_net_device_lost(ia);
	assert_false(change(&data));
}

UNIT_CASE(loss_of_another_device_is_not_told)
{
	struct dapl_ia *other = core_ia_new();
	DAT_NET_CHANGE_DATA data;

	assert_int_equal(dapl_net_watch(ia, DAT_NET_RDMA), DAT_SUCCESS);
	dapl_net_device_lost(other);
	assert_false(change(&data));
	core_ia_free(other);
}

UNIT_CASE(port_that_goes_down_is_told_with_both_values)
{
	DAT_NET_CHANGE_DATA data;

	assert_int_equal(dapl_net_watch(ia, DAT_NET_LINK), DAT_SUCCESS);
	core_device.attr.port_active = false;
	dapl_net_port_changed(ia, 0);
	wait_for_change(&data);
	assert_int_equal(data.what, DAT_NET_LINK);
	assert_int_equal(data.before, 1);
	assert_int_equal(data.now, 0);
	assert_int_equal(data.lost, 0);
}

/* The report has no value: the device is queried. */
UNIT_CASE(port_that_changed_somehow_is_looked_at)
{
	DAT_NET_CHANGE_DATA data;

	assert_int_equal(dapl_net_watch(ia, DAT_NET_MTU), DAT_SUCCESS);
	core_device.attr.mtu = 9000;
	dapl_net_port_changed(ia, -1);
	wait_for_change(&data);
	assert_int_equal(data.what, DAT_NET_MTU);
	assert_int_equal(data.before, 1500);
	assert_int_equal(data.now, 9000);
	assert_int_equal(ia->attr.mtu, 9000);	/* datagrams may have this length now */
}

UNIT_CASE(unknown_kinds_and_ias_without_an_evd_are_refused)
{
	struct dapl_evd *evd = ia->async_evd;

	assert_int_equal(dapl_net_watch(ia, 0x80000000u | DAT_NET_LINK), BAD_PARAM(2));
	ia->async_evd = NULL;
	assert_int_equal(dapl_net_watch(ia, DAT_NET_LINK), NOT_SUPPORTED);
	ia->async_evd = evd;
	assert_int_equal(dapl_net_watch(ia, 0), DAT_SUCCESS);	/* ends a watch that is not there */
}

/* The child may forget the IA that its parent watches, though the child has no service thread. */
UNIT_CASE(child_of_a_fork_has_no_watch_and_no_socket)
{
	int fd = fcntl(STDERR_FILENO, F_DUPFD, 0);	/* the lowest free number: that of the socket */
	DAT_NET_CHANGE_DATA data;
	pid_t child;

	close(fd);
	dapl_net_watch_forks();
	assert_int_equal(dapl_net_watch(ia, DAT_NET_RDMA), DAT_SUCCESS);
	assert_true(fcntl(fd, F_GETFD) >= 0);
	child = fork_child();
	if (!child) {
		bool socket = fcntl(fd, F_GETFD) >= 0;

		dapl_net_device_lost(ia);
		dapl_net_forget(ia);
		_exit(socket || change(&data));
	}
	expect_success(child);
	dapl_net_device_lost(ia);
	assert_true(change(&data));
}

UNIT_MAIN(NULL, NULL)
