/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* toeplitz.c - the Toeplitz hash, a byte of the input at a time. */
#include "dapl/softeth/toeplitz.h"

uint32_t toeplitz_window(const uint8_t key[TOEPLITZ_KEY], unsigned offset)
{
	uint64_t bits = 0;

	for (unsigned i = offset / 8; i < offset / 8 + 5; i++)
		bits = bits << 8 | (i < TOEPLITZ_KEY ? key[i] : 0);
	return (uint32_t)(bits >> (8 - offset % 8));
}

/* HOT: once for each frame of a group. Without a branch: the bits are random. */
uint32_t toeplitz_hash(const uint8_t key[TOEPLITZ_KEY], const uint8_t *input, size_t length)
{
	uint32_t hash = 0;
	uint64_t bits = 0;	/* the window of the byte's first bit, and the 8 bits behind it */

	for (size_t i = 0; i < 5; i++)
		bits = bits << 8 | key[i];
	for (size_t i = 0; i < length; i++) {
		for (unsigned bit = 0; bit < 8; bit++)
			hash ^= (uint32_t)(bits >> (8 - bit)) & -((uint32_t)input[i] >> (7 - bit) & 1);
		bits = bits << 8 | (i + 5 < TOEPLITZ_KEY ? key[i + 5] : 0);
	}
	return hash;
}
