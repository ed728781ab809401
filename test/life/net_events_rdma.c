/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* net_events_rdma.c - dat_net_watch on kernel RDMA, in the machine: the MTU, the link and the address of the
 * interface below an RDMA device, and the device itself, change while an IA is open.
 * LIFE_DEVICE names the device, LIFE_NETDEV its interface, LIFE_ADDRESS its address with prefix length,
 * LIFE_RDMA its name. test/life/net_events has what holds for the software device. */
#include "life.h"
#include <dat/dat_net_extensions.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { QLEN = 64, SILENCE = 500000 /* us; five times the least time between two events of a kind */ };
#define WATCH_ALL (DAT_NET_MTU | DAT_NET_LINK | DAT_NET_ADDRESS | DAT_NET_RDMA)

static const char *variable(const char *name)
{
	const char *value = getenv(name);

	if (!value)
		fail("%s is not set", name);
	return value;
}

static void shell(const char *format, const char *what)
{
	char line[300];

	snprintf(line, sizeof line, format, what);
	if (system(line))
		fail("%s failed", line);
}

static void set_link(const char *state)
{
	char format[64];

	snprintf(format, sizeof format, "ip link set %%s %s", state);
	shell(format, variable("LIFE_NETDEV"));
}

struct open_ia {
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async;
};

static struct open_ia open_watched(DAT_UINT32 what)
{
	struct open_ia it = { .async = DAT_HANDLE_NULL };

	set_link("mtu 1500 up");
	OK(dat_ia_open((DAT_NAME_PTR)LIFE_IA, QLEN, &it.async, &it.ia));
	OK(dat_net_watch(it.ia, what));
	return it;
}

static bool next_change(const struct open_ia *it, DAT_TIMEOUT timeout, DAT_NET_CHANGE_DATA *data)
{
	DAT_EVENT event;
	DAT_COUNT n;
	DAT_RETURN ret;

	do {	/* the removal of a device is also an asynchronous error of the IA */
		ret = dat_evd_wait(it->async, timeout, 1, &event, &n);
		if (DAT_GET_TYPE(ret) == DAT_TIMEOUT_EXPIRED)
			return false;
		OK(ret);
	} while (event.event_number != DAT_NET_CHANGE_EVENT);
	memcpy(data, event.event_extension_data, sizeof *data);
	EXPECT(data->ia == it->ia);
	return true;
}

static void expect_change(const struct open_ia *it, DAT_UINT32 what, DAT_UINT32 before, DAT_UINT32 now)
{
	DAT_NET_CHANGE_DATA data;

	if (!next_change(it, MOMENT, &data))
		fail("no change 0x%x from %u to %u", what, before, now);
	if (data.what != what || data.before != before || data.now != now || data.lost)
		fail("change 0x%x from %u to %u with %u lost; expected 0x%x from %u to %u", data.what,
		     data.before, data.now, data.lost, what, before, now);
}

static void expect_silence(const struct open_ia *it)
{
	DAT_NET_CHANGE_DATA data;

	if (next_change(it, SILENCE, &data))
		fail("change 0x%x from %u to %u with %u lost; expected none", data.what, data.before,
		     data.now, data.lost);
}

static void end(const struct open_ia *it)
{
	OK(dat_ia_close(it->ia, DAT_CLOSE_ABRUPT_FLAG));
}

/* --- cases ------------------------------------------------------------------------------- */

/* The MTU of the device is one of five sizes below that of the interface. */
static void mtu_of_the_device_is_told(void)
{
	struct open_ia it = open_watched(WATCH_ALL);

	set_link("mtu 5000");
	expect_change(&it, DAT_NET_MTU, 1024, 4096);
	set_link("mtu 4900");	/* 4096 still */
	expect_silence(&it);
	set_link("mtu 700");
	expect_change(&it, DAT_NET_MTU, 4096, 512);
	set_link("mtu 1500");
	expect_change(&it, DAT_NET_MTU, 512, 1024);
	expect_silence(&it);
	end(&it);
}

static void link_down_and_up_are_told(void)
{
	struct open_ia it = open_watched(DAT_NET_MTU | DAT_NET_LINK);

	for (int i = 0; i < 3; i++) {
		set_link("down");
		expect_change(&it, DAT_NET_LINK, 1, 0);
		set_link("up");
		expect_change(&it, DAT_NET_LINK, 0, 1);
	}
	expect_silence(&it);
	end(&it);
}

static void address_that_goes_and_comes_is_told(void)
{
	struct open_ia it = open_watched(DAT_NET_MTU | DAT_NET_ADDRESS);
	char format[100];

	snprintf(format, sizeof format, "ip addr del %s dev %%s", variable("LIFE_ADDRESS"));
	shell(format, variable("LIFE_NETDEV"));
	expect_change(&it, DAT_NET_ADDRESS, 1, 0);
	snprintf(format, sizeof format, "ip addr add %s dev %%s", variable("LIFE_ADDRESS"));
	shell(format, variable("LIFE_NETDEV"));
	expect_change(&it, DAT_NET_ADDRESS, 0, 1);
	expect_silence(&it);
	end(&it);
}

/* rxe reports the removal through the connection manager, only to an IA that listens or is connected. This
 * must be the last case: afterwards there is no device. */
static void device_that_is_removed_is_told_and_the_ia_closes(void)
{
	DAT_EVD_HANDLE evd;
	DAT_PSP_HANDLE psp;
	struct open_ia it;

	setenv("DAPL_DBG_TYPE", "0", 1);	/* the line about the lost device is expected */
	it = open_watched(DAT_NET_RDMA);

	OK(dat_evd_create(it.ia, QLEN, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &evd));
	OK(dat_psp_create(it.ia, 45290, evd, DAT_PSP_CONSUMER_FLAG, &psp));
	/* rxe removes the device once no program has it open */
	shell("rdma link delete %s >/dev/null 2>&1 &", variable("LIFE_RDMA"));
	expect_change(&it, DAT_NET_RDMA, 1, 0);
	end(&it);
}

static const struct life_case cases[] = {
	CASE(mtu_of_the_device_is_told),
	CASE(link_down_and_up_are_told),
	CASE(address_that_goes_and_comes_is_told),
	CASE(device_that_is_removed_is_told_and_the_ia_closes),
};

int main(int argc, char **argv)
{
	return life_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
