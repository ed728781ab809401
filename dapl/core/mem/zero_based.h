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

/* The PZ is about to get a zero-based LMR, whose context no consumer knows yet: from now on no endpoint
 * of the PZ sends inline data, if that would be read at the address. Returns 0 or ENOMEM. No lock is
 * held. */
int dapl_pz_set_zero_based(struct dapl_pz *pz);
/* The endpoint was published. dapl_pz_set_zero_based may have run before, and missed it, since
 * the endpoint was not listed yet. */
void dapl_ep_follow_zero_based(struct dapl_ep *ep);

#endif
