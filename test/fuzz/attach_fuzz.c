/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* attach_fuzz.c - any bytes, and descriptors of any kind, as what another process says on the
 * Unix socket by which memory comes to be shared: to our server, or as a server's answer to
 * us. Nothing crashes or hangs, memory is shared with a process that says it right and with no
 * other, once for each key, what is shared can be touched to its end, and no descriptor stays open.
 * The token's way here, in the Reply's trailer, is mpa_fuzz.c's matter.
 *
 * An input is a byte that says which side the peer is, and messages: a byte each of how it
 * is made and of how many descriptors, those (an index each into `files`), a byte of length
 * and so many bytes. */
#include "dapl/soft/shm/mr_dir.h"
#include "dapl/soft/shm/pending.h"
#include "dapl/soft/shm/process.h"
#include "dapl/soft/shm/shm_segment.h"
#include "dapl/soft/shm/shm_ring.h"
#include "dapl/soft/obj/random.h"
#include "test/fuzz/soft_side.h"
#include "dapl/soft/shm/attach.h"
#include "dapl/soft/progress/progress.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define OK(call) side_demand(!(call), #call)

enum { FILES = 20, MOST_FDS = 12, MOST_BYTES = 64, WAIT_MS = 60000, LIMIT_FD = 256 };
enum { BELL = 0, COUNTER = 1, STATION = 2, STATION_READ = 3, SEGMENT = 4, CALLS = 16 };	/* of files[] */

/* How a message is made: a right one, then spoiled by what follows in it. */
enum { RIGHT_GREETING = 1, RIGHT_KEY = 2, OUR_STATION = 4, OTHER_LENGTH = 8 };

struct request {
	char greeting[8];
	uint64_t key, process;
};

struct reply {
	char greeting[8];
	uint64_t process;
};

static int files[FILES];
static uint64_t our_name;		/* of the socket that we listen on as a peer */
static int listener;

/* --- what a peer has ------------------------------------------------------------------- */

static int memory(size_t size, int seals)
{
	int fd = memfd_create("attach", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	side_demand(fd >= 0 && !ftruncate(fd, size) && !fcntl(fd, F_ADD_SEALS, seals), "memfd");
	return fd;
}

static void make_files(void)
{
	int sealed = F_SEAL_SHRINK | F_SEAL_GROW, pipes[2];
	size_t size = sizeof(struct ring_memory);

	OK(pipe2(pipes, O_NONBLOCK | O_CLOEXEC));
	files[BELL] = eventfd(0, EFD_NONBLOCK);
	files[COUNTER] = eventfd(3, EFD_NONBLOCK | EFD_SEMAPHORE);
	files[STATION] = memory(sizeof(struct shm_mr_dir), sealed);
	files[STATION_READ] = memory(sizeof(struct shm_mr_dir), sealed | F_SEAL_WRITE);
	files[SEGMENT] = memory(size, sealed);
	files[5] = eventfd(0, 0);
	files[6] = pipes[0];
	files[7] = pipes[1];
	files[8] = open("/dev/zero", O_RDWR | O_NONBLOCK);
	files[9] = memory(sizeof(struct shm_mr_dir), F_SEAL_GROW);
	files[10] = memory(100, sealed);
	files[11] = memory(size, F_SEAL_SHRINK);
	files[12] = memory(size - 4096, sealed);
	files[13] = memory(size, sealed | F_SEAL_WRITE);
	files[14] = epoll_create1(0);
	files[15] = open("/", O_RDONLY | O_DIRECTORY);
	files[CALLS] = memory(sizeof(struct shm_pending), sealed);
	files[17] = memory(sizeof(struct shm_pending), F_SEAL_SHRINK);
	files[18] = memory(sizeof(struct shm_pending), sealed | F_SEAL_WRITE);
	files[19] = memory(2 * sizeof(struct shm_pending), sealed);
	for (int i = 0; i < FILES; i++)
		side_demand(files[i] >= 0, "a file");
}

static socklen_t address_of(struct sockaddr_un *a, uint64_t name)
{
	memset(a, 0, sizeof *a);
	a->sun_family = AF_UNIX;
	return offsetof(struct sockaddr_un, sun_path) + 1 +
	       snprintf(a->sun_path + 1, sizeof a->sun_path - 1, "dapl-soft-%016llx",
			(unsigned long long)name);
}

/* --- what it says ------------------------------------------------------------------------ */

struct message {
	uint8_t how, fds, file[MOST_FDS];
	uint8_t bytes[MOST_BYTES];
	size_t length;
};

/* Takes the next message of the input. False: there is none. */
static bool take(const uint8_t **p, size_t *left, struct message *m)
{
	size_t n;

	if (*left < 3)
		return false;
	m->how = (*p)[0];
	m->fds = (*p)[1] % (MOST_FDS + 1);
	if (*left < 3u + m->fds)
		return false;
	for (int i = 0; i < m->fds; i++)
		m->file[i] = (*p)[2 + i] % FILES;
	*p += 2 + m->fds;
	*left -= 2 + m->fds;
	n = **p % MOST_BYTES;
	++*p, --*left;
	m->length = n < *left ? n : *left;
	memcpy(m->bytes, *p, m->length);
	*p += m->length;
	*left -= m->length;
	return true;
}

/* The bytes, with what should be right in them put right. */
static void put_right(struct message *m, size_t length, uint64_t key)
{
	uint64_t id = stream_device.dev->shm.process->id;
	size_t process = length - sizeof id;

	if (!(m->how & OTHER_LENGTH)) {
		if (m->length < length)
			memset(m->bytes + m->length, 0x77, length - m->length);
		m->length = length;
	}
	if (m->how & RIGHT_GREETING && m->length >= 8)
		memcpy(m->bytes, "daplshm5", 8);
	if (m->how & RIGHT_KEY && key && m->length >= 16)
		memcpy(m->bytes + 8, &key, 8);
	if (m->how & OUR_STATION && m->length >= process + 8)
		memcpy(m->bytes + process, &id, 8);
}

static void say(int fd, const struct message *m)
{
	char control[CMSG_SPACE(MOST_FDS * sizeof(int))] __attribute__((aligned(8))) = { 0 };
	struct iovec iov = { (void *)m->bytes, m->length };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c;

	if (m->fds) {
		msg.msg_control = control;
		msg.msg_controllen = CMSG_SPACE(m->fds * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(m->fds * sizeof(int));
		for (int i = 0; i < m->fds; i++)
			memcpy(CMSG_DATA(c) + i * sizeof(int), &files[m->file[i]], sizeof(int));
	}
	side_demand(sendmsg(fd, &msg, MSG_NOSIGNAL) == (ssize_t)m->length, "sendmsg");
}

/* What came, with how many descriptors, which are closed. -1: nothing, and the end. */
static ssize_t hear(int fd, void *data, size_t size, int *fds)
{
	char control[CMSG_SPACE(8 * sizeof(int))] __attribute__((aligned(8)));
	struct iovec iov = { data, size };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
			      .msg_controllen = sizeof control };
	struct pollfd p = { .fd = fd, .events = POLLIN };
	ssize_t n;

	/* libFuzzer's alarm clock may ring meanwhile */
	side_demand(TEMP_FAILURE_RETRY(poll(&p, 1, WAIT_MS)) == 1, "nothing is heard");
	n = recvmsg(fd, &msg, 0);
	*fds = 0;
	for (struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL; c; c = CMSG_NXTHDR(&msg, c))
		for (size_t at = 0; at + sizeof(int) <= c->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
			int each;

			memcpy(&each, CMSG_DATA(c) + at, sizeof each);
			OK(close(each));
			++*fds;
		}
	return n > 0 ? n : -1;
}

/* --- what it should get -------------------------------------------------------------------- */

enum verdict { REFUSED, SHARED, PERHAPS };

/* Its descriptors begin with `first`. */
static enum verdict judge_station(const struct message *m, size_t at, unsigned first)
{
	unsigned wake_fd = m->file[first], file = m->file[first + 1], pending = m->file[first + 2];
	uint64_t id;

	memcpy(&id, m->bytes + at, 8);
	if (id == stream_device.dev->shm.process->id)
		return SHARED;		/* it is known, and the descriptors are of no use */
	if ((wake_fd != BELL && wake_fd != COUNTER) || pending != CALLS)
		return REFUSED;
	if (file == STATION_READ)	/* it depends on the kernel whether that can be mapped */
		return PERHAPS;
	return file == STATION ? SHARED : REFUSED;
}

static bool well_formed(const struct message *m, size_t length, unsigned fds)
{
	return m->length == length && m->fds == fds && !memcmp(m->bytes, "daplshm5", 8);
}

static void check_verdict(enum verdict verdict, bool shared)
{
	side_demand(verdict != SHARED || shared, "a correct request got nothing");
	side_demand(verdict != REFUSED || !shared, "memory is shared with another process");
}

/* All of it is there. */
static void touch(struct shm_segment *segment)
{
	volatile uint8_t *p = (volatile uint8_t *)segment->memory;

	for (size_t at = 0; at < sizeof *segment->memory; at += 4096)
		p[at] = p[at] + 1;
	for (int i = 0; i < 2; i++) {
		(void)__atomic_load_n(segment->process[i]->sleep_count, __ATOMIC_RELAXED);
		pending_mark(segment->process[i]->pending, PENDING_MAX);
		shm_notify_self(segment->process[i]);
	}
	shm_segment_put(segment);
}

/* --- the peer connects to our server --------------------------------------------------------- */

static bool ask_server(uint64_t name, const struct message *m)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), fds;
	struct sockaddr_un address;
	struct reply reply;
	bool answered;
	int refused;

	side_demand(fd >= 0, "socket");
	while ((refused = connect(fd, (struct sockaddr *)&address, address_of(&address, name))) &&
	       errno == EINTR)
		;	/* by libFuzzer's alarm */
	side_demand(!refused, "connect");
	say(fd, m);
	shutdown(fd, SHUT_WR);
	answered = hear(fd, &reply, sizeof reply, &fds) > 0;
	if (answered) {
		side_demand(fds == 4 && !memcmp(reply.greeting, "daplshm5", 8), "a wrong answer");
		side_demand(hear(fd, &reply, sizeof reply, &fds) < 0, "two answers");
	}
	close(fd);
	return answered;
}

static void as_initiator(const uint8_t *p, size_t left)
{
	struct dapl_device *dev = stream_device.dev;
	struct shm_segment *segment;
	struct attach_offer *offer;
	uint64_t name, key, said;
	bool shared = false;
	struct message m;
	uint8_t token[16];

	soft_progress_lock(dev);
	offer = attach_offer_new(dev, NULL, token);
	soft_progress_unlock(dev);
	side_demand(offer, "no offer");
	memcpy(&name, token, 8);
	memcpy(&key, token + 8, 8);
	while (take(&p, &left, &m)) {
		enum verdict verdict = REFUSED;
		bool answered;

		put_right(&m, sizeof(struct request), key);
		memcpy(&said, m.bytes + 8, 8);
		if (well_formed(&m, sizeof(struct request), 3) && said == key && !shared)
			verdict = judge_station(&m, 16, 0);
		answered = ask_server(name, &m);
		check_verdict(verdict, answered);
		shared |= answered;
	}
	soft_progress_lock(dev);
	segment = attach_offer_end(offer);
	soft_progress_unlock(dev);
	side_demand(shared == (segment != NULL), "an offer that was taken leads to nothing");
	if (segment)
		touch(segment);
}

/* --- we connect to the peer -------------------------------------------------------------- */

static enum verdict judge_reply(const struct message *m)
{
	if (!well_formed(m, sizeof(struct reply), 4) || m->file[0] != SEGMENT)
		return REFUSED;
	return judge_station(m, 8, 1);
}

static void as_acceptor(const uint8_t *p, size_t left)
{
	struct dapl_device *dev = stream_device.dev;
	enum soft_attach outcome = SOFT_ATTACH_WAIT;
	struct shm_segment *segment = NULL;
	enum verdict verdict = REFUSED;
	uint64_t key = 0x1234567;
	struct dapl_conn *conn;
	struct request request;
	uint8_t token[16];
	int fd, peer, fds;
	struct message m;

	memcpy(token, &our_name, 8);
	memcpy(token + 8, &key, 8);
	soft_progress_lock(dev);
	OK(soft_attach_begin(dev, token, &fd, &segment, &conn) != SOFT_ATTACH_WAIT);
	peer = accept(listener, NULL, NULL);
	side_demand(peer >= 0, "accept");
	side_demand(hear(peer, &request, sizeof request, &fds) == sizeof request && fds == 3 &&
		    request.key == key, "a wrong request");
	side_demand(soft_attach_go_on(dev, fd, &segment) == SOFT_ATTACH_WAIT, "no answer yet");
	if (take(&p, &left, &m)) {
		put_right(&m, sizeof(struct reply), 0);
		verdict = judge_reply(&m);
		say(peer, &m);
	}
	close(peer);
	for (int i = 0; outcome == SOFT_ATTACH_WAIT; i++) {
		side_demand(i < 2, "the end of the peer is not seen");
		outcome = soft_attach_go_on(dev, fd, &segment);
	}
	soft_progress_unlock(dev);
	close(fd);
	check_verdict(verdict, outcome == SOFT_ATTACH_DONE);
	if (outcome == SOFT_ATTACH_DONE)
		touch(segment);
}

/* --- inputs ---------------------------------------------------------------------------------- */

static unsigned open_files(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < LIMIT_FD; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	side_demand(n < LIMIT_FD, "too many descriptors to count");
	return n;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct sockaddr_un address;
	struct attach_offer *offer;
	uint8_t token[16];

	(void)argc, (void)argv;
	side_open();
	stream_device.dev->want_shm = true;
	make_files();
	our_name = (uint64_t)soft_random() << 32 | soft_random();
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	OK(bind(listener, (struct sockaddr *)&address, address_of(&address, our_name)));
	OK(listen(listener, 8));
	soft_progress_lock(stream_device.dev);	/* from here on there are a station and a server */
	offer = attach_offer_new(stream_device.dev, NULL, token);
	side_demand(offer && !attach_offer_end(offer), "no offer");
	soft_progress_unlock(stream_device.dev);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned before = open_files();

	if (!size)
		return 0;
	if (data[0] & 1)
		as_acceptor(data + 1, size - 1);
	else
		as_initiator(data + 1, size - 1);
	dapl_service_flush();
	side_demand(open_files() == before, "a descriptor is left open, or closed too many");
	return 0;
}
