/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* state.c - changes the state of a connection or an endpoint, and logs the change. */
#include "state.h"
#include "opal/util/output.h"

enum { VERBOSITY = 40 };	/* of btl_base_verbose */

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

static void trace(const mca_btl_base_endpoint_t *e, const char *what, const char *from,
		  const char *to)
{
	opal_output_verbose(VERBOSITY, opal_btl_base_framework.framework_output,
			    "btl:udapl: %s: %s to %s: %s -> %s", e->module->name, what,
			    OPAL_NAME_PRINT(e->name), from, to);
}

void udapl_conn_set_state(struct udapl_conn *c, enum udapl_conn_state to)
{
	enum udapl_conn_state from = c->state;

	c->state = to;
	if (from != to)
		trace(c->endpoint, c->active ? "requested connection" : "accepted connection",
		      conn_states[from], conn_states[to]);
}

void udapl_endpoint_set_state(mca_btl_base_endpoint_t *e, enum udapl_endpoint_state to)
{
	enum udapl_endpoint_state from = e->state;

	e->state = to;
	if (from != to)
		trace(e, "endpoint", endpoint_states[from], endpoint_states[to]);
}
