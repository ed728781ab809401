/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* carrier.c - asks this process's own control socket for its endpoints (carrier.h). */
#include "carrier.h"
#include "../control/client.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static void take_carrier(const json_t *answer, char *text, size_t size)
{
	json_t *endpoint;
	size_t i;

	json_array_foreach(json_object_get(answer, "endpoints"), i, endpoint) {
		const char *carrier = json_string_value(json_object_get(endpoint, "carrier"));

		if (carrier && !*text)
			snprintf(text, size, "%s", carrier);
	}
}

/* Returns the MTU of the network device of the first IA; 0 if it is not known. */
static int find_mtu(const json_t *answer)
{
	const json_t *ia = json_array_get(json_object_get(answer, "ias"), 0);
	const char *netdev = json_string_value(json_object_get(ia, "netdev"));
	struct ifreq request = { .ifr_mtu = 0 };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (netdev)
		snprintf(request.ifr_name, sizeof request.ifr_name, "%s", netdev);
	if (fd < 0 || !netdev || ioctl(fd, SIOCGIFMTU, &request))
		request.ifr_mtu = 0;
	if (fd >= 0)
		close(fd);
	return request.ifr_mtu;
}

void carrier_find(char *text, size_t size)
{
	size_t count;
	struct control_socket *sockets = control_find(getpid(), &count);
	char why[256];
	size_t used;

	*text = '\0';
	for (size_t i = 0; i < count && !*text; i++) {
		json_t *answer = control_ask(&sockets[i], CONTROL_ENDPOINTS, NULL, why, sizeof why);

		take_carrier(answer, text, size);
		json_decref(answer);
		if (strncmp(text, "tcp", 3) != 0)
			continue;
		answer = control_ask(&sockets[i], CONTROL_LIST, NULL, why, sizeof why);
		used = strlen(text);
		if (find_mtu(answer))
			snprintf(text + used, size - used, ", MTU %d", find_mtu(answer));
		json_decref(answer);
	}
	free(sockets);
}
