/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_half_open.c - which half-open connection is closed in favour of a new one.
 * test_foreign_peer.c tests the limits with sockets. */
#include "dapl/soft/cm/half_open.h"
#include "dapl/soft/cm/conn.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/conn.h"
#include "test/unit/unit.h"
#include <sys/resource.h>

/* With 64 descriptors all sources share 16, one source has 8, and the last 8 are the reserve. */
enum { DESCRIPTORS = 64, ALL = DESCRIPTORS / HALF_OPEN_FRACTION, SOURCE = ALL / HALF_OPEN_SOURCES,
	RESERVED_FD = DESCRIPTORS - HALF_OPEN_RESERVE_MIN };

static struct dapl_device dev;
static struct soft_cm_conn cms[2 * ALL];
static struct dapl_conn conns[2 * ALL];
static int count;
static int silent[2], readable[2];	/* socket pairs; the second has input */

/* Each case runs with the progress lock held. */
UNIT_FIXTURE(set_up)
{
	struct rlimit limit;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, silent), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, readable), 0);
	assert_int_equal(write(readable[1], "x", 1), 1);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = DESCRIPTORS;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	memset(&dev, 0, sizeof dev);
	TAILQ_INIT(&dev.half_open.list);
	dapl_mutex_init(&dev.progress_lock, RANK_SOFT_PROGRESS);
	dapl_mutex_lock(&dev.progress_lock);
	count = 0;
}

UNIT_FIXTURE(tear_down)
{
	while (count)
		soft_half_open_remove(&conns[--count]);
	dapl_mutex_unlock(&dev.progress_lock);
	assert_int_equal(dev.half_open.count, 0);
	for (int i = 0; i < 2; i++) {
		close(silent[i]);
		close(readable[i]);
	}
}

/* Adds a connection from `source`, which has sent nothing, or something. */
static struct dapl_conn *add(const char *source, bool has_sent)
{
	struct dapl_conn *conn = &conns[count++];
	struct sockaddr_in *in4 = (struct sockaddr_in *)&conn->remote;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&conn->remote;

	*conn = (struct dapl_conn){ .cm = &cms[conn - conns] };
	conn->dev = &dev;
	conn->fd = has_sent ? readable[0] : silent[0];
	conn->remote.ss_family = strchr(source, ':') ? AF_INET6 : AF_INET;
	assert_int_equal(inet_pton(conn->remote.ss_family, source,
				   conn->remote.ss_family == AF_INET ? (void *)&in4->sin_addr :
					(void *)&in6->sin6_addr), 1);
	soft_half_open_add(conn);
	return conn;
}

UNIT_CASE(share_of_a_source_has_no_surplus)
{
	for (int i = 0; i < SOURCE; i++)
		assert_null(soft_half_open_surplus(add("192.0.2.1", false)));
}

UNIT_CASE(source_beyond_its_share_loses_its_own_oldest)
{
	struct dapl_conn *oldest;

	add("192.0.2.2", false);		/* older, but of another source */
	oldest = add("192.0.2.1", false);
	for (int i = 1; i < SOURCE; i++)
		add("192.0.2.1", false);
	assert_ptr_equal(soft_half_open_surplus(add("192.0.2.1", false)), oldest);
}

UNIT_CASE(addresses_of_one_ipv6_network_are_one_source)
{
	struct dapl_conn *oldest = add("2001:db8::1", false);

	for (int i = 1; i < SOURCE; i++)
		add("2001:db8::2", false);
	assert_null(soft_half_open_surplus(add("2001:db8:0:1::1", false)));
	assert_ptr_equal(soft_half_open_surplus(add("2001:db8::3", false)), oldest);
}

UNIT_CASE(sources_beyond_all_shares_lose_the_oldest_of_all)
{
	static const char *const sources[] = { "192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4" };
	struct dapl_conn *oldest = add(sources[0], false);

	for (int i = 1; i < ALL; i++)
		assert_null(soft_half_open_surplus(add(sources[i % 4], false)));
	assert_ptr_equal(soft_half_open_surplus(add("192.0.2.5", false)), oldest);
}

/* Input may be the Request. */
UNIT_CASE(connection_with_input_is_spared)
{
	struct dapl_conn *second;

	add("192.0.2.1", true);
	second = add("192.0.2.1", false);
	add("192.0.2.1", false);
	assert_ptr_equal(soft_half_open_oldest(&dev), second);
}

UNIT_CASE(oldest_is_closed_if_all_have_input)
{
	struct dapl_conn *first = add("192.0.2.1", true);

	for (int i = 0; i < HALF_OPEN_LOOKS_MAX + 1; i++)
		add("192.0.2.2", true);
	assert_ptr_equal(soft_half_open_oldest(&dev), first);
}

UNIT_CASE(descriptor_in_the_reserve_closes_the_oldest_but_not_itself)
{
	struct dapl_conn *first, *newest = add("192.0.2.1", false);

	newest->fd = RESERVED_FD - 1;
	assert_null(soft_half_open_surplus(newest));
	newest->fd = RESERVED_FD;
	assert_null(soft_half_open_surplus(newest));	/* there is no other */
	newest->fd = silent[0];
	first = newest;
	newest = add("192.0.2.2", false);
	newest->fd = RESERVED_FD;
	assert_ptr_equal(soft_half_open_surplus(newest), first);
	newest->fd = silent[0];
}

UNIT_CASE(empty_list_has_no_oldest)
{
	assert_null(soft_half_open_oldest(&dev));
}

UNIT_MAIN(NULL, NULL)
