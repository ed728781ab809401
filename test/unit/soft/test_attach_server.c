/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_attach_server.c - a process without the token cannot attach to the memory of a connection; the server listens
 * at two names, one of them a file, and goes on without what it cannot have. */
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include "test/unit/child.h"
#include "test/unit/descriptors.h"
#include "test/unit/soft/ends.h"
#include "dapl/core/base/service.h"
#include "dapl/soft/shm/attach.h"
#include "dapl/soft/shm/attach_server.h"
#include "dapl/soft/shm/attach_socket.h"
#include "dapl/soft/shm/shm_segment.h"
#include "dapl/soft/tunables.h"
#include "test/unit/unit.h"

struct fetch_request {
	char greeting[8];
	uint64_t key, process;
};

static int connect_to_attach_socket(const uint8_t token[16])
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	uint64_t name;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	socklen_t length;

	memcpy(&name, token, 8);
	length = offsetof(struct sockaddr_un, sun_path) + 1 +
		 snprintf(a.sun_path + 1, sizeof a.sun_path - 1, "dapl-soft-%016llx",
			  (unsigned long long)name);
	OK(connect(fd, (struct sockaddr *)&a, length));
	return fd;
}

/* Sends a request, with three descriptors unless the first is negative. */
static void say(int fd, const void *data, size_t length, int wake_fd, int mr_dir, int pending)
{
	char control[CMSG_SPACE(3 * sizeof(int))] __attribute__((aligned(8))) = { 0 };
	struct iovec iov = { (void *)data, length };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c;

	if (wake_fd >= 0) {
		msg.msg_control = control;
		msg.msg_controllen = sizeof control;
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(3 * sizeof(int));
		memcpy(CMSG_DATA(c), (int[]){ wake_fd, mr_dir, pending }, 3 * sizeof(int));
	}
	assert_int_equal(sendmsg(fd, &msg, MSG_NOSIGNAL), length);
}

/* Returns the bytes of the answer, or 0 if the connection was closed without one. */
static ssize_t read_answer(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char answer[64];

	assert_int_equal(poll(&p, 1, LIMIT_S * 1000), 1);
	return recv(fd, answer, sizeof answer, 0);
}

#define CASE(name) UNIT_TEST_WITH(name, open_device, close_device)

UNIT_TEST(process_without_the_token_cannot_attach)
{
	struct fetch_request request = { "daplshm5", 0, 77 }, other;
	int wake_fd = eventfd(0, EFD_NONBLOCK), blocking = eventfd(0, 0), fd, pipes[2];
	int file = memfd_create("t", MFD_ALLOW_SEALING), small = memfd_create("t", 0);
	int pending = memfd_create("t", MFD_ALLOW_SEALING);
	struct shm_segment *segment;
	struct attach_offer *offer;
	uint8_t token[16];

	OK(pipe(pipes) | ftruncate(file, sizeof(struct shm_mr_dir)) | ftruncate(small, 100));
	OK(ftruncate(pending, sizeof(struct shm_pending)));
	OK(fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW));
	OK(fcntl(pending, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW));
	open_end(&ends[1]);
	soft_progress_lock(ends[1].dev);
	offer = attach_offer_new(ends[1].dev, NULL, token);
	soft_progress_unlock(ends[1].dev);
	assert_non_null(offer);
	memcpy(&request.key, token + 8, 8);
	for (int proto = 0; proto < 9; proto++) {
		other = request;
		fd = connect_to_attach_socket(token);
		switch (proto) {
		case 0:			/* wrong key */
			other.key ^= 1ull << 40;
			say(fd, &other, sizeof other, wake_fd, file, pending);
			break;
		case 1:			/* another version */
			other.greeting[7]++;
			say(fd, &other, sizeof other, wake_fd, file, pending);
			break;
		case 2:			/* no descriptors */
			say(fd, &other, sizeof other, -1, -1, -1);
			break;
		case 3:			/* the wake-up descriptor is no eventfd */
			say(fd, &other, sizeof other, pipes[1], file, pending);
			break;
		case 4:			/* the eventfd is blocking */
			say(fd, &other, sizeof other, blocking, file, pending);
			break;
		case 5:			/* a file that can shrink */
			say(fd, &other, sizeof other, wake_fd, small, pending);
			break;
		case 6:			/* half a request */
			say(fd, &other, 12, wake_fd, file, pending);
			break;
		case 7:			/* a pending bitmap that can shrink */
			say(fd, &other, sizeof other, wake_fd, file, small);
			break;
		case 8:			/* sends nothing, until the time limit */
			break;
		}
		assert_int_equal(read_answer(fd), 0);
		close(fd);
	}
	fd = connect_to_attach_socket(token);		/* all is right; a second use of the token is refused */
	say(fd, &request, sizeof request, wake_fd, file, pending);
	assert_true(read_answer(fd) > 0);
	close(fd);
	fd = connect_to_attach_socket(token);
	say(fd, &request, sizeof request, wake_fd, file, pending);
	assert_int_equal(read_answer(fd), 0);
	close(fd);
	segment = attach_offer_end(offer);
	assert_non_null(segment);
	shm_segment_put(segment);
	close_end(&ends[1]);
	close(wake_fd);
	close(blocking);
	close(file);
	close(pending);
	close(small);
	close(pipes[0]);
	close(pipes[1]);
}

/* --- what the server cannot have -------------------------------------------------------------- */

static struct dapl_device *dev;
static char directory[32];	/* of the file */
static int calloc_left = -1;	/* callocs that succeed until there is no memory; -1: all. Atomic */
static bool no_listener;	/* sockets cannot listen */
static unsigned watch_fails;	/* bit i: the watch of a listener that is started next but i fails. Atomic */
static unsigned watches;	/* of listeners that were to be started. Atomic */
static bool no_fetch_watch;	/* there is no watch for a connection. Atomic */
static unsigned accept_fails;	/* so many next calls find no descriptor. Atomic */
static bool no_expiry;		/* connections wait for a request for ever. Atomic */

enum { REFUSED = ENOSPC };	/* error of a watch */

EXTEND(calloc)

void *__wrap_calloc(size_t n, size_t size)
{
	int left = __atomic_load_n(&calloc_left, __ATOMIC_RELAXED);

	if (left < 0)
		return __real_calloc(n, size);
	__atomic_store_n(&calloc_left, left - 1, __ATOMIC_RELAXED);
	errno = ENOMEM;
	return left ? __real_calloc(n, size) : NULL;
}

EXTEND(attach_socket_listen)
int __wrap_attach_socket_listen(uint64_t name, bool file)
{
	errno = ENOBUFS;
	return no_listener ? -1 : __real_attach_socket_listen(name, file);
}

static bool listens(int fd)
{
	int domain = 0, listening = 0;
	socklen_t size = sizeof domain;

	getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size);
	getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size);
	return domain == AF_UNIX && listening;
}

EXTEND(dapl_watch_start)
int __wrap_dapl_watch_start(struct dapl_watch *watch, int fd, void (*ready)(struct dapl_watch *))
{
	unsigned fails;

	if (!listens(fd))
		return __atomic_load_n(&no_fetch_watch, __ATOMIC_ACQUIRE) ? REFUSED
									  : __real_dapl_watch_start(watch, fd, ready);
	fails = __atomic_load_n(&watch_fails, __ATOMIC_ACQUIRE);
	__atomic_store_n(&watch_fails, fails >> 1, __ATOMIC_RELEASE);
	__atomic_add_fetch(&watches, 1, __ATOMIC_RELEASE);
	if (!(fails & 1))
		return __real_dapl_watch_start(watch, fd, ready);
	watch->fd = fd;		/* as it is with too many watches of the user */
	return REFUSED;
}

EXTEND(accept4)
int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags)
{
	unsigned fails = __atomic_load_n(&accept_fails, __ATOMIC_ACQUIRE);

	if (!fails)
		return __real_accept4(fd, address, length, flags);
	__atomic_store_n(&accept_fails, fails - 1, __ATOMIC_RELEASE);
	errno = EMFILE;
	return -1;
}

EXTEND(dapl_timer_start)
void __wrap_dapl_timer_start(struct dapl_timer *timer, uint64_t us, void (*fire)(struct dapl_timer *))
{
	if (us != FETCH_US || !__atomic_load_n(&no_expiry, __ATOMIC_ACQUIRE))
		__real_dapl_timer_start(timer, us, fire);
}

/* What an initiator sends beside its request. */
static int wake_fd, mr_dir, pending;

static int sealed(size_t size)
{
	int fd = memfd_create("t", MFD_ALLOW_SEALING | MFD_CLOEXEC);

	OK(ftruncate(fd, (off_t)size));
	OK(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW));
	return fd;
}

static int open_device(void **state)
{
	strcpy(directory, "/tmp/dapl-server-XXXXXX");
	if (!mkdtemp(directory))
		return -1;
	setenv("XDG_RUNTIME_DIR", directory, 1);
	wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	mr_dir = sealed(sizeof(struct shm_mr_dir));
	pending = sealed(sizeof(struct shm_pending));
	return ops->open("lo 0", &dev, &dev);
}

/* The server has removed its file. */
UNIT_FIXTURE(close_device)
{
	__atomic_store_n(&calloc_left, -1, __ATOMIC_RELEASE);
	__atomic_store_n(&watch_fails, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&accept_fails, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&no_fetch_watch, false, __ATOMIC_RELEASE);
	__atomic_store_n(&no_expiry, false, __ATOMIC_RELEASE);
	no_listener = false;
	if (dev)
		ops->close(dev);
	dev = NULL;
	close(wake_fd);
	close(mr_dir);
	close(pending);
	unsetenv("XDG_RUNTIME_DIR");
	OK(rmdir(directory));
}

static bool use(uint64_t *name)
{
	bool used;
	int err;

	soft_progress_lock(dev);
	used = attach_server_use(dev, name);
	err = errno;
	soft_progress_unlock(dev);
	errno = err;
	return used;
}

static struct attach_offer *new_offer(uint8_t token[16])
{
	struct attach_offer *offer;

	soft_progress_lock(dev);
	offer = attach_offer_new(dev, NULL, token);
	soft_progress_unlock(dev);
	assert_non_null(offer);
	return offer;
}

static void file_address(struct sockaddr_un *address, const uint8_t token[16])
{
	uint64_t name;

	memcpy(&name, token, 8);
	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(address->sun_path, sizeof address->sun_path, "%s/dapl-soft-%016llx", directory,
		 (unsigned long long)name);
}

static int connect_to_file(const uint8_t token[16])
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un address;

	file_address(&address, token);
	OK(connect(fd, (struct sockaddr *)&address, sizeof address));
	return fd;
}

static bool file_exists(const uint8_t token[16])
{
	struct sockaddr_un address;

	file_address(&address, token);
	return !access(address.sun_path, F_OK);
}

/* Sends a good request and reads the answer. A connection that is closed at once takes no request. */
static bool is_answered(int fd, const uint8_t token[16])
{
	struct fetch_request request = { "daplshm5", 0, 77 };
	struct pollfd closed = { .fd = fd, .events = POLLRDHUP };
	bool answered;

	memcpy(&request.key, token + 8, 8);
	if (poll(&closed, 1, 0) > 0 && closed.revents & POLLHUP) {
		close(fd);
		return false;
	}
	say(fd, &request, sizeof request, wake_fd, mr_dir, pending);
	answered = read_answer(fd) > 0;
	close(fd);
	return answered;
}

static void end_offer(struct attach_offer *offer) { shm_segment_put(attach_offer_end(offer)); }

/* By each of the two names. */
static void expect_served(bool file)
{
	struct attach_offer *offer;
	uint8_t token[16];

	for (int by_file = 0; by_file <= file; by_file++) {
		offer = new_offer(token);
		assert_true(is_answered(by_file ? connect_to_file(token) : connect_to_attach_socket(token), token));
		end_offer(offer);
	}
	assert_int_equal(file_exists(token), file);
}

CASE(requests_come_by_both_names)
{
	expect_served(true);
}

/* Without the file, there is the abstract name. */
CASE(file_that_cannot_be_watched_is_removed)
{
	unsigned before = open_descriptors();
	uint64_t name;

	watch_fails = 2;
	assert_true(use(&name));
	assert_int_equal(watch_fails, 0);
	assert_int_equal(open_descriptors(), before + 1);
	expect_served(false);
}

CASE(server_without_a_socket_is_none)
{
	unsigned before = open_descriptors();
	uint64_t name = 1;

	calloc_left = 0;
	assert_false(use(&name));
	assert_int_equal(errno, ENOMEM);
	assert_int_equal(name, 0);
	no_listener = true;
	assert_false(use(&name));
	assert_int_equal(errno, ENOBUFS);
	no_listener = false;
	watch_fails = 1;
	assert_false(use(&name));
	assert_int_equal(errno, REFUSED);
	assert_int_equal(attach_server_name(), 0);
	assert_int_equal(open_descriptors(), before);
	expect_served(true);		/* the next one tries again */
}

/* A failed accept, then a timer that gets no watch, one that gets the first only, and one that gets both. */
CASE(both_listeners_pause_without_descriptors)
{
	struct attach_offer *offer;
	uint8_t token[16];

	for (int by_file = 0; by_file < 2; by_file++) {
		offer = new_offer(token);
		__atomic_store_n(&watches, 0, __ATOMIC_RELEASE);
		__atomic_store_n(&watch_fails, 1 | 4, __ATOMIC_RELEASE);
		__atomic_store_n(&accept_fails, 1, __ATOMIC_RELEASE);
		assert_true(is_answered(by_file ? connect_to_file(token) : connect_to_attach_socket(token), token));
		end_offer(offer);
		while (__atomic_load_n(&watches, __ATOMIC_ACQUIRE) < 5)	/* the alarm ends it */
			usleep(200);
		assert_int_equal(watches, 5);
		expect_served(true);
	}
}

/* Without what a connection that was answered has open until the service thread has ended it. */
static unsigned descriptors_at_rest(void)
{
	dapl_service_flush();
	return open_descriptors();
}

CASE(request_without_memory_is_refused)
{
	unsigned before, refused = 0, failed = 0;
	struct attach_offer *offer;
	uint8_t token[16];
	bool answered;
	uint64_t peer;

	expect_served(true);
	before = descriptors_at_rest();
	__atomic_store_n(&no_fetch_watch, true, __ATOMIC_RELEASE);
	offer = new_offer(token);
	assert_false(is_answered(connect_to_attach_socket(token), token));
	end_offer(offer);
	__atomic_store_n(&no_fetch_watch, false, __ATOMIC_RELEASE);
	do {
		offer = new_offer(token);
		__atomic_store_n(&calloc_left, (int)failed, __ATOMIC_RELEASE);
		answered = is_answered(connect_to_attach_socket(token), token);
		failed += __atomic_load_n(&calloc_left, __ATOMIC_ACQUIRE) < 0;
		assert_int_equal(answered, __atomic_exchange_n(&calloc_left, -1, __ATOMIC_ACQ_REL) >= 0);
		if (attach_offer_error(offer, &peer)) {
			assert_int_equal(attach_offer_error(offer, &peer), ENOMEM);
			assert_int_equal(peer, 77);
			refused++;
		}
		end_offer(offer);
	} while (!answered);
	assert_int_equal(refused, 1);	/* the segment */
	assert_true(failed >= 3);	/* and the connection, and the process of the initiator */
	assert_int_equal(descriptors_at_rest(), before);
}

/* Connections that send nothing are closed with the server. */
CASE(connections_without_a_request_are_limited)
{
	unsigned before = open_descriptors();
	struct attach_offer *offer;
	int fds[FETCHES_MAX];
	bool answered = false;
	uint8_t token[16];

	__atomic_store_n(&no_expiry, true, __ATOMIC_RELEASE);
	offer = new_offer(token);
	for (int i = 0; i < FETCHES_MAX; i++)
		fds[i] = connect_to_attach_socket(token);
	assert_false(is_answered(connect_to_attach_socket(token), token));
	end_offer(offer);
	close(fds[0]);			/* makes room */
	while (!answered) {
		offer = new_offer(token);
		answered = is_answered(connect_to_attach_socket(token), token);
		end_offer(offer);
	}
	ops->close(dev);
	dev = NULL;
	for (int i = 1; i < FETCHES_MAX; i++) {
		assert_int_equal(read_answer(fds[i]), 0);
		close(fds[i]);
	}
	assert_true(open_descriptors() <= before);
}

static int in_child(void)
{
	for (int fd = 0; fd < 256; fd++)
		if (listens(fd))
			return 1;
	return attach_server_name() ? 2 : 0;
}

/* Otherwise initiators would wait for a child after the death of their peer. */
CASE(child_does_not_listen)
{
	pid_t child;

	expect_served(true);
	child = fork_child();
	if (!child)
		_exit(in_child());
	expect_success(child);
	expect_served(true);
}

UNIT_MAIN(use_shared_memory, NULL)
