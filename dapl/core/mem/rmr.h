/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rmr.h - remote memory regions (rmr.c). */
#ifndef DAPL_RMR_H
#define DAPL_RMR_H
#include "dapl/core/dapl.h"

/* Ends an RMR that was killed before. */
void dapl_rmr_destroy(struct dapl_rmr *rmr);

/* The LMR behind the RMR whose binding holds this range and may be written, entered; or NULL. */
struct dapl_lmr *dapl_rmr_target(struct dapl_ia *ia, const DAT_RMR_TRIPLET *range);
/* rmr->lock held, or no call is inside: the window is not bound, or no longer. */
void dapl_rmr_unbound(struct dapl_rmr *rmr);

#endif
