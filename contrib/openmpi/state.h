/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* state.h - the states of connections and endpoints. Only connect.c changes them. Each change is
 * logged with the names of both states (btl_base_verbose 40). */
#ifndef BTL_UDAPL_STATE_H
#define BTL_UDAPL_STATE_H

#include "udapl.h"

/* Called with endpoint->lock held. */
void udapl_conn_set_state(struct udapl_conn *c, enum udapl_conn_state to);
void udapl_endpoint_set_state(mca_btl_base_endpoint_t *e, enum udapl_endpoint_state to);

#endif
