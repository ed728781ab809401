/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_net_events.c - which events follow when the device and the kernel's messages differ for a moment, when the
 * EVD is full, and when a value cannot be read. The timer runs when the test says so. Messages of a socket are
 * test_net_messages.c's. */
#include <ifaddrs.h>
#include <sys/ioctl.h>
#include <dat/dat_net_extensions.h>
#include "common/interface.h"
#include "dapl/core/base/ia_handle.h"
#include "dapl/core/event/async.h"
#include "dapl/core/ia/net_events.h"
#include "test/unit/core/core_device.h"
#include "test/unit/unit.h"

static struct dapl_ia *ia;
static struct dapl_net_watch w;
static void (*started)(struct dapl_timer *);	/* handler of the timer; NULL: the timer is not started */
static DAT_NET_CHANGE_DATA posted;		/* the last event */
static unsigned events;				/* that were posted, and not expected yet */
static bool full;				/* the EVD */
static int addresses_error;			/* of getifaddrs; without one the host has the IA's address */

/* --- what is replaced ------------------------------------------------------------------------------------------ */

REPLACE(getifaddrs, freeifaddrs)
REPLACE(interface_request_index, dapl_timer_start, dapl_async_offer)

int __wrap_getifaddrs(struct ifaddrs **list)
{
	static struct ifaddrs without, own = { .ifa_next = &without };

	if (addresses_error) {
		errno = addresses_error;
		return -1;
	}
	own.ifa_addr = (struct sockaddr *)&ia->attr.address;
	*list = &own;
	return 0;
}

void __wrap_freeifaddrs(struct ifaddrs *list)
{
}

int __wrap_interface_request_index(int index, unsigned long request, struct ifreq *ifr)
{
	assert_int_equal(index, w.index);
	assert_int_equal(request, SIOCGIFMTU);
	ifr->ifr_mtu = 1500;
	return 0;
}

void __wrap_dapl_timer_start(struct dapl_timer *timer, uint64_t delay_us, void (*fire)(struct dapl_timer *))
{
	assert_ptr_equal(timer, &w.timer);
	assert_null(started);
	started = fire;
}

bool __wrap_dapl_async_offer(struct dapl_ia *of, const DAT_EVENT *event)
{
	assert_ptr_equal(of, ia);
	assert_int_equal(event->event_number, DAT_NET_CHANGE_EVENT);
	if (full)
		return false;
	memcpy(&posted, event->event_extension_data, sizeof posted);
	events++;
	return true;
}

/* --- fixture --------------------------------------------------------------------------------------------------- */

UNIT_FIXTURE(set_up)
{
	core_device = (struct core_device){ .attr = { .mtu = 1500, .port_active = true } };
	started = NULL;
	events = 0;
	full = false;
	addresses_error = 0;
	ia = core_ia_new();
	ia->attr = core_device.attr;
	ia->attr.address.ss_family = AF_INET;
	w = (struct dapl_net_watch){ .ia = ia, .what = DAT_NET_MTU | DAT_NET_LINK | DAT_NET_ADDRESS };
	dapl_net_watch_init(&w);
}

UNIT_FIXTURE(tear_down) { core_ia_free(ia); }

static void message(enum dapl_net_kind kind, DAT_UINT32 value)
{
	dapl_mutex_lock(&dapl_net_lock);
	if (kind == KIND_MTU)
		dapl_net_note_mtu(&w, value);
	else
		dapl_net_note(&w, kind, value);
	dapl_mutex_unlock(&dapl_net_lock);
}

static void port_event(void)
{
	dapl_mutex_lock(&dapl_net_lock);
	dapl_net_schedule(&w);
	dapl_mutex_unlock(&dapl_net_lock);
}

/* The timer fires, which is started. */
static void fire(void)
{
	void (*handler)(struct dapl_timer *) = started;

	assert_non_null(handler);
	started = NULL;
	handler(&w.timer);
}

static void expect_event(DAT_UINT32 what, DAT_UINT32 before, DAT_UINT32 now, DAT_UINT32 lost)
{
	assert_int_equal(events, 1);
	events = 0;
	assert_int_equal(posted.what, what);
	assert_int_equal(posted.before, before);
	assert_int_equal(posted.now, now);
	assert_int_equal(posted.lost, lost);
	assert_ptr_equal(posted.ia, dapl_ia_handle(ia));
}

static void expect_nothing_more(void)
{
	assert_int_equal(events, 0);
	assert_null(started);
}

/* --- cases ----------------------------------------------------------------------------------------------------- */

UNIT_CASE(mtu_of_a_device_that_follows_late_is_reported)
{
	message(KIND_MTU, 9000);
	fire();
	assert_int_equal(events, 0);
	core_device.attr.mtu = 4096;
	fire();		/* the device is queried once more */
	expect_event(DAT_NET_MTU, 1500, 4096, 0);
	expect_nothing_more();
}

/* The next event does not count that change. */
UNIT_CASE(mtu_of_the_interface_alone_is_no_event)
{
	message(KIND_MTU, 9000);
	fire();
	fire();
	expect_nothing_more();
	message(KIND_MTU, 9000);
	expect_nothing_more();
	core_device.attr.mtu = 1024;
	message(KIND_MTU, 1400);
	fire();
	expect_event(DAT_NET_MTU, 1500, 1024, 0);
	expect_nothing_more();
}

UNIT_CASE(link_of_a_device_that_follows_late_waits_for_its_port_event)
{
	message(KIND_LINK, 0);
	fire();
	expect_nothing_more();
	core_device.attr.port_active = false;
	port_event();
	fire();
	expect_event(DAT_NET_LINK, 1, 0, 0);
	expect_nothing_more();
}

UNIT_CASE(change_that_is_reported_before_its_message_counts_once)
{
	core_device.attr.port_active = false;
	port_event();
	fire();
	expect_event(DAT_NET_LINK, 1, 0, 0);
	message(KIND_LINK, 0);
	expect_nothing_more();
	core_device.attr.port_active = true;
	message(KIND_LINK, 1);
	message(KIND_LINK, 0);
	message(KIND_LINK, 1);
	fire();
	expect_event(DAT_NET_LINK, 0, 1, 2);
}

UNIT_CASE(change_that_was_undone_has_equal_values)
{
	message(KIND_LINK, 0);
	message(KIND_LINK, 1);
	fire();
	expect_event(DAT_NET_LINK, 1, 1, 1);
	expect_nothing_more();
}

UNIT_CASE(event_that_a_full_evd_refuses_is_posted_later)
{
	full = true;
	core_device.attr.port_active = false;
	message(KIND_LINK, 0);
	fire();
	assert_non_null(started);	/* without another message */
	message(KIND_LINK, 1);
	message(KIND_LINK, 0);
	full = false;
	fire();
	expect_event(DAT_NET_LINK, 1, 0, 2);
	expect_nothing_more();
}

UNIT_CASE(values_that_cannot_be_read_are_no_event)
{
	core_device.query_error = EIO;
	addresses_error = ENOBUFS;
	core_device.attr.mtu = 4096;
	core_device.attr.port_active = false;
	port_event();
	fire();
	expect_nothing_more();
	assert_int_equal(ia->attr.mtu, 1500);
	core_device.query_error = 0;
	core_device.attr.port_active = true;
	port_event();
	fire();
	expect_event(DAT_NET_MTU, 1500, 4096, 0);
	assert_int_equal(ia->attr.mtu, 4096);
}

/* --- the list of watched IAs: each is found, and removed without the others ------------------------------------- */

enum { IAS = 3 };
static struct dapl_ia ias[IAS];
static struct dapl_net_watch watches[IAS];

UNIT_FIXTURE(set_up_list)
{
	dapl_mutex_lock(&dapl_net_lock);
	assert_null(dapl_net_first());
	for (int i = 0; i < IAS; i++) {
		watches[i] = (struct dapl_net_watch){ .ia = &ias[i] };
		dapl_net_add(&watches[i]);
	}
}

UNIT_FIXTURE(tear_down_list)
{
	dapl_net_clear();
	assert_null(dapl_net_first());
	dapl_mutex_unlock(&dapl_net_lock);
}

static unsigned listed(void)
{
	unsigned n = 0;

	for (const struct dapl_net_watch *w = dapl_net_first(); w; w = w->next)
		n++;
	return n;
}

#define LIST_CASE(name) UNIT_TEST_WITH(name, set_up_list, tear_down_list)

LIST_CASE(each_ia_has_its_own_watch)
{
	static struct dapl_ia other;

	assert_int_equal(listed(), IAS);
	for (int i = 0; i < IAS; i++)
		assert_ptr_equal(dapl_net_find(&ias[i]), &watches[i]);
	assert_null(dapl_net_find(&other));
}

/* `first` is removed first, then the other two: each place in the list comes first once. */
static void remove_all(int first)
{
	for (int i = 0; i < IAS; i++) {
		int at = (first + i) % IAS;

		assert_ptr_equal(dapl_net_remove(&ias[at]), &watches[at]);
		assert_null(dapl_net_find(&ias[at]));
		assert_null(dapl_net_remove(&ias[at]));
		assert_int_equal(listed(), IAS - 1 - i);
	}
	for (int i = 0; i < IAS; i++)
		dapl_net_add(&watches[i]);
}

LIST_CASE(removed_watch_leaves_the_others)
{
	for (int first = 0; first < IAS; first++)
		remove_all(first);
}

UNIT_MAIN(NULL, NULL)
