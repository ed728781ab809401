/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* own_network.h - a network namespace with loopback alone, for tests that make so many connections that
 * other programs would find no port. */
#ifndef TEST_OWN_NETWORK_H
#define TEST_OWN_NETWORK_H
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* Moves the calling thread, and the threads and processes that it starts, into a new namespace. Where that
 * is not allowed, the thread stays in its namespace. */
static inline void own_network(void)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd;

	if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET))
		return;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ioctl(fd, SIOCSIFFLAGS, &lo);
	close(fd);
}

#endif
