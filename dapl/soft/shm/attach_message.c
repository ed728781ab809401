/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* attach_message.c - messages with descriptors (attach_message.h). */
#include "dapl/soft/shm/attach_message.h"
#include "dapl/soft/shm/process.h"
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char greeting[8] = "daplshm5";	/* also the version of the layouts in shared.h */

static void close_all(const int *fds, int count)
{
	for (int i = 0; i < count; i++)
		close(fds[i]);
}

static bool send_with(int fd, const void *data, size_t length, const int *fds, int count)
{
	char control[CMSG_SPACE(ATTACH_REPLY_FDS * sizeof(int))] __attribute__((aligned(8))) = { 0 };
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

/* Returns 1 for a message of exactly that length with exactly that many descriptors, 0 if nothing has
 * come yet, or -1 and errno for anything else. */
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

int attach_send_request(int fd, struct attach_request *request, const struct shm_process *own)
{
	int fds[ATTACH_REQUEST_FDS];

	memcpy(request->greeting, greeting, sizeof greeting);
	shm_process_fds(own, fds);
	return send_with(fd, request, sizeof *request, fds, ATTACH_REQUEST_FDS) ? 0 : -1;
}

int attach_send_reply(int fd, struct attach_reply *reply, int segment_file,
		      const struct shm_process *own)
{
	int fds[ATTACH_REPLY_FDS] = { segment_file };

	memcpy(reply->greeting, greeting, sizeof greeting);
	shm_process_fds(own, fds + 1);
	return send_with(fd, reply, sizeof *reply, fds, ATTACH_REPLY_FDS) ? 0 : -1;
}

/* Returns 1 if the message that was received is of this version; else closes its descriptors and
 * returns -1 and errno. */
static int check_greeting(const char *got, const int *fds, int count)
{
	if (!memcmp(got, greeting, sizeof greeting))
		return 1;
	close_all(fds, count);
	errno = EPROTO;
	return -1;
}

int attach_receive_request(int fd, struct attach_request *request, int fds[ATTACH_REQUEST_FDS])
{
	int got = receive_with(fd, request, sizeof *request, fds, ATTACH_REQUEST_FDS);

	return got > 0 ? check_greeting(request->greeting, fds, ATTACH_REQUEST_FDS) : got;
}

int attach_receive_reply(int fd, struct attach_reply *reply, int fds[ATTACH_REPLY_FDS])
{
	int got = receive_with(fd, reply, sizeof *reply, fds, ATTACH_REPLY_FDS);

	return got > 0 ? check_greeting(reply->greeting, fds, ATTACH_REPLY_FDS) : got;
}
