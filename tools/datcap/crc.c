/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* crc.c - see crc.h. */
#include "crc.h"

static uint32_t tables[2][256];

static void fill_table(uint32_t *table, uint32_t polynomial)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t c = i;

		for (int bit = 0; bit < 8; bit++)
			c = c & 1 ? c >> 1 ^ polynomial : c >> 1;
		table[i] = c;
	}
}

uint32_t crc_add(enum crc_polynomial polynomial, uint32_t crc, const uint8_t *bytes, size_t n)
{
	uint32_t *table = tables[polynomial];

	if (!table[1])
		fill_table(table, polynomial == CRC32C ? 0x82f63b78 : 0xedb88320);
	crc = ~crc;
	while (n--)
		crc = table[(crc ^ *bytes++) & 0xff] ^ crc >> 8;
	return ~crc;
}

uint8_t *crc_put(uint8_t *to, uint32_t crc)
{
	for (int i = 0; i < CRC_SIZE; i++)
		*to++ = (uint8_t)(crc >> 8 * i);
	return to;
}
