/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* steer.c - rules for three kinds of frames. The tag of a rule comes with each frame that matched it:
 *
 *	steer IA FRAMES
 *
 * Expedited IPv4 frames (DSCP EF), IPv6 frames of the flow label 0x12345, and what VXLAN 42 carries for TCP port
 * 80. Needs CAP_NET_RAW.
 *
 *	cc -D_GNU_SOURCE -o steer steer.c raw.c -ldat2 */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include "raw.h"

enum { EXPEDITED, FLOW, TUNNEL, KINDS };

static const char *const names[KINDS] = { "expedited", "flow 0x12345", "VXLAN 42, port 80" };
static struct raw raw;

static DAT_ETH_RULE expedited(void)
{
	DAT_ETH_RULE rule = { .mode = DAT_ETH_COPY, .tag = EXPEDITED };

	rule.key.ip_version = 4;
	rule.mask.ip_version = 0xff;
	rule.key.tos = 46 << 2;
	rule.mask.tos = 0xfc;			/* without the two bits of ECN */
	return rule;
}

static DAT_ETH_RULE flow(void)
{
	DAT_ETH_RULE rule = { .mode = DAT_ETH_COPY, .tag = FLOW };

	rule.key.ip_version = 6;
	rule.mask.ip_version = 0xff;
	rule.key.flow_label = htonl(0x12345);
	rule.mask.flow_label = htonl(0xfffff);
	return rule;
}

static DAT_ETH_RULE tunnel(void)
{
	DAT_ETH_RULE rule = { .mode = DAT_ETH_COPY, .tag = TUNNEL };

	rule.key.tunnel = DAT_ETH_TUNNEL_VXLAN;
	rule.mask.tunnel = ~0u;
	rule.key.tunnel_id = htonl(42);
	rule.mask.tunnel_id = ~0u;
	rule.inner_key.protocol = 6;
	rule.inner_mask.protocol = 0xff;
	rule.inner_key.port_dst = htons(80);
	rule.inner_mask.port_dst = 0xffff;
	return rule;
}

int main(int argc, char **argv)
{
	DAT_ETH_RULE rules[KINDS] = { expedited(), flow(), tunnel() };
	DAT_ETH_RULE_HANDLE handles[KINDS];
	unsigned long long left;

	if (argc != 3 || !raw_number(argv[2], 1000000, &left)) {
		fprintf(stderr, "usage: steer IA FRAMES\n");
		return 2;
	}
	raw_open(&raw, argv[1]);
	for (int i = 0; i < KINDS; i++)
		CHECK(dat_eth_rule_add(raw.ep, &rules[i], &handles[i]));
	printf("waiting\n");
	fflush(stdout);
	while (left--) {
		DAT_ETH_FRAME frame = raw_next(&raw);

		printf("%s: %u bytes\n", names[frame.tag], frame.wire_length);
		CHECK(dat_eth_release(raw.ep, 1));
	}
	for (int i = 0; i < KINDS; i++) {
		DAT_UINT64 frames, bytes;

		CHECK(dat_eth_rule_query(handles[i], NULL, &frames, &bytes));
		printf("%s: %llu frames\n", names[i], (unsigned long long)frames);
	}
	raw_close(&raw);
	return 0;
}
