/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* quiet.c - the socket that a poller reads at every poll need not wake anybody: each message would
 * cost its sender a walk through two epoll sets (0.3 us), in vain. Its low-water mark is raised, so
 * that the kernel wakes nobody for less than QUIET_BYTES; reading does not look at the mark.
 *
 * There is one such socket at most, dev->quiet, and it is dev->hot: each poll reads it. And there is
 * none unless dev->polled is set; both change under dev->handover. So it wakes again before anyone
 * takes over from the pollers. Asked to lower the mark, the kernel looks at once: data that came
 * meanwhile makes the socket, and data_epoll, ready. An end or an error does so whatever the mark.
 * doc/design/soft-progress.md, test/model/quiet.pml. */
#include "dapl/soft/soft.h"
#include <sys/socket.h>

enum { QUIET_BYTES = 256 << 10 };

static bool set_mark(const struct dapl_conn *conn, int bytes)
{
	return !setsockopt(conn->fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof bytes);
}

void soft_quiet_begin(struct dapl_device *dev)
{
	if (__atomic_load_n(&dev->quiet, __ATOMIC_RELAXED) ||
	    !__atomic_load_n(&dev->polled, __ATOMIC_RELAXED))
		return;
	dev->hot_run = 0;
	dapl_spin_lock(&dev->handover);
	if (dev->polled && set_mark(dev->hot, QUIET_BYTES))
		__atomic_store_n(&dev->quiet, dev->hot, __ATOMIC_RELAXED);
	dapl_spin_unlock(&dev->handover);
}

void soft_quiet_over(struct dapl_device *dev)
{
	if (dev->quiet)
		set_mark(dev->quiet, 1);
	__atomic_store_n(&dev->quiet, NULL, __ATOMIC_RELAXED);
}

void soft_quiet_end(struct dapl_device *dev)
{
	if (likely(!__atomic_load_n(&dev->quiet, __ATOMIC_RELAXED)))
		return;
	dapl_spin_lock(&dev->handover);
	soft_quiet_over(dev);
	dapl_spin_unlock(&dev->handover);
}
