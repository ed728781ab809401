/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* input.h - a descriptor in data_epoll, the epoll set through which the progress owner finds what has come: the
 * socket of a connection, of datagrams, of a raw QP, the eventfd that peers on this host signal. */
#ifndef SOFT_INPUT_H
#define SOFT_INPUT_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

struct dapl_device;

struct soft_input {
	/* Called when the descriptor is ready, with the progress lock held. `events`: EPOLL*. `polling`: the caller
	 * is a polling thread, which comes back soon. */
	void (*serve)(struct soft_input *input, uint32_t events, bool polling);
};

/* Returns what epoll_ctl() needs to report `events` of the descriptor of `input`. */
static inline struct epoll_event soft_input_event(struct soft_input *input, uint32_t events)
{
	return (struct epoll_event){ .events = events, .data.ptr = input };
}

/* The functions from here on are called with the progress lock held. */

/* Adds to the number of inputs that polls look for. */
void soft_input_count(struct dapl_device *dev, int inputs);
/* Adds the input to those that are served when they are readable, and counts it. Returns 0 or an errno value. */
int soft_input_watch(struct dapl_device *dev, struct soft_input *input, int fd);
void soft_input_unwatch(struct dapl_device *dev, int fd);

#endif
