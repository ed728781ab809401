/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eth_hash.c - the hash of a frame that a QP over a table computes: Toeplitz, of the outer headers. It shares nothing
 * with the library. */
#include <string.h>
#include "eth.h"

#define IPV4 (IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4)
#define IPV6 (IBV_RX_HASH_SRC_IPV6 | IBV_RX_HASH_DST_IPV6)
#define TCP (IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_DST_PORT_TCP)
#define UDP (IBV_RX_HASH_SRC_PORT_UDP | IBV_RX_HASH_DST_PORT_UDP)

bool fake_check_hash(const struct ibv_rx_hash_conf *conf, uint32_t table_size)
{
	uint64_t fields = conf->rx_hash_fields_mask;

	CHECK(conf->rx_hash_function == IBV_RX_HASH_FUNC_TOEPLITZ && conf->rx_hash_key_len == HASH_KEY &&
	      conf->rx_hash_key);
	CHECK(!(fields & ~(uint64_t)HASH_FIELDS));
	CHECK(fields || table_size == 1);
	/* a half of a pair is possible, but never meant */
	CHECK(!(fields & IPV4) || (fields & IPV4) == IPV4);
	CHECK(!(fields & IPV6) || (fields & IPV6) == IPV6);
	CHECK(!(fields & TCP) || (fields & TCP) == TCP);
	CHECK(!(fields & UDP) || (fields & UDP) == UDP);
	return !fake_lacks("joint") || !((fields & IPV4 && fields & IPV6) || (fields & TCP && fields & UDP));
}

/* For each bit of the input that is set, the 32 bits of the key that begin there. */
static uint32_t toeplitz(const uint8_t *input, size_t length, const uint8_t key[HASH_KEY])
{
	uint32_t window = (uint32_t)key[0] << 24 | (uint32_t)key[1] << 16 | (uint32_t)key[2] << 8 | key[3], hash = 0;

	for (size_t bit = 0; bit < 8 * length; bit++) {
		size_t next = bit + 32;

		if (input[bit / 8] >> (7 - bit % 8) & 1)
			hash ^= window;
		window = window << 1 | (key[next / 8] >> (7 - next % 8) & 1);
	}
	return hash;
}

static bool is_fragment(const struct headers *h)
{
	return h->type == 0x0800 && ((h->l3[6] & 0x3f) || h->l3[7]);
}

uint32_t fake_hash(const uint8_t *frame, size_t length, uint64_t fields, const uint8_t key[HASH_KEY])
{
	struct headers h;
	uint8_t input[36];
	size_t n, at;

	if (!fake_find_headers(frame, frame + length, &h) || !h.l3 || (h.type != 0x0800 && h.type != 0x86dd))
		return 0;
	n = h.type == 0x0800 ? 8 : 32;
	at = h.type == 0x0800 ? 12 : 8;
	if (!(fields & (h.type == 0x0800 ? IPV4 : IPV6)))
		return 0;
	memcpy(input, h.l3 + at, n);
	if (h.l4 && !is_fragment(&h) && ((h.protocol == 6 && fields & TCP) || (h.protocol == 17 && fields & UDP))) {
		memcpy(input + n, h.l4, 4);
		n += 4;
	}
	return toeplitz(input, n, key);
}
