/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* bytes.h - reads and writes numbers in network byte order, at any address; tests bytes for zero. */
#ifndef COMMON_BYTES_H
#define COMMON_BYTES_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline uint16_t get_be16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static inline uint32_t get_be32(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* Each of these writes `value` at `to`, and returns the address after it. */
static inline uint8_t *put_be16(uint8_t *to, uint32_t value)
{
	to[0] = (uint8_t)(value >> 8);
	to[1] = (uint8_t)value;
	return to + 2;
}

static inline uint8_t *put_be32(uint8_t *to, uint32_t value)
{
	return put_be16(put_be16(to, value >> 16), value);
}

static inline uint8_t *put_be64(uint8_t *to, uint64_t value)
{
	return put_be32(put_be32(to, (uint32_t)(value >> 32)), (uint32_t)value);
}

static inline bool bytes_are_zero(const void *at, size_t n)
{
	const uint8_t *p = at;

	while (n && !*p)
		p++, n--;
	return !n;
}

#endif
