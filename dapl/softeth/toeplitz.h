/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* toeplitz.h - the Toeplitz hash of receive side scaling: the input's bits select windows of 32 bits of the key,
 * which are added without carry. Plain C, without state. */
#ifndef SOFTETH_TOEPLITZ_H
#define SOFTETH_TOEPLITZ_H
#include <stddef.h>
#include <stdint.h>

enum {
	TOEPLITZ_KEY = 40,		/* bytes */
	TOEPLITZ_INPUT_MAX = 36,	/* bytes: two IPv6 addresses and two ports; the key ends there */
};

/* The 32 bits of the key from bit `offset` on, the highest bit of a byte first. */
uint32_t toeplitz_window(const uint8_t key[TOEPLITZ_KEY], unsigned offset);
uint32_t toeplitz_hash(const uint8_t key[TOEPLITZ_KEY], const uint8_t *input, size_t length);

#endif
