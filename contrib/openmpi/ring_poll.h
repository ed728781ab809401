/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ring_poll.h - polling of the eager rings. */
#ifndef BTL_UDAPL_RING_POLL_H
#define BTL_UDAPL_RING_POLL_H

#include "udapl.h"

int udapl_progress(void);
int udapl_rings_poll(mca_btl_udapl_module_t *m);

#endif
