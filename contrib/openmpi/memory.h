/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* memory.h - registered memory of the component. */
#ifndef BTL_UDAPL_MEMORY_H
#define BTL_UDAPL_MEMORY_H

#include "udapl.h"

/* Fills *memory; with `remote`, peers may write to it. Returns false, with base NULL, on
 * failure. */
bool udapl_memory_alloc(mca_btl_udapl_module_t *m, struct udapl_memory *memory, size_t size, bool remote);
/* After the return no peer can write to the memory. Does nothing if base is NULL. */
void udapl_memory_free(struct udapl_memory *memory);

#endif
