/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* zero_based.h - memory regions whose addresses count from 0 (zero_based.c). */
#ifndef DAPL_ZERO_BASED_H
#define DAPL_ZERO_BASED_H
#include "dapl/core/dapl.h"

/* True if endpoints of the PZ must not send inline data. */
static inline bool dapl_pz_is_zero_based(const struct dapl_pz *pz)
{
	return dapl_flag(&pz->zero_based);
}

/* Called before the PZ gets a zero-based LMR. From now on no endpoint of the PZ sends inline data, unless
 * the device can read inline data in regions. Returns 0 or ENOMEM. Called with no lock held. */
int dapl_zero_based_set(struct dapl_pz *pz);
/* Called after the endpoint was published. dapl_zero_based_set may have run before, and missed the
 * endpoint because it was not listed. */
void dapl_zero_based_follow(struct dapl_ep *ep);

#endif
