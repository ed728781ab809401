/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rnic.c - what all folders do with the device: take its progress lock, count and watch its inputs, report
 * shortages. */
#include "dapl/soft/obj/rnic.h"
#include "common/log.h"
#include <errno.h>

void soft_progress_lock(struct dapl_device *dev)
{
	__atomic_add_fetch(&dev->progress_waiters, 1, __ATOMIC_RELAXED);
	dapl_mutex_lock(&dev->progress_lock);
	__atomic_sub_fetch(&dev->progress_waiters, 1, __ATOMIC_RELAXED);
}

void soft_progress_lock_another(struct dapl_device *dev)
{
	__atomic_add_fetch(&dev->progress_waiters, 1, __ATOMIC_RELAXED);
	dapl_mutex_lock_another(&dev->progress_lock);
	__atomic_sub_fetch(&dev->progress_waiters, 1, __ATOMIC_RELAXED);
}

void soft_input_count(struct dapl_device *dev, int inputs)
{
	assert_held(&dev->progress_lock);
	dev->progress.turns = 0;			/* the next poll looks at all sockets */
	__atomic_add_fetch(&dev->progress.streams, (unsigned)inputs, __ATOMIC_RELAXED);
}

/* A forked child has the epoll set of its parent. */
int soft_input_watch(struct dapl_device *dev, struct soft_input *input, int fd)
{
	struct epoll_event event = soft_input_event(input, EPOLLIN);

	assert_held(&dev->progress_lock);
	if (!dev->dead && epoll_ctl(dev->data_epoll, EPOLL_CTL_ADD, fd, &event))
		return errno;
	soft_input_count(dev, 1);
	return 0;
}

void soft_input_unwatch(struct dapl_device *dev, int fd)
{
	assert_held(&dev->progress_lock);
	if (!dev->dead)
		epoll_ctl(dev->data_epoll, EPOLL_CTL_DEL, fd, NULL);
	soft_input_count(dev, -1);
}

void soft_report_shortage(const struct dapl_device *dev, int err, const char *what)
{
	report_no_descriptors(dev->identity.name, err, what);
	if (err == ENOMEM || err == ENOBUFS)
		log_report(REPORT_NO_MEMORY, LOG_FIELDS(.ia = dev->identity.name, .err = err),
			   "%s: %s: %s", dev->identity.name, what, strerror(err));
}
