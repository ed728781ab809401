/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_attach_message.c - messages with descriptors: whole, or not at all, and without a descriptor left open. */
#include <sys/stat.h>
#include "dapl/soft/shm/attach_message.h"
#include "test/unit/descriptors.h"
#include "test/unit/unit.h"

static int pair[2], files[ATTACH_REPLY_FDS];
static struct shm_process own;
static unsigned open_before;

static int set_up(void **state)
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair))
		return -1;
	for (int i = 0; i < ATTACH_REPLY_FDS; i++)
		if ((files[i] = open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0)
			return -1;
	own = (struct shm_process){ .wake_fd = files[0], .file = files[1], .pending_file = files[2] };
	open_before = open_descriptors();
	return 0;
}

UNIT_FIXTURE(tear_down)
{
	assert_int_equal(open_descriptors(), open_before);
	for (int i = 0; i < ATTACH_REPLY_FDS; i++)
		close(files[i]);
	close(pair[0]);
	close(pair[1]);
}

static void expect_and_close(const int *fds, int count)
{
	struct stat status;

	for (int i = 0; i < count; i++) {
		assert_int_equal(fstat(fds[i], &status), 0);
		assert_true(S_ISCHR(status.st_mode));
		assert_int_equal(fcntl(fds[i], F_GETFD), FD_CLOEXEC);
		close(fds[i]);
	}
}

UNIT_CASE(request_comes_with_its_descriptors)
{
	struct attach_request sent = { .key = 5, .process = 6 }, got;
	int fds[ATTACH_REQUEST_FDS];

	assert_int_equal(attach_receive_request(pair[1], &got, fds), 0);
	assert_int_equal(attach_send_request(pair[0], &sent, &own), 0);
	assert_int_equal(attach_receive_request(pair[1], &got, fds), 1);
	assert_int_equal(got.key, 5);
	assert_int_equal(got.process, 6);
	expect_and_close(fds, ATTACH_REQUEST_FDS);
}

/* Sends bytes with so many descriptors. */
static void send_raw(const void *bytes, size_t length, int count)
{
	char control[CMSG_SPACE(8 * sizeof(int))] __attribute__((aligned(8))) = { 0 };
	struct iovec iov = { (void *)bytes, length };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (count) {
		struct cmsghdr *c = (struct cmsghdr *)(void *)control;

		msg.msg_control = control;
		msg.msg_controllen = CMSG_SPACE((size_t)count * sizeof(int));
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN((size_t)count * sizeof(int));
		for (int i = 0; i < count; i++)
			memcpy(CMSG_DATA(c) + (size_t)i * sizeof(int), &files[0], sizeof(int));
	}
	assert_int_equal(sendmsg(pair[0], &msg, 0), (int)length);
}

/* The bytes of a good request. */
static struct attach_request good_request(void)
{
	struct attach_request request = { .key = 5 }, got;
	int fds[ATTACH_REQUEST_FDS];

	assert_int_equal(attach_send_request(pair[0], &request, &own), 0);
	assert_int_equal(attach_receive_request(pair[1], &got, fds), 1);
	expect_and_close(fds, ATTACH_REQUEST_FDS);
	return got;
}

static void expect_refusal(int err)
{
	struct attach_request got;
	int fds[ATTACH_REQUEST_FDS];

	errno = 0;
	assert_int_equal(attach_receive_request(pair[1], &got, fds), -1);
	assert_int_equal(errno, err);
}

/* The teardown counts the descriptors that are open. */
UNIT_CASE(any_other_number_of_descriptors_is_refused)
{
	struct attach_request request = good_request();

	for (int count = 0; count <= 8; count++) {
		if (count == ATTACH_REQUEST_FDS)
			continue;
		send_raw(&request, sizeof request, count);
		expect_refusal(EPROTO);
	}
}

UNIT_CASE(any_other_length_is_refused)
{
	struct {
		struct attach_request request;
		char more;
	} longer = { .request = good_request() };

	send_raw(&longer, sizeof longer.request - 1, ATTACH_REQUEST_FDS);
	expect_refusal(EPROTO);
	send_raw(&longer, sizeof longer.request + 1, ATTACH_REQUEST_FDS);
	expect_refusal(EPROTO);
}

UNIT_CASE(other_versions_are_refused)
{
	struct attach_request request = good_request();

	request.greeting[7]++;
	send_raw(&request, sizeof request, ATTACH_REQUEST_FDS);
	expect_refusal(EPROTO);
}

UNIT_CASE(end_of_the_peer_is_told_apart)
{
	shutdown(pair[0], SHUT_WR);
	expect_refusal(ENODATA);
}

UNIT_MAIN(NULL, NULL)
