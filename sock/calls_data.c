/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* calls_data.c - interposed calls that move bytes. */
#include "sock/calls.h"
#include <stdlib.h>
#include <fcntl.h>
#include <sys/sendfile.h>

enum {
	RECEIVE_FLAGS = MSG_PEEK | MSG_WAITALL | MSG_TRUNC | MSG_DONTWAIT | MSG_NOSIGNAL | MSG_CMSG_CLOEXEC |
			MSG_WAITFORONE,
	SEND_FLAGS = MSG_DONTWAIT | MSG_NOSIGNAL | MSG_MORE | MSG_EOR | MSG_CONFIRM,
	FILE_PIECE = 64 << 10, /* bytes of a file that sendfile() copies at a time */
};

/* A call that only the kernel's TCP can do, from now on. */
static void to_kernel(struct conn *c)
{
	move_back(c, DAT_SOCKET_WHY_CALL, true, BACK_FOR_EVER);
}

static bool odd_receive(struct conn *c, int flags)
{
	if (likely(!(flags & ~RECEIVE_FLAGS)))
		return false;
	if (flags & ~(RECEIVE_FLAGS | MSG_ERRQUEUE | MSG_OOB))
		to_kernel(c);
	return true;
}

static bool odd_send(struct conn *c, int flags)
{
	if (likely(!(flags & ~SEND_FLAGS)))
		return false;
	to_kernel(c);
	return true;
}

/* Calls of the kernel on a plain connection, and their account. A look (MSG_PEEK) moves nothing. */
#define PLAIN_IN(c, flags, call) \
	({ \
		ssize_t n_ = (call); \
		stream_leave_in(c, (flags)&MSG_PEEK &&n_ > 0 ? 0 : n_); \
		n_; \
	})
#define PLAIN_OUT(c, call) \
	({ \
		ssize_t n_ = (call); \
		stream_leave_out(c, n_); \
		n_; \
	})

EXPORT ssize_t read(int fd, void *buffer, size_t length)
{
	struct conn *c = conn_of(fd);
	struct iovec iov = { buffer, length };

	if (likely(!c) || !length) /* a read of nothing looks at nothing */
		return REAL(read)(fd, buffer, length);
	if (stream_enter(c, &c->kernel_in))
		return PLAIN_IN(c, 0, REAL(read)(fd, buffer, length));
	return stream_receive(c, fd, &iov, 1, 0);
}

EXPORT ssize_t recv(int fd, void *buffer, size_t length, int flags)
{
	struct conn *c = conn_of(fd);
	struct iovec iov = { buffer, length };

	if (!c || odd_receive(c, flags))
		return REAL(recv)(fd, buffer, length, flags);
	if (stream_enter(c, &c->kernel_in))
		return PLAIN_IN(c, flags, REAL(recv)(fd, buffer, length, flags));
	return stream_receive(c, fd, &iov, 1, flags);
}

EXPORT ssize_t recvfrom(int fd, void *buffer, size_t length, int flags, struct sockaddr *from, socklen_t *from_length)
{
	struct conn *c = conn_of(fd);
	struct iovec iov = { buffer, length };
	ssize_t n;

	if (!c || odd_receive(c, flags))
		return REAL(recvfrom)(fd, buffer, length, flags, from, from_length);
	if (stream_enter(c, &c->kernel_in))
		return PLAIN_IN(c, flags, REAL(recvfrom)(fd, buffer, length, flags, from, from_length));
	n = stream_receive(c, fd, &iov, 1, flags);
	if (n >= 0 && from && from_length)
		*from_length = 0; /* TCP tells no address */
	return n;
}

EXPORT ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	struct conn *c = conn_of(fd);
	ssize_t n;

	if (!c || odd_receive(c, flags))
		return REAL(recvmsg)(fd, msg, flags);
	if (stream_enter(c, &c->kernel_in))
		return PLAIN_IN(c, flags, REAL(recvmsg)(fd, msg, flags));
	n = stream_receive(c, fd, msg->msg_iov, msg->msg_iovlen, flags);
	if (n >= 0) {
		msg->msg_namelen = 0;
		msg->msg_controllen = 0;
		msg->msg_flags = flags & MSG_CMSG_CLOEXEC;
	}
	return n;
}

EXPORT int recvmmsg(int fd, struct mmsghdr *msgs, unsigned count, int flags, struct timespec *timeout)
{
	struct conn *c = conn_of(fd);
	unsigned done = 0;

	if (!c || odd_receive(c, flags))
		return REAL(recvmmsg)(fd, msgs, count, flags, timeout);
	while (done < count) {
		ssize_t n = recvmsg(fd, &msgs[done].msg_hdr, flags & ~MSG_WAITFORONE);

		if (n < 0)
			return done ? (int)done : -1;
		msgs[done++].msg_len = n;
		if (!n)
			break;
		if (flags & MSG_WAITFORONE)
			flags |= MSG_DONTWAIT;
	}
	return done;
}

EXPORT ssize_t readv(int fd, const struct iovec *iov, int count)
{
	struct conn *c = conn_of(fd);

	if (!c || count < 0 || count > 1024)
		return REAL(readv)(fd, iov, count);
	if (stream_enter(c, &c->kernel_in))
		return PLAIN_IN(c, 0, REAL(readv)(fd, iov, count));
	if (stream_is_empty(iov, count))
		return REAL(readv)(fd, iov, count);
	return stream_receive(c, fd, iov, count, 0);
}

EXPORT ssize_t preadv2(int fd, const struct iovec *iov, int count, off_t offset, int flags)
{
	struct conn *c = conn_of(fd);

	if (c)
		to_kernel(c);
	return REAL(preadv2)(fd, iov, count, offset, flags);
}
extern ssize_t preadv64v2(int, const struct iovec *, int, off64_t, int) ALIAS(preadv2);

EXPORT ssize_t write(int fd, const void *buffer, size_t length)
{
	struct conn *c = conn_of(fd);
	struct iovec iov = { (void *)buffer, length };

	if (likely(!c))
		return REAL(write)(fd, buffer, length);
	if (stream_enter(c, &c->kernel_out))
		return PLAIN_OUT(c, REAL(write)(fd, buffer, length));
	return stream_send(c, fd, &iov, 1, 0);
}

EXPORT ssize_t send(int fd, const void *buffer, size_t length, int flags)
{
	struct conn *c = conn_of(fd);
	struct iovec iov = { (void *)buffer, length };

	if (!c || odd_send(c, flags))
		return REAL(send)(fd, buffer, length, flags);
	if (stream_enter(c, &c->kernel_out))
		return PLAIN_OUT(c, REAL(send)(fd, buffer, length, flags));
	return stream_send(c, fd, &iov, 1, flags);
}

EXPORT ssize_t sendto(int fd, const void *buffer, size_t length, int flags, const struct sockaddr *to,
		      socklen_t to_length)
{
	struct conn *c = conn_of(fd);
	struct iovec iov = { (void *)buffer, length };

	if (!c || odd_send(c, flags))
		return REAL(sendto)(fd, buffer, length, flags, to, to_length);
	if (stream_enter(c, &c->kernel_out))
		return PLAIN_OUT(c, REAL(sendto)(fd, buffer, length, flags, to, to_length));
	return stream_send(c, fd, &iov, 1, flags);
}

/* Connections that are passed to other processes are theirs, too. */
static void find_passed(const struct msghdr *msg)
{
	for (struct cmsghdr *h = CMSG_FIRSTHDR(msg); h; h = CMSG_NXTHDR((struct msghdr *)msg, h)) {
		size_t size = h->cmsg_len - CMSG_LEN(0);

		if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS || h->cmsg_len < CMSG_LEN(0))
			continue;
		for (size_t i = 0; i < size / sizeof(int); i++) {
			struct conn *c;
			int fd;

			memcpy(&fd, CMSG_DATA(h) + i * sizeof(int), sizeof fd);
			c = conn_of(fd);
			if (c)
				to_kernel(c);
			if (epoll_of(fd))
				epoll_is_nested(epoll_of(fd));
		}
	}
}

EXPORT ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	struct conn *c = conn_of(fd);

	if (!c) {
		if (msg && msg->msg_control && msg->msg_controllen)
			find_passed(msg);
		return REAL(sendmsg)(fd, msg, flags);
	}
	if (odd_send(c, flags))
		return REAL(sendmsg)(fd, msg, flags);
	if (msg->msg_controllen) {
		to_kernel(c);
		return REAL(sendmsg)(fd, msg, flags);
	}
	if (stream_enter(c, &c->kernel_out))
		return PLAIN_OUT(c, REAL(sendmsg)(fd, msg, flags));
	return stream_send(c, fd, msg->msg_iov, msg->msg_iovlen, flags);
}

EXPORT int sendmmsg(int fd, struct mmsghdr *msgs, unsigned count, int flags)
{
	struct conn *c = conn_of(fd);
	unsigned done = 0;

	if (!c) {
		for (unsigned i = 0; i < count; i++)
			if (msgs[i].msg_hdr.msg_control && msgs[i].msg_hdr.msg_controllen)
				find_passed(&msgs[i].msg_hdr);
		return REAL(sendmmsg)(fd, msgs, count, flags);
	}
	while (done < count) {
		ssize_t n = sendmsg(fd, &msgs[done].msg_hdr, flags);

		if (n < 0)
			return done ? (int)done : -1;
		msgs[done++].msg_len = n;
	}
	return done;
}

EXPORT ssize_t writev(int fd, const struct iovec *iov, int count)
{
	struct conn *c = conn_of(fd);

	if (!c || count < 0 || count > 1024)
		return REAL(writev)(fd, iov, count);
	if (stream_enter(c, &c->kernel_out))
		return PLAIN_OUT(c, REAL(writev)(fd, iov, count));
	return stream_send(c, fd, iov, count, 0);
}

EXPORT ssize_t pwritev2(int fd, const struct iovec *iov, int count, off_t offset, int flags)
{
	struct conn *c = conn_of(fd);

	if (c)
		to_kernel(c);
	return REAL(pwritev2)(fd, iov, count, offset, flags);
}
extern ssize_t pwritev64v2(int, const struct iovec *, int, off64_t, int) ALIAS(pwritev2);

/* From a file to a ring: one copy into a buffer and one into the ring. */
static ssize_t copy_file(struct conn *c, int out, int in, off_t *offset, size_t count)
{
	off_t at = offset ? *offset : lseek(in, 0, SEEK_CUR);
	char *buffer = at < 0 ? NULL : malloc(FILE_PIECE);
	size_t done = 0;
	int err = 0;

	if (!buffer) {
		/* No file, or no memory: the kernel says what is wrong. */
		to_kernel(c);
		return REAL(sendfile)(out, in, offset, count);
	}
	while (done < count) {
		size_t want = count - done < FILE_PIECE ? count - done : FILE_PIECE;
		ssize_t n = pread(in, buffer, want, at), sent;
		struct iovec iov = { buffer, n };

		if (n <= 0) {
			err = n < 0 ? errno : 0;
			break;
		}
		sent = stream_send(c, out, &iov, 1, 0);
		if (sent > 0)
			done += sent, at += sent;
		if (sent < n) {
			err = sent < 0 ? errno : 0;
			break;
		}
	}
	free(buffer);
	if (offset)
		*offset = at;
	else
		lseek(in, at, SEEK_SET);
	errno = err;
	return done || !err ? (ssize_t)done : -1;
}

EXPORT ssize_t sendfile(int out, int in, off_t *offset, size_t count)
{
	struct conn *c = conn_of(out);

	if (conn_of(in))
		to_kernel(conn_of(in));
	if (!c)
		return REAL(sendfile)(out, in, offset, count);
	if (stream_enter(c, &c->kernel_out))
		return PLAIN_OUT(c, REAL(sendfile)(out, in, offset, count));
	return copy_file(c, out, in, offset, count);
}
extern ssize_t sendfile64(int, int, off64_t *, size_t) ALIAS(sendfile);

EXPORT ssize_t splice(int in, off64_t *in_offset, int out, off64_t *out_offset, size_t length, unsigned flags)
{
	if (conn_of(in))
		to_kernel(conn_of(in));
	if (conn_of(out))
		to_kernel(conn_of(out));
	return REAL(splice)(in, in_offset, out, out_offset, length, flags);
}

/* Only pipes can be used here; the kernel says so. */
EXPORT ssize_t tee(int in, int out, size_t length, unsigned flags)
{
	if (conn_of(in))
		to_kernel(conn_of(in));
	if (conn_of(out))
		to_kernel(conn_of(out));
	return REAL(tee)(in, out, length, flags);
}

EXPORT ssize_t vmsplice(int fd, const struct iovec *iov, size_t count, unsigned flags)
{
	if (conn_of(fd))
		to_kernel(conn_of(fd));
	return REAL(vmsplice)(fd, iov, count, flags);
}

EXPORT int aio_read(struct aiocb *cb)
{
	if (conn_of(cb->aio_fildes))
		to_kernel(conn_of(cb->aio_fildes));
	return REAL(aio_read)(cb);
}
extern int aio_read64(struct aiocb64 *) __attribute__((visibility("default"), alias("aio_read")));

EXPORT int aio_write(struct aiocb *cb)
{
	if (conn_of(cb->aio_fildes))
		to_kernel(conn_of(cb->aio_fildes));
	return REAL(aio_write)(cb);
}
extern int aio_write64(struct aiocb64 *) __attribute__((visibility("default"), alias("aio_write")));

/* What programs call that were compiled with checks of buffer sizes, and names that libc exports besides. */
ssize_t __read_chk(int fd, void *buffer, size_t length, size_t size);
ssize_t __recv_chk(int fd, void *buffer, size_t length, size_t size, int flags);
ssize_t __recvfrom_chk(int fd, void *buffer, size_t length, size_t size, int flags, struct sockaddr *from,
		       socklen_t *n);

EXPORT ssize_t __read_chk(int fd, void *buffer, size_t length, size_t size)
{
	if (length > size)
		abort();
	return read(fd, buffer, length);
}

EXPORT ssize_t __recv_chk(int fd, void *buffer, size_t length, size_t size, int flags)
{
	if (length > size)
		abort();
	return recv(fd, buffer, length, flags);
}

EXPORT ssize_t __recvfrom_chk(int fd, void *buffer, size_t length, size_t size, int flags, struct sockaddr *from,
			      socklen_t *n)
{
	if (length > size)
		abort();
	return recvfrom(fd, buffer, length, flags, from, n);
}

extern ssize_t __read(int, void *, size_t) ALIAS(read);
extern ssize_t __write(int, const void *, size_t) ALIAS(write);
extern ssize_t __send(int, const void *, size_t, int) ALIAS(send);
