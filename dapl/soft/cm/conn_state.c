/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn_state.c - see conn_state.h. initiator.c, listen.c, acceptor.c, handshake.c and cm.c decide when the
 * state changes. */
#include "dapl/soft/cm/conn_state.h"
#include "common/log.h"
#include "common/trace.h"
#include "dapl/core/base/cause.h"
#include "dapl/soft/cm/conn.h"
#include "dapl/soft/obj/rnic.h"
#include <stdlib.h>

#define IS(state)	(1u << SOFT_##state)

static const struct {
	const char *name;
	unsigned from;		/* the states before it: bits */
} table[] = {
	[SOFT_NEW] = { "new", 0 },
	/* once more after a Request of MPA revision 2 that the peer did not understand */
	[SOFT_CONNECTING] = { "connecting", IS(NEW) | IS(WAIT_REPLY) },
	[SOFT_WAIT_REPLY] = { "waiting for the reply", IS(CONNECTING) },
	[SOFT_ATTACHING] = { "attaching shared memory", IS(WAIT_REPLY) },
	[SOFT_WAIT_REQUEST] = { "waiting for the request", IS(NEW) },
	[SOFT_REQUESTED] = { "requested", IS(WAIT_REQUEST) },
	[SOFT_WAIT_FIRST] = { "waiting for the first frame", IS(REQUESTED) },
	/* from REQUESTED and WAIT_REPLY: the peer is another implementation */
	[SOFT_OPEN] = { "open", IS(WAIT_REPLY) | IS(ATTACHING) | IS(REQUESTED) | IS(WAIT_FIRST) },
	[SOFT_CLOSING] = { "closing", IS(OPEN) },
	[SOFT_CLOSED] = { "closed", IS(NEW) | IS(CONNECTING) | IS(WAIT_REPLY) | IS(ATTACHING) |
			  IS(WAIT_REQUEST) | IS(REQUESTED) | IS(WAIT_FIRST) | IS(OPEN) | IS(CLOSING) },
};

const char *cm_state_name(enum soft_conn_state state)
{
	return table[state].name;
}

bool cm_may_follow(enum soft_conn_state from, enum soft_conn_state to)
{
	return table[to].from & 1u << from;
}

static void report(const struct dapl_conn *conn, enum soft_conn_state state, const char *why)
{
	log_line(LOG_BIT_ERROR, "soft: internal error: connection %p, %s, cannot become %s (%s)",
		 (const void *)conn, cm_state_name(conn->state), cm_state_name(state), why);
#ifdef DAPL_LOCK_CHECK
	abort();
#endif
}

void cm_set_state(struct dapl_conn *conn, enum soft_conn_state state, const char *why)
{
	char local[DIAG_ADDRESS], remote[DIAG_ADDRESS];
	const struct sockaddr_storage *from =
		conn->local.ss_family ? &conn->local : &conn->dev->address;

	if (!cm_may_follow(conn->state, state)) {
		report(conn, state, why);
		return;
	}
	trace(TRC_LVL_NORMAL, TRC_DAPL_EVENT, "conn", conn, cm_state_name(state),
	      "was %s (%s)%s, local %s, remote %s", cm_state_name(conn->state), why,
	      conn->cm->ud ? ", datagrams" : "", dapl_cause_address(from, local),
	      dapl_cause_address(&conn->remote, remote));
	__atomic_store_n(&conn->state, state, __ATOMIC_RELAXED);
}
