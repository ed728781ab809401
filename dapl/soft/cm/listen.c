/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* listen.c - listening sockets and their accept queue. The Request of an accepted connection is
 * read by acceptor.c; half_open.c bounds how many connections wait for theirs. */
#include "dapl/soft/cm/listen.h"
#include "common/address.h"
#include "common/container_of.h"
#include "common/trace.h"
#include "dapl/core/base/service.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/progress/progress.h"
#include "dapl/soft/cm/acceptor.h"
#include "dapl/soft/cm/conn.h"
#include "dapl/soft/cm/conn_state.h"
#include "dapl/soft/cm/half_open.h"
#include "dapl/soft/cm/liveness.h"
#include "dapl/soft/cm/socket.h"
#include "dapl/soft/tunables.h"
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

int listen_watch(struct soft_port *port)
{
	struct epoll_event event = { .events = EPOLLIN,
		.data.u64 = (uintptr_t)port | 1 };

	assert_held(&port->dev->progress_lock);
	port->paused = epoll_ctl(port->dev->cm.epoll, EPOLL_CTL_ADD, port->fd, &event) != 0;
	return port->paused ? errno : 0;
}

static void listen_unwatch(struct soft_port *port)
{
	if (!port->paused)
		epoll_ctl(port->dev->cm.epoll, EPOLL_CTL_DEL, port->fd, NULL);
	port->paused = true;
}

/* --- accepting ------------------------------------------------------------------------------- */

/* Closes a half-open connection in favour of another. */
static void evict(struct dapl_conn *conn)
{
	if (!conn)
		return;
	soft_half_open_report(conn);
	cm_conn_retire(conn);
}

/* Accepts a connection. Without a free descriptor, the oldest half-open connection is closed for
 * it. */
static int accept_fd(struct soft_port *port, struct sockaddr_storage *remote)
{
	struct dapl_conn *oldest;
	socklen_t length;
	int fd;

	do {
		length = sizeof *remote;
		fd = accept4(port->fd, (struct sockaddr *)remote, &length,
			     SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0 || !is_out_of_descriptors(errno))
			return fd;
		oldest = soft_half_open_oldest(port->dev);
		evict(oldest);
	} while (oldest);
	return -1;
}

/* Allocates memory first. A connection that is not accepted waits in the backlog. One that is
 * accepted and closed looks like a peer without MPA revision 2, so the initiator would fall back to
 * revision 1. */
static struct dapl_conn *accept_one(struct soft_port *port)
{
	struct dapl_device *dev = port->dev;
	struct dapl_conn *conn = cm_conn_new(dev);
	struct sockaddr_storage remote;
	int err;

	if (!conn) {
		errno = ENOMEM;
		return NULL;
	}
	conn->fd = accept_fd(port, &remote);
	if (conn->fd < 0) {
		err = errno;
		cm_conn_free(conn);
		errno = err;
		return NULL;
	}
	conn->passive = true;
	conn->cm->port = port;
	LIST_INSERT_HEAD(&dev->cm.conns, conn, link);
	conn->remote = remote;
	conn->local = port->local;
	cm_set_state(conn, SOFT_WAIT_REQUEST, "TCP accepted");
	soft_half_open_add(conn);
	evict(soft_half_open_surplus(conn));
	port->shortage_reported = false;
	cm_set_traffic_class(conn);
	cm_set_deadline(conn, SOFT_HANDSHAKE_S);
	return conn;
}

/* Without descriptors or memory the port is paused until the next sweep. */
static void pause_port(struct soft_port *port)
{
	struct dapl_device *dev = port->dev;
	int err = errno;

	soft_trace(TRC_LVL_ERROR, "port", port, "accept: %s", strerror(err));
	if (!port->shortage_reported)
		soft_report_shortage(dev, err, "accepting connections waits, accept4");
	port->shortage_reported = true;
	listen_unwatch(port);
	cm_sweep_within(dev, RETRY_US);
}

/* Returns true if another connection is in the backlog. This costs less than an accept4 that fails. */
static bool another_waits(const struct soft_port *port)
{
	struct pollfd on = { .fd = port->fd, .events = POLLIN };

	return port->fd >= 0 && poll(&on, 1, 0) > 0;
}

void listen_ready(struct soft_port *port)
{
	assert_held(&port->dev->progress_lock);
	for (int i = 0; port->fd >= 0 && i < CM_ACCEPT_BATCH; i++) {
		struct dapl_conn *conn = accept_one(port);

		if (!conn && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
			      errno == ENOMEM))
			pause_port(port);
		if (!conn)
			return;
		acceptor_take_request(conn);
		if (!another_waits(port))
			return;
	}
}

/* --- listen ---------------------------------------------------------------------------------- */

static bool is_any(const struct sockaddr_storage *address)
{
	if (address->ss_family == AF_INET6)
		return IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)address)->sin6_addr);
	return !((const struct sockaddr_in *)address)->sin_addr.s_addr;
}

/* Progress lock held. */
static int port_open(struct dapl_device *dev, const struct sockaddr *addr, uint16_t number,
		     int backlog, struct soft_port **out)
{
	struct sockaddr_storage local = dev->address;
	socklen_t length;
	struct soft_port *port;
	int on = 1, err;

	assert_held(&dev->progress_lock);
	if (addr)
		memcpy(&local, addr, address_length(addr));
	address_set_port((struct sockaddr *)&local, number);
	port = calloc(1, sizeof *port);
	if (!port)
		return ENOMEM;
	port->dev = dev;
	port->fd = socket(local.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (port->fd < 0)
		goto failed;
	setsockopt(port->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	cm_set_no_delay(port->fd);		/* what it accepts inherits these */
	cm_set_keepalive(port->fd, &(const struct dapl_conn_tuning){ 0 });
	length = address_length((struct sockaddr *)&local);
	if (bind(port->fd, (struct sockaddr *)&local, length) || listen(port->fd, backlog) ||
	    listen_watch(port))
		goto failed;
	getsockname(port->fd, (struct sockaddr *)&local, &length);
	port->number = address_port((struct sockaddr *)&local);
	if (!is_any(&local))
		port->local = local;
	*out = port;
	return 0;
failed:
	err = errno;
	if (port->fd >= 0)
		close(port->fd);
	free(port);
	return err;
}

/* Finds the port that a listener of the other kind has opened. Progress lock held. */
static struct soft_port *port_find(struct dapl_device *dev, uint16_t number, bool ud)
{
	struct soft_port *port;

	assert_held(&dev->progress_lock);
	LIST_FOREACH(port, &dev->cm.ports, link)
		if (number && port->number == number && !(ud ? port->ud : port->rc))
			return port;
	return NULL;
}

int listen_begin(struct dapl_device *dev, const struct sockaddr *addr, uint16_t *number,
		   bool ud, int backlog, void *sp, struct dapl_listener **listener)
{
	struct dapl_listener *new = calloc(1, sizeof *new);
	struct soft_port *port;
	bool opened;
	int err = 0;

	if (!new)
		return ENOMEM;
	new->sp = sp;
	new->ud = ud;
	soft_progress_lock(dev);
	port = addr ? NULL : port_find(dev, *number, ud);
	opened = !port;
	if (opened)
		err = port_open(dev, addr, *number, backlog < LISTEN_BACKLOG_MIN ? LISTEN_BACKLOG_MIN : backlog, &port);
	if (!err) {
		new->port = port;
		*(ud ? &port->ud : &port->rc) = new;
		*number = port->number;
	}
	if (!err && opened)
		LIST_INSERT_HEAD(&dev->cm.ports, port, link);
	soft_progress_unlock(dev);
	if (err)
		free(new);
	else
		*listener = new;
	return err;
}

static void port_free(struct dapl_task *task)
{
	free(container_of(task, struct soft_port, task));
}

/* The port has no listener any more. Progress lock held. */
static void port_close(struct soft_port *port)
{
	struct dapl_conn *conn, *next;

	assert_held(&port->dev->progress_lock);
	for (conn = LIST_FIRST(&port->dev->cm.conns); conn; conn = next) {
		next = LIST_NEXT(conn, link);
		if (conn->state == SOFT_WAIT_REQUEST && conn->cm->port == port)
			cm_conn_retire(conn);
	}
	LIST_REMOVE(port, link);
	listen_unwatch(port);
	close(port->fd);
	port->fd = -1;
	dapl_task_queue(&port->task, port_free);
}

void listen_end(struct dapl_listener *listener)
{
	struct soft_port *port = listener->port;
	struct dapl_device *dev = port->dev;

	soft_progress_lock(dev);
	*(listener->ud ? &port->ud : &port->rc) = NULL;
	if (!port->ud && !port->rc)
		port_close(port);
	soft_progress_unlock(dev);
	dapl_service_flush();	/* waits for an upcall that runs */
	free(listener);
}
