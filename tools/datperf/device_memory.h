/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* device_memory.h - allocates and frees memory of the device for a link. */
#ifndef DATPERF_DEVICE_MEMORY_H
#define DATPERF_DEVICE_MEMORY_H
#include "link.h"

/* Allocates `size` bytes and registers them with `rights`: sets l->out, l->base, l->dm, l->lmr and
 * the contexts. Calls fail() if the IA has no device memory that this process can map. */
void device_memory_take(struct link *l, size_t size, DAT_MEM_PRIV_FLAGS rights);
/* Frees the memory. The LMR must be freed before. */
void device_memory_free(struct link *l);

#endif
