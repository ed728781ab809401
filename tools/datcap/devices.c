/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* devices.c - `datcap devices` and `datcap -D`: the network devices of this network namespace that carry Ethernet
 * frames. Asks the kernel by ioctl, since sysfs may be that of another namespace. */
#include <jansson.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include "common/interface.h"
#include "datcap.h"
#include "output.h"
#include "print.h"
#include "tools/cli.h"

struct found {
	const char *name, *state;
	char address[20];
	int mtu;
	uint64_t speed;			/* bits a second; 0: not known */
};

/* Returns false if it has no Ethernet frames, or is gone. */
static bool describe(const struct if_nameindex *is, struct found *found)
{
	struct ifreq flags, hardware, mtu;
	const uint8_t *mac = (const uint8_t *)hardware.ifr_hwaddr.sa_data;
	int index = (int)is->if_index;

	if (interface_request_index(index, SIOCGIFFLAGS, &flags) ||
	    interface_request_index(index, SIOCGIFHWADDR, &hardware) ||
	    interface_request_index(index, SIOCGIFMTU, &mtu))
		return false;
	if (!interface_type_is_ethernet(hardware.ifr_hwaddr.sa_family))
		return false;
	*found = (struct found){ .name = is->if_name, .mtu = mtu.ifr_mtu, .speed = output_link_speed(is->if_name),
		.state = !(flags.ifr_flags & IFF_UP) ? "down" : flags.ifr_flags & IFF_RUNNING ? "up" : "no carrier" };
	snprintf(found->address, sizeof found->address, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3],
		 mac[4], mac[5]);
	return true;
}

static void print_device(const struct found *found, bool json)
{
	char speed[32] = "-";

	if (json) {
		print_json(json_pack("{s:s, s:s, s:s, s:i, s:o}", "device", found->name, "state", found->state,
				     "address", found->address, "mtu", found->mtu, "speed",
				     found->speed ? json_integer((json_int_t)found->speed) : json_null()));
		return;
	}
	if (found->speed)
		snprintf(speed, sizeof speed, "%llu Mb/s", (unsigned long long)found->speed / 1000000);
	print("%-15s %-10s %s %6d %s\n", found->name, found->state, found->address, found->mtu, speed);
}

int devices_run(const struct options *o)
{
	struct if_nameindex *all = if_nameindex();
	struct found found;

	if (!all)
		fail("the network devices cannot be listed: %m");
	if (!o->json)
		print("%-15s %-10s %-17s %6s %s\n", "DEVICE", "STATE", "ADDRESS", "MTU", "SPEED");
	for (const struct if_nameindex *is = all; is->if_index; is++)
		if (describe(is, &found))
			print_device(&found, o->json);
	if_freenameindex(all);
	return 0;
}
