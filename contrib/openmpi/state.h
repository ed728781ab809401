/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* state.h - changes the state of a connection or an endpoint. Only conn.c and connect.c call it.
 * state_table.c has the allowed transitions. Each change is logged with the names of both states
 * (btl_base_verbose 40). */
#ifndef BTL_UDAPL_STATE_H
#define BTL_UDAPL_STATE_H

#include "udapl.h"

/* Called with endpoint->lock held. Returns false if the transition is not allowed: then the state
 * is unchanged, and a line of output names both states. */
bool udapl_conn_set_state(struct udapl_conn *c, enum udapl_conn_state to);
bool udapl_endpoint_set_state(mca_btl_base_endpoint_t *e, enum udapl_endpoint_state to);

#endif
