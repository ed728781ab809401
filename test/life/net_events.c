/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* net_events.c - dat_net_watch: events of the MTU, link and address of an open IA on the software device, in
 * a network namespace of the case. A program that does not ask sees none. */
#include "life.h"
#include <dat/dat_net_extensions.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "test/own_network.h"

enum { FLAPS = 60, CHANGES = 1000, QLEN = 64 };
#define WATCH_ALL (DAT_NET_MTU | DAT_NET_LINK | DAT_NET_ADDRESS | DAT_NET_RDMA)

static void ip(const char *arguments)
{
	char line[300];

	snprintf(line, sizeof line, "ip %s", arguments);
	if (system(line))
		fail("%s failed", line);
}

/* m0 with 10.1.0.1, over a veth whose other end is up. */
static void make_network(void)
{
	if (geteuid())
		skip("needs root");
	own_network();
	if (system("ip link add p0 type veth peer name p1 2>/dev/null"))
		skip("no network namespace, ip or veth here");
	ip("link set p0 up");
	ip("link set p1 up");
	ip("link add m0 link p0 type macvlan mode bridge");
	ip("link set m0 mtu 1400 up");
	ip("addr add 10.1.0.1/24 dev m0");
}

struct open_ia {
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async;
};

static struct open_ia open_on(const char *params)
{
	struct open_ia it = { .async = DAT_HANDLE_NULL };

	life_entry("net", "libdaplsoft.so.2", params);
	OK(dat_ia_open((DAT_NAME_PTR)"net", QLEN, &it.async, &it.ia));
	return it;
}

static DAT_NET_CHANGE_DATA data_of(const DAT_EVENT *event)
{
	DAT_NET_CHANGE_DATA data;

	if (event->event_number != DAT_NET_CHANGE_EVENT)
		fail("event 0x%x instead of DAT_NET_CHANGE_EVENT", event->event_number);
	memcpy(&data, event->event_extension_data, sizeof data);
	return data;
}

enum { SILENCE = 300000 };	/* us; three times the least time between two events of a kind */

/* Takes the next change. Returns false if there is none within the time limit. */
static bool change_within(const struct open_ia *it, DAT_TIMEOUT timeout, DAT_NET_CHANGE_DATA *data)
{
	DAT_EVENT event;
	DAT_COUNT n;
	DAT_RETURN ret = dat_evd_wait(it->async, timeout, 1, &event, &n);

	if (DAT_GET_TYPE(ret) == DAT_TIMEOUT_EXPIRED)
		return false;
	OK(ret);
	*data = data_of(&event);
	EXPECT(data->ia == it->ia);
	return true;
}

static DAT_NET_CHANGE_DATA next_change(const struct open_ia *it)
{
	DAT_NET_CHANGE_DATA data = { 0 };

	EXPECT(change_within(it, MOMENT, &data));
	return data;
}

static void expect_change(const struct open_ia *it, DAT_UINT32 what, DAT_UINT32 before, DAT_UINT32 now)
{
	DAT_NET_CHANGE_DATA data = next_change(it);

	if (data.what != what || data.before != before || data.now != now || data.lost)
		fail("change 0x%x from %u to %u with %u lost; expected 0x%x from %u to %u", data.what,
		     data.before, data.now, data.lost, what, before, now);
}

static void expect_silence(const struct open_ia *it)
{
	DAT_NET_CHANGE_DATA data;

	EXPECT(!change_within(it, SILENCE, &data));
}

static void end(const struct open_ia *it)
{
	OK(dat_ia_close(it->ia, DAT_CLOSE_ABRUPT_FLAG));
}

/* --- cases ------------------------------------------------------------------------------- */

static void each_change_is_told_with_old_and_new(void)
{
	struct open_ia it;

	make_network();
	it = open_on("m0 0");
	OK(dat_net_watch(it.ia, WATCH_ALL));
	ip("link set m0 mtu 1300");
	expect_change(&it, DAT_NET_MTU, 1400, 1300);
	ip("link set m0 mtu 1200");
	expect_change(&it, DAT_NET_MTU, 1300, 1200);
	ip("link set p1 down");
	expect_change(&it, DAT_NET_LINK, 1, 0);
	ip("link set p1 up");
	expect_change(&it, DAT_NET_LINK, 0, 1);
	ip("addr del 10.1.0.1/24 dev m0");
	expect_change(&it, DAT_NET_ADDRESS, 1, 0);
	ip("addr add 10.1.0.1/24 dev m0");
	expect_change(&it, DAT_NET_ADDRESS, 0, 1);
	ip("link set lo mtu 5000");	/* of another interface */
	ip("addr add 10.1.0.2/24 dev m0");
	expect_silence(&it);
	end(&it);
}

/* Datagrams have at most 4096 bytes, whatever the interface's MTU: its changes above that change no MTU of
 * the IA. */
static void mtu_beyond_the_devices_limit_is_not_told(void)
{
	struct open_ia it;

	make_network();
	ip("link add d0 type veth peer name d1");
	ip("link set d0 mtu 9000 up");
	ip("addr add 10.2.0.1/24 dev d0");
	it = open_on("d0 0");
	OK(dat_net_watch(it.ia, WATCH_ALL));
	ip("link set d0 mtu 8000");
	expect_silence(&it);
	ip("link set d0 mtu 2000");
	expect_change(&it, DAT_NET_MTU, 4096, 2000);
	ip("link set d0 mtu 9000");
	expect_change(&it, DAT_NET_MTU, 2000, 4096);
	ip("link set d0 alias any");	/* a message with the same MTU */
	expect_silence(&it);
	end(&it);
}

static void only_what_was_asked_for_is_told(void)
{
	struct open_ia it, other;

	make_network();
	it = open_on("m0 0");
	other = open_on("m0 0");
	EXPECT(other.async != it.async);
	OK(dat_net_watch(it.ia, DAT_NET_LINK));
	ip("link set m0 mtu 1300");
	expect_silence(&it);
	expect_silence(&other);
	OK(dat_net_watch(it.ia, DAT_NET_MTU));
	ip("link set m0 mtu 1200");
	expect_change(&it, DAT_NET_MTU, 1300, 1200);
	OK(dat_net_watch(it.ia, 0));
	ip("link set m0 mtu 1100");
	expect_silence(&it);
	expect_silence(&other);
	OK(dat_net_watch(other.ia, DAT_NET_MTU));	/* the closed socket is opened again */
	ip("link set m0 mtu 1000");
	expect_change(&other, DAT_NET_MTU, 1100, 1000);
	end(&other);
	end(&it);
}

/* Each change that the kernel reports has an event or is counted in `lost`. The last event has the last
 * value. There are at most ten events a second. */
static void flapping_becomes_few_events_that_count(void)
{
	DAT_NET_CHANGE_DATA data = { 0 };
	unsigned told = 0, changes = 0;
	struct open_ia it;
	double begin;

	make_network();
	it = open_on("m0 0");
	OK(dat_net_watch(it.ia, DAT_NET_LINK));
	begin = life_now();
	for (int i = 0; i < FLAPS; i++) {
		ip("link set m0 down");
		ip("link set m0 up");
	}
	ip("link set m0 down");
	for (DAT_UINT32 last = 1; change_within(&it, last ? MOMENT : SILENCE, &data); last = data.now) {
		EXPECT(data.what == DAT_NET_LINK && data.before == last);
		told++;
		changes += 1 + data.lost;
	}
	EXPECT(told && data.now == 0);
	/* The kernel itself may report a link that comes up for a moment as one that stayed down. */
	EXPECT(changes <= 2 * FLAPS + 1 && changes % 2 == 1);
	if (told > (life_now() - begin) * 10 + 1)
		fail("%u events in %.2f s", told, life_now() - begin);
	end(&it);
}

/* A thousand changes of the MTU while messages go both ways. */
static void traffic_goes_on_while_the_mtu_changes(void)
{
	DAT_NET_CHANGE_DATA data = { 0 };
	struct open_ia it;
	struct session s;
	DAT_EVENT event;
	unsigned rounds = 0, changes = 0;
	DAT_COUNT n;
	int status;
	pid_t pid;

	make_network();
	life_entry(LIFE_IA, "libdaplsoft.so.2", "m0 0");
	memset(&s, 0, sizeof s);
	setenv("DAPL_SOFT_SHM", "0", 1);	/* over TCP */
	OK(session_open(&s, MOMENT));
	it = (struct open_ia){ s.ia, s.async };
	OK(dat_net_watch(it.ia, DAT_NET_MTU));
	pid = fork();
	if (!pid) {
		execl("/bin/sh", "sh", "-c", "for i in $(seq 500); do "
		      "echo link set m0 mtu 1300; echo link set m0 mtu 1200; done | ip -batch -", (char *)NULL);
		_exit(1);
	}
	while (!waitpid(pid, &status, WNOHANG))
		if (!session_exchange(&s, rounds++))
			fail("%s failed in round %u", s.step, rounds);
	EXPECT(status == 0 && rounds);
	/* the socket may have overflowed, so fewer are counted; the last value is right */
	while (dat_evd_wait(it.async, data.now == 1200 ? 500000 : 20000000, 1, &event, &n) == DAT_SUCCESS) {
		data = data_of(&event);
		EXPECT(data.what == DAT_NET_MTU);
		changes += 1 + data.lost;
	}
	if (!changes || changes > CHANGES)
		fail("%u changes are told of %u", changes, CHANGES);
	EXPECT(data.now == 1200);
	OK(session_close(&s));
}

static void deleted_interface_is_told_and_the_ia_closes(void)
{
	DAT_UINT32 seen = 0;
	struct open_ia it;

	make_network();
	it = open_on("m0 0");
	OK(dat_net_watch(it.ia, DAT_NET_LINK | DAT_NET_ADDRESS));
	ip("link del m0");
	while (seen != (DAT_NET_LINK | DAT_NET_ADDRESS)) {
		DAT_NET_CHANGE_DATA data = next_change(&it);

		EXPECT(data.before == 1 && data.now == 0);
		seen |= data.what;
	}
	end(&it);
}

/* Another interface gets the name that it had. */
static void renamed_interface_is_the_same(void)
{
	struct open_ia it;

	make_network();
	it = open_on("m0 0");
	ip("link set m0 down");
	ip("link set m0 name r0");
	ip("link set r0 up");
	ip("link add m0 link p0 type macvlan mode bridge");
	OK(dat_net_watch(it.ia, WATCH_ALL));
	ip("link set m0 mtu 1200");
	expect_silence(&it);
	ip("link set r0 mtu 1300");
	expect_change(&it, DAT_NET_MTU, 1400, 1300);
	end(&it);
}

/* While the EVD is full, there is no event. It comes once there is room, and counts the changes that had
 * none. */
static void full_evd_delays_the_event(void)
{
	struct open_ia it = { .async = DAT_HANDLE_NULL };
	DAT_NET_CHANGE_DATA data;
	unsigned changes = 0;
	DAT_EVENT event;
	DAT_COUNT n;
	char line[64];

	make_network();
	life_entry("net", "libdaplsoft.so.2", "m0 0");
	OK(dat_ia_open((DAT_NAME_PTR)"net", 1, &it.async, &it.ia));
	OK(dat_net_watch(it.ia, DAT_NET_MTU));
	for (int mtu = 1000; mtu < 1040; mtu++) {
		snprintf(line, sizeof line, "link set m0 mtu %d", mtu);
		ip(line);
		usleep(10000);
	}
	do {
		OK(dat_evd_wait(it.async, MOMENT, 1, &event, &n));
		data = data_of(&event);
		changes += 1 + data.lost;
	} while (changes < 40);
	EXPECT(changes == 40 && data.now == 1039);
	end(&it);
}

static void wrong_arguments_are_refused(void)
{
	DAT_EVD_HANDLE none = DAT_EVD_ASYNC_EXISTS;
	struct open_ia it;
	DAT_IA_HANDLE ia;

	make_network();
	it = open_on("m0 0");
	EXPECT(DAT_GET_TYPE(dat_net_watch(it.ia, 0x40)) == DAT_INVALID_PARAMETER);
	EXPECT(DAT_GET_TYPE(dat_net_watch(it.async, DAT_NET_MTU)) == DAT_INVALID_HANDLE);
	OK(dat_net_watch(it.ia, 0));
	end(&it);
	EXPECT(DAT_GET_TYPE(dat_net_watch(it.ia, DAT_NET_MTU)) == DAT_INVALID_HANDLE);
	OK(dat_ia_open((DAT_NAME_PTR)"net", QLEN, &none, &ia));
	EXPECT(DAT_GET_TYPE(dat_net_watch(ia, DAT_NET_MTU)) == DAT_MODEL_NOT_SUPPORTED);
	OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
}

static void watches_leave_no_descriptor(void)
{
	struct open_ia it;
	int before;

	make_network();
	it = open_on("m0 0");
	before = open_descriptors();
	OK(dat_net_watch(it.ia, WATCH_ALL));
	OK(dat_net_watch(it.ia, WATCH_ALL));
	EXPECT(open_descriptors() == before + 1);
	OK(dat_net_watch(it.ia, 0));
	EXPECT(open_descriptors() == before);
	end(&it);
}

/* The socket stays until the last watch ends. */
static void watches_of_two_ias_share_a_socket(void)
{
	struct open_ia it, other;
	int before;

	make_network();
	it = open_on("m0 0");
	other = open_on("m0 0");
	before = open_descriptors();
	OK(dat_net_watch(it.ia, DAT_NET_MTU));
	OK(dat_net_watch(other.ia, DAT_NET_MTU));
	EXPECT(open_descriptors() == before + 1);
	ip("link set m0 mtu 1300");
	expect_change(&it, DAT_NET_MTU, 1400, 1300);
	expect_change(&other, DAT_NET_MTU, 1400, 1300);
	OK(dat_net_watch(it.ia, 0));
	EXPECT(open_descriptors() == before + 1);
	ip("link set m0 mtu 1200");
	expect_change(&other, DAT_NET_MTU, 1300, 1200);
	OK(dat_net_watch(other.ia, 0));
	EXPECT(open_descriptors() == before);
	end(&other);
	end(&it);
}

static const struct life_case cases[] = {
	CASE(each_change_is_told_with_old_and_new),
	CASE(mtu_beyond_the_devices_limit_is_not_told),
	CASE(only_what_was_asked_for_is_told),
	CASE(flapping_becomes_few_events_that_count),
	CASE(traffic_goes_on_while_the_mtu_changes),
	CASE(deleted_interface_is_told_and_the_ia_closes),
	CASE(renamed_interface_is_the_same),
	CASE(full_evd_delays_the_event),
	CASE(wrong_arguments_are_refused),
	CASE(watches_leave_no_descriptor),
	CASE(watches_of_two_ias_share_a_socket),
};

int main(int argc, char **argv)
{
	return life_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
