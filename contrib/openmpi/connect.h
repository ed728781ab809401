/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* connect.h - connections, and what may be posted on them. */
#ifndef BTL_UDAPL_CONNECT_H
#define BTL_UDAPL_CONNECT_H

#include "udapl.h"

/* Handles an event of module->conn_evd. */
void udapl_conn_event(mca_btl_udapl_module_t *m, const DAT_EVENT *event);
/* Resolves disconnects, starts due retries, frees closed connections, and reports failures. Called
 * by one thread at a time, after all completions were dequeued. */
void udapl_conn_housekeep(mca_btl_udapl_module_t *m);

/* Called with e->lock held. */
static inline bool udapl_has_waiting(mca_btl_base_endpoint_t *e)
{
	return !opal_list_is_empty(&e->sends) || !opal_list_is_empty(&e->rdmas);
}

/* Called with e->lock held, for requests that need no credit or already have one. */
static inline bool udapl_may_post(const struct udapl_conn *c)
{
	return c->state == UDAPL_CONN_ESTABLISHED && c->sq_free > 0;
}

/* Called with e->lock held. The count makes the peer poll its CQ, which also drives its device. */
static inline void udapl_count_post(struct udapl_conn *c)
{
	if (c->ring_out.ctl)
		c->ring_out.ctl->posted++;
}

#endif
