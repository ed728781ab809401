/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* attach_server.c - the server of offers (attach_server.h). The service thread accepts connections from
 * other processes of the same user, reads one request from each, and answers it. Everything is
 * bounded: connections, the time until a request, and what is accepted in one turn. */
#include "dapl/soft/shm/attach_server.h"
#include "common/container_of.h"
#include "dapl/core/base/service.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/random.h"
#include "dapl/soft/shm/attach_message.h"
#include "dapl/soft/shm/attach_socket.h"
#include "dapl/soft/shm/offers.h"
#include "dapl/soft/shm/process.h"
#include "dapl/soft/shm/shm_ring.h"
#include "dapl/soft/shm/sealed_file.h"
#include "dapl/soft/shm/shm_segment.h"
#include "dapl/soft/tunables.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

struct server {
	struct dapl_watch watch;	/* for the abstract name */
	struct dapl_watch file_watch;	/* for the file in the runtime directory */
	bool has_file;
	struct dapl_timer pause;	/* out of descriptors: until the sockets are watched again */
	struct dapl_task task;		/* ends it */
	uint64_t name;
	unsigned users;			/* devices */
	unsigned fetch_count;
	LIST_HEAD(, fetch) fetches;
};

/* A connection to the server. */
struct fetch {
	struct server *server;
	struct dapl_watch watch;
	struct dapl_timer timer;
	struct dapl_task task;		/* frees it */
	LIST_ENTRY(fetch) link;
};

/* Guards `server` and its users. Nothing is taken under it but the locks of the service thread. */
static struct dapl_mutex server_lock = DAPL_MUTEX_INIT(RANK_SOFT_SERVER);
static struct server *server;

/* --- one request ----------------------------------------------------------------------------------- */

static void fetch_free(struct dapl_task *task)
{
	free(container_of(task, struct fetch, task));
}

/* On the service thread. */
static void fetch_end(struct fetch *fetch)
{
	dapl_timer_stop(&fetch->timer);
	dapl_watch_stop(&fetch->watch);
	close(fetch->watch.fd);
	LIST_REMOVE(fetch, link);
	fetch->server->fetch_count--;
	dapl_task_queue(&fetch->task, fetch_free);
}

static void fetch_expired(struct dapl_timer *timer)
{
	fetch_end(container_of(timer, struct fetch, timer));
}

/* The segment is made now; the acceptor takes it with the initiator's first frame. */
static void answer(int fd, const struct attach_request *request, struct shm_process *initiator)
{
	struct attach_reply reply = { { 0 }, 0 };
	struct shm_process *acceptor = offer_take(request->key, NULL, NULL);
	struct shm_segment *segment;
	int file = acceptor ? sealed_file_new(sizeof(struct ring_memory),
					    F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) : -1;

	if (file < 0) {
		if (acceptor)
			offer_refuse(request->key, request->process, errno);
		shm_process_put(acceptor);
		shm_process_put(initiator);
		return;
	}
	segment = shm_segment_new(file, initiator, acceptor);
	if (!segment) {
		offer_refuse(request->key, request->process, ENOMEM);
	} else {
		reply.process = acceptor->id;
		offer_give(request->key, segment);
		attach_send_reply(fd, &reply, file, acceptor);
		shm_segment_put(segment);
	}
	close(file);
}

static void fetch_ready(struct dapl_watch *watch)
{
	struct fetch *fetch = container_of(watch, struct fetch, watch);
	struct shm_process *initiator = NULL;
	struct attach_request request;
	int fds[ATTACH_REQUEST_FDS], got = attach_receive_request(watch->fd, &request, fds);

	if (!got)
		return;
	if (got > 0)
		initiator = shm_process_of_peer(request.process, fds);
	if (initiator)
		answer(watch->fd, &request, initiator);
	fetch_end(fetch);
}

static void fetch_begin(struct server *from, int fd)
{
	struct fetch *fetch = NULL;

	if (attach_socket_is_of_this_user(fd) && from->fetch_count < FETCHES_MAX)
		fetch = calloc(1, sizeof *fetch);
	if (!fetch || dapl_watch_start(&fetch->watch, fd, fetch_ready)) {
		free(fetch);
		close(fd);
		return;
	}
	fetch->server = from;
	from->fetch_count++;
	LIST_INSERT_HEAD(&from->fetches, fetch, link);
	dapl_timer_start(&fetch->timer, FETCH_US, fetch_expired);
}

/* --- the sockets ----------------------------------------------------------------------------------- */

static void server_ready(struct dapl_watch *watch);
static void server_file_ready(struct dapl_watch *watch);

/* Watches the sockets again, or tries again later. */
static void server_resume(struct dapl_timer *timer)
{
	struct server *from = container_of(timer, struct server, pause);
	int err = dapl_watch_start(&from->watch, from->watch.fd, server_ready);

	if (!err && from->has_file)
		err = dapl_watch_start(&from->file_watch, from->file_watch.fd, server_file_ready);
	if (!err)
		return;
	dapl_watch_stop(&from->watch);
	dapl_timer_start(&from->pause, ATTACH_PAUSE_US, server_resume);
}

/* Peers wait in the backlog meanwhile. A listener that stayed watched would keep the service thread
 * busy. */
static void server_pause(struct server *from)
{
	dapl_watch_stop(&from->watch);
	if (from->has_file)
		dapl_watch_stop(&from->file_watch);
	dapl_timer_start(&from->pause, ATTACH_PAUSE_US, server_resume);
}

/* Accepts a limited number at a time, so that other users that connect without end do not keep the
 * service thread busy. */
static void accept_fetches(struct server *from, int listener)
{
	int fd;

	for (int i = 0; i < ATTACH_ACCEPT_BATCH; i++) {
		fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0 && (is_out_of_descriptors(errno) || errno == ENOMEM || errno == ENOBUFS))
			server_pause(from);
		if (fd < 0)
			return;
		fetch_begin(from, fd);
	}
}

static void server_ready(struct dapl_watch *watch)
{
	accept_fetches(container_of(watch, struct server, watch), watch->fd);
}

static void server_file_ready(struct dapl_watch *watch)
{
	accept_fetches(container_of(watch, struct server, file_watch), watch->fd);
}

/* Without the file, the abstract name remains. */
static void server_add_file(struct server *new)
{
	int fd = attach_socket_listen(new->name, true);

	if (fd < 0)
		return;
	new->has_file = !dapl_watch_start(&new->file_watch, fd, server_file_ready);
	if (new->has_file)
		return;
	attach_socket_remove(new->name);
	close(fd);
}

static void server_remove_file(struct server *old)
{
	if (!old->has_file)
		return;
	dapl_watch_stop(&old->file_watch);
	close(old->file_watch.fd);
	attach_socket_remove(old->name);
}

/* On the service thread. */
static void server_end(struct dapl_task *task)
{
	struct server *old = container_of(task, struct server, task);
	struct fetch *fetch;

	dapl_timer_stop(&old->pause);
	server_remove_file(old);
	dapl_watch_stop(&old->watch);
	close(old->watch.fd);
	while ((fetch = LIST_FIRST(&old->fetches)))
		fetch_end(fetch);
	free(old);
}

static struct server *server_new(void)
{
	struct server *new = calloc(1, sizeof *new);
	int fd, err;

	if (!new)
		return NULL;
	new->name = soft_random_64() | 1;
	fd = attach_socket_listen(new->name, false);
	err = fd < 0 ? errno : dapl_watch_start(&new->watch, fd, server_ready);
	if (!err) {
		server_add_file(new);
		return new;
	}
	if (fd >= 0)
		close(fd);
	free(new);
	errno = err;
	return NULL;
}

/* --- its users ------------------------------------------------------------------------------------- */

bool attach_server_use(struct dapl_device *dev, uint64_t *name)
{
	assert_held(&dev->progress_lock);
	dapl_mutex_lock(&server_lock);
	if (!server)
		server = server_new();
	if (server && !dev->shm.uses_server) {
		server->users++;
		dev->shm.uses_server = true;
	}
	*name = server ? server->name : 0;
	dapl_mutex_unlock(&server_lock);
	return *name;
}

/* The service thread runs the queued task before it ends. */
void attach_server_leave(struct dapl_device *dev)
{
	dapl_mutex_lock(&server_lock);
	if (dev->shm.uses_server && !--server->users) {
		dapl_task_queue(&server->task, server_end);
		server = NULL;
	}
	dev->shm.uses_server = false;
	dapl_mutex_unlock(&server_lock);
}

uint64_t attach_server_name(void)
{
	uint64_t name;

	dapl_mutex_lock(&server_lock);
	name = server ? server->name : 0;
	dapl_mutex_unlock(&server_lock);
	return name;
}

void attach_server_fork_prepare(void)
{
	dapl_mutex_lock(&server_lock);
}

void attach_server_fork_done(void)
{
	dapl_mutex_unlock(&server_lock);
}

void attach_server_fork_child(void)
{
	if (server)
		close(server->watch.fd);
	if (server && server->has_file)
		close(server->file_watch.fd);
	server = NULL;
}
