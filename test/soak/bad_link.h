/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* bad_link.h - two network namespaces of the test, joined by two TUN devices and a process that forwards
 * packets between them: it loses, doubles and delays them at random, or drops or resets what the test
 * selects. Needs root and /dev/net/tun, but neither netem nor veth. */
#ifndef TEST_SOAK_BAD_LINK_H
#define TEST_SOAK_BAD_LINK_H
#include "soak.h"
#include <sys/types.h>

#define BAD_LINK_DEVICE "tun0"
#define BAD_LINK_SERVER "10.97.0.2" /* the client has 10.97.0.1 */

/* Shared with the forwarding process; may change at any time. */
struct bad_link {
	/* per mille of all packets */
	volatile unsigned loss, doubled, delayed, reset;
	volatile bool drop_fin, drop_rst;
	volatile bool cut; /* nothing passes */
	/* what was done so far */
	volatile uint64_t packets, lost, doubles, delays, resets, fins, rsts;
	int client_namespace, server_namespace;
	pid_t forwarder;
};

/* Makes the namespaces, the devices and the forwarding process, and moves the calling thread into the
 * client's namespace. Skips the case where that is not possible. */
struct bad_link *bad_link_make(void);
void bad_link_enter_server(const struct bad_link *link); /* called before the process starts threads */
void bad_link_end(struct bad_link *link);

#endif
