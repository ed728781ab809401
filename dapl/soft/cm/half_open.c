/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* half_open.c - bounds half-open connections (half_open.h) by a fraction of RLIMIT_NOFILE, by the
 * source address, and by a reserve of descriptors. A new connection is always let in: the oldest
 * silent one of the same source, or of all, makes room. So peers that send their Request at once
 * get in, whatever the others do. */
#include "dapl/soft/cm/half_open.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/trace.h"
#include "dapl/core/base/cause.h"
#include "dapl/soft/cm/conn.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/tunables.h"
#include <poll.h>
#include <sys/resource.h>

static unsigned total;		/* atomic: of all devices of the process */

void soft_half_open_add(struct dapl_conn *conn)
{
	assert_held(&conn->dev->progress_lock);
	TAILQ_INSERT_TAIL(&conn->dev->half_open.list, conn, cm->half_open_link);
	conn->dev->half_open.count++;
	__atomic_add_fetch(&total, 1, __ATOMIC_RELAXED);
}

void soft_half_open_remove(struct dapl_conn *conn)
{
	assert_held(&conn->dev->progress_lock);
	TAILQ_REMOVE(&conn->dev->half_open.list, conn, cm->half_open_link);
	conn->dev->half_open.count--;
	if (!conn->dev->dead)
		__atomic_sub_fetch(&total, 1, __ATOMIC_RELAXED);
}

void soft_half_open_fork_child(void)
{
	__atomic_store_n(&total, 0, __ATOMIC_RELAXED);
}

/* Returns true if both come from the same host. An IPv6 host has a whole /64. */
static bool same_source(const struct dapl_conn *a, const struct dapl_conn *b)
{
	const struct sockaddr_in *a4 = (const struct sockaddr_in *)&a->remote;
	const struct sockaddr_in *b4 = (const struct sockaddr_in *)&b->remote;
	const struct sockaddr_in6 *a6 = (const struct sockaddr_in6 *)&a->remote;
	const struct sockaddr_in6 *b6 = (const struct sockaddr_in6 *)&b->remote;

	if (a->remote.ss_family != b->remote.ss_family)
		return false;
	return a->remote.ss_family == AF_INET6 ? !memcmp(&a6->sin6_addr, &b6->sin6_addr, 8)
					       : a4->sin_addr.s_addr == b4->sin_addr.s_addr;
}

/* Returns true if there is input, which may be its Request. */
static bool has_input(const struct dapl_conn *conn)
{
	struct pollfd on = { .fd = conn->fd, .events = POLLIN };

	return poll(&on, 1, 0) > 0 && (on.revents & POLLIN);
}

/* The oldest silent connection but `spared`; with `source` set, of that source. */
static struct dapl_conn *oldest(struct dapl_device *dev, const struct dapl_conn *spared,
				const struct dapl_conn *source)
{
	struct dapl_conn *conn, *first = NULL;
	int looks = 0;

	TAILQ_FOREACH(conn, &dev->half_open.list, cm->half_open_link) {
		if (conn == spared || (source && !same_source(conn, source)))
			continue;
		if (!has_input(conn))
			return conn;
		first = first ? first : conn;
		if (++looks == HALF_OPEN_LOOKS_MAX)
			break;
	}
	return first;
}

static unsigned count_source(const struct dapl_conn *newest)
{
	const struct dapl_conn *conn;
	unsigned count = 0;

	TAILQ_FOREACH(conn, &newest->dev->half_open.list, cm->half_open_link)
		count += same_source(conn, newest);
	return count;
}

static unsigned descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur > 1 << 20)
		return 1 << 20;
	return limit.rlim_cur;
}

/* The kernel gives the lowest free number: if this one is in the reserve, all below it are in
 * use. */
static bool is_in_reserve(int fd, unsigned limit)
{
	unsigned reserve = limit / HALF_OPEN_RESERVE;

	if (reserve < HALF_OPEN_RESERVE_MIN)
		reserve = HALF_OPEN_RESERVE_MIN;
	return (unsigned)fd + reserve >= limit;
}

struct dapl_conn *soft_half_open_surplus(struct dapl_conn *newest)
{
	unsigned limit, share, source;

	if (newest->dev->half_open.count == 1)
		return NULL;
	limit = descriptors();
	share = limit / HALF_OPEN_FRACTION;
	if (share > HALF_OPEN_MAX)
		share = HALF_OPEN_MAX;
	source = share / HALF_OPEN_SOURCES;
	if (newest->dev->half_open.count > source && count_source(newest) > source)
		return oldest(newest->dev, newest, newest);
	if (__atomic_load_n(&total, __ATOMIC_RELAXED) > share || is_in_reserve(newest->fd, limit))
		return oldest(newest->dev, newest, NULL);
	return NULL;
}

struct dapl_conn *soft_half_open_oldest(struct dapl_device *dev)
{
	assert_held(&dev->progress_lock);
	return oldest(dev, NULL, NULL);
}

void soft_half_open_report(const struct dapl_conn *conn)
{
	struct dapl_device *dev = conn->dev;
	const char *ia = dev->identity.name;
	uint64_t now = clock_now_ns();
	char remote[DIAG_ADDRESS];

	soft_trace(TRC_LVL_ERROR, "conn", conn, "half-open connection closed in favour of another");
	dev->half_open.evicted++;
	if (dev->half_open.reported_ns && now - dev->half_open.reported_ns < HALF_OPEN_SILENCE_S * 1000000000ull)
		return;
	dev->half_open.reported_ns = now;
	dapl_cause_address(&conn->remote, remote);
	log_report(REPORT_HALF_OPEN, LOG_FIELDS(.ia = ia, .kind = "conn", .object = conn, .peer = remote),
		   "%s: too many connections sent no request: closed the oldest, from %s; %u closed so "
		   "far, %u are left (a port scan?)", ia, remote, dev->half_open.evicted,
		   dev->half_open.count - 1);
}
