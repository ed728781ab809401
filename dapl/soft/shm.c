/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* shm.c - how two devices on one host come to share memory: stations, segments, and the
 * exchange of descriptors between processes. What lies in the memory is ring.h's matter,
 * who reads it when is pair.c's and engine.c's.
 *
 * The acceptor's Reply holds a token: the abstract name of a Unix socket of its process,
 * and a key. An initiator of the same process finds the key in the table of offers. One of
 * another process connects to the socket, and when each side has seen that the other has
 * its user, sends its station and gets a station and the segment: sealed memfds, and the
 * eventfds that are the bells. Nothing of it has a name in a file system; when the
 * processes are gone, so is all of it. Whatever fails here leaves the data on TCP.
 *
 * shm_lock guards the offers, the stations' list, the spares and the server. It is innermost. */
#include "dapl/soft/soft.h"
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
#include <sys/un.h>
#include <unistd.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

enum {
	STATION_SIZE = sizeof(struct soft_board), CALLS_SIZE = sizeof(struct soft_calls),
	FETCHES_MAX = 256,		/* of other processes, that have not said what they want */
	FETCH_US = 2000000,
	BACKLOG = 4096,
	REQUEST_FDS = 3, REPLY_FDS = 4,	/* beside a request; beside a reply */
	SPARES_MAX = 64,
};

static const char greeting[8] = "daplshm5";	/* also the version of ring.h's layout */

/* What goes over the Unix socket, with the descriptors beside it. */
struct fetch_request {
	char greeting[8];
	uint64_t key, station;
};

struct fetch_reply {
	char greeting[8];
	uint64_t station;
};

/* An acceptor's readiness to share memory with who knows the key. */
struct soft_offer {
	uint64_t key;
	struct dapl_conn *conn;		/* whose it is */
	struct soft_station *station;
	struct soft_segment *segment;	/* somebody came */
	bool taken;
	LIST_ENTRY(soft_offer) link;
};

/* The socket that offers are fetched from, one for all devices of the process. Its fetches
 * are the service thread's. */
struct server {
	struct dapl_watch watch;
	struct dapl_task task;		/* ends it */
	uint64_t name;
	unsigned users;			/* devices */
	unsigned fetch_count;
	LIST_HEAD(, fetch) fetches;
};

/* A connection to it. */
struct fetch {
	struct server *server;
	struct dapl_watch watch;
	struct dapl_timer timer;
	struct dapl_task task;		/* frees it */
	LIST_ENTRY(fetch) link;
};

static pthread_mutex_t shm_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, soft_offer) offers = LIST_HEAD_INITIALIZER(offers);
static LIST_HEAD(, soft_station) stations = LIST_HEAD_INITIALIZER(stations);
static struct server *server;

/* Memory of segments within this process, as good as new: to map it anew, with the page faults
 * and the other processors' TLBs, takes longer than anything else of a connection but TCP. */
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
	int fd = size <= soft_file_limit()
		 ? memfd_create("dapl-soft", MFD_CLOEXEC | MFD_ALLOW_SEALING) : -1;

	if (fd < 0)
		return -1;
	if (!ftruncate(fd, size) && !fcntl(fd, F_ADD_SEALS, seals))
		return fd;
	close(fd);
	return -1;
}

/* Is what a peer sent such a file? Then touching its memory can't fail later. */
static bool is_sealed(int fd, size_t size)
{
	int seals = fcntl(fd, F_GET_SEALS), must = F_SEAL_SHRINK | F_SEAL_GROW;
	struct stat st;

	return seals >= 0 && (seals & must) == must && !fstat(fd, &st) && S_ISREG(st.st_mode) &&
	       st.st_size == (off_t)size;
}

/* --- stations ---------------------------------------------------------------------------- */

/* shm_lock held. */
static struct soft_station *station_find(uint64_t id)
{
	struct soft_station *station;

	LIST_FOREACH(station, &stations, link)
		if (station->id == id) {
			station->refs++;
			return station;
		}
	return NULL;
}

static void close_files(struct soft_station *station)
{
	if (station->file >= 0)
		close(station->file);
	if (station->calls_file >= 0)
		close(station->calls_file);
}

static void station_free(struct soft_station *station)
{
	soft_board_close(station);
	if (station->board)
		munmap(station->board, STATION_SIZE);
	if (station->calls)
		munmap(station->calls, CALLS_SIZE);
	if (station->bell >= 0)
		close(station->bell);
	close_files(station);
	free(station);
}

static void station_put(struct soft_station *station)
{
	bool last;

	if (!station)
		return;
	pthread_mutex_lock(&shm_lock);
	last = !--station->refs;
	if (last)
		LIST_REMOVE(station, link);
	pthread_mutex_unlock(&shm_lock);
	if (last)
		station_free(station);
}

/* One that has nothing yet. */
static struct soft_station *station_blank(void)
{
	struct soft_station *station = calloc(1, sizeof *station);

	if (!station)
		return NULL;
	station->refs = 1;
	station->bell = station->file = station->calls_file = station->gate_file =
		station->process = -1;
	return station;
}

/* The file's number becomes *fd. NULL: there is no memory. */
static void *map_new(size_t size, int *fd)
{
	*fd = soft_sealed_file(size, F_SEAL_SHRINK | F_SEAL_GROW);
	return *fd >= 0 ? map(*fd, size, PROT_READ | PROT_WRITE) : NULL;
}

/* Our own: peers may look at the board, and write to it only as long as they can't seal. */
static struct soft_station *station_new(bool direct)
{
	struct soft_station *station = station_blank();

	if (!station)
		return NULL;
	station->bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	station->board = map_new(STATION_SIZE, &station->file);
	station->calls = map_new(CALLS_SIZE, &station->calls_file);
	if (!station->board || !station->calls || station->bell < 0) {
		station_free(station);
		return NULL;
	}
	fcntl(station->file, F_ADD_SEALS, F_SEAL_FUTURE_WRITE);	/* Linux 5.1 */
	station->id = random64();
	station->sleeps = &station->board->sleeps;
	*station->sleeps = 1;				/* asleep */
	if (direct)
		soft_board_open(station);
	pthread_mutex_lock(&shm_lock);
	LIST_INSERT_HEAD(&stations, station, link);
	pthread_mutex_unlock(&shm_lock);
	return station;
}

static void close_all(const int *fds, int count)
{
	for (int i = 0; i < count; i++)
		close(fds[i]);
}

/* Only an eventfd is written to, and only one that does not block. */
static bool is_bell(int fd)
{
	static const char what[] = "anon_inode:[eventfd]";
	char path[64], target[64];
	ssize_t n;

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	n = readlink(path, target, sizeof target);
	return n == sizeof what - 1 && !memcmp(target, what, n) &&
	       (fcntl(fd, F_GETFL) & O_NONBLOCK);
}

/* Maps what a peer sent. NULL: it is not such a file, or there is no memory. */
static void *map_sent(int fd, size_t size, int protection)
{
	return is_sealed(fd, size) ? map(fd, size, protection) : NULL;
}

/* A station that is new to us. The bell becomes its own. */
static struct soft_station *station_sent(uint64_t id, const int *fds)
{
	struct soft_station *station = station_blank();

	if (!station)
		return NULL;
	station->id = id;
	if (is_bell(fds[0])) {
		station->board = map_sent(fds[1], STATION_SIZE, PROT_READ);
		station->calls = map_sent(fds[2], CALLS_SIZE, PROT_READ | PROT_WRITE);
	}
	if (!station->board || !station->calls) {
		station_free(station);
		return NULL;
	}
	station->bell = fds[0];
	station->sleeps = &station->board->sleeps;
	return station;
}

/* A peer's station, with its descriptors: bell, board, calls; ours from now on. */
static struct soft_station *station_of_peer(uint64_t id, const int *fds)
{
	struct soft_station *station, *other;

	pthread_mutex_lock(&shm_lock);
	other = station_find(id);
	pthread_mutex_unlock(&shm_lock);
	station = other ? NULL : station_sent(id, fds);
	if (!station)
		close(fds[0]);
	close_all(fds + 1, 2);
	if (!station)
		return other;
	pthread_mutex_lock(&shm_lock);
	other = station_find(id);
	if (!other)
		LIST_INSERT_HEAD(&stations, station, link);
	pthread_mutex_unlock(&shm_lock);
	if (other)
		station_free(station);
	return other ? other : station;
}

void soft_bell_again(struct soft_station *station)
{
	uint64_t one = 1;
	ssize_t n = write(station->bell, &one, sizeof one);

	(void)n;	/* fails only when it's rung already */
}

/* Once for each time that the peer goes to sleep is enough. */
void soft_bell_ring(struct soft_station *station, uint32_t sleeps)
{
	if (__atomic_exchange_n(&station->rung, sleeps, __ATOMIC_RELAXED) != sleeps)
		soft_bell_again(station);
}

void soft_bell_clear(struct dapl_device *dev)
{
	uint64_t count;
	ssize_t n;

	if (!dev->station)
		return;
	n = read(dev->station->bell, &count, sizeof count);
	(void)n;
}

/* Engine lock held. Made when it is first needed. */
static struct soft_station *own_station(struct dapl_device *dev)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = &dev->station };
	struct soft_station *station = dev->station;

	if (station)
		return station;
	station = station_new(dev->want_direct);
	if (station && epoll_ctl(dev->data_epoll, EPOLL_CTL_ADD, station->bell, &event)) {
		station_put(station);
		station = NULL;
	}
	if (station)
		soft_mem_station(dev, station);
	return station;
}

static void station_get(struct soft_station *station)
{
	pthread_mutex_lock(&shm_lock);
	station->refs++;
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

/* False: there are enough. */
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

/* fd -1: for this process alone. Takes over the references to the stations. */
static struct soft_segment *segment_new(int fd, struct soft_station *initiator,
					struct soft_station *acceptor)
{
	struct soft_segment *segment = calloc(1, sizeof *segment);

	if (segment && fd < 0)
		segment->memory = spare_take();
	if (segment && !segment->memory)
		segment->memory = map(fd, sizeof(struct ring_memory), PROT_READ | PROT_WRITE);
	if (!segment || !segment->memory) {
		free(segment);
		station_put(initiator);
		station_put(acceptor);
		return NULL;
	}
	segment->refs = 1;
	segment->here = fd < 0;
	segment->station[0] = initiator;
	segment->station[1] = acceptor;
	return segment;
}

void soft_segment_put(struct soft_segment *segment)
{
	if (!segment || __atomic_sub_fetch(&segment->refs, 1, __ATOMIC_ACQ_REL))
		return;
	if (!segment->here || !spare_give(segment->memory))
		munmap(segment->memory, sizeof *segment->memory);
	station_put(segment->station[0]);
	station_put(segment->station[1]);
	free(segment);
}

/* --- the acceptor ---------------------------------------------------------------------------- */

/* The station of who made the offer, or NULL. A key is good for once. `dev`, if not NULL, is the
 * initiator's: *conn is set if it is the acceptor's, too. */
static struct soft_station *offer_take(uint64_t key, struct dapl_device *dev,
				       struct dapl_conn **conn)
{
	struct soft_station *station = NULL;
	struct soft_offer *offer;

	pthread_mutex_lock(&shm_lock);
	LIST_FOREACH(offer, &offers, link)
		if (offer->key == key && !offer->taken) {
			offer->taken = true;
			station = offer->station;
			station->refs++;
			if (dev && dev->station == station)
				*conn = offer->conn;
		}
	pthread_mutex_unlock(&shm_lock);
	return station;
}

/* The offer may have gone meanwhile. */
static void offer_give(uint64_t key, struct soft_segment *segment)
{
	struct soft_offer *offer;

	pthread_mutex_lock(&shm_lock);
	LIST_FOREACH(offer, &offers, link)
		if (offer->key == key) {
			__atomic_add_fetch(&segment->refs, 1, __ATOMIC_RELAXED);
			offer->segment = segment;
		}
	pthread_mutex_unlock(&shm_lock);
}

static socklen_t server_address(struct sockaddr_un *address, uint64_t name)
{
	memset(address, 0, sizeof *address);
	address->sun_family = AF_UNIX;
	return offsetof(struct sockaddr_un, sun_path) + 1 +
	       snprintf(address->sun_path + 1, sizeof address->sun_path - 1,
			"dapl-soft-%016llx", (unsigned long long)name);
}

static bool same_user(int fd)
{
	struct ucred who;
	socklen_t length = sizeof who;

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &length) && who.uid == geteuid();
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

/* 1: a message of just that length with just that many descriptors; 0: nothing yet; -1. */
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
static void answer(int fd, const struct fetch_request *request, struct soft_station *initiator)
{
	struct fetch_reply reply = { { 0 }, 0 };
	struct soft_station *acceptor = offer_take(request->key, NULL, NULL);
	struct soft_segment *segment;
	int file = acceptor ? soft_sealed_file(sizeof(struct ring_memory),
					    F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) : -1;

	if (file < 0) {
		station_put(acceptor);
		station_put(initiator);
		return;
	}
	segment = segment_new(file, initiator, acceptor);
	if (segment) {
		memcpy(reply.greeting, greeting, sizeof reply.greeting);
		reply.station = acceptor->id;
		offer_give(request->key, segment);
		send_with(fd, &reply, sizeof reply,
			  (int[]){ file, acceptor->bell, acceptor->file, acceptor->calls_file },
			  REPLY_FDS);
		soft_segment_put(segment);
	}
	close(file);
}

static void fetch_ready(struct dapl_watch *watch)
{
	struct fetch *fetch = container_of(watch, struct fetch, watch);
	struct soft_station *initiator = NULL;
	struct fetch_request request;
	int fds[REQUEST_FDS], got = receive_with(watch->fd, &request, sizeof request, fds, REQUEST_FDS);

	if (!got)
		return;
	if (got > 0 && memcmp(request.greeting, greeting, sizeof greeting))
		close_all(fds, REQUEST_FDS);
	else if (got > 0)
		initiator = station_of_peer(request.station, fds);
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

static void server_ready(struct dapl_watch *watch)
{
	int fd;

	while ((fd = accept4(watch->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0)
		fetch_begin(container_of(watch, struct server, watch), fd);
}

/* On the service thread. */
static void server_end(struct dapl_task *task)
{
	struct server *old = container_of(task, struct server, task);
	struct fetch *fetch;

	dapl_watch_stop(&old->watch);
	close(old->watch.fd);
	while ((fetch = LIST_FIRST(&old->fetches)))
		fetch_end(fetch);
	free(old);
}

static struct server *server_new(void)
{
	struct server *new = calloc(1, sizeof *new);
	struct sockaddr_un address;
	socklen_t length;
	int fd;

	if (!new)
		return NULL;
	new->name = random64();
	length = server_address(&address, new->name);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd >= 0 && !bind(fd, (struct sockaddr *)&address, length) && !listen(fd, BACKLOG) &&
	    !dapl_watch_start(&new->watch, fd, server_ready))
		return new;
	if (fd >= 0)
		close(fd);
	free(new);
	return NULL;
}

/* Engine lock held. A device uses the server from its first offer on. */
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

struct soft_offer *soft_offer_new(struct dapl_device *dev, struct dapl_conn *conn,
				  uint8_t token[16])
{
	struct soft_offer *offer;

	if (!dev->want_shm || !own_station(dev) || !server_use(dev))
		return NULL;
	offer = calloc(1, sizeof *offer);
	if (!offer)
		return NULL;
	offer->key = random64() | 1;
	offer->conn = conn;
	offer->station = dev->station;
	pthread_mutex_lock(&shm_lock);
	LIST_INSERT_HEAD(&offers, offer, link);
	dev->station->refs++;
	memcpy(token, &server->name, 8);
	memcpy(token + 8, &offer->key, 8);
	pthread_mutex_unlock(&shm_lock);
	return offer;
}

struct soft_segment *soft_offer_end(struct soft_offer *offer)
{
	struct soft_segment *segment;

	if (!offer)
		return NULL;
	pthread_mutex_lock(&shm_lock);
	LIST_REMOVE(offer, link);
	segment = offer->segment;
	pthread_mutex_unlock(&shm_lock);
	station_put(offer->station);
	free(offer);
	return segment;
}

/* --- the initiator ----------------------------------------------------------------------------- */

/* The acceptor is in this process: both get the same segment. */
static struct soft_segment *take_here(struct dapl_device *dev, uint64_t key,
				      struct dapl_conn **conn)
{
	struct soft_station *acceptor = offer_take(key, dev, conn);
	struct soft_segment *segment;

	if (!acceptor)
		return NULL;
	station_get(dev->station);
	segment = segment_new(-1, dev->station, acceptor);
	if (segment)
		offer_give(key, segment);
	return segment;
}

static int ask(struct dapl_device *dev, uint64_t name, uint64_t key)
{
	struct fetch_request request = { .key = key, .station = dev->station->id };
	struct sockaddr_un address;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	memcpy(request.greeting, greeting, sizeof greeting);
	if (!connect(fd, (struct sockaddr *)&address, server_address(&address, name)) &&
	    same_user(fd) &&
	    send_with(fd, &request, sizeof request,
		      (int[]){ dev->station->bell, dev->station->file, dev->station->calls_file },
		      REQUEST_FDS))
		return fd;
	close(fd);
	return -1;
}

enum soft_attach soft_attach_begin(struct dapl_device *dev, const uint8_t token[16], int *fd,
				   struct soft_segment **segment, struct dapl_conn **acceptor)
{
	uint64_t name, key, here;

	*acceptor = NULL;
	memcpy(&name, token, 8);
	memcpy(&key, token + 8, 8);
	if (!key || !dev->want_shm || !own_station(dev))
		return SOFT_ATTACH_NO;
	pthread_mutex_lock(&shm_lock);
	here = server ? server->name : 0;
	pthread_mutex_unlock(&shm_lock);
	if (name && name == here) {
		*segment = take_here(dev, key, acceptor);
		return *segment ? SOFT_ATTACH_DONE : SOFT_ATTACH_NO;
	}
	*fd = ask(dev, name, key);
	return *fd >= 0 ? SOFT_ATTACH_WAIT : SOFT_ATTACH_NO;
}

enum soft_attach soft_attach_go_on(struct dapl_device *dev, int fd,
				   struct soft_segment **segment)
{
	struct soft_station *acceptor = NULL;
	struct fetch_reply reply;
	int fds[REPLY_FDS], got = receive_with(fd, &reply, sizeof reply, fds, REPLY_FDS);

	if (!got)
		return SOFT_ATTACH_WAIT;
	if (got < 0)
		return SOFT_ATTACH_NO;
	*segment = NULL;
	if (memcmp(reply.greeting, greeting, sizeof greeting))
		close_all(fds + 1, REPLY_FDS - 1);
	else
		acceptor = station_of_peer(reply.station, fds + 1);
	if (acceptor && is_sealed(fds[0], sizeof(struct ring_memory))) {
		station_get(dev->station);
		*segment = segment_new(fds[0], dev->station, acceptor);
	} else {
		station_put(acceptor);
	}
	close(fds[0]);
	return *segment ? SOFT_ATTACH_DONE : SOFT_ATTACH_NO;
}

/* --- the device closes, the process forks ------------------------------------------------------ */

/* No connection is left. What the service thread has to do, it does before it ends. */
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
	station_put(dev->station);
	dev->station = NULL;
}

void soft_shm_fork_prepare(void)
{
	pthread_mutex_lock(&shm_lock);
}

void soft_shm_fork_done(void)
{
	pthread_mutex_unlock(&shm_lock);
}

/* The child has none of the memory, and must not keep the descriptors of the parent. What
 * refers to the memory is forgotten, not freed. */
void soft_shm_fork_child(void)
{
	struct soft_station *station;

	LIST_FOREACH(station, &stations, link) {
		close(station->bell);
		close_files(station);
		soft_board_close(station);
	}
	if (server)
		close(server->watch.fd);
	server = NULL;
	spares = 0;
	LIST_INIT(&stations);
	LIST_INIT(&offers);
	soft_gate_fork_child();
}
