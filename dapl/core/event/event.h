/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* event.h - taking events out of an EVD (event.c). evd->lock is held by the caller unless said. */
#ifndef DAPL_EVENT_H
#define DAPL_EVENT_H
#include "dapl/core/dapl.h"

enum dapl_take {
	TAKE_EVENT,	/* *event is it */
	TAKE_EMPTY,
	TAKE_HELD,	/* the next completion must wait for ESTABLISHED, which is coming */
	TAKE_AGAIN,	/* run `after`, then take again */
};

/* What must be done for an endpoint once evd->lock is released: ep->lock is needed. */
enum dapl_after_what { AFTER_BROKEN = 1, AFTER_DRAINED = 2, AFTER_COMM_ESTABLISHED = 4 };
struct dapl_after {
	struct dapl_ep *ep;	/* a reference */
	unsigned what;
	enum ibv_wc_status status;	/* AFTER_BROKEN: of the failed completion */
};

enum dapl_take dapl_evd_take(struct dapl_evd *evd, DAT_EVENT *event, struct dapl_after *after);
/* Without any lock. */
void dapl_after_run(struct dapl_after *after);

/* Bit 2 is what rxe sets for "with invalidate" (the kernel's flag, not the library's);
 * on a connected QP the bit has no other meaning. */
#define WC_INVALIDATED (IBV_WC_WITH_INV | IBV_WC_IP_CSUM_OK)

#endif
