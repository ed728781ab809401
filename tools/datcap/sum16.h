/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sum16.h - adds up Internet checksums (RFC 1071) of frames that datcap makes. */
#ifndef TOOLS_DATCAP_SUM16_H
#define TOOLS_DATCAP_SUM16_H
#include <stddef.h>
#include <stdint.h>

/* Adds n bytes to `sum`. Returns the sum, folded to 16 bits. A checksum is its complement. */
static inline uint32_t sum16(const uint8_t *bytes, size_t n, uint32_t sum)
{
	for (; n > 1; bytes += 2, n -= 2)
		sum += (uint32_t)bytes[0] << 8 | bytes[1];
	if (n)
		sum += (uint32_t)bytes[0] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

#endif
