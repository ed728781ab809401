/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* attach.c - how two devices on one host come to share memory: processes (struct shm_process),
 * segments, and the exchange of descriptors. ring.h says what lies in the memory; shm_conn.c and
 * progress.c read it.
 *
 * The acceptor's Reply holds a token: the name of the Unix sockets of its process
 * (attach_socket.h), and a key. An initiator of the same process finds the key in the table of
 * offers. An initiator of another process connects to the socket. When each side has seen that the
 * other has the same user, the initiator sends the descriptors of its process, and gets those of
 * the acceptor and of the segment: sealed memfds, and the wake-up eventfds. None of these has a
 * name in a file system; when the processes are gone, so is all of it. If any step fails, the data
 * stays on TCP.
 *
 * shm_lock guards the offers, the list of processes, the spare segments and the server. It is
 * innermost. */
#include "dapl/soft/shm/attach_socket.h"
#include "dapl/soft/soft.h"
#include "dapl/soft/shm/attach.h"
#include "dapl/soft/obj/shortage.h"
#include "dapl/soft/obj/random.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

enum {
	MR_DIR_SIZE = sizeof(struct shm_mr_dir), PENDING_SIZE = sizeof(struct shm_pending),
	REQUEST_FDS = 3, REPLY_FDS = 4,	/* descriptors beside a request and beside a reply */
};

static const char greeting[8] = "daplshm5";	/* also the version of the layout in ring.h */

/* The messages on the Unix socket, which descriptors accompany. */
struct fetch_request {
	char greeting[8];
	uint64_t key, process;
};

struct fetch_reply {
	char greeting[8];
	uint64_t process;
};

/* An acceptor's offer to share memory with the initiator that knows the key. */
struct attach_offer {
	uint64_t key;
	struct dapl_conn *conn;		/* the connection that made the offer */
	struct shm_process *process;
	struct shm_segment *segment;	/* made when the offer was taken */
	bool taken;
	int err;			/* errno: it was taken, and there is no segment */
	uint64_t peer;			/* the process that took it */
	LIST_ENTRY(attach_offer) link;
};

/* The socket by which offers are taken, one for all devices of the process. The service thread
 * handles its fetches. */
struct server {
	struct dapl_watch watch;	/* for the abstract name */
	struct dapl_watch file_watch;	/* for the file in the runtime directory */
	bool has_file;
	struct dapl_timer rest;		/* out of descriptors: until it listens again */
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

static pthread_mutex_t shm_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, attach_offer) offers = LIST_HEAD_INITIALIZER(offers);
static LIST_HEAD(, shm_process) processes = LIST_HEAD_INITIALIZER(processes);
static struct server *server;

/* Memory of segments within this process, cleaned. To map new memory, with its page faults and TLB
 * misses of other processors, takes longer than anything else in connecting except TCP. */
static struct ring_memory *spare[SPARES_MAX];
static unsigned spares;

static uint64_t random64(void)
{
	return (uint64_t)soft_random() << 32 | soft_random();
}

/* --- memory ---------------------------------------------------------------------------- */

static void *map(int fd, size_t size, int protection)
{
	int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
	void *p = mmap(NULL, size, protection, flags, fd, 0);

	if (p == MAP_FAILED)
		return NULL;
	madvise(p, size, MADV_DONTFORK);
	return p;
}

uint64_t soft_file_limit(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) ? 0 : limit.rlim_cur;
}

int soft_sealed_file(uint64_t size, int seals)
{
	int fd, err;

	if (size > soft_file_limit()) {
		errno = EFBIG;
		return -1;
	}
	fd = memfd_create("dapl-soft", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || (!ftruncate(fd, size) && !fcntl(fd, F_ADD_SEALS, seals)))
		return fd;
	err = errno;
	close(fd);
	errno = err;
	return -1;
}

/* True: the file cannot change its size, so touching its memory cannot fail later. */
static bool is_sealed(int fd, size_t size)
{
	int seals = fcntl(fd, F_GET_SEALS), must = F_SEAL_SHRINK | F_SEAL_GROW;
	struct stat st;

	return seals >= 0 && (seals & must) == must && !fstat(fd, &st) && S_ISREG(st.st_mode) &&
	       st.st_size == (off_t)size;
}

/* --- processes -------------------------------------------------------------------------------- */

/* shm_lock held. */
static struct shm_process *process_find(uint64_t id)
{
	struct shm_process *process;

	LIST_FOREACH(process, &processes, link)
		if (process->id == id) {
			process->refs++;
			return process;
		}
	return NULL;
}

static void close_files(struct shm_process *process)
{
	if (process->file >= 0)
		close(process->file);
	if (process->pending_file >= 0)
		close(process->pending_file);
}

static void process_free(struct shm_process *process)
{
	mr_dir_close(process);
	if (process->mr_dir)
		munmap(process->mr_dir, MR_DIR_SIZE);
	if (process->pending)
		munmap(process->pending, PENDING_SIZE);
	if (process->wake_fd >= 0)
		close(process->wake_fd);
	close_files(process);
	free(process);
}

static void process_put(struct shm_process *process)
{
	bool last;

	if (!process)
		return;
	pthread_mutex_lock(&shm_lock);
	last = !--process->refs;
	if (last)
		LIST_REMOVE(process, link);
	pthread_mutex_unlock(&shm_lock);
	if (last)
		process_free(process);
}

/* A process without descriptors and memory. */
static struct shm_process *process_blank(void)
{
	struct shm_process *process = calloc(1, sizeof *process);

	if (!process)
		return NULL;
	process->refs = 1;
	process->wake_fd = process->file = process->pending_file = process->window_file =
		process->pidfd = -1;
	return process;
}

/* Makes and maps a sealed file. *fd is its descriptor. NULL: there is no memory. */
static void *map_new(size_t size, int *fd)
{
	*fd = soft_sealed_file(size, F_SEAL_SHRINK | F_SEAL_GROW);
	return *fd >= 0 ? map(*fd, size, PROT_READ | PROT_WRITE) : NULL;
}

/* This process, for one device. Peers may read the MR directory; they could write to it only where
 * the kernel lacks the seal. */
static struct shm_process *process_new(bool direct)
{
	struct shm_process *process = process_blank();
	int err;

	if (!process)
		return NULL;
	process->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (process->wake_fd >= 0)
		process->mr_dir = map_new(MR_DIR_SIZE, &process->file);
	if (process->mr_dir)
		process->pending = map_new(PENDING_SIZE, &process->pending_file);
	if (!process->pending) {
		err = errno;
		process_free(process);
		errno = err;
		return NULL;
	}
	fcntl(process->file, F_ADD_SEALS, F_SEAL_FUTURE_WRITE);	/* Linux 5.1 */
	process->id = random64();
	process->sleep_count = &process->mr_dir->sleep_count;
	*process->sleep_count = 1;				/* no thread polls */
	if (direct)
		mr_dir_open(process);
	pthread_mutex_lock(&shm_lock);
	LIST_INSERT_HEAD(&processes, process, link);
	pthread_mutex_unlock(&shm_lock);
	return process;
}

static void close_all(const int *fds, int count)
{
	for (int i = 0; i < count; i++)
		close(fds[i]);
}

/* True: the descriptor is an eventfd that does not block. No other one is written to. */
static bool is_wake_fd(int fd)
{
	static const char kind[] = "anon_inode:[eventfd]";
	char path[64], target[64];
	ssize_t n;

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	n = readlink(path, target, sizeof target);
	return n == sizeof kind - 1 && !memcmp(target, kind, n) &&
	       (fcntl(fd, F_GETFL) & O_NONBLOCK);
}

/* Maps a file that a peer sent. NULL: it is not sealed, or there is no memory. */
static void *map_sent(int fd, size_t size, int protection)
{
	return is_sealed(fd, size) ? map(fd, size, protection) : NULL;
}

/* A peer process that was not known before. It takes over the eventfd. */
static struct shm_process *process_from_peer(uint64_t id, const int *fds)
{
	struct shm_process *process = process_blank();

	if (!process)
		return NULL;
	process->id = id;
	if (is_wake_fd(fds[0])) {
		process->mr_dir = map_sent(fds[1], MR_DIR_SIZE, PROT_READ);
		process->pending = map_sent(fds[2], PENDING_SIZE, PROT_READ | PROT_WRITE);
	}
	if (!process->mr_dir || !process->pending) {
		process_free(process);
		return NULL;
	}
	process->wake_fd = fds[0];
	process->sleep_count = &process->mr_dir->sleep_count;
	return process;
}

/* A peer process, with the descriptors of its eventfd, MR directory and pending bitmap, which this
 * function takes over. */
static struct shm_process *process_of_peer(uint64_t id, const int *fds)
{
	struct shm_process *process, *other;

	pthread_mutex_lock(&shm_lock);
	other = process_find(id);
	pthread_mutex_unlock(&shm_lock);
	process = other ? NULL : process_from_peer(id, fds);
	if (!process)
		close(fds[0]);
	close_all(fds + 1, 2);
	if (!process)
		return other;
	pthread_mutex_lock(&shm_lock);
	other = process_find(id);
	if (!other)
		LIST_INSERT_HEAD(&processes, process, link);
	pthread_mutex_unlock(&shm_lock);
	if (other)
		process_free(process);
	return other ? other : process;
}

void shm_notify_self(struct shm_process *process)
{
	uint64_t one = 1;
	ssize_t n = write(process->wake_fd, &one, sizeof one);

	(void)n;	/* fails only if the counter is at its maximum: it is signalled then */
}

/* To signal once for each time that the peer falls asleep is enough. */
void shm_notify_wake(struct shm_process *process, uint32_t sleep_count)
{
	if (__atomic_exchange_n(&process->notified, sleep_count, __ATOMIC_RELAXED) != sleep_count)
		shm_notify_self(process);
}

void shm_notify_clear(struct dapl_device *dev)
{
	uint64_t count;
	ssize_t n;

	if (!dev->process)
		return;
	n = read(dev->process->wake_fd, &count, sizeof count);
	(void)n;
}

/* The process of the device, made when it is first needed. Progress lock held. */
static struct shm_process *own_process(struct dapl_device *dev)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = &dev->process };
	struct shm_process *process = dev->process;

	if (process)
		return process;
	process = process_new(dev->want_direct);
	if (process && epoll_ctl(dev->data_epoll, EPOLL_CTL_ADD, process->wake_fd, &event)) {
		int err = errno;

		process_put(process);
		errno = err;
		process = NULL;
	}
	if (process)
		soft_mem_station(dev, process);
	return process;
}

static void process_get(struct shm_process *process)
{
	pthread_mutex_lock(&shm_lock);
	process->refs++;
	pthread_mutex_unlock(&shm_lock);
}

/* --- segments ------------------------------------------------------------------------------ */

static struct ring_memory *spare_take(void)
{
	struct ring_memory *memory = NULL;

	pthread_mutex_lock(&shm_lock);
	if (spares)
		memory = spare[--spares];
	pthread_mutex_unlock(&shm_lock);
	return memory;
}

/* False: there are enough spare segments. */
static bool spare_give(struct ring_memory *memory)
{
	bool room;

	if (ring_memory_clean(memory))
		madvise(memory->bulk, sizeof memory->bulk, MADV_DONTNEED);
	pthread_mutex_lock(&shm_lock);
	room = spares < SPARES_MAX;
	if (room)
		spare[spares++] = memory;
	pthread_mutex_unlock(&shm_lock);
	return room;
}

static void spares_drop(void)
{
	struct ring_memory *memory;

	while ((memory = spare_take()))
		munmap(memory, sizeof *memory);
}

/* fd -1: a segment within this process. Takes over the references to the processes. */
static struct shm_segment *segment_new(int fd, struct shm_process *initiator,
					struct shm_process *acceptor)
{
	struct shm_segment *segment = calloc(1, sizeof *segment);

	if (segment && fd < 0)
		segment->memory = spare_take();
	if (segment && !segment->memory)
		segment->memory = map(fd, sizeof(struct ring_memory), PROT_READ | PROT_WRITE);
	if (!segment || !segment->memory) {
		free(segment);
		process_put(initiator);
		process_put(acceptor);
		return NULL;
	}
	segment->refs = 1;
	segment->here = fd < 0;
	segment->process[0] = initiator;
	segment->process[1] = acceptor;
	return segment;
}

void shm_segment_put(struct shm_segment *segment)
{
	if (!segment || __atomic_sub_fetch(&segment->refs, 1, __ATOMIC_ACQ_REL))
		return;
	if (!segment->here || !spare_give(segment->memory))
		munmap(segment->memory, sizeof *segment->memory);
	process_put(segment->process[0]);
	process_put(segment->process[1]);
	free(segment);
}

/* --- the acceptor ---------------------------------------------------------------------------- */

/* The process that made the offer, or NULL. A key is good for one use. `dev`, if not NULL, is the
 * device of the initiator: *conn is set if that device made the offer. */
static struct shm_process *offer_take(uint64_t key, struct dapl_device *dev,
				       struct dapl_conn **conn)
{
	struct shm_process *process = NULL;
	struct attach_offer *offer;

	pthread_mutex_lock(&shm_lock);
	LIST_FOREACH(offer, &offers, link)
		if (offer->key == key && !offer->taken) {
			offer->taken = true;
			process = offer->process;
			process->refs++;
			if (dev && dev->process == process)
				*conn = offer->conn;
		}
	pthread_mutex_unlock(&shm_lock);
	return process;
}

/* Gives the segment to the offer, if that still exists. */
static void offer_give(uint64_t key, struct shm_segment *segment)
{
	struct attach_offer *offer;

	pthread_mutex_lock(&shm_lock);
	LIST_FOREACH(offer, &offers, link)
		if (offer->key == key) {
			__atomic_add_fetch(&segment->refs, 1, __ATOMIC_RELAXED);
			offer->segment = segment;
		}
	pthread_mutex_unlock(&shm_lock);
}

/* Process `peer` took the offer and cannot have a segment. */
static void offer_refuse(uint64_t key, uint64_t peer, int err)
{
	struct attach_offer *offer;

	pthread_mutex_lock(&shm_lock);
	LIST_FOREACH(offer, &offers, link)
		if (offer->key == key) {
			offer->peer = peer;
			offer->err = err;
		}
	pthread_mutex_unlock(&shm_lock);
}

int attach_offer_error(const struct attach_offer *offer, uint64_t *peer)
{
	int err;

	if (!offer)
		return 0;
	pthread_mutex_lock(&shm_lock);
	*peer = offer->peer;
	err = offer->err;
	pthread_mutex_unlock(&shm_lock);
	return err;
}

static bool same_user(int fd)
{
	struct ucred peer;
	socklen_t length = sizeof peer;

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) && peer.uid == geteuid();
}

static bool send_with(int fd, const void *data, size_t length, const int *fds, int count)
{
	char control[CMSG_SPACE(REPLY_FDS * sizeof(int))] __attribute__((aligned(8))) = { 0 };
	struct iovec iov = { (void *)data, length };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
		.msg_controllen = CMSG_SPACE(count * sizeof(int)),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(c), fds, count * sizeof(int));
	return sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)length;
}

/* 1: a message of exactly that length with exactly that many descriptors; 0: nothing yet; -1:
 * anything else. */
static int receive_with(int fd, void *data, size_t length, int *fds, int count)
{
	char control[CMSG_SPACE(8 * sizeof(int))] __attribute__((aligned(8)));
	struct iovec iov = { data, length };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
		.msg_controllen = sizeof control,
	};
	ssize_t n = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	int got = 0;

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		size_t here = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < here; i++) {
			int each;

			memcpy(&each, CMSG_DATA(c) + i * sizeof each, sizeof each);
			if (got < count)
				fds[got] = each;
			else
				close(each);
			got++;
		}
	}
	if ((size_t)n == length && got == count && !(msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return 1;
	close_all(fds, got < count ? got : count);
	errno = !n ? ENODATA : msg.msg_flags & MSG_CTRUNC ? EMFILE : EPROTO;
	return -1;
}

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
static void answer(int fd, const struct fetch_request *request, struct shm_process *initiator)
{
	struct fetch_reply reply = { { 0 }, 0 };
	struct shm_process *acceptor = offer_take(request->key, NULL, NULL);
	struct shm_segment *segment;
	int file = acceptor ? soft_sealed_file(sizeof(struct ring_memory),
					    F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) : -1;

	if (file < 0) {
		if (acceptor)
			offer_refuse(request->key, request->process, errno);
		process_put(acceptor);
		process_put(initiator);
		return;
	}
	segment = segment_new(file, initiator, acceptor);
	if (!segment)
		offer_refuse(request->key, request->process, ENOMEM);
	if (segment) {
		memcpy(reply.greeting, greeting, sizeof reply.greeting);
		reply.process = acceptor->id;
		offer_give(request->key, segment);
		send_with(fd, &reply, sizeof reply,
			  (int[]){ file, acceptor->wake_fd, acceptor->file, acceptor->pending_file },
			  REPLY_FDS);
		shm_segment_put(segment);
	}
	close(file);
}

static void fetch_ready(struct dapl_watch *watch)
{
	struct fetch *fetch = container_of(watch, struct fetch, watch);
	struct shm_process *initiator = NULL;
	struct fetch_request request;
	int fds[REQUEST_FDS], got = receive_with(watch->fd, &request, sizeof request, fds, REQUEST_FDS);

	if (!got)
		return;
	if (got > 0 && memcmp(request.greeting, greeting, sizeof greeting))
		close_all(fds, REQUEST_FDS);
	else if (got > 0)
		initiator = process_of_peer(request.process, fds);
	if (initiator)
		answer(watch->fd, &request, initiator);
	fetch_end(fetch);
}

static void fetch_begin(struct server *from, int fd)
{
	struct fetch *fetch = NULL;

	if (same_user(fd) && from->fetch_count < FETCHES_MAX)
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

static void server_ready(struct dapl_watch *watch);
static void server_file_ready(struct dapl_watch *watch);

/* Tries again later if the watches cannot be had. */
static void server_go_on(struct dapl_timer *timer)
{
	struct server *from = container_of(timer, struct server, rest);
	int err = dapl_watch_start(&from->watch, from->watch.fd, server_ready);

	if (!err && from->has_file)
		err = dapl_watch_start(&from->file_watch, from->file_watch.fd, server_file_ready);
	if (!err)
		return;
	dapl_watch_stop(&from->watch);
	dapl_timer_start(&from->rest, ATTACH_REST_US, server_go_on);
}

/* The callers wait in the backlog. A listener that stays watched would keep the service thread
 * busy. */
static void server_rest(struct server *from)
{
	dapl_watch_stop(&from->watch);
	if (from->has_file)
		dapl_watch_stop(&from->file_watch);
	dapl_timer_start(&from->rest, ATTACH_REST_US, server_go_on);
}

/* Accepts a limited number at a time, so that other users that connect without end do not keep the
 * service thread busy. */
static void accept_fetches(struct server *from, int listener)
{
	int fd;

	for (int i = 0; i < ATTACH_ACCEPT_BATCH; i++) {
		fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0 && (is_out_of_descriptors(errno) || errno == ENOMEM || errno == ENOBUFS))
			server_rest(from);
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

	dapl_timer_stop(&old->rest);
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
	new->name = random64();
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

/* A device uses the server from its first offer on. Progress lock held. */
static bool server_use(struct dapl_device *dev)
{
	if (dev->uses_server)
		return true;
	pthread_mutex_lock(&shm_lock);
	if (!server)
		server = server_new();
	if (server) {
		server->users++;
		dev->uses_server = true;
	}
	pthread_mutex_unlock(&shm_lock);
	return dev->uses_server;
}

struct attach_offer *attach_offer_new(struct dapl_device *dev, struct dapl_conn *conn,
				  uint8_t token[16])
{
	struct attach_offer *offer;

	errno = 0;
	if (!dev->want_shm || !own_process(dev) || !server_use(dev))
		return NULL;
	offer = calloc(1, sizeof *offer);
	if (!offer)
		return NULL;
	offer->key = random64() | 1;
	offer->conn = conn;
	offer->process = dev->process;
	pthread_mutex_lock(&shm_lock);
	LIST_INSERT_HEAD(&offers, offer, link);
	dev->process->refs++;
	memcpy(token, &server->name, 8);
	memcpy(token + 8, &offer->key, 8);
	pthread_mutex_unlock(&shm_lock);
	return offer;
}

struct shm_segment *attach_offer_end(struct attach_offer *offer)
{
	struct shm_segment *segment;

	if (!offer)
		return NULL;
	pthread_mutex_lock(&shm_lock);
	LIST_REMOVE(offer, link);
	segment = offer->segment;
	pthread_mutex_unlock(&shm_lock);
	process_put(offer->process);
	free(offer);
	return segment;
}

/* --- the initiator ----------------------------------------------------------------------------- */

/* The acceptor is in this process: both get the same segment. */
static struct shm_segment *take_here(struct dapl_device *dev, uint64_t key,
				      struct dapl_conn **conn)
{
	struct shm_process *acceptor = offer_take(key, dev, conn);
	struct shm_segment *segment;

	if (!acceptor)
		return NULL;
	process_get(dev->process);
	segment = segment_new(-1, dev->process, acceptor);
	if (segment)
		offer_give(key, segment);
	return segment;
}

/* A connected socket with the request sent, or -1 and errno. */
static int ask(struct dapl_device *dev, uint64_t name, uint64_t key)
{
	struct fetch_request request = { .key = key, .process = dev->process->id };
	int fd = attach_socket_connect(name), err;

	if (fd < 0)
		return -1;
	memcpy(request.greeting, greeting, sizeof greeting);
	if (send_with(fd, &request, sizeof request,
		      (int[]){ dev->process->wake_fd, dev->process->file, dev->process->pending_file },
		      REQUEST_FDS))
		return fd;
	err = errno;
	close(fd);
	errno = err;
	return -1;
}

enum soft_attach soft_attach_begin(struct dapl_device *dev, const uint8_t token[16], int *fd,
				   struct shm_segment **segment, struct dapl_conn **acceptor)
{
	uint64_t name, key, here;

	*acceptor = NULL;
	memcpy(&name, token, 8);
	memcpy(&key, token + 8, 8);
	errno = 0;
	if (!key || !dev->want_shm || !own_process(dev))
		return SOFT_ATTACH_NO;
	pthread_mutex_lock(&shm_lock);
	here = server ? server->name : 0;
	pthread_mutex_unlock(&shm_lock);
	if (name && name == here) {
		*segment = take_here(dev, key, acceptor);
		errno = ENOMEM;
		return *segment ? SOFT_ATTACH_DONE : SOFT_ATTACH_NO;
	}
	*fd = ask(dev, name, key);
	if (*fd < 0 && errno == EAGAIN)
		return SOFT_ATTACH_AGAIN;
	return *fd >= 0 ? SOFT_ATTACH_WAIT : SOFT_ATTACH_NO;
}

enum soft_attach soft_attach_go_on(struct dapl_device *dev, int fd,
				   struct shm_segment **segment)
{
	struct shm_process *acceptor = NULL;
	struct fetch_reply reply;
	int fds[REPLY_FDS], got = receive_with(fd, &reply, sizeof reply, fds, REPLY_FDS);

	if (!got)
		return SOFT_ATTACH_WAIT;
	if (got < 0)
		return SOFT_ATTACH_NO;
	errno = EPROTO;
	*segment = NULL;
	if (memcmp(reply.greeting, greeting, sizeof greeting))
		close_all(fds + 1, REPLY_FDS - 1);
	else
		acceptor = process_of_peer(reply.process, fds + 1);
	if (acceptor && is_sealed(fds[0], sizeof(struct ring_memory))) {
		process_get(dev->process);
		*segment = segment_new(fds[0], dev->process, acceptor);
	} else {
		process_put(acceptor);
	}
	close(fds[0]);
	return *segment ? SOFT_ATTACH_DONE : SOFT_ATTACH_NO;
}

/* --- the device closes, the process forks ------------------------------------------------------ */

/* No connection is left. The service thread runs the queued task before it ends. */
void soft_shm_close(struct dapl_device *dev)
{
	pthread_mutex_lock(&shm_lock);
	if (dev->uses_server && !--server->users) {
		dapl_task_queue(&server->task, server_end);
		server = NULL;
	}
	dev->uses_server = false;
	pthread_mutex_unlock(&shm_lock);
	spares_drop();
	process_put(dev->process);
	dev->process = NULL;
}

void soft_shm_fork_prepare(void)
{
	pthread_mutex_lock(&shm_lock);
}

void soft_shm_fork_done(void)
{
	pthread_mutex_unlock(&shm_lock);
}

/* The child has none of the memory, and must not keep the descriptors of the parent. The references
 * to the memory are forgotten, not freed. */
void soft_shm_fork_child(void)
{
	struct shm_process *process;

	LIST_FOREACH(process, &processes, link) {
		close(process->wake_fd);
		close_files(process);
		mr_dir_close(process);
	}
	if (server)
		close(server->watch.fd);
	if (server && server->has_file)
		close(server->file_watch.fd);
	server = NULL;
	spares = 0;
	LIST_INIT(&processes);
	LIST_INIT(&offers);
	access_fork_child();
}
