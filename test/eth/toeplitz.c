/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* toeplitz.c - the hash of groups against the published values for verifying implementations of receive side
 * scaling. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include "dapl/softeth/spread.h"

static uint8_t key[TOEPLITZ_KEY] = {
	0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67,
	0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb,
	0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
	0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};

static const struct {
	const char *from;
	uint16_t from_port;
	const char *to;
	uint16_t to_port;
	uint32_t of_addresses, with_ports;
} vectors[] = {
	{ "66.9.149.187", 2794, "161.142.100.80", 1766, 0x323e8fc2, 0x51ccc178 },
	{ "199.92.111.2", 14230, "65.69.140.83", 4739, 0xd718262a, 0xc626b0ea },
	{ "24.19.198.95", 12898, "12.22.207.184", 38024, 0xd2d0a5de, 0x5c2b394a },
	{ "38.27.205.30", 48228, "209.142.163.6", 2217, 0x82989176, 0xafc7327f },
	{ "153.39.163.191", 44251, "202.188.127.2", 1303, 0x5d1809c5, 0x10e828a2 },
	{ "3ffe:2501:200:1fff::7", 2794, "3ffe:2501:200:3::1", 1766, 0x2cc18cd5, 0x40207d3d },
	{ "3ffe:501:8::260:97ff:fe40:efab", 14230, "ff02::1", 4739, 0x0f0c461c, 0xdde51bbf },
	{ "3ffe:1900:4545:3:200:f8ff:fe21:67cf", 44251, "fe80::200:f8ff:fe21:67cf", 38024, 0x4b61e985, 0x02d1feef },
};

static unsigned failures;

static void expect(const char *what, const char *from, uint32_t found, uint32_t expected)
{
	if (found == expected)
		return;
	printf("FAIL %s, %s: 0x%08x, expected 0x%08x\n", from, what, found, expected);
	failures++;
}

static struct eth_headers headers_of(size_t i)
{
	int version = strchr(vectors[i].from, ':') ? 6 : 4;
	struct eth_headers h = { .outer = { .ip_version = (uint8_t)version, .protocol = 6 } };

	inet_pton(version == 4 ? AF_INET : AF_INET6, vectors[i].from, h.outer.ip_src);
	inet_pton(version == 4 ? AF_INET : AF_INET6, vectors[i].to, h.outer.ip_dst);
	h.outer.port_src = htons(vectors[i].from_port);
	h.outer.port_dst = htons(vectors[i].to_port);
	return h;
}

static struct eth_spread *spread_of(bool ports)
{
	static const uint16_t table[1];
	struct dapl_eth_rss rss = { .size = 1, .table = table };

	rss.hash.rx_hash_key = key;
	rss.hash.rx_hash_fields_mask = ports ? IBV_RX_HASH_SRC_PORT_TCP : 0;
	return spread_new(&rss);
}

/* Each window is the one before, moved by a bit. */
static void check_windows(void)
{
	uint32_t window = 0x6d5a56da;

	for (unsigned i = 0; i < 8 * TOEPLITZ_INPUT_MAX; i++) {
		expect("window", "key", spread_window(key, i), window);
		window = window << 1 | (key[(i + 32) / 8 % TOEPLITZ_KEY] >> (7 - i % 8) & 1);
	}
}

int main(void)
{
	struct eth_spread *addresses = spread_of(false), *ports = spread_of(true);

	for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
		struct eth_headers h = headers_of(i);

		expect("addresses", vectors[i].from, spread_hash(addresses, &h), vectors[i].of_addresses);
		expect("addresses and ports", vectors[i].from, spread_hash(ports, &h), vectors[i].with_ports);
		h.outer_fragmented = true;
		expect("fragment", vectors[i].from, spread_hash(ports, &h), vectors[i].of_addresses);
		h.outer_fragmented = false;
		h.outer.protocol = 132;
		expect("SCTP", vectors[i].from, spread_hash(ports, &h), vectors[i].of_addresses);
	}
	check_windows();
	spread_put(addresses);
	spread_put(ports);
	printf("%zu vectors, %u failed\n", sizeof vectors / sizeof *vectors, failures);
	return failures != 0;
}
