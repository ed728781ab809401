/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* state_table.h - the states of connections and endpoints, and the allowed transitions (state_table.c).
 * Includes nothing of Open MPI. */
#ifndef BTL_UDAPL_STATE_TABLE_H
#define BTL_UDAPL_STATE_TABLE_H

#include <stdbool.h>

enum udapl_conn_state {
	UDAPL_CONN_CONNECTING,	/* requested or accepted; not established */
	UDAPL_CONN_ACCEPTED,	/* accepted and established; the requester has not sent its first
				 * message */
	UDAPL_CONN_ESTABLISHED,
	UDAPL_CONN_CLOSING,	/* close notification sent; waiting for the disconnect event */
	UDAPL_CONN_DISCONNECTED,	/* disconnected by the peer or the network; whether that
					 * was intended is not known yet */
	UDAPL_CONN_CLOSED,		/* finished; freed when no request is outstanding */
	UDAPL_CONN_STATES
};

enum udapl_endpoint_state {
	UDAPL_IDLE,		/* no connection; the first send requests one */
	UDAPL_CONNECTING,	/* a connection is requested or accepted */
	UDAPL_RETRY_WAIT,		/* connection requests collided or failed: waiting for the
					 * peer's request, or for the next attempt */
	UDAPL_CONNECTED,
	UDAPL_FAILED,
	UDAPL_ENDPOINT_STATES
};

/* Whether `to` may follow `from`. Each state may follow itself. */
bool udapl_conn_may_become(enum udapl_conn_state from, enum udapl_conn_state to);
bool udapl_endpoint_may_become(enum udapl_endpoint_state from, enum udapl_endpoint_state to);
const char *udapl_conn_state_name(enum udapl_conn_state state);
const char *udapl_endpoint_state_name(enum udapl_endpoint_state state);

#endif
