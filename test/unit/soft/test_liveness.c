/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_liveness.c - when a peer that does not answer is lost, and when the sweep for it runs. The clock, the timer
 * and what TCP tells are the test's; test_tuning.c is about real connections. */
#include <netinet/tcp.h>
#include "dapl/core/base/settings.h"
#include "dapl/soft/cm/liveness.h"
#include "dapl/soft/cm/conn.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/tunables.h"
#include "test/unit/unit.h"

#define MS 1000000ull

static uint64_t now_ns;
static unsigned sweeps;
static uint64_t sweep_us;
static struct tcp_info info;

REPLACE(clock_gettime)
int __wrap_clock_gettime(clockid_t id, struct timespec *now)
{
	*now = (struct timespec){ (time_t)(now_ns / 1000000000), (long)(now_ns % 1000000000) };
	return 0;
}

REPLACE(dapl_timer_start)
void __wrap_dapl_timer_start(struct dapl_timer *timer, uint64_t delay_us, void (*fire)(struct dapl_timer *))
{
	sweeps++;
	sweep_us = delay_us;
}

EXTEND(getsockopt)
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *length)
{
	if (fd < 0 || level != IPPROTO_TCP || name != TCP_INFO)
		return -1;
	memcpy(value, &info, *length < sizeof info ? *length : sizeof info);
	return 0;
}

static struct dapl_device dev;
static struct soft_cm_conn cm;
static struct dapl_conn conn;

/* Each case runs with the progress lock held. */
UNIT_FIXTURE(set_up)
{
	dev = (struct dapl_device){ .cm.sweep_ns = 0 };
	cm = (struct soft_cm_conn){ .silent_ns = 0 };
	conn = (struct dapl_conn){ .dev = &dev, .cm = &cm };
	info = (struct tcp_info){ .tcpi_retransmits = 0 };
	dapl_settings.ack_timer = -1;
	dapl_settings.ack_retry = 7;
	sweeps = 0;
	now_ns = 1000000 * MS;
	dapl_mutex_init(&dev.progress_lock, RANK_SOFT_PROGRESS);
	dapl_mutex_lock(&dev.progress_lock);
}

UNIT_FIXTURE(tear_down) { dapl_mutex_unlock(&dev.progress_lock); }

/* 4.096 us * 2^timer * (retries + 1), and a second at least. */
UNIT_CASE(patience_follows_timer_and_retries)
{
	static const struct {
		int timer, retries;		/* of the connection; -1: of the environment */
		int env_timer;
		unsigned ms;
	} rows[] = {
		{ -1, -1, -1, SOFT_PATIENCE_MS }, { -1, -1, 20, 34359 }, { -1, 0, 20, 4294 }, { 22, 1, 20, 34359 },
		{ 10, 0, -1, 1000 }, { 0, 7, -1, 0 }, { -1, -1, 0, 0 }, { 31, 0, -1, 8796093 },
		{ 31, 7, -1, 70368744 },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct dapl_conn_tuning tuning = { .ack_timeout = (uint16_t)(rows[i].timer + 1),
			.ack_retry = (uint16_t)(rows[i].retries + 1) };

		dapl_settings.ack_timer = rows[i].env_timer;
		assert_int_equal(cm_patience_ms(&tuning), rows[i].ms);
	}
}

UNIT_CASE(earlier_sweep_stays)
{
	cm_sweep_within(&dev, 5000);
	assert_int_equal(sweep_us, 5000);
	cm_sweep_within(&dev, 5000);
	cm_sweep_within(&dev, 9000);
	assert_int_equal(sweeps, 1);
	cm_sweep_within(&dev, 4000);
	assert_int_equal(sweeps, 2);
	assert_int_equal(sweep_us, 4000);
}

/* Whether the peer is lost so many ms from now; its last acknowledgement came ack_ms before that. */
static bool lost_after(unsigned ms, unsigned ack_ms)
{
	now_ns += ms * MS;
	info.tcpi_last_ack_recv = ack_ms;
	return cm_peer_is_lost(&conn, now_ns);
}

UNIT_CASE(silent_peer_is_lost_when_patience_ends)
{
	info.tcpi_retransmits = 1;
	assert_false(lost_after(0, 0));
	assert_false(lost_after(SOFT_PATIENCE_MS - 1, SOFT_PATIENCE_MS));
	assert_true(lost_after(1, SOFT_PATIENCE_MS));
}

UNIT_CASE(unanswered_probes_count_as_silence)
{
	info.tcpi_probes = 1;
	assert_false(lost_after(0, 0));
	assert_true(lost_after(SOFT_PATIENCE_MS, SOFT_PATIENCE_MS));
}

UNIT_CASE(peer_that_owes_nothing_is_not_lost)
{
	info.tcpi_retransmits = 1;
	lost_after(0, 0);
	info.tcpi_retransmits = 0;
	assert_false(lost_after(SOFT_PATIENCE_MS, SOFT_PATIENCE_MS));
	info.tcpi_retransmits = 1;	/* silence begins anew */
	assert_false(lost_after(0, SOFT_PATIENCE_MS));
}

/* A stopped peer reads nothing, and its host answers probes. */
UNIT_CASE(acknowledgement_begins_anew)
{
	info.tcpi_probes = 1;
	lost_after(0, 0);
	assert_false(lost_after(SOFT_PATIENCE_MS, 10));
	assert_false(lost_after(SOFT_PATIENCE_MS - 1, SOFT_PATIENCE_MS - 1 + 10));
	assert_true(lost_after(1, SOFT_PATIENCE_MS + 10));
}

UNIT_CASE(socket_that_tells_nothing_is_not_lost)
{
	info.tcpi_retransmits = 1;
	lost_after(0, 0);
	conn.fd = -1;
	assert_false(lost_after(SOFT_PATIENCE_MS, SOFT_PATIENCE_MS));
}

static int seconds(int fd, int option)
{
	socklen_t length = sizeof(int);
	int value;

	assert_int_equal(__real_getsockopt(fd, IPPROTO_TCP, option, &value, &length), 0);
	return value;
}

/* The longest patience is more than twice the longest silence that TCP takes. */
UNIT_CASE(keepalive_notices_a_lost_peer_when_patience_ends)
{
	static const struct {
		int timer;
		int seconds, silence;
	} rows[] = { { 0, 60, 30 }, { 31 + 1, 70368, 32767 } };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_true(fd >= 0);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		cm_set_keepalive(fd, &(struct dapl_conn_tuning){ .ack_timeout = (uint16_t)rows[i].timer });
		assert_int_equal(seconds(fd, TCP_KEEPIDLE), rows[i].silence);
		assert_in_range(seconds(fd, TCP_KEEPIDLE) + seconds(fd, TCP_KEEPCNT) * seconds(fd, TCP_KEEPINTVL),
				rows[i].seconds - 2, rows[i].seconds);
	}
	close(fd);
}

UNIT_MAIN(NULL, NULL)
