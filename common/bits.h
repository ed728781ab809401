/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* bits.h - arithmetic on powers of two. */
#ifndef COMMON_BITS_H
#define COMMON_BITS_H
#include <stdint.h>

/* The smallest power of two that is not below n; n is at most 1 << 31. */
static inline uint32_t round_up_power_of_two(uint32_t n)
{
	uint32_t p = 1;

	while (p < n)
		p <<= 1;
	return p;
}

#endif
