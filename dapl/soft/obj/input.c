/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* input.c - see input.h. */
#include "dapl/soft/obj/input.h"
#include "common/lock.h"
#include "dapl/soft/obj/device.h"
#include <errno.h>

void soft_input_count(struct dapl_device *dev, int inputs)
{
	assert_held(&dev->progress_lock);
	dev->turns = 0;			/* the next poll looks at all sockets */
	__atomic_add_fetch(&dev->streams, (unsigned)inputs, __ATOMIC_RELAXED);
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
