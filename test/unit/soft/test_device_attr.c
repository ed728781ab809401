/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_device_attr.c - what the software device reports of itself: names and addresses, the present state of its
 * interface, its abilities, and limits that its objects keep. The interface and the limit of descriptors are replaced
 * here. */
#include <sys/ioctl.h>
#include <sys/resource.h>
#include "common/address.h"
#include "common/interface.h"
#include "dapl/core/device.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/rdmap/ud.h"
#include "dapl/soft/wire/wire.h"
#include "test/unit/unit.h"

static struct {
	unsigned mtu;
	short flags;
	unsigned long unanswered;	/* the request that fails; 0: none */
} interface;
enum { INDEX = 7 };			/* of the interface */
static rlim_t descriptors;		/* 0: the limit cannot be read */
static struct dapl_device dev;
static struct dapl_device_attr attr;

/* --- what is replaced ---------------------------------------------------------------------------------------- */

REPLACE(interface_request_index)
#pragma GCC visibility push(default)	/* the sanitizers' libraries call it, too */
int __real_getrlimit64(int resource, struct rlimit *limit);
int __wrap_getrlimit64(int resource, struct rlimit *limit);
#pragma GCC visibility pop

/* The name that the interface had at open may be another one now. */
int __wrap_interface_request_index(int index, unsigned long request, struct ifreq *ifr)
{
	assert_int_equal(index, INDEX);
	assert_true(request == SIOCGIFMTU || request == SIOCGIFFLAGS);
	memset(ifr, 0xff, sizeof *ifr);
	if (request == interface.unanswered)
		return ENODEV;
	if (request == SIOCGIFMTU)
		ifr->ifr_mtu = (int)interface.mtu;
	else
		ifr->ifr_flags = interface.flags;
	return 0;
}

int __wrap_getrlimit64(int resource, struct rlimit *limit)
{
	if (resource != RLIMIT_NOFILE)
		return __real_getrlimit64(resource, limit);
	*limit = (struct rlimit){ descriptors, RLIM_INFINITY };
	return descriptors ? 0 : -1;
}

/* --- fixture ------------------------------------------------------------------------------------------------- */

UNIT_FIXTURE(set_up)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&dev.address;

	memset(&dev, 0, sizeof dev);
	*in = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(7) };
	assert_int_equal(inet_pton(AF_INET, "192.0.2.7", &in->sin_addr), 1);
	strcpy(dev.netdev, "eth7");
	dev.netdev_index = INDEX;
	strcpy(dev.identity.name, "soft_eth7");
	dev.mtu = 1500;
	interface.mtu = 1500;
	interface.flags = IFF_UP | IFF_RUNNING;
	interface.unanswered = 0;
	descriptors = 1000;
}

static void query(void)
{
	memset(&attr, 0xee, sizeof attr);
	assert_int_equal(dapl_device_ops.query(&dev, &attr), 0);
}

#define CASE(name) UNIT_TEST_WITH(name, set_up, NULL)

/* --- names and addresses ------------------------------------------------------------------------------------- */

static void assert_gid(const char *text)
{
	union ibv_gid gid;

	query();
	assert_int_equal(inet_pton(AF_INET6, text, &gid), 1);
	assert_memory_equal(&attr.gid, &gid, sizeof gid);
	assert_memory_equal(&attr.limits.node_guid, gid.raw + 8, 8);
}

CASE(gid_is_the_address)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&dev.address;

	assert_gid("::ffff:192.0.2.7");
	*in6 = (struct sockaddr_in6){ .sin6_family = AF_INET6 };
	assert_int_equal(inet_pton(AF_INET6, "2001:db8:1:2:3:4:5:6", &in6->sin6_addr), 1);
	assert_gid("2001:db8:1:2:3:4:5:6");
}

/* --- the interface ------------------------------------------------------------------------------------------- */

/* Datagrams of this size can be sent. */
CASE(mtu_is_the_present_one_of_the_interface)
{
	interface.mtu = 900;
	query();
	assert_int_equal(attr.mtu, 900);
	interface.mtu = SOFT_UD_MTU + 1;
	query();
	assert_int_equal(attr.mtu, SOFT_UD_MTU);
	interface.unanswered = SIOCGIFMTU;
	query();
	assert_int_equal(attr.mtu, 1500);		/* when the device was opened */
}

CASE(port_is_active_if_the_interface_runs)
{
	query();
	assert_true(attr.port_active);
	interface.flags = IFF_UP;			/* no carrier */
	query();
	assert_false(attr.port_active);
	interface.flags = IFF_RUNNING;
	query();
	assert_false(attr.port_active);
	interface.unanswered = SIOCGIFFLAGS;		/* it was removed */
	query();
	assert_false(attr.port_active);
}

/* --- abilities and limits ------------------------------------------------------------------------------------ */

CASE(nothing_is_missing)
{
	dev.shm.dm_size = 12345;
	query();
	assert_true(attr.atomics);
	assert_true(attr.write_immediate);
	assert_true(attr.send_invalidate);
	assert_true(attr.ud);
	assert_true(attr.multicast);
	assert_true(attr.raw_ethernet);
	assert_true(attr.windows_1);
	assert_true(attr.windows_2);
	assert_true(attr.delayed_ack);
	assert_true(attr.zero_based);
	assert_true(attr.inline_by_lkey);
	assert_int_equal(attr.tunes, DAPL_TUNES_ACK | DAPL_TUNES_CLASS);
	assert_int_equal(attr.dm_size, 12345);
	assert_int_equal(attr.dm_unit, 1);
	assert_true(attr.dm_windows);
	assert_true(attr.limits.device_cap_flags & IBV_DEVICE_SRQ_RESIZE);
	assert_true(attr.bind_access);			/* obj/window.c asks for it */
	assert_false(attr.read_sink_remote);
	assert_false(attr.no_late_flush);
	assert_false(attr.no_solicited);
	assert_false(attr.no_empty_receive);
}

/* Each connection and each channel of a CQ takes a descriptor. */
CASE(numbers_of_qps_and_cqs_are_limited_by_descriptors)
{
	static const struct { rlim_t descriptors; int most; } cases[] = {
		{ 64, 64 }, { SOFT_MAX_QP - 1, SOFT_MAX_QP - 1 }, { SOFT_MAX_QP + 1, SOFT_MAX_QP },
		{ RLIM_INFINITY, SOFT_MAX_QP }, { 0, SOFT_USUAL_FILES },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		descriptors = cases[i].descriptors;
		query();
		assert_int_equal(attr.limits.max_qp, cases[i].most);
		assert_int_equal(attr.limits.max_cq, cases[i].most);
	}
}

UNIT_MAIN(NULL, NULL)
