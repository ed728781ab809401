/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fork.c - see fork.h. */
#include "dapl/soft/fork.h"
#include "common/lock.h"
#include "dapl/core/base/fork.h"
#include "dapl/soft/cm/conn.h"
#include "dapl/soft/cm/half_open.h"
#include "dapl/soft/cm/listen.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/random.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/rdmap/ud.h"
#include "dapl/soft/shm/attach.h"
#include <pthread.h>
#include <unistd.h>

static struct dapl_mutex devices_lock = DAPL_MUTEX_INIT(RANK_SOFT_DEVICES);
static LIST_HEAD(, dapl_device) devices = LIST_HEAD_INITIALIZER(devices);

static void fork_prepare(void)
{
	struct dapl_device *dev;

	dapl_mutex_lock(&devices_lock);
	LIST_FOREACH(dev, &devices, link)
		soft_progress_lock_another(dev);
	soft_shm_fork_prepare();
}

static void fork_parent(void)
{
	struct dapl_device *dev;

	soft_shm_fork_done();
	LIST_FOREACH(dev, &devices, link)
		soft_progress_unlock(dev);
	dapl_mutex_unlock(&devices_lock);
}

/* Closes the descriptors in the child, so that peers notice when the parent ends. */
static void fork_child(void)
{
	struct dapl_device *dev;
	struct dapl_conn *conn;
	struct soft_port *port;

	soft_random_fork_child();
	soft_shm_fork_child();
	soft_half_open_fork_child();
	LIST_FOREACH(dev, &devices, link) {
		dev->dead = true;
		dev->shm.process = NULL;
		dev->shm.uses_server = false;
		TAILQ_INIT(&dev->rings.list);
		dev->rings.count = 0;
		LIST_FOREACH(conn, &dev->cm.conns, link) {
			if (conn->fd >= 0)
				close(conn->fd);
			if (conn->cm->attach_fd >= 0)
				close(conn->cm->attach_fd);
			conn->fd = conn->cm->attach_fd = -1;
			conn->cm->in_cm = conn->progress.in_data = false;
			conn->shm = NULL;
			conn->cm->offer = NULL;
			conn->stream.tx.shut = true;
		}
		LIST_FOREACH(port, &dev->cm.ports, link) {
			close(port->fd);
			port->fd = -1;
		}
		soft_ud_close(dev);
	}
	fork_parent();
}

static void register_handlers(void)
{
	static struct dapl_fork_part part = { .rank = RANK_SOFT_DEVICES, .before = fork_prepare,
		.parent = fork_parent, .child = fork_child };

	dapl_fork_register(&part);
}

void soft_fork_add_device(struct dapl_device *dev)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, register_handlers);
	dapl_mutex_lock(&devices_lock);
	LIST_INSERT_HEAD(&devices, dev, link);
	dapl_mutex_unlock(&devices_lock);
}

void soft_fork_remove_device(struct dapl_device *dev)
{
	dapl_mutex_lock(&devices_lock);
	LIST_REMOVE(dev, link);
	dapl_mutex_unlock(&devices_lock);
}
