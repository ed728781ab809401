/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* progress.h - polling of completions and connections. */
#ifndef BTL_UDAPL_PROGRESS_H
#define BTL_UDAPL_PROGRESS_H

#include "udapl.h"

/* Called after a poll of the rings. Polls the CQ, connections if they are due, and the rings again.
 * Returns the number of events. */
int udapl_poll_completions(mca_btl_udapl_module_t *m);
/* Polls the rings and the CQ, and connections if `connections` is set. Returns the number of events. */
int udapl_progress_module(mca_btl_udapl_module_t *m, bool connections);
/* Dequeues the completion of the only outstanding RDMA operation, if it completed during its post. */
void udapl_reap_rdma(mca_btl_udapl_module_t *m);

#endif
