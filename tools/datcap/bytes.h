/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* bytes.h - numbers in network byte order, and the sum of Internet checksums (RFC 1071), for frames that datcap
 * makes. What the fields mean is the job of the files that use it. */
#ifndef TOOLS_DATCAP_BYTES_H
#define TOOLS_DATCAP_BYTES_H
#include <stddef.h>
#include <stdint.h>

/* Each returns the place behind the number. */
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

/* Continues `sum` with n bytes, folded to 16 bits; not yet complemented. */
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
