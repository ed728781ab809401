/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* wakeup.c - suppresses epoll wake-ups for the socket that a polling thread reads at every poll.
 * Without this, each message costs its sender a walk through two epoll sets (0.3 us) for nothing.
 * SO_RCVLOWAT of the socket is raised, so that the kernel wakes no thread for less than
 * SUPPRESS_LOWAT bytes. recv(2) does not look at the mark.
 *
 * There is at most one such socket, that of dev->progress.suppressed, which is also dev->progress.busy_conn: each
 * poll reads it. There is none unless polling threads are the progress owner; both change under
 * dev->progress.owner_lock. So wake-ups work again before another thread takes over from the polling
 * threads. When the mark is lowered, the kernel looks at once: data that came meanwhile makes the socket,
 * and data_epoll, ready. The end of the stream and errors do so whatever the mark. doc/design/soft-progress.md,
 * test/model/wakeup.pml. */
#include "dapl/soft/progress/wakeup.h"
#include "common/compiler.h"
#include "common/lock.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/progress/owner_state.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/tunables.h"
#include <sys/socket.h>

static bool set_mark(const struct dapl_conn *conn, int bytes)
{
	return !setsockopt(conn->fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof bytes);
}

void soft_wakeup_begin(struct dapl_device *dev)
{
	assert_held(&dev->progress_lock);
	if (__atomic_load_n(&dev->progress.suppressed, __ATOMIC_RELAXED) || !soft_owner_polls(dev))
		return;
	dev->progress.busy_run = 0;
	dapl_mutex_lock(&dev->progress.owner_lock);
	if (soft_owner_polls(dev) && set_mark(dev->progress.busy_conn, SUPPRESS_LOWAT))
		__atomic_store_n(&dev->progress.suppressed, dev->progress.busy_conn, __ATOMIC_RELAXED);
	dapl_mutex_unlock(&dev->progress.owner_lock);
}

void soft_wakeup_end_locked(struct dapl_device *dev)
{
	assert_held(&dev->progress.owner_lock);
	if (dev->progress.suppressed)
		set_mark(dev->progress.suppressed, 1);
	__atomic_store_n(&dev->progress.suppressed, NULL, __ATOMIC_RELAXED);
}

void soft_wakeup_end(struct dapl_device *dev)
{
	assert_held(&dev->progress_lock);
	if (likely(!__atomic_load_n(&dev->progress.suppressed, __ATOMIC_RELAXED)))
		return;
	dapl_mutex_lock(&dev->progress.owner_lock);
	soft_wakeup_end_locked(dev);
	dapl_mutex_unlock(&dev->progress.owner_lock);
}
