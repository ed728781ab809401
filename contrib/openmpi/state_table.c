/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* state_table.c - the names of the states, and the allowed transitions (state_table.h). */
#include "state_table.h"

#define BIT(state) (1u << (state))

static const char *const conn_states[] = {
	[UDAPL_CONN_CONNECTING] = "connecting",
	[UDAPL_CONN_ACCEPTED] = "accepted",
	[UDAPL_CONN_ESTABLISHED] = "established",
	[UDAPL_CONN_CLOSING] = "closing",
	[UDAPL_CONN_DISCONNECTED] = "disconnected",
	[UDAPL_CONN_CLOSED] = "closed",
};

static const char *const endpoint_states[] = {
	[UDAPL_IDLE] = "idle",
	[UDAPL_CONNECTING] = "connecting",
	[UDAPL_RETRY_WAIT] = "retry wait",
	[UDAPL_CONNECTED] = "connected",
	[UDAPL_FAILED] = "failed",
};

static const unsigned conn_next[] = {
	/* to CLOSED: the attempt failed */
	[UDAPL_CONN_CONNECTING] = BIT(UDAPL_CONN_ACCEPTED) | BIT(UDAPL_CONN_CLOSING) | BIT(UDAPL_CONN_CLOSED),
	[UDAPL_CONN_ACCEPTED] = BIT(UDAPL_CONN_ESTABLISHED) | BIT(UDAPL_CONN_CLOSING) | BIT(UDAPL_CONN_DISCONNECTED),
	[UDAPL_CONN_ESTABLISHED] = BIT(UDAPL_CONN_CLOSING) | BIT(UDAPL_CONN_DISCONNECTED),
	[UDAPL_CONN_CLOSING] = BIT(UDAPL_CONN_CLOSED),
	[UDAPL_CONN_DISCONNECTED] = BIT(UDAPL_CONN_CLOSED),
	[UDAPL_CONN_CLOSED] = 0,
};

static const unsigned endpoint_next[] = {
	[UDAPL_IDLE] = BIT(UDAPL_CONNECTING) | BIT(UDAPL_RETRY_WAIT) | BIT(UDAPL_FAILED),
	[UDAPL_CONNECTING] = BIT(UDAPL_CONNECTED) | BIT(UDAPL_IDLE) | BIT(UDAPL_FAILED),
	/* to CONNECTING: the peer's request came */
	[UDAPL_RETRY_WAIT] = BIT(UDAPL_IDLE) | BIT(UDAPL_CONNECTING) | BIT(UDAPL_FAILED),
	[UDAPL_CONNECTED] = BIT(UDAPL_IDLE) | BIT(UDAPL_FAILED),
	[UDAPL_FAILED] = 0,
};

bool udapl_conn_may_become(enum udapl_conn_state from, enum udapl_conn_state to)
{
	return from == to || (conn_next[from] & BIT(to)) != 0;
}

bool udapl_endpoint_may_become(enum udapl_endpoint_state from, enum udapl_endpoint_state to)
{
	return from == to || (endpoint_next[from] & BIT(to)) != 0;
}

const char *udapl_conn_state_name(enum udapl_conn_state state)
{
	return conn_states[state];
}

const char *udapl_endpoint_state_name(enum udapl_endpoint_state state)
{
	return endpoint_states[state];
}
