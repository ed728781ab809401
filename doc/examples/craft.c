/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* craft.c - sends a UDP datagram as an Ethernet frame that the program makes itself. DAT_ETH_SEND_CSUM fills in the
 * checksums:
 *
 *	craft IA TO-MAC FROM-IP TO-IP PORT TEXT
 *
 * Needs CAP_NET_RAW. If TO-IP is a multicast address, TO-MAC should be that of the group.
 *
 *	cc -D_GNU_SOURCE -o craft craft.c raw.c -ldat2 */
#include <stdio.h>
#include <string.h>
#include "raw.h"

enum { ETHERNET = 14, IPV4 = 20, UDP = 8, HEADERS = ETHERNET + IPV4 + UDP, MAX_TEXT = 1000 };

static struct raw raw;

static void put16(uint8_t *at, size_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

/* Writes the headers but for the addresses. All other bytes of the memory are 0. */
static void make_headers(size_t text, unsigned port)
{
	uint8_t *ip = raw.memory + ETHERNET, *udp = ip + IPV4;

	memcpy(raw.memory + 6, raw.attr.address, 6);	/* the source */
	put16(raw.memory + 12, 0x0800);			/* IPv4 */
	ip[0] = 0x45;					/* version 4, a header of 5 words */
	put16(ip + 2, IPV4 + UDP + text);
	ip[8] = 64;					/* time to live */
	ip[9] = 17;					/* UDP */
	put16(udp, port);
	put16(udp + 2, port);
	put16(udp + 4, UDP + text);
}

int main(int argc, char **argv)
{
	DAT_ETH_SEND checksums = { .flags = DAT_ETH_SEND_CSUM };
	uint8_t to[6], from_ip[4], to_ip[4];
	unsigned long long port;
	size_t text;

	if (argc != 7 || !raw_mac(argv[2], to) || !raw_ipv4(argv[3], from_ip) || !raw_ipv4(argv[4], to_ip) ||
	    !raw_number(argv[5], 65535, &port) || (text = strlen(argv[6])) > MAX_TEXT) {
		fprintf(stderr, "usage: craft IA TO-MAC FROM-IP TO-IP PORT TEXT\n");
		return 2;
	}
	raw_open(&raw, argv[1]);
	make_headers(text, (unsigned)port);
	memcpy(raw.memory, to, 6);
	memcpy(raw.memory + ETHERNET + 12, from_ip, 4);
	memcpy(raw.memory + ETHERNET + 16, to_ip, 4);
	memcpy(raw.memory + HEADERS, argv[6], text);
	raw_post(&raw, (DAT_SEG_LENGTH)(HEADERS + text), 1, &checksums);
	raw_await(&raw);
	printf("sent %zu bytes\n", HEADERS + text);
	raw_close(&raw);
	return 0;
}
