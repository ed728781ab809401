/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* multicast.c - takes a multicast group to user space. The host becomes a member, so switches forward the group; the
 * frames come to the endpoint, and the kernel's stack does not handle them:
 *
 *	multicast IA GROUP FRAMES
 *
 * Needs CAP_NET_RAW, CAP_BPF and CAP_NET_ADMIN, and Linux 6.6. On an older kernel the frames are copied.
 *
 *	cc -D_GNU_SOURCE -o multicast multicast.c raw.c -ldat2 */
#include <stdio.h>
#include <string.h>
#include "raw.h"

static struct raw raw;

static DAT_ETH_RULE group_rule(const uint8_t group[4])
{
	DAT_ETH_RULE rule = { .mode = DAT_ETH_COPY, .flags = DAT_ETH_JOIN };

	if (raw.attr.caps & DAT_ETH_CAP_TAKE)
		rule.mode = DAT_ETH_TAKE;
	rule.key.ip_version = 4;
	rule.mask.ip_version = 0xff;
	memcpy(rule.key.ip_dst, group, 4);
	memset(rule.mask.ip_dst, 0xff, 4);
	return rule;
}

static void print(const DAT_ETH_FRAME *frame)
{
	const uint8_t *from = frame->data + 14 + 12;	/* in an IPv4 header; a VLAN tag was stripped */

	printf("%u bytes from %u.%u.%u.%u%s\n", frame->wire_length, from[0], from[1], from[2], from[3],
	       frame->lost ? ", some were lost before" : "");
}

int main(int argc, char **argv)
{
	unsigned long long frames;
	DAT_ETH_RULE rule;
	uint8_t group[4];

	if (argc != 4 || !raw_ipv4(argv[2], group) || group[0] >> 4 != 14 || !raw_number(argv[3], 1000000, &frames)) {
		fprintf(stderr, "usage: multicast IA GROUP FRAMES\n");
		return 2;
	}
	raw_open(&raw, argv[1]);
	rule = group_rule(group);
	raw_rule(&raw, &rule);
	printf("%s the frames of %s\n", rule.mode == DAT_ETH_TAKE ? "taking" : "copying", argv[2]);
	fflush(stdout);
	while (frames--) {
		DAT_ETH_FRAME frame = raw_next(&raw);

		print(&frame);
		CHECK(dat_eth_release(raw.ep, 1));
	}
	raw_close(&raw);
	return 0;
}
