/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lossy.c - a network that loses datagrams: of those that a process sends by sendmsg(), each LOSSY_STEP-th is dropped
 * (LD_PRELOAD). Streams are not touched. */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/socket.h>

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	static __typeof__(sendmsg) *next;
	static unsigned sent;
	const char *step = getenv("LOSSY_STEP");
	int type = 0;
	socklen_t size = sizeof type;
	size_t length = 0;

	if (!next)
		next = (__typeof__(sendmsg) *)dlsym(RTLD_NEXT, "sendmsg");
	if (!step || getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) || type != SOCK_DGRAM || !message->msg_name)
		return next(fd, message, flags);
	if (__atomic_add_fetch(&sent, 1, __ATOMIC_RELAXED) % strtoul(step, NULL, 10))
		return next(fd, message, flags);
	for (size_t i = 0; i < message->msg_iovlen; i++)
		length += message->msg_iov[i].iov_len;
	return (ssize_t)length;
}
