/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* poll.h - poll() and select() over descriptors of which some are connections that the library carries. */
#ifndef SOCK_POLL_H
#define SOCK_POLL_H
#include <poll.h>
#include <signal.h>
#include <sys/select.h>

/* Like ppoll(). */
int poll_wait(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask);
/* Like pselect(); stores the time that is left in *left unless that is NULL. */
int poll_select(int n, fd_set *in, fd_set *out, fd_set *except, const struct timespec *timeout, const sigset_t *mask,
		struct timespec *left);

#endif
