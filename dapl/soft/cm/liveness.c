/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* liveness.c - keepalive, detection of peers that no longer answer, and the deadlines of
 * connections (liveness.h). What happens to a connection whose deadline has passed is decided by
 * cm.c. */
#include "dapl/soft/cm/liveness.h"
#include "common/clock.h"
#include "dapl/core/base/service.h"
#include "dapl/core/base/settings.h"
#include "dapl/soft/cm/conn.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/tunables.h"
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

unsigned cm_patience_ms(const struct dapl_conn_tuning *tuning)
{
	int timer = dapl_tuned(tuning->ack_timeout, dapl_settings.ack_timer);
	unsigned tries = dapl_tuned(tuning->ack_retry, dapl_settings.ack_retry) + 1;
	uint64_t ms = (4096ull << (unsigned)timer % 32) * tries / 1000000;

	if (timer < 0)
		return SOFT_PATIENCE_MS;
	if (!timer || ms >= INT_MAX)
		return 0;
	return ms < SOFT_PATIENCE_LEAST_MS ? SOFT_PATIENCE_LEAST_MS : ms;
}

void cm_sweep_within(struct dapl_device *dev, uint64_t us)
{
	uint64_t due = clock_now_ns() + us * 1000;

	assert_held(&dev->progress_lock);
	if (dev->cm.sweep_ns && dev->cm.sweep_ns <= due)
		return;
	dev->cm.sweep_ns = due;
	dapl_timer_start(&dev->cm.sweep_timer, us, dev->cm.sweep_timer.fire);
}

void cm_set_deadline_ms(struct dapl_conn *conn, unsigned ms)
{
	assert_held(&conn->dev->progress_lock);
	conn->cm->deadline_ns = clock_now_ns() + ms * 1000000ull;
	cm_sweep_within(conn->dev, ms * 1000ull);
}

void cm_set_deadline(struct dapl_conn *conn, unsigned seconds)
{
	assert_held(&conn->dev->progress_lock);
	cm_set_deadline_ms(conn, seconds * 1000);
}

void cm_watch_liveness(struct dapl_conn *conn)
{
	unsigned ms = cm_patience_ms(&conn->cm->tuning);

	assert_held(&conn->dev->progress_lock);
	if (ms)
		cm_sweep_within(conn->dev, ms / PATIENCE_SWEEPS * 1000ull);
}

/* A peer that is alive but does not read, because it is stopped, answers probes. TCP by itself
 * gives up after a quarter of an hour; its own time limit (TCP_USER_TIMEOUT) would hit a stopped
 * peer, too. */
bool cm_peer_is_lost(struct dapl_conn *conn, uint64_t now)
{
	struct tcp_info info;
	socklen_t length = sizeof info;

	if (getsockopt(conn->fd, IPPROTO_TCP, TCP_INFO, &info, &length) ||
	    !(info.tcpi_retransmits || info.tcpi_probes)) {
		conn->cm->silent_ns = 0;
		return false;
	}
	if (!conn->cm->silent_ns || info.tcpi_last_ack_recv < (now - conn->cm->silent_ns) / 1000000)
		conn->cm->silent_ns = now;
	return now - conn->cm->silent_ns >= cm_patience_ms(&conn->cm->tuning) * 1000000ull;
}

bool cm_tcp_state(struct dapl_conn *conn, struct dapl_tcp_state *state)
{
	struct dapl_device *dev = conn->dev;
	struct tcp_info info = { .tcpi_rtt = 0 };
	socklen_t length = sizeof info;
	bool carried;

	soft_progress_lock(dev);
	carried = !conn->cm->ud && !conn->shm && !getsockopt(conn->fd, IPPROTO_TCP, TCP_INFO, &info, &length);
	soft_progress_unlock(dev);
	*state = (struct dapl_tcp_state){ .rtt_us = info.tcpi_rtt, .rtt_var_us = info.tcpi_rttvar,
		.cwnd = info.tcpi_snd_cwnd, .retransmits = info.tcpi_total_retrans };
	return carried;
}

void cm_set_keepalive(int fd, const struct dapl_conn_tuning *tuning)
{
	int ms = cm_patience_ms(tuning), idle = ms / 1000 / KEEPALIVE_IDLE_PART, count = KEEPALIVE_PROBES;
	int interval, on = 1, off = 0;

	idle = idle < KEEPALIVE_MAX_S ? idle : KEEPALIVE_MAX_S;
	interval = (ms / 1000 - idle) / count;
	idle = idle ? idle : 1;
	interval = interval ? interval : 1;
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, ms ? &on : &off, sizeof on);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
}
