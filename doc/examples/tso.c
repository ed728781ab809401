/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tso.c - sends a long TCP message by one post: it is cut into frames on the way, each with the headers of the
 * template:
 *
 *	tso IA TO-MAC FROM-IP TO-IP BYTES
 *
 * BYTES of payload, at most 60000. Needs CAP_NET_RAW. There is no connection: a host that receives the frames answers
 * with a reset, if at all.
 *
 *	cc -D_GNU_SOURCE -o tso tso.c raw.c -ldat2 */
#include <stdio.h>
#include <string.h>
#include "raw.h"

enum { ETHERNET = 14, IPV4 = 20, TCP = 20, HEADERS = ETHERNET + IPV4 + TCP };

static struct raw raw;

/* Writes the headers but for the addresses. Lengths, checksums and the sequence numbers of the frames are filled in
 * when the message is cut. */
static void make_template(void)
{
	uint8_t *ip = raw.memory + ETHERNET, *tcp = ip + IPV4;

	memcpy(raw.memory + 6, raw.attr.address, 6);
	raw.memory[12] = 0x08;		/* IPv4 */
	ip[0] = 0x45;			/* version 4, a header of 5 words */
	ip[6] = 0x40;			/* not to be fragmented */
	ip[8] = 64;			/* time to live */
	ip[9] = 6;			/* TCP */
	tcp[0] = 0x1f;			/* from port 8080 */
	tcp[1] = 0x90;
	tcp[2] = 0x1f;			/* to port 8081 */
	tcp[3] = 0x91;
	tcp[12] = 5 << 4;		/* a header of 5 words */
	tcp[13] = 0x18;			/* PSH and ACK */
	tcp[14] = 0x10;			/* window */
}

int main(int argc, char **argv)
{
	DAT_ETH_SEND how = { .flags = DAT_ETH_SEND_TSO, .header_length = HEADERS };
	DAT_ETH_STATS stats = { .size = sizeof stats };
	uint8_t to[6], from_ip[4], to_ip[4];
	unsigned long long bytes;

	if (argc != 6 || !raw_mac(argv[2], to) || !raw_ipv4(argv[3], from_ip) || !raw_ipv4(argv[4], to_ip) ||
	    !raw_number(argv[5], 60000, &bytes)) {
		fprintf(stderr, "usage: tso IA TO-MAC FROM-IP TO-IP BYTES\n");
		return 2;
	}
	raw_open(&raw, argv[1]);
	make_template();
	memcpy(raw.memory, to, 6);
	memcpy(raw.memory + ETHERNET + 12, from_ip, 4);
	memcpy(raw.memory + ETHERNET + 16, to_ip, 4);
	memset(raw.memory + HEADERS, 'x', bytes);
	how.mss = (uint16_t)(raw.attr.mtu - IPV4 - TCP);
	raw_post(&raw, (DAT_SEG_LENGTH)(HEADERS + bytes), 1, &how);
	raw_await(&raw);
	CHECK(dat_eth_stats(raw.ep, &stats));
	printf("%llu frames, %llu bytes\n", (unsigned long long)stats.sent, (unsigned long long)stats.sent_bytes);
	raw_close(&raw);
	return 0;
}
