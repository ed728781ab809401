/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* missed.c - a network device that loses frames: adds a number to the rx_missed_errors of "peer" (LD_PRELOAD). The file
 * that ETH_MISSED names has the number; without it the kernel's counters stay as they are, and with "unknown" in it the
 * device has none. */
#include <dlfcn.h>
#include <ifaddrs.h>
#include <linux/if_link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static void lose(struct ifaddrs *i, const char *how_many)
{
	if (!strcmp(how_many, "unknown"))
		i->ifa_data = NULL;
	else if (i->ifa_data)
		((struct rtnl_link_stats *)i->ifa_data)->rx_missed_errors += (unsigned)atoi(how_many);
}

__attribute__((visibility("default"))) int getifaddrs(struct ifaddrs **all)
{
	int (*next)(struct ifaddrs **) = (int (*)(struct ifaddrs **))dlsym(RTLD_NEXT, "getifaddrs");
	int ret = next ? next(all) : -1;
	const char *path = getenv("ETH_MISSED");
	FILE *file = path ? fopen(path, "re") : NULL;
	char how_many[20] = "0";

	if (file) {
		if (fscanf(file, "%19s", how_many) != 1)
			strcpy(how_many, "0");
		fclose(file);
	}
	for (struct ifaddrs *i = ret ? NULL : *all; i; i = i->ifa_next)
		if (i->ifa_addr && i->ifa_addr->sa_family == AF_PACKET && !strcmp(i->ifa_name, "peer"))
			lose(i, how_many);
	return ret;
}
