/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_attach_server.c - a process without the token cannot attach to the memory of a connection. */
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>
#include "test/unit/soft/ends.h"
#include "dapl/soft/shm/attach.h"
#include "dapl/soft/progress/progress.h"
#include "dapl/soft/shm/shm_segment.h"

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

/* Returns the bytes of the answer; 0: closed without an answer. */
static ssize_t read_answer(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char answer[64];

	assert_int_equal(poll(&p, 1, LIMIT_S * 1000), 1);
	return recv(fd, answer, sizeof answer, 0);
}

static void process_without_the_token_cannot_attach(void **state)
{
	struct fetch_request request = { "daplshm5", 0, 77 }, other;
	int wake_fd = eventfd(0, EFD_NONBLOCK), blocking = eventfd(0, 0), fd, pipes[2];
	int file = memfd_create("t", MFD_ALLOW_SEALING), small = memfd_create("t", 0);
	int pending = memfd_create("t", MFD_ALLOW_SEALING);
	struct shm_segment *segment;
	struct attach_offer *offer;
	uint8_t token[16];

	(void)state;
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

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(process_without_the_token_cannot_attach),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, use_shared_memory, NULL);
}
