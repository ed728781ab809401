/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* bytes.h - writes numbers in network byte order, and adds up Internet checksums (RFC 1071), for frames that
 * datcap makes. The callers decide which fields these are. */
#ifndef TOOLS_DATCAP_BYTES_H
#define TOOLS_DATCAP_BYTES_H
#include <stddef.h>
#include <stdint.h>

/* Each writes `value` at `to`, and returns the address after it. */
static inline uint8_t *put16(uint8_t *to, uint32_t value)
{
	to[0] = (uint8_t)(value >> 8);
	to[1] = (uint8_t)value;
	return to + 2;
}

static inline uint8_t *put32(uint8_t *to, uint32_t value)
{
	return put16(put16(to, value >> 16), value);
}

static inline uint8_t *put64(uint8_t *to, uint64_t value)
{
	return put32(put32(to, (uint32_t)(value >> 32)), (uint32_t)value);
}

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
