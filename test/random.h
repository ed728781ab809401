/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* random.h - numbers for tests that repeat a run from its seed: a generator, and a hash. */
#ifndef TEST_RANDOM_H
#define TEST_RANDOM_H
#include <stdint.h>

/* xorshift64: goes through all values but 0, so the state begins with another one. */
static inline uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Spreads x over 64 bits: the finaliser of MurmurHash3. Neighbours give unlike results. */
static inline uint64_t random_of(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdull;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ull;
	return x ^ x >> 33;
}

#endif
