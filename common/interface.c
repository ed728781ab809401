/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* interface.c - queries the kernel about a network interface by ioctl(). */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/interface.h"

int interface_request(const char *netdev, unsigned long request, struct ifreq *ifr)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), err;

	if (fd < 0)
		return errno;
	memset(ifr, 0, sizeof *ifr);
	snprintf(ifr->ifr_name, sizeof ifr->ifr_name, "%s", netdev);
	err = ioctl(fd, request, ifr) ? errno : 0;
	close(fd);
	return err;
}
