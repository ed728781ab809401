/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* store.h - stores of a peer into a target's memory: atomics, and the end of a write. */
#ifndef SOFT_OBJ_STORE_H
#define SOFT_OBJ_STORE_H
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "common/compiler.h"
#include "common/lock.h"

/* Executes an atomic at an aligned address: compare and swap if `swap`, else fetch and add. Returns the value
 * before it. `compare` counts only for a swap. EXT-4, 5, 6. */
static inline uint64_t soft_execute_atomic(char *at, bool swap, uint64_t data, uint64_t compare)
{
	if (!swap)
		return __atomic_fetch_add((uint64_t *)at, data, __ATOMIC_SEQ_CST);
	__atomic_compare_exchange_n((uint64_t *)at, &compare, data, false, __ATOMIC_SEQ_CST,
				    __ATOMIC_SEQ_CST);
	return compare;
}

/* Stores the end of a write, up to 8 bytes. It becomes visible after the bytes before it, and in one piece
 * if it is an aligned word. */
static inline void soft_store_tail(char *at, const void *bytes, uint32_t length)
{
	uint64_t word;

	__atomic_thread_fence(__ATOMIC_RELEASE);
	if (likely(length == 8) && likely((uintptr_t)at % 8 == 0)) {
		memcpy(&word, bytes, 8);
		__atomic_store_n((uint64_t *)at, word, __ATOMIC_RELEASE);
		return;
	}
	for (uint32_t i = 0; i < length; i++)
		__atomic_store_n(at + i, ((const char *)bytes)[i], __ATOMIC_RELEASE);
}

#endif
