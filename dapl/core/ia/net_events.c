/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* net_events.c - see net_events.h. */
#include <ifaddrs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <dat/dat_net_extensions.h>
#include "common/interface.h"
#include "common/address.h"
#include "common/clock.h"
#include "common/container_of.h"
#include "dapl/core/base/ia_handle.h"
#include "dapl/core/event/async.h"
#include "dapl/core/ia/net_events.h"

/* --- the list of watched IAs ------------------------------------------------------------------- */

struct dapl_mutex dapl_net_lock = DAPL_MUTEX_INIT(RANK_NET_WATCH);
static struct dapl_net_watch *watches;

struct dapl_net_watch *dapl_net_first(void)
{
	assert_held(&dapl_net_lock);
	return watches;
}

/* Returns the link to the watch of this IA; it points to NULL if there is no watch. Called with the lock
 * held. */
static struct dapl_net_watch **link_to(const struct dapl_ia *ia)
{
	struct dapl_net_watch **p = &watches;

	assert_held(&dapl_net_lock);
	while (*p && (*p)->ia != ia)
		p = &(*p)->next;
	return p;
}

struct dapl_net_watch *dapl_net_find(const struct dapl_ia *ia)
{
	return *link_to(ia);
}

void dapl_net_add(struct dapl_net_watch *w)
{
	assert_held(&dapl_net_lock);
	w->next = watches;
	watches = w;
}

struct dapl_net_watch *dapl_net_remove(const struct dapl_ia *ia)
{
	struct dapl_net_watch **p = link_to(ia), *w = *p;

	if (w)
		*p = w->next;
	return w;
}

void dapl_net_clear(void)
{
	assert_held(&dapl_net_lock);
	watches = NULL;
}

enum {
	EVENT_INTERVAL_US = 100000,	/* minimum between two events of an IA: ten a second */
	UNKNOWN = -1,			/* in `seen`: messages were lost */
};

static const DAT_UINT32 bits[KINDS] = { DAT_NET_MTU, DAT_NET_LINK, DAT_NET_ADDRESS };

static void fire(struct dapl_timer *timer);

void dapl_net_schedule(struct dapl_net_watch *w)
{
	uint64_t now = clock_now_ns();

	assert_held(&dapl_net_lock);
	if (w->scheduled)
		return;
	w->scheduled = true;
	dapl_timer_start(&w->timer, w->next_ns > now ? (w->next_ns - now) / 1000 + 1 : 0, fire);
}

void dapl_net_note(struct dapl_net_watch *w, enum dapl_net_kind kind, DAT_UINT32 value)
{
	assert_held(&dapl_net_lock);
	if (w->seen[kind] == value)
		return;
	w->seen[kind] = value;
	w->changes[kind]++;
	dapl_net_schedule(w);
}

void dapl_net_note_mtu(struct dapl_net_watch *w, DAT_UINT32 mtu)
{
	assert_held(&dapl_net_lock);
	if (w->interface_mtu == mtu)
		return;
	w->interface_mtu = mtu;
	w->changes[KIND_MTU]++;
	dapl_net_schedule(w);
}

void dapl_net_look_anew(struct dapl_net_watch *w)
{
	assert_held(&dapl_net_lock);
	for (int kind = 0; kind < KINDS; kind++)
		w->seen[kind] = (DAT_UINT32)UNKNOWN;
	dapl_net_schedule(w);
}

static bool has_address(const struct dapl_ia *ia)
{
	const struct sockaddr *own = (const struct sockaddr *)&ia->attr.address;
	struct ifaddrs *all;
	bool found = false;

	if (getifaddrs(&all))
		return true;	/* unknown, so no change is reported */
	for (const struct ifaddrs *i = all; i && !found; i = i->ifa_next)
		found = i->ifa_addr && address_same_host(i->ifa_addr, own);
	freeifaddrs(all);
	return found;
}

/* Reads the present values. Called without a lock, because it asks the kernel. */
static void read_values(struct dapl_net_watch *w, DAT_UINT32 values[KINDS])
{
	struct dapl_device_attr attr;

	if (dapl_device_ops.query(w->ia->dev, &attr)) {
		memcpy(values, w->reported, sizeof w->reported);
	} else {
		values[KIND_MTU] = attr.mtu;
		/* the limit of datagrams follows the MTU */
		__atomic_store_n(&w->ia->attr.mtu, attr.mtu, __ATOMIC_RELAXED);
		values[KIND_LINK] = attr.port_active;
	}
	values[KIND_ADDRESS] = has_address(w->ia);
}

/* Returns 0 if the MTU is unknown: then the first message counts as a change. */
static DAT_UINT32 mtu_of_interface(int index)
{
	struct ifreq ifr;

	return interface_request_index(index, SIOCGIFMTU, &ifr) ? 0 : (DAT_UINT32)ifr.ifr_mtu;
}

void dapl_net_watch_init(struct dapl_net_watch *w)
{
	w->reported[KIND_MTU] = w->ia->attr.mtu;
	read_values(w, w->seen);
	memcpy(w->reported, w->seen, sizeof w->reported);
	w->interface_mtu = w->interface_mtu_reported = mtu_of_interface(w->index);
}

bool dapl_net_post(struct dapl_ia *ia, DAT_UINT32 what, DAT_UINT32 before, DAT_UINT32 now, DAT_UINT32 lost)
{
	DAT_NET_CHANGE_DATA data = { .what = what, .before = before, .now = now, .lost = lost,
				     .ia = dapl_ia_handle(ia) };
	DAT_EVENT event;

	memset(&event, 0, sizeof event);
	event.event_number = DAT_NET_CHANGE_EVENT;
	_Static_assert(sizeof data <= sizeof event.event_extension_data, "the data fits into an event");
	memcpy(event.event_extension_data, &data, sizeof data);
	trace(TRC_LVL_NORMAL, TRC_DAPL_EVENT, "ia", ia, NULL, "network change 0x%x: %u to %u, %u lost", what,
	      before, now, lost);
	return dapl_async_offer(ia, &event);
}

/* True if the device's MTU may be reported. If the interface's MTU has changed and the device's has not,
 * the device is queried once more, because an RDMA device follows later and without an event. Called with
 * dapl_net_lock held. */
static bool mtu_is_settled(struct dapl_net_watch *w, DAT_UINT32 value)
{
	bool same = value == w->reported[KIND_MTU] && w->interface_mtu != w->interface_mtu_reported;

	assert_held(&dapl_net_lock);
	if (same && !w->mtu_again) {
		w->mtu_again = true;
		dapl_net_schedule(w);
		return false;
	}
	w->mtu_again = false;
	if (same) {
		w->changes[KIND_MTU] = 0;
		w->interface_mtu_reported = w->interface_mtu;
	}
	return true;
}

/* True if the state of the link or the address may be reported. The kernel's messages and the device may
 * differ for a moment: either the RDMA device has not followed its interface yet, and its event will come,
 * or a change was undone, and its message will come. Called with dapl_net_lock held. */
static bool state_is_settled(struct dapl_net_watch *w, enum dapl_net_kind kind, DAT_UINT32 value)
{
	assert_held(&dapl_net_lock);
	if (w->seen[kind] == (DAT_UINT32)UNKNOWN)
		w->seen[kind] = value;
	if (w->seen[kind] == value)
		return true;
	if (value == w->reported[kind] && w->changes[kind] > 0)
		return false;
	w->seen[kind] = value;	/* its message was not read yet; counted here */
	w->changes[kind]++;
	return true;
}

/* Posts the event of one kind if its value has changed. Called without the lock. */
static void post_change(struct dapl_net_watch *w, enum dapl_net_kind kind, DAT_UINT32 value)
{
	DAT_UINT32 before, lost;
	bool settled;
	int changes;

	dapl_mutex_lock(&dapl_net_lock);
	before = w->reported[kind];
	settled = kind == KIND_MTU ? mtu_is_settled(w, value) : state_is_settled(w, kind, value);
	changes = w->changes[kind];
	if (!(w->what & bits[kind])) {	/* the consumer has not asked for this kind */
		w->reported[kind] = before = value;
		w->changes[kind] = changes = 0;
	}
	dapl_mutex_unlock(&dapl_net_lock);
	if (!settled || (value == before && changes < 2))
		return;
	lost = changes > 1 ? (DAT_UINT32)changes - 1 : 0;
	if (!dapl_net_post(w->ia, bits[kind], before, value, lost)) {
		dapl_mutex_lock(&dapl_net_lock);
		dapl_net_schedule(w);	/* the EVD is full: try again later */
		dapl_mutex_unlock(&dapl_net_lock);
		return;
	}
	dapl_mutex_lock(&dapl_net_lock);
	w->reported[kind] = value;
	w->changes[kind] -= 1 + (int)lost;
	if (kind == KIND_MTU)
		w->interface_mtu_reported = w->interface_mtu;
	dapl_mutex_unlock(&dapl_net_lock);
}

/* Runs on the service thread. */
static void fire(struct dapl_timer *timer)
{
	struct dapl_net_watch *w = container_of(timer, struct dapl_net_watch, timer);
	DAT_UINT32 values[KINDS];

	dapl_mutex_lock(&dapl_net_lock);
	w->scheduled = false;
	w->next_ns = clock_now_ns() + EVENT_INTERVAL_US * UINT64_C(1000);
	dapl_mutex_unlock(&dapl_net_lock);
	read_values(w, values);
	for (int kind = 0; kind < KINDS; kind++)
		post_change(w, (enum dapl_net_kind)kind, values[kind]);
}
