/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rmr.h - what rmr.c offers to ia.c. */
#ifndef DAPL_RMR_H
#define DAPL_RMR_H
#include "dapl/core/dapl.h"

/* Of a killed RMR. */
void dapl_rmr_destroy(struct dapl_rmr *rmr);

/* The LMR behind the RMR whose binding holds this range and may be written, or NULL. */
struct dapl_lmr *dapl_rmr_target(struct dapl_ia *ia, const DAT_RMR_TRIPLET *range);

#endif
