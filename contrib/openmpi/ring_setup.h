/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ring_setup.h - offering, accepting and freeing eager rings. */
#ifndef BTL_UDAPL_RING_SETUP_H
#define BTL_UDAPL_RING_SETUP_H

#include "udapl.h"

void udapl_ring_offer(struct udapl_conn *c);
void udapl_ring_accept(struct udapl_conn *c, const struct udapl_ring_offer *offer);
void udapl_ring_free(struct udapl_conn *c);

#endif
