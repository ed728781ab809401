/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* target.h - the memory that the peer's RDMA writes and reads, and that own RDMA reads fill: a part of the link's
 * memory, or device memory (--dm), which this process may not be able to map. */
#ifndef DATPERF_TARGET_H
#define DATPERF_TARGET_H
#include "adapter.h"

struct target {
	size_t size;
	DAT_VADDR address; /* in requests */
	DAT_LMR_CONTEXT lmr_context;
	DAT_RMR_CONTEXT rmr_context;
	char *at;           /* in this process; NULL: device memory that is not mapped */
	char *copy;         /* room for its bytes then */
	DAT_HANDLE dm;      /* NULL: memory of the link */
	DAT_LMR_HANDLE lmr; /* of dm */
};

/* Returns how many threads can have device memory. Both sides may use the same adapter, so this side takes at most half
 * of the memory. */
unsigned long long target_device_threads(const struct adapter *a);
/* Allocates device memory and registers it with `rights`: at most `most` bytes, which is a power of two, and as much as
 * each of so many threads can have (target_device_threads()). */
void target_open_device(struct target *t, const struct adapter *a, unsigned threads, size_t most,
			DAT_MEM_PRIV_FLAGS rights);
/* Frees device memory. */
void target_close(struct target *t);

/* Sets the first bytes to 0, before the peer writes. */
void target_clear(struct target *t, size_t size);
/* Returns the first bytes, as they are now; valid until the next call. */
const char *target_read(struct target *t, size_t size);
/* Returns the byte at offset i, which the peer may write meanwhile. */
uint8_t target_byte(struct target *t, size_t i);

#endif
