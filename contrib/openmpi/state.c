/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* state.c - changes the state of a connection or an endpoint, and logs the change. */
#include "state.h"
#include "opal/util/output.h"

enum { VERBOSITY = 40 };	/* of btl_base_verbose */

static void trace(const mca_btl_base_endpoint_t *e, const char *what, const char *from,
		  const char *to)
{
	opal_output_verbose(VERBOSITY, opal_btl_base_framework.framework_output,
			    "btl:udapl: %s: %s to %s: %s -> %s", e->module->name, what,
			    OPAL_NAME_PRINT(e->name), from, to);
}

/* Reports a transition that is not allowed, a defect of the component. Returns false. */
static bool refuse(const mca_btl_base_endpoint_t *e, const char *what, const char *from,
		   const char *to)
{
	opal_output(0, "btl:udapl: %s: %s to %s: %s does not become %s", e->module->name, what,
		    OPAL_NAME_PRINT(e->name), from, to);
	return false;
}

static const char *kind_of(const struct udapl_conn *c)
{
	return c->active ? "requested connection" : "accepted connection";
}

bool udapl_conn_set_state(struct udapl_conn *c, enum udapl_conn_state to)
{
	const char *from_name = udapl_conn_state_name(c->state);
	bool changes = c->state != to;

	if (!udapl_conn_may_become(c->state, to))
		return refuse(c->endpoint, kind_of(c), from_name, udapl_conn_state_name(to));
	c->state = to;
	if (changes)
		trace(c->endpoint, kind_of(c), from_name, udapl_conn_state_name(to));
	return true;
}

bool udapl_endpoint_set_state(mca_btl_base_endpoint_t *e, enum udapl_endpoint_state to)
{
	const char *from_name = udapl_endpoint_state_name(e->state);
	bool changes = e->state != to;

	if (!udapl_endpoint_may_become(e->state, to))
		return refuse(e, "endpoint", from_name, udapl_endpoint_state_name(to));
	e->state = to;
	if (changes)
		trace(e, "endpoint", from_name, udapl_endpoint_state_name(to));
	return true;
}
