/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn_state.c - the states of a connection: which may follow which (conn_state.h). */
#include "common/trace.h"
#include "conn_state.h"
#include "dapl/core/base/cause.h"

static const char *const state_name[] = {
	[CONN_REQUESTED] = "requested",
	[CONN_RESOLVING_ADDRESS] = "resolving address",
	[CONN_RESOLVING_ROUTE] = "resolving route",
	[CONN_CONNECTING] = "connecting",
	[CONN_ACCEPTING] = "accepting",
	[CONN_ESTABLISHED] = "established",
	[CONN_PEER_CLOSED] = "peer closed",
	[CONN_DISCONNECTING] = "disconnecting",
	[CONN_CLOSED] = "closed",
};

#define BIT(state) (1u << (state))

/* The states that may follow. A state may always be set again: that changes nothing. */
static const unsigned may_follow[] = {
	[CONN_REQUESTED] = BIT(CONN_ACCEPTING) | BIT(CONN_CLOSED),
	[CONN_RESOLVING_ADDRESS] = BIT(CONN_RESOLVING_ROUTE) | BIT(CONN_CLOSED),
	[CONN_RESOLVING_ROUTE] = BIT(CONN_CONNECTING) | BIT(CONN_CLOSED),
	/* back to the first step if the port is taken */
	[CONN_CONNECTING] = BIT(CONN_ESTABLISHED) | BIT(CONN_RESOLVING_ADDRESS) | BIT(CONN_CLOSED),
	[CONN_ACCEPTING] = BIT(CONN_ESTABLISHED) | BIT(CONN_CLOSED),
	[CONN_ESTABLISHED] = BIT(CONN_PEER_CLOSED) | BIT(CONN_DISCONNECTING) | BIT(CONN_CLOSED),
	[CONN_PEER_CLOSED] = BIT(CONN_CLOSED),
	[CONN_DISCONNECTING] = BIT(CONN_CLOSED),
	/* an accept of a request whose peer is gone fails later, on the service thread */
	[CONN_CLOSED] = BIT(CONN_ACCEPTING),
};

const char *hw_conn_state_name(enum conn_state state)
{
	return (unsigned)state < CONN_STATES ? state_name[state] : "?";
}

bool hw_conn_may_follow(enum conn_state state, enum conn_state next)
{
	return (may_follow[state] & BIT(next)) != 0;
}

static void trace_state(struct dapl_conn *conn, const char *was)
{
	char local[DIAG_ADDRESS], remote[DIAG_ADDRESS], reason[DIAG_TEXT];

	trace(TRC_LVL_NORMAL, TRC_DAPL_EVENT, "conn", conn, state_name[conn->state],
	      "was %s%s, local %s, remote %s%s%s", was, conn->ud ? ", datagrams" : "",
	      dapl_cause_address(&conn->local, local), dapl_cause_address(&conn->remote, remote),
	      conn->caused ? ": " : "",
	      conn->caused ? dapl_cause_reason(&conn->cause, reason) : "");
}

void hw_conn_trace_new(struct dapl_conn *conn)
{
	trace_state(conn, "new");
}

bool hw_conn_set_state(struct dapl_conn *conn, enum conn_state next)
{
	enum conn_state was = conn->state;

	assert_held(&conn->lock);
	if (was == next)
		return true;
	if (!hw_conn_may_follow(was, next)) {
		trace(TRC_LVL_ERROR, TRC_DAPL_ERROR, "conn", conn, state_name[was],
		      "does not become %s", hw_conn_state_name(next));
		return false;
	}
	conn->state = next;
	trace_state(conn, state_name[was]);
	return true;
}

/* Lock held. */
enum dapl_conn_step hw_conn_step(const struct dapl_conn *conn)
{
	switch (conn->state) {
	case CONN_REQUESTED:		return DAPL_STEP_REQUEST;
	case CONN_RESOLVING_ADDRESS:	return DAPL_STEP_RESOLVE_ADDRESS;
	case CONN_RESOLVING_ROUTE:	return DAPL_STEP_RESOLVE_ROUTE;
	case CONN_CONNECTING:
		return conn->request_sent ? DAPL_STEP_REPLY : DAPL_STEP_CONNECT;
	case CONN_ACCEPTING:		return DAPL_STEP_READY;
	default:			return DAPL_STEP_TRANSFER;
	}
}
