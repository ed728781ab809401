/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* evd_resize.h - the sizes of an EVD's ring and CQ (evd_resize.c). */
#ifndef DAPL_EVD_RESIZE_H
#define DAPL_EVD_RESIZE_H
#include "dapl/core/dapl.h"

/* Allocates the slots of an empty ring for `qlen` events. Returns 0 or ENOMEM. */
int dapl_evd_make_queue(struct dapl_evq *ring, int qlen);
/* Returns the entries of a CQ for `qlen` completions and the provider's markers, as far as the device
 * allows. */
int dapl_evd_cq_entries(struct dapl_ia *ia, int qlen);

DAT_RETURN dapl_evd_resize(DAT_EVD_HANDLE handle, DAT_COUNT qlen);

#endif
