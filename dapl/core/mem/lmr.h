/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lmr.h - local memory regions (lmr.c). */
#ifndef DAPL_LMR_H
#define DAPL_LMR_H
#include "dapl/core/dapl.h"

/* Ends an LMR that was killed before. */
void dapl_lmr_destroy(struct dapl_lmr *lmr);
/* Does it hold [va, va + len)? */
bool dapl_lmr_holds(const struct dapl_lmr *lmr, DAT_VADDR va, uint64_t len);

#endif
