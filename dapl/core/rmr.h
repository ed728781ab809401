/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rmr.h - what rmr.c offers to ia.c. */
#ifndef DAPL_RMR_H
#define DAPL_RMR_H
#include "dapl/core/dapl.h"

/* Of a killed RMR. */
void dapl_rmr_destroy(struct dapl_rmr *rmr);

#endif
