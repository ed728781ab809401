/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* zero_based.c - keeps inline data away from memory regions whose addresses count from 0.
 *
 * For a short message the provider sets IBV_SEND_INLINE, and then libibverbs reads the addresses of the
 * segments as pointers. An address in a zero-based region is no pointer. To look up each region would slow
 * down every post. Instead the endpoints of a PZ stop sending inline data before the first zero-based
 * region of that PZ has a context: max_inline, which each post compares with the length anyway, becomes 0
 * permanently. doc/design/device-memory.md explains why no endpoint is missed. LMR-23, DM-15. */
#include <errno.h>
#include <stdlib.h>
#include "dapl/core/mem/zero_based.h"

/* The consumer cannot use the PZ's zero-based LMRs before this returns. */
static void stop_inline(struct dapl_ep *ep, const struct dapl_pz *pz)
{
	dapl_mutex_lock(&ep->lock);
	if (ep->pz == pz) {
		dapl_post_lock(&ep->sq.lock);
		ep->max_inline = 0;
		dapl_post_unlock(&ep->sq.lock);
	}
	dapl_mutex_unlock(&ep->lock);
}

/* Enters the endpoints first, because ep->lock is not taken under ia->lock. */
int dapl_zero_based_set(struct dapl_pz *pz)
{
	struct dapl_object **eps;
	size_t n;

	if (pz->obj.ia->attr.inline_by_lkey || dapl_flag(&pz->inline_stopped))
		return 0;
	if (!dapl_object_enter_all(pz->obj.ia, DAPL_EP, &eps, &n))
		return ENOMEM;
	dapl_flag_set(&pz->zero_based, true);
	for (size_t i = 0; i < n; i++) {
		stop_inline((struct dapl_ep *)eps[i], pz);
		dapl_object_leave(eps[i]);
	}
	dapl_flag_set(&pz->inline_stopped, true);
	free(eps);
	return 0;
}

void dapl_zero_based_follow(struct dapl_ep *ep)
{
	struct dapl_pz *pz;

	dapl_mutex_lock(&ep->lock);
	pz = ep->pz;
	dapl_mutex_unlock(&ep->lock);
	if (pz && dapl_pz_is_zero_based(pz))
		stop_inline(ep, pz);
}
