/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* listen.h - listening sockets. */
#ifndef SOFT_CM_LISTEN_H
#define SOFT_CM_LISTEN_H
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include "dapl/core/base/service.h"

struct dapl_device;

/* A listening socket. RC and UD listeners of one port share it. */
struct soft_port {
	struct dapl_device *dev;
	int fd;
	uint16_t number;
	struct sockaddr_storage local;	/* of the connections it accepts; AF_UNSPEC: ask the socket */
	bool paused;			/* out of descriptors: not in the epoll set */
	bool shortage_reported;		/* since the last connection was accepted */
	struct dapl_listener *rc, *ud;
	struct dapl_task task;		/* frees it */
	LIST_ENTRY(soft_port) link;
};

struct dapl_listener {
	struct soft_port *port;
	void *sp;
	bool ud;
};

#endif
