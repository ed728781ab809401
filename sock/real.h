/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* real.h - the functions of libc that this library interposes: REAL(read)(fd, ...) calls libc's. The library itself
 * calls libc by these, never by the interposed names. */
#ifndef SOCK_REAL_H
#define SOCK_REAL_H
#include <aio.h>
#include <poll.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#define REAL_FUNCTIONS(X) \
	X(ssize_t, read, (int, void *, size_t)) \
	X(ssize_t, recv, (int, void *, size_t, int)) \
	X(ssize_t, recvfrom, (int, void *, size_t, int, struct sockaddr *, socklen_t *)) \
	X(ssize_t, recvmsg, (int, struct msghdr *, int)) \
	X(int, recvmmsg, (int, struct mmsghdr *, unsigned, int, struct timespec *)) \
	X(ssize_t, readv, (int, const struct iovec *, int)) \
	X(ssize_t, preadv2, (int, const struct iovec *, int, off_t, int)) \
	X(ssize_t, write, (int, const void *, size_t)) \
	X(ssize_t, send, (int, const void *, size_t, int)) \
	X(ssize_t, sendto, (int, const void *, size_t, int, const struct sockaddr *, socklen_t)) \
	X(ssize_t, sendmsg, (int, const struct msghdr *, int)) \
	X(int, sendmmsg, (int, struct mmsghdr *, unsigned, int)) \
	X(ssize_t, writev, (int, const struct iovec *, int)) \
	X(ssize_t, pwritev2, (int, const struct iovec *, int, off_t, int)) \
	X(ssize_t, sendfile, (int, int, off_t *, size_t)) \
	X(ssize_t, splice, (int, off64_t *, int, off64_t *, size_t, unsigned)) \
	X(ssize_t, tee, (int, int, size_t, unsigned)) \
	X(ssize_t, vmsplice, (int, const struct iovec *, size_t, unsigned)) \
	X(int, poll, (struct pollfd *, nfds_t, int)) \
	X(int, ppoll, (struct pollfd *, nfds_t, const struct timespec *, const sigset_t *)) \
	X(int, select, (int, fd_set *, fd_set *, fd_set *, struct timeval *)) \
	X(int, pselect, (int, fd_set *, fd_set *, fd_set *, const struct timespec *, const sigset_t *)) \
	X(int, epoll_create, (int)) \
	X(int, epoll_create1, (int)) \
	X(int, epoll_ctl, (int, int, int, struct epoll_event *)) \
	X(int, epoll_wait, (int, struct epoll_event *, int, int)) \
	X(int, epoll_pwait, (int, struct epoll_event *, int, int, const sigset_t *)) \
	X(int, epoll_pwait2, (int, struct epoll_event *, int, const struct timespec *, const sigset_t *)) \
	X(int, socket, (int, int, int)) \
	X(int, accept, (int, struct sockaddr *, socklen_t *)) \
	X(int, accept4, (int, struct sockaddr *, socklen_t *, int)) \
	X(int, connect, (int, const struct sockaddr *, socklen_t)) \
	X(int, listen, (int, int)) \
	X(int, shutdown, (int, int)) \
	X(int, setsockopt, (int, int, int, const void *, socklen_t)) \
	X(int, getsockopt, (int, int, int, void *, socklen_t *)) \
	X(int, close, (int)) \
	X(int, close_range, (unsigned, unsigned, int)) \
	X(void, closefrom, (int)) \
	X(int, dup, (int)) \
	X(int, dup2, (int, int)) \
	X(int, dup3, (int, int, int)) \
	X(int, fcntl, (int, int, ...)) \
	X(int, ioctl, (int, unsigned long, ...)) \
	X(FILE *, fdopen, (int, const char *)) \
	X(int, vdprintf, (int, const char *, va_list)) \
	X(pid_t, fork, (void)) \
	X(void, _exit, (int)) \
	X(int, execve, (const char *, char *const *, char *const *)) \
	X(int, execvpe, (const char *, char *const *, char *const *)) \
	X(int, fexecve, (int, char *const *, char *const *)) \
	X(int, posix_spawn_file_actions_adddup2, (posix_spawn_file_actions_t *, int, int)) \
	X(int, posix_spawn, \
	  (pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const *, \
	   char *const *)) \
	X(int, posix_spawnp, \
	  (pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const *, \
	   char *const *)) \
	X(int, system, (const char *)) \
	X(FILE *, popen, (const char *, const char *)) \
	X(int, aio_read, (struct aiocb *)) \
	X(int, aio_write, (struct aiocb *)) \
	X(long, syscall, (long, ...))

struct real {
#define X(type, name, args) type(*name) args;
	REAL_FUNCTIONS(X)
#undef X
};
extern struct real real_functions;
extern bool real_ready;

void real_init(void);

#define REAL(name) (*(__builtin_expect(!real_ready, 0) ? real_init() : (void)0, real_functions.name))

#endif
