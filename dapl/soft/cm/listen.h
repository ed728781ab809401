/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* listen.h - listening sockets and their accept queue. */
#ifndef SOFT_CM_LISTEN_H
#define SOFT_CM_LISTEN_H
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include "dapl/core/base/service.h"

struct dapl_device;
struct sockaddr;

/* A listening socket. RC and UD listeners of one port share it. */
struct soft_port {
	struct dapl_device *dev;
	int fd;
	uint16_t number;
	struct sockaddr_storage local;	/* of the connections it accepts; AF_UNSPEC: getsockname() tells */
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

int listen_begin(struct dapl_device *dev, const struct sockaddr *addr, uint16_t *port,
		   bool ud, int backlog, void *sp, struct dapl_listener **listener);
void listen_end(struct dapl_listener *listener);

/* --- progress lock held ---------------------------------------------------------------------- */

/* Adds the socket to the cm epoll set. Returns 0 or errno; the port stays paused then. */
int listen_watch(struct soft_port *port);
/* Accepts connections, and reads Requests that have arrived. Drops the lock around an upcall. */
void listen_ready(struct soft_port *port);

#endif
